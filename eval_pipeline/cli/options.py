"""Options that several commands share, and what becomes of them."""

from collections.abc import Iterable, Mapping
from datetime import date
from math import isfinite, nan
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.core.days import today
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.private import make_private

if TYPE_CHECKING:
    from eval_pipeline.workspace.workspace import Workspace

OK, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: fine; a check, a gate or part of a run failed; bad usage or input; interrupted."""

Suites = Annotated[list[str] | None, typer.Option("--suite", help="Suite; several times for several; all if left out.")]
Versions = Annotated[
    list[str] | None,
    typer.Option("--model-version", help="Model version; several times for several; all active ones if left out."),
]
SampleSize = Annotated[
    int | None, typer.Option(min=1, help="Only this many conversations, drawn at random; the same ones each time.")
]
Seed = Annotated[int, typer.Option(help="Seed of --sample-size.")]
CaseIds = Annotated[list[str] | None, typer.Option("--case", help="Only this case; several times for several.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only cases with this tag; several times for several.")]
Failed = Annotated[bool, typer.Option("--failed", help="Only cases that failed in the latest full run.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ask the models anew instead of using journalled responses.")]
EvalDate = Annotated[str | None, typer.Option(help="Logical date of the evaluation, YYYY-MM-DD; today if left out.")]


def open_workspace() -> "Workspace":
    """The workspace of the home that the environment names."""
    from eval_pipeline.workspace.workspace import Workspace

    home = find_home()
    make_private(home.root)
    return Workspace(home)


def suite_names(workspace: "Workspace", names: list[str] | None) -> list[str]:
    """The suites named, or all. Raises UsageError for an unknown one."""
    return [workspace.suite(name).name for name in dict.fromkeys(names)] if names else list(workspace.suites)


def model_version_names(workspace: "Workspace", names: list[str] | None) -> list[str]:
    """The model versions named, or all active ones. Raises UsageError for an unknown one."""
    if names:
        return [workspace.model_version(name).name for name in dict.fromkeys(names)]
    return [version.name for version in workspace.model_versions.values() if version.active]


def askable_pairs(
    workspace: "Workspace", versions: list[str], suites: list[str], *, named: bool
) -> list[tuple[str, str]]:
    """Each (model version, suite) to evaluate; of those that cannot be, a note says why.

    Raises:
        UsageError: nothing is left, or both were named and one of the pairs cannot be evaluated.
    """
    from eval_pipeline.cli.terminal import note

    pairs = [(version, suite) for version in versions for suite in suites]
    skipped = {pair: why for pair in pairs if (why := workspace.why_not(*pair))}
    if skipped and (named or len(skipped) == len(pairs)):
        (version, suite), why = next(iter(skipped.items()))
        raise UsageError(f"'{version}' cannot be evaluated on '{suite}': it {why}")
    left_out: dict[tuple[str, str], list[str]] = {}
    for (version, suite), why in skipped.items():
        left_out.setdefault((version, why), []).append(suite)
    for (version, why), names in left_out.items():
        note(f"note: '{version}' is not evaluated on {', '.join(names)}: it {why}")
    return [pair for pair in pairs if pair not in skipped]


def parse_day(text: str | None) -> date:
    """The date, or today. Raises UsageError where it is none."""
    try:
        return date.fromisoformat(text) if text else today()
    except ValueError as error:
        raise UsageError(f"'{text}' is no date; expected YYYY-MM-DD") from error


def parse_gates(texts: list[str] | None) -> dict[str, float]:
    """Gates given as METRIC=VALUE. Raises UsageError where one is not."""
    gates = {}
    for text in texts or ():
        metric, _, value = text.partition("=")
        try:
            gates[metric] = float(value)
        except ValueError:
            gates[metric] = nan
        if not isfinite(gates[metric]):  # nothing is below "nan": such a gate would always be passed
            raise UsageError(f"'{text}' is no gate; expected METRIC=VALUE, e.g. correct=0.8")
    return gates


def check_gates(workspace: "Workspace", gates: Mapping[str, float], pairs: Iterable[tuple[str, str]]) -> None:
    """Refuses gates on what an evaluation of a (model version, suite) will not have, before anything is asked.

    Raises:
        UsageError: with the known metrics.
    """
    if not gates:
        return
    from eval_pipeline.analysis.aggregates.statistics import SHARED_MEANS, SHARED_RATES

    shared = {*SHARED_RATES, *SHARED_MEANS, "conversation_success", "latency_ms_p50", "latency_ms_p95"}
    for version, suite in pairs:
        if not workspace.suite(suite).header:
            continue  # the run says what is wrong with it
        samples = workspace.model_version(version).samples_per_turn
        repeated = {f"pass{sign}{k}" for sign in "@^" for k in range(1, samples + 1) if samples > 1}
        own = {metric.name for metric in workspace.track(suite).metrics if metric.kind != "label"}
        known = shared | own | repeated
        for metric in gates:
            if metric not in known:
                raise UsageError(f"{suite} has no metric '{metric}'; metrics: {', '.join(sorted(known))}")

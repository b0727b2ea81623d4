"""Options that several commands share, and functions that interpret them."""

import os
from collections.abc import Iterable, Mapping
from datetime import date
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.system.days import today
from eval_pipeline.core.system.private import make_private
from eval_pipeline.store.published.form import store_form

if TYPE_CHECKING:
    from eval_pipeline.workspace.workspace import Workspace

OK, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: success; a check, gate or part of a run failed; wrong usage or input; interrupted."""

Suites = Annotated[list[str] | None, typer.Option("--suite", help="Suite; repeat it for several; default: all.")]
Versions = Annotated[
    list[str] | None,
    typer.Option("--model-version", help="Model version; repeat it for several; default: all active ones."),
]
Prompts = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt", help="Ask with this prompt of the suites; repeat it for several; default: the track's own."
    ),
]
AllPrompts = Annotated[
    bool, typer.Option("--all-prompts", help="Ask with the track's own prompt and with each one of the suites.")
]
SampleSize = Annotated[
    int | None, typer.Option(min=1, help="Only this many conversations; the random draw is the same each time.")
]
Seed = Annotated[int, typer.Option(help="Seed of --sample-size.")]
CaseIds = Annotated[list[str] | None, typer.Option("--case", help="Only this case; repeat it for several.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only cases with this tag; repeat it for several.")]
Failed = Annotated[bool, typer.Option("--failed", help="Only cases that failed in the latest full run.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ask the models again instead of using journalled responses.")]
Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write checks and gates as a JUnit file, for CI.")
]
Paths = Annotated[bool, typer.Option("--paths", help="Name the files of store and reports, too.")]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="The most that everything may cost together, models and judges; what does not fit is not asked. "
        "Default: EVAL_MAX_COST_USD.",
    ),
]
EvalDate = Annotated[str | None, typer.Option(help="Logical date of the evaluation, YYYY-MM-DD; default: today.")]
DateOfNewest = Annotated[
    str | None, typer.Option("--eval-date", help="Logical date of the evaluation, YYYY-MM-DD; default: the newest.")
]


def check_utf8(arguments: Iterable[str]) -> None:
    """Raises UsageError for an argument that is not UTF-8 and names no file: nothing could be written with it."""
    for argument in arguments:
        is_whole = argument.encode("utf-8", "ignore").decode() == argument
        # `--option=value` has the name of a file at its end.
        if not is_whole and not os.path.exists(argument.split("=")[-1]):
            raise UsageError(f"argument {argument!a} is not UTF-8 text; write it in UTF-8")


def open_workspace() -> "Workspace":
    """Opens the workspace in the home that the environment names. Raises UsageError for an unknown EVAL_STORE."""
    from eval_pipeline.workspace.workspace import Workspace

    store_form()  # else it would be told when a run publishes, after hours
    home = find_home()
    make_private(home.root)
    return Workspace(home)


def suite_names(workspace: "Workspace", names: list[str] | None) -> list[str]:
    """Returns the named suites, or all of them if none is named.

    Raises:
        UsageError: one of them is unknown, or there are no suites at all.
    """
    if not workspace.suites:
        raise UsageError(no_suite(workspace.home.suite_folders))
    return [workspace.suite(name).name for name in dict.fromkeys(names)] if names else list(workspace.suites)


def no_suite(folders: Iterable[Path]) -> str:
    """Returns the message for a home without suites: where they were looked for, and how to get one."""
    places = " or ".join(map(str, folders))
    return f"there is no suite in {places}; `eval-pipeline init FOLDER` makes a project with a sample suite"


def model_version_names(
    workspace: "Workspace",
    names: list[str] | None,
    suites: list[str],
    prompts: list[str] | None = None,
    *,
    all_prompts: bool = False,
) -> list[str]:
    """Returns the named model versions, or all active ones; with prompts, `<model version>+<prompt>` for each of both.

    Args:
        workspace: the workspace.
        names: model versions.
        suites: of whose prompts all are meant by `all_prompts`.
        prompts: names of prompts to ask with instead of the track's own.
        all_prompts: whether to ask with the track's own and with every one that a suite has.

    Raises:
        UsageError: a name is unknown, or prompts do not reach a model version that is named.
    """
    from eval_pipeline.providers.registry import takes_prompts

    if prompts and all_prompts:
        raise UsageError("--all-prompts asks with every prompt; leave out --prompt")
    active = [version.name for version in workspace.model_versions.values() if version.active]
    found = [workspace.model_version(name).name for name in dict.fromkeys(names)] if names else active
    if not prompts and not all_prompts:
        return found
    if not names or all_prompts:  # those that no prompt reaches are asked as ever, or left out
        reached = [name for name in found if takes_prompts(workspace.model_version(name))]
    else:
        reached = found
    headers = [header for name in suites if (header := workspace.suite(name).header)]
    asked = prompts or list(dict.fromkeys(prompt for header in headers for prompt in header.prompts))
    with_prompts = [workspace.model_version(f"{name}+{prompt}").name for name in reached for prompt in asked]
    return [*found, *with_prompts] if all_prompts else list(dict.fromkeys(with_prompts))


def askable_pairs(
    workspace: "Workspace", versions: list[str], suites: list[str], *, named: bool
) -> list[tuple[str, str]]:
    """Returns each (model version, suite) to evaluate; a note explains each pair that cannot be evaluated.

    Raises:
        UsageError: no pair is left, or both were named explicitly and one pair cannot be evaluated.
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
    """Returns the given date, or today. Raises a UsageError if the text is not a date."""
    try:
        return date.fromisoformat(text) if text else today()
    except ValueError as error:
        raise UsageError(f"'{text}' is not a date; expected YYYY-MM-DD") from error


def parse_gates(texts: list[str] | None) -> dict[str, float]:
    """Parses gates given as METRIC=VALUE. Raises a UsageError if one is malformed."""
    gates = {}
    for text in texts or ():
        metric, _, value = text.partition("=")
        try:
            gates[metric] = float(value)
        except ValueError:
            gates[metric] = nan
        if not isfinite(gates[metric]):  # nothing is below "nan", so such a gate would never fail
            raise UsageError(f"'{text}' is not a gate; expected METRIC=VALUE, e.g. correct=0.8")
    return gates


def check_gates(workspace: "Workspace", gates: Mapping[str, float], pairs: Iterable[tuple[str, str]]) -> None:
    """Rejects gates on metrics that an evaluation of a (model version, suite) will not have, before any model is asked.

    Raises:
        UsageError: a metric is unknown; the message lists the known ones.
    """
    if not gates:
        return
    from eval_pipeline.analysis.aggregates.statistics import SHARED_MEANS, SHARED_RATES

    shared = {*SHARED_RATES, *SHARED_MEANS, "conversation_success", "latency_ms_p50", "latency_ms_p95"}
    for version, suite in pairs:
        if not workspace.suite(suite).header:
            continue  # the run reports what is wrong with it
        samples = workspace.model_version(version).samples_per_turn
        repeated = {f"pass{sign}{k}" for sign in "@^" for k in range(1, samples + 1) if samples > 1}
        own = {metric.name for metric in workspace.track(suite).metrics if metric.kind != "label"}
        known = shared | own | repeated
        for metric in gates:
            if metric not in known:
                raise UsageError(f"{suite} has no metric '{metric}'; metrics: {', '.join(sorted(known))}")

"""The option `--until` of `run` and `plan`."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.core import shown
from eval_pipeline.core.covering.until import FORMS, Until
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from eval_pipeline.core.model import Partition
    from eval_pipeline.operations.runs.drawing import Expected
    from eval_pipeline.workspace.asked.scope import Scope
    from eval_pipeline.workspace.workspace import Workspace

Rule = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="RULE", help=f"Ask cases, chosen by earlier evaluations, only until this holds: {FORMS}."
    ),
]


def parse_until(
    text: str | None, scope: "Scope", gates: Iterable[str] = (), baseline: str | None = None
) -> Until | None:
    """Parses the stopping rule; None if there is none.

    Args:
        text: the rule as the user wrote it.
        scope: the part of the suite that was asked for.
        gates: metrics that have gates.
        baseline: model version that a gate compares with.

    Raises:
        UsageError: the text is not a rule, or contradicts another option.
    """
    if text is None:
        return None
    rule = Until.parse(text)
    if not scope.is_full:
        raise UsageError("--until chooses among all cases; leave out --sample-size, --case, --tag and --failed")
    if other := next((metric for metric in gates if metric != "correct"), None):
        raise UsageError(f"with --until, only `correct` is known for the whole suite; leave out the gate on '{other}'")
    if baseline is not None and baseline != rule.baseline:
        raise UsageError(f"with --until, the gate --baseline needs the rule 'decided-against {baseline}'")
    return rule


def nightly_lines(workspace: "Workspace", partition: "Partition", *, named: bool) -> Iterator[str]:
    """Yields the lines of `plan` on what the nightly schedule asks, if it asks only a part on most nights.

    `named` if they have to say of which suite and model version they are.
    """
    version = workspace.model_version(partition.model_version)
    if version.nightly is not None and version.active:
        from eval_pipeline.operations.runs.nights import night_lines

        if named:
            yield f"{partition.suite} · {version.name}"
        yield from night_lines(workspace, partition, version.nightly)


def expected_lines(found: "Expected", rule: Until, *, named: bool) -> Iterator[str]:
    """Yields the lines of `plan --until` on one suite and model version; `named` as in `nightly_lines`."""
    if named:
        yield f"{found.whole.suite} · {found.whole.model_version}"
    yield f"  until     {rule.label()}: {rule.chosen(found.evaluations)}"
    if found.cases is None:
        most = "all" if found.most == found.suite_cases else f"{found.most:,}"
        of = shown.counted(found.suite_cases, "case", "cases")
        yield f"            at least {found.fewest:,} of {of}, at most {most}: the answers decide"
        return
    cost = "" if found.usd is None else f", at most {shown.dollars(found.usd)} without recovery"
    yield f"            expected {found.turns:,} of {shown.turns(found.suite_turns)}{cost}"

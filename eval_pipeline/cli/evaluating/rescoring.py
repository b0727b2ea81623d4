"""The command `rescore`: scores recorded evaluations again with the current code."""

from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import FAILED, OK, Suites, open_workspace, parse_day, suite_names
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown

if TYPE_CHECKING:
    from eval_pipeline.operations.runs.rescoring import Rescored


def rescore(
    suite: Suites = None,
    model_version: Annotated[
        list[str] | None, typer.Option(help="Model version; repeat it for several; default: all.")
    ] = None,
    eval_date: Annotated[
        list[str] | None, typer.Option(help="Date of the evaluation, YYYY-MM-DD; repeat it for several; default: all.")
    ] = None,
    ask_judge: Annotated[
        bool, typer.Option("--ask-judge", help="Ask the judge again where the question to it has changed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be scored again.")] = False,
) -> None:
    """Scores evaluations again that were scored by other code or other library versions. No model is asked.

    The previous figures are kept in the table `superseded_statistics`.
    """
    from eval_pipeline.cli.evaluating.sweeping import begin
    from eval_pipeline.cli.terminal import ProgressBars, fail, note
    from eval_pipeline.operations.runs import rescoring
    from eval_pipeline.operations.runs.changes import changes_told
    from eval_pipeline.workspace.inputs import Inputs
    from eval_pipeline.workspace.progress import counted

    workspace = open_workspace()
    dates = [parse_day(text) for text in eval_date or ()]
    chosen = rescoring.ChosenEvaluations(
        suite_names(workspace, suite) if suite or workspace.suites else (), model_version or (), dates
    )
    with ProgressBars() as progress:
        found = rescoring.evaluations(workspace, chosen)
        looked_at = counted(progress, "looking what other code scored", found, len(found))
        waiting = rescoring.outdated(workspace, looked_at, ask_judge=ask_judge)
        workspace.fingerprints.save()
        if dry_run:
            told = [rescoring.as_it_is(workspace, partition) for partition in waiting]
        else:
            begin(workspace, progress)
            told = rescoring.rescore(workspace, waiting, progress, ask_judge=ask_judge)
    for one in told:
        (fail if one.problem else say)(_line(one, dry_run=dry_run))
        for text in changes_told(Inputs.of(workspace, one.partition)) if dry_run else ():
            note(text)
    turns = sum(one.turns for one in told if not one.problem)
    rest = "" if told else "; all are of today's code"
    note(f"{len(told)} of {shown.counted(len(found), 'evaluation', 'evaluations')}, {shown.turns(turns)}{rest}")
    raise typer.Exit(FAILED if any(one.problem for one in told) else OK)


def _line(one: "Rescored", *, dry_run: bool) -> str:
    place = f"{one.partition.suite} · {one.partition.model_version} · {one.partition.eval_date}"
    if one.problem:
        return f"{place}: not scored again: {one.problem}"
    before, after = shown.rates(one.before, one.after, one.low, one.high)
    return f"{place}: {shown.turns(one.turns)}, {before}" + ("" if dry_run else f" → {after}")

"""The command `remove`: removes a model version."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import BAD_USAGE, open_workspace
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from eval_pipeline.operations.upkeep.removing import Removed


def remove(
    model_version: Annotated[str, typer.Argument(help="Model version to remove.")],
    suite: Annotated[
        list[str] | None, typer.Option("--suite", help="Only its evaluations of this suite; repeat it for several.")
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also its responses: journal, batches, judge's cache, predictions, exports.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Removes a model version's evaluations, reports and rows; with --purge, also every byte of its responses.

    If the command is interrupted, the next one completes the removal.
    """
    from eval_pipeline.cli.evaluating.sweeping import begin
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.defs.running.removing import forget
    from eval_pipeline.operations.upkeep.purging import Removal
    from eval_pipeline.operations.upkeep.removing import is_interrupted
    from eval_pipeline.operations.upkeep.removing import remove as remove_from_home

    workspace = open_workspace()
    workspace.place.fresh_store()
    removal = Removal(model_version, frozenset(suite) if suite else None, purge)
    interrupted = is_interrupted(workspace, model_version)
    with ProgressBars() as progress:
        begin(workspace, progress)
    if interrupted and is_interrupted(workspace, model_version):
        raise typer.Exit(BAD_USAGE)
    try:
        planned = remove_from_home(workspace, removal, dry_run=True)
    except UsageError:
        if not interrupted:
            raise
        say(f"removed: {model_version}, by completing the removal that was interrupted")
        return
    runs = forget(workspace.home, model_version, partition=False, history=purge, dry_run=True)
    _tell(planned, runs, "would be removed" if dry_run else "to be removed")
    if dry_run:
        return
    if not yes:
        _ask(model_version, purge=purge)
    with ProgressBars() as progress:
        done = remove_from_home(workspace, removal, dry_run=False, progress=progress, forget=forget)
    evaluations = shown.counted(len(done.partitions), "evaluation", "evaluations")
    say(f"removed: {model_version}, {evaluations}{' and all responses' * purge}")


def _ask(model_version: str, *, purge: bool) -> None:
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for confirmation; --yes continues without asking")
    what = "with all its responses, which nothing brings back" if purge else "its responses stay in the journal"
    typer.confirm(f"Remove {model_version} ({what})?", abort=True)


def _tell(found: "Removed", runs: int, would: str) -> None:
    from eval_pipeline.cli.terminal import note

    for partition in found.partitions:
        say(f"{partition.suite} · {partition.model_version} · {partition.eval_date}")
    say(
        f"{would}: {shown.counted(len(found.partitions), 'evaluation', 'evaluations')}, "
        f"{shown.counted(found.files, 'file', 'files')} with {shown.size(found.size)}"
    )
    if found.entry:
        say(f"{would}: the imported entry of `model_versions.yaml`")
    if (purged := found.purged) is not None:
        say(
            f"{would}: {shown.counted(purged.responses, 'response', 'responses')} and "
            f"{shown.counted(purged.batches, 'batch', 'batches')} of the journal, "
            f"{shown.counted(purged.judgements, 'judgement', 'judgements')} of the cache, "
            f"{shown.counted(purged.files, 'file', 'files')} (predictions, exports, repairs), "
            f"{runs:,} runs of Dagster's history"
        )
        if purged.of_nobody:
            note(
                f"{purged.of_nobody:,} of the responses were journalled by an older version, which did not note who "
                "asked; no evaluation that stays holds them"
            )
        if purged.batches:
            note("what a provider keeps of batches has to be deleted there")
    if found.listed_in is not None:
        note(f"{found.listed_in} still lists it: delete the entry there, or the next run evaluates it again")

"""Commands that tend a home: acknowledge, packages, prune, remove."""

import sys
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import BAD_USAGE, Suites, open_workspace, suite_names
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.state.place import state_place

if TYPE_CHECKING:
    from eval_pipeline.operations.upkeep.removing import Removed


def acknowledge(
    suite: Annotated[str, typer.Option(help="Suite on which the model version lost.")],
    model_version: Annotated[str, typer.Option(help="Model version that lost.")],
    why: Annotated[str, typer.Option(help="The reason, for those who ask later.")],
    who: Annotated[str | None, typer.Option(help="Who acknowledges it; default: you.")] = None,
) -> None:
    """Acknowledges that a model version became worse on a suite, so that this no longer makes runs fail.

    Stores who acknowledged it and why. A later loss is reported as usual.
    """
    from eval_pipeline.analysis.comparisons import acknowledging
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.operations.upkeep.keeping import compare, publish_comparisons
    from eval_pipeline.workspace.inputs import Inputs

    workspace = open_workspace()
    inputs = Inputs(workspace, workspace.suite(suite).name)
    if not why.strip():
        raise UsageError("--why is empty; expected the reason")
    compare(inputs)
    loss = acknowledging.open_loss(inputs, model_version)
    acknowledging.acknowledge(inputs, loss, who or getuser(), why)
    publish_comparisons(inputs)
    note(f"{inputs.suite}: the loss of {model_version} of {loss.date} is acknowledged")


packages_app = typer.Typer(help="Installs packages that suites need in the sandbox.", no_args_is_help=True)


@packages_app.callback()
def packages() -> None:
    """Installs packages that suites need in the sandbox."""


@packages_app.command("install")
def install(
    suite: Suites = None,
    wheels: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Take wheels from a folder, not from the package index (may be repeated)."),
    ] = None,
) -> None:
    """Installs the packages that suites list, from wheels with the listed hashes; runs never install any."""
    from eval_pipeline.operations.suite_work.packages import install_packages

    workspace = open_workspace()
    for name in suite_names(workspace, suite):
        for line in install_packages(workspace, name, wheels or []):
            say(line)


KEPT = 90
"""Dates that stay if nothing else is said."""


def prune(
    keep: Annotated[
        int, typer.Option(min=1, help="How many of the newest dates to keep per suite and model version.")
    ] = KEPT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    only_home: Annotated[
        bool, typer.Option("--only-home", help="No other home uses the database; its responses are pruned, too.")
    ] = False,
    dagster: Annotated[
        bool, typer.Option(help="Also remove Dagster's runs, events, logs and ticks of the dates that go.")
    ] = True,
) -> None:
    """Removes old dates from record, reports, store and Dagster, and journalled responses that are no longer used."""
    from eval_pipeline.cli.evaluating.sweeping import begin
    from eval_pipeline.cli.terminal import ProgressBars, note
    from eval_pipeline.judge.cache import forget_expired
    from eval_pipeline.operations.upkeep.pruning import prune as prune_home
    from eval_pipeline.operations.upkeep.pruning import remaining
    from eval_pipeline.workspace.progress import busy

    workspace = open_workspace()
    with ProgressBars() as progress:
        begin(workspace, progress)
        done = prune_home(workspace, keep, dry_run=dry_run, only_home=only_home, progress=progress)
        history = None
        if dagster and (only_home or not state_place().is_shared):
            from eval_pipeline.defs.running.pruning import prune_history

            with busy(progress, "pruning Dagster's files"):
                left = remaining(workspace, keep, done.partitions)
                history = prune_history(workspace.home, left, dry_run=dry_run)
    judgements = forget_expired(workspace.home.judgements, dry_run=dry_run)
    for partition in done.partitions:
        earlier = f" · earlier evaluation {partition.evaluation}" if partition.evaluation else ""
        say(f"{partition.suite} · {partition.model_version} · {partition.eval_date}{earlier}")
    would = "would be removed" if dry_run else "removed"
    say(
        f"{would}: {shown.counted(len(done.partitions), 'evaluation', 'evaluations')}, "
        f"{shown.counted(len(done.comparison_reports), 'comparison report', 'comparison reports')}, "
        f"{shown.counted(len(done.night_pages), 'page', 'pages')} of nights, "
        f"{shown.counted(done.responses or 0, 'response', 'responses')} of the journal, "
        f"{shown.counted(judgements, 'judgement', 'judgements')} of the cache, "
        f"{shown.counted(history.runs if history else 0, 'run', 'runs')} of Dagster"
    )
    for partition in done.in_use:
        note(f"{partition.suite} · {partition.model_version} · {partition.eval_date} is left: a run is at it")
    if done.responses is None:
        note(f"the journal is left as it is: {done.left}")
    if history is not None and history.left:
        note(f"Dagster's files stay as large as they are: {history.left}")


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

"""The command `prune`: removes old data."""

from typing import Annotated

import typer

from eval_pipeline.cli.options import open_workspace
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.state.place import state_place

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
            from eval_pipeline.defs.running.history.pruning import prune_history

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

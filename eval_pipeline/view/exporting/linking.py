"""Adds a link from an evaluation's report to its exported folder, if both exist."""

from pathlib import Path

from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.reports.places.paths import PAGE, exported_folder, report_folder
from eval_pipeline.view.exporting.folder import Exported
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Progress, Workspace


def link_report(workspace: Workspace, found: Exported, progress: Progress) -> Path | None:
    """Rewrites the report with the link and returns its page; None if there is no report or the folder is elsewhere.

    A folder elsewhere is meant to be passed on, so a link to it would soon be broken.
    """
    home, partition = workspace.home, found.partition
    folder = report_folder(home.reports, partition)
    suite = workspace.suites.get(partition.suite)
    if found.folder != exported_folder(home.exports, partition) or not folder.is_dir() or not (suite and suite.header):
        return None
    inputs = Inputs.of(workspace, partition, progress=progress)
    for stage in chain_of(inputs.track):
        if stage.name == "report":
            run_stage(stage, inputs)
    return folder / PAGE

"""Finds the evaluation to export."""

from datetime import date

from eval_pipeline.analysis.baseline import newest_partition
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.stages.reporting import profile
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import STATISTICS
from eval_pipeline.workspace.workspace import Workspace


def evaluation_of(workspace: Workspace, suite: str, model_version: str, day: date | None) -> Evaluation:
    """Returns the evaluation of that date, or the newest one.

    Raises:
        UsageError: the suite is unknown, or no such evaluation is recorded.
    """
    track = workspace.suite(suite).track()
    found = Partition(suite, model_version, day) if day else newest_partition(workspace, suite, model_version)
    if found is None or workspace.record.header(STATISTICS, RecordKey.of(found)) is None:
        when = f" of {day}" if day else ""
        raise UsageError(
            f"the record has no evaluation of '{model_version}' on '{suite}'{when}; `eval-pipeline run` makes one"
        )
    return Evaluation(workspace.record, found, profile(track))

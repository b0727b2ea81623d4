"""Whether an evaluation would do anything: each stage is asked in turn, the first that is out of date decides."""

from datetime import date
from uuid import uuid4

from eval_pipeline.analysis import comparisons
from eval_pipeline.analysis.aggregates import aggregates_current
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.stages import evidence as gather_evidence
from eval_pipeline.stages import generate, ingest, recover, score
from eval_pipeline.stages import judging as judge
from eval_pipeline.stages.checks.verdicts import check_cases_read, check_metric_errors
from eval_pipeline.stages.publishing import publish_partition
from eval_pipeline.stages.reporting import report, report_comparison
from eval_pipeline.tracks.capabilities import Judged
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.runs import RunContext, ending_failed
from eval_pipeline.workspace.scope import Scope
from eval_pipeline.workspace.workspace import Progress, Workspace


def is_up_to_date(workspace: Workspace, partition: Partition, scope: Scope, epoch: str) -> bool:
    """Whether the record holds everything of the partition as it would be made now."""
    try:
        return (
            ingest.cases_current(workspace, partition.suite)
            and generate.is_current(workspace, partition, scope, epoch)
            and recover.is_current(workspace, partition, epoch)
            and gather_evidence.is_current(workspace, partition)
            and (not isinstance(workspace.track(partition.suite), Judged) or judge.is_current(workspace, partition))
            and score.is_current(workspace, partition)
            and aggregates_current(workspace, partition)
        )
    except EvalError:
        # Something is missing or wrong: the run says what, where it belongs.
        return False


def keep(
    workspace: Workspace,
    partition: Partition,
    scope: Scope,
    epoch: str,
    with_report: bool,
    progress: Progress = SILENT,
) -> list[str]:
    """Notes a run that had nothing to do, and makes sure that store and report hold what the record does.

    Returns:
        A sentence for each check that does not pass.
    """
    run_id = str(uuid4())
    with ending_failed(workspace, partition, run_id):
        generate.note_run(workspace, partition, RunContext(run_id, epoch), scope)
        publish_partition(workspace, partition, run_id, progress)
        if with_report:
            report(workspace, partition, progress)
    verdicts = (check_cases_read(workspace, partition.suite), check_metric_errors(workspace, partition))
    return [f"{partition.suite}, {partition.model_version}: {found.text}" for found in verdicts if not found.passed]


def keep_comparisons(
    workspace: Workspace, suite: str, day: date, with_report: bool, progress: Progress = SILENT, *, told: bool
) -> list[str]:
    """Makes sure that the comparisons of a suite are those of its evaluations; a run that ended well has made them.

    Args:
        workspace: the home.
        suite: the suite.
        day: evaluation date that was asked for.
        with_report: make the report too.
        progress: told of what is done.
        told: whether a run has told how the checks on the comparisons came out that are on record.

    Returns:
        A sentence for what fails, and for a check that does not pass: as often as somebody asks for its date.
    """
    current = comparisons.comparisons_current(workspace, suite)
    keep_them = comparisons.publish_comparisons if current else comparisons.keep_comparisons
    try:
        keep_them(workspace, suite, progress)
        if with_report:
            report_comparison(workspace, suite, progress)
    except EvalError as error:
        return [f"{suite}: {error}"]
    verdict = comparisons.check_no_loss(workspace, suite, day)
    return [] if verdict.passed or (current and told) else [f"{suite}: {verdict.text}"]

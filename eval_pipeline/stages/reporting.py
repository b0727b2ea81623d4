"""Reports: the files that people open, from what the record holds of a partition.

What writes them is imported where it does: most that comes by here writes none.
"""

from collections.abc import Mapping
from pathlib import Path

from eval_pipeline.analysis.aggregates import aggregates_of
from eval_pipeline.core.home import Home
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.suite import comparison_hashes, read_comparison
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.folder import make_folder
from eval_pipeline.reports.paths import PAGE, WORKBOOK, comparison_folder, report_folder
from eval_pipeline.reports.profile import MetricInfo, Profile, mean_name
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.registry import load_place
from eval_pipeline.workspace.progress import SILENT, busy, label_of
from eval_pipeline.workspace.track_tables import turns_table
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

REPORT_VERSION = "5"

MEAN_NAMES: Mapping[str, str] = {
    "numerical_match": "numerical_accuracy",
    "unit_agnostic_match": "unit_agnostic_accuracy",
    "sign_agnostic_match": "sign_agnostic_accuracy",
    "general_match": "general_accuracy",
}
"""Names of means that do not follow the rule of `mean_name`."""


def report(workspace: Workspace, partition: Partition, progress: Progress = SILENT) -> StageResult:
    """Writes the report's folder of a partition where it is not current.

    Raises:
        UsageError: the record does not hold the partition's aggregates yet.
        StoreError: a file cannot be written.
    """
    from eval_pipeline.reports.registry import write_reports

    evaluation = Evaluation(workspace.record, partition, profile(workspace.track(partition.suite)))
    folder = report_folder(workspace.home.reports, partition)
    made_from = evaluation.made_from() | {"report": REPORT_VERSION}
    with busy(progress, label_of(partition, "report")):
        written = write_reports(evaluation, folder, REPORT_VERSION)
    facts = {"turns": evaluation.turns, "folder": folder, "workbook": folder / WORKBOOK, "page": folder / PAGE}
    return StageResult(evaluation.turns, json_hash(made_from), not written, facts)


def report_comparison(workspace: Workspace, suite: str, progress: Progress = SILENT) -> StageResult:
    """Writes the report of a suite's model versions side by side, and anew those of evaluations that it tells of.

    Reports of single evaluations name the comparisons that they took part in, so they follow them; those that nobody
    had written stay unwritten.

    Raises:
        StoreError: a file cannot be written.
    """
    compared = read_comparison(workspace.record, suite)
    made_from = {**comparison_hashes(workspace.record, suite), "report": REPORT_VERSION}
    if compared is None:
        return StageResult(0, json_hash(made_from), True, {"model_versions": 0})
    folder = comparison_folder(workspace.home.reports, suite, compared.eval_date)
    from eval_pipeline.reports.comparison.files import write_comparison_files

    with busy(progress, f"{suite} · comparison report"):
        written = make_folder(folder, made_from, lambda aside: write_comparison_files(compared, aside))
    for standing in compared.standings:
        partition = Partition(suite, standing.model_version, standing.row["eval_date"])
        if report_folder(workspace.home.reports, partition).exists():
            report(workspace, partition, progress)
    facts = {
        "model_versions": len(compared.standings),
        "pairs": len(compared.pairs),
        "folder": folder,
        "page": folder / PAGE,
    }
    return StageResult(len(compared.pairs), json_hash(made_from), not written, facts)


def page_path(home: Home, partition: Partition) -> Path:
    """Where the page of a partition is, whether it exists or not; the workbook lies beside it."""
    return report_folder(home.reports, partition) / PAGE


def comparison_page_path(workspace: Workspace, suite: str) -> Path | None:
    """Where the page of a suite's comparison is; None where there is nothing to compare."""
    compared = read_comparison(workspace.record, suite)
    if compared is None or not compared.pairs:
        return None
    return comparison_folder(workspace.home.reports, suite, compared.eval_date) / PAGE


def profile(track: Track) -> Profile:
    """What the reports have to know of a track."""
    return Profile(
        track.name,
        track.primary_metric,
        tuple(
            MetricInfo(m.name, m.kind, m.description, MEAN_NAMES.get(m.name) or mean_name(m.name, m.kind))
            for m in track.metrics
        ),
        tuple(column.name for column in track.feature_columns),
        turns_table(track),
        track.turn_tables,
        tuple(found.table for found in aggregates_of(track).values() if found.needs),
        tuple(load_place(place) for place in track.sheets),
        tuple(load_place(place) for place in track.report_files),
    )

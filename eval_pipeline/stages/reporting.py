"""Reports: the files that people open, from what the record holds of a partition.

What writes them is imported where it does: most that comes by here writes none.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.core.home import Home
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.core.plugins import load_place
from eval_pipeline.reports.comparison.suite import comparison_hashes, read_comparison
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.exported import exported_folder
from eval_pipeline.reports.folder import make_folder
from eval_pipeline.reports.links import view_url
from eval_pipeline.reports.paths import PAGE, WORKBOOK, comparison_folder, report_folder
from eval_pipeline.reports.profile import MetricInfo, Profile, mean_name
from eval_pipeline.store.schemas import Table
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Reports, turn_tables_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.progress import busy
from eval_pipeline.workspace.track_tables import turns_table
from eval_pipeline.workspace.workspace import StageResult, Workspace


class Figures(NamedTuple):
    """Tables of figures that not every track has: the track's own, and further ones that reports show as they are."""

    own: Sequence[Table]
    further: Sequence[Table]


NO_FIGURES = Figures((), ())


def report(inputs: Inputs, tables: Sequence[Table], figures: Figures, code: str) -> StageResult:
    """Writes the report's folder of a partition where it is not current.

    Args:
        inputs: of the evaluation.
        tables: what the report shows.
        figures: those of them that not every track has.
        code: what stands for the code that writes it.

    Raises:
        UsageError: the record does not hold the partition's aggregates yet.
        StoreError: a file cannot be written.
    """
    from eval_pipeline.reports.registry import write_reports

    home = inputs.workspace.home
    exported = exported_folder(home.exports, inputs.place)
    evaluation = Evaluation(inputs.record, inputs.place, profile(inputs.track, figures), exported)
    folder = report_folder(home.reports, inputs.place)
    made_from = evaluation.made_from(tables) | {"report": code}
    with busy(inputs.progress, inputs.label("report")):
        written = write_reports(evaluation, folder, made_from)
    facts = {"turns": evaluation.turns, "folder": folder, "workbook": folder / WORKBOOK, "page": folder / PAGE}
    return StageResult(evaluation.turns, json_hash(made_from), not written, facts)


def report_comparison(inputs: Inputs, code: str, again: Callable[[Partition], object]) -> StageResult:
    """Writes the report of a suite's model versions side by side, and anew those of evaluations that it tells of.

    Reports of single evaluations name the comparisons that they took part in, so they follow them; those that nobody
    had written stay unwritten.

    Args:
        inputs: of the suite.
        code: what stands for the code that writes it.
        again: writes the report of an evaluation where it is not current.

    Raises:
        StoreError: a file cannot be written.
    """
    record, suite, reports = inputs.record, inputs.suite, inputs.workspace.home.reports
    compared = read_comparison(record, suite)
    made_from = {**comparison_hashes(record, suite), "report": code}
    if url := view_url():
        made_from["view"] = url
    if compared is None:
        return StageResult(0, json_hash(made_from), True, {"model_versions": 0})
    folder = comparison_folder(reports, suite, compared.eval_date)
    from eval_pipeline.reports.comparison.files import write_comparison_files

    with busy(inputs.progress, inputs.label("comparison report")):
        written = make_folder(folder, made_from, lambda aside: write_comparison_files(compared, aside))
    for standing in compared.standings:
        partition = Partition(suite, standing.model_version, standing.row["eval_date"])
        if report_folder(reports, partition).exists():
            again(partition)
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


def profile(track: Track, figures: Figures = NO_FIGURES) -> Profile:
    """What the reports have to know of a track and its tables of figures."""
    return Profile(
        track.name,
        track.primary_metric,
        tuple(
            MetricInfo(m.name, m.kind, m.description, m.mean_name or mean_name(m.name, m.kind), m.by_turn_name)
            for m in track.metrics
        ),
        tuple(column.name for column in track.feature_columns),
        track.error_columns,
        turns_table(track),
        turn_tables_of(track),
        tuple(figures.own),
        tuple(load_place(place) for place in (track.sheets if isinstance(track, Reports) else ())),
        tuple(load_place(place) for place in (track.report_files if isinstance(track, Reports) else ())),
        tuple(figures.further),
    )

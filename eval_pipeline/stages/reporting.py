"""Writes reports for people from the recorded results of a partition.

The writers are imported only where needed, since most runs through here write nothing.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.core.home import Home
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.folder import make_folder
from eval_pipeline.reports.places.links import view_url
from eval_pipeline.reports.places.paths import PAGE, WORKBOOK, comparison_folder, exported_folder, report_folder
from eval_pipeline.reports.profile import MetricInfo, Profile, mean_name
from eval_pipeline.store.schemas import Table
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Reports
from eval_pipeline.tracks.registry import own_tracks
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.progress import busy
from eval_pipeline.workspace.tabled.track_tables import turns_table
from eval_pipeline.workspace.workspace import StageResult, Workspace


class TrackFigures(NamedTuple):
    """Tables of figures that not every track has: the track's own tables, and others that reports show unchanged."""

    own: Sequence[Table]
    further: Sequence[Table]


NO_FIGURES = TrackFigures((), ())


def report(inputs: Inputs, tables: Sequence[Table], figures: TrackFigures, code: str) -> StageResult:
    """Writes the report folder of a partition unless it is current.

    Args:
        inputs: the evaluation.
        tables: tables shown in the report.
        figures: those of them that not every track has.
        code: fingerprint of the code that writes the report.

    Raises:
        UsageError: the record lacks the partition's aggregates.
        StoreError: a file cannot be written.
    """
    from eval_pipeline.reports.evaluation import Evaluation
    from eval_pipeline.reports.places.again import told_but_for
    from eval_pipeline.reports.registry import write_reports

    home = inputs.workspace.home
    exported = exported_folder(home.exports, inputs.place)
    evaluation = Evaluation(inputs.record, inputs.place, profile(inputs.track, figures), exported)
    folder = report_folder(home.reports, inputs.place)
    made_from = evaluation.made_from(tables) | {"report": code}

    def told() -> str:
        if inputs.track.name not in own_tracks():
            return ""  # its sheets may show the date in any form
        place = inputs.place
        facts = [place.suite, place.model_version, place.evaluation, evaluation.beside()]
        rows = {table.name: evaluation.read(table) for table in evaluation.present(tables)}
        return told_but_for(place.eval_date, facts, rows)

    with busy(inputs.progress, inputs.label("report")):
        written = write_reports(evaluation, folder, made_from, told)
    facts = {"turns": evaluation.turns, "folder": folder, "workbook": folder / WORKBOOK, "page": folder / PAGE}
    return StageResult(evaluation.turns, json_hash(made_from), not written, facts)


def report_comparison(inputs: Inputs, code: str, again: Callable[[Partition], object]) -> StageResult:
    """Writes the report that compares a suite's model versions, and updates the reports of the evaluations in it.

    Reports of single evaluations mention their comparisons, so existing ones are updated; missing ones are not created.

    Args:
        inputs: the suite.
        code: fingerprint of the code that writes the report.
        again: writes the report of an evaluation unless it is current.

    Raises:
        StoreError: a file cannot be written.
    """
    from eval_pipeline.reports.comparison.suite import comparison_hashes, read_comparison

    record, suite, reports = inputs.record, inputs.suite, inputs.workspace.home.reports
    compared = read_comparison(record, suite)
    made_from = {**comparison_hashes(record, suite), "report": code}
    if url := view_url():
        made_from["view"] = url
    if compared is None:
        return StageResult(0, json_hash(made_from), True, {"model_versions": 0})
    folder = comparison_folder(reports, suite, compared.eval_date)
    from eval_pipeline.reports.comparison.page import write_comparison_files

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
    """Returns the path of a partition's page, whether it exists or not; the workbook is beside it."""
    return report_folder(home.reports, partition) / PAGE


def comparison_page_path(workspace: Workspace, suite: str) -> Path | None:
    """Returns the path of a suite's comparison page; None if there is nothing to compare."""
    from eval_pipeline.reports.comparison.suite import newest

    found = newest(workspace.record, suite)
    if len(found) < 2:
        return None
    return comparison_folder(workspace.home.reports, suite, max(place.eval_date for place in found)) / PAGE


def profile(track: Track, figures: TrackFigures = NO_FIGURES) -> Profile:
    """Returns what reports need to know about a track and its tables of figures."""
    return Profile(
        track.name,
        track.primary_metric,
        tuple(
            MetricInfo(m.name, m.kind, m.description, m.mean_name or mean_name(m.name, m.kind), m.by_turn_name, m.apart)
            for m in track.metrics
        ),
        tuple(column.name for column in track.feature_columns),
        track.error_columns,
        turns_table(track),
        track.turn_tables,
        tuple(figures.own),
        tuple(map(Later, track.sheets if isinstance(track, Reports) else ())),
        tuple(map(Later, track.report_files if isinstance(track, Reports) else ())),
        tuple(figures.further),
        *(Later(place) if place else None for place in _page_places(track)),
    )


def _page_places(track: Track) -> tuple[str, str, str]:
    return (track.mistakes, track.page_sheets, track.charts) if isinstance(track, Reports) else ("", "", "")

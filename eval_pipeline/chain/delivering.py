"""The last stages of the chain: publishing to the store that people query, and writing reports."""

from collections.abc import Iterator, Sequence
from functools import partial

from eval_pipeline.analysis.aggregates import aggregates_of, installed_aggregates
from eval_pipeline.chain.stage import Delivery, Stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.installed.plugins import installed
from eval_pipeline.core.model import Partition
from eval_pipeline.fingerprints.fingerprints import FingerprintError
from eval_pipeline.fingerprints.places import Root
from eval_pipeline.stages import publishing, reporting
from eval_pipeline.store import tables
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import StageResult

COMPARED = (
    tables.MODEL_COMPARISONS,
    tables.METRIC_COMPARISONS,
    tables.TRENDS,
    tables.GOLD_SUSPECTS,
    tables.REVIEWS,
    tables.REVIEW_STATISTICS,
)
_WRITING: tuple[Root, ...] = ("eval_pipeline.reports.registry:write_reports", "eval_pipeline.stages.reporting:profile")
_COMPARISON_REPORTS: tuple[Root, ...] = ("eval_pipeline.reports.comparison.page:write_comparison_files",)


def of_evaluation(held: Sequence[Table]) -> Iterator[Stage]:
    """Yields the stages that deliver an evaluation: to the store and as a report.

    Args:
        held: all tables of the suite and of the evaluation.
    """
    own = tuple(table for table in held if table.key == "partition")
    yield Stage(
        "published",
        "The partition's records in the DuckDB store that people query.",
        reads=tuple(held),
        deliver=partial(_publish, own),
        kinds=frozenset({"duckdb"}),
    )
    yield Stage(
        "report",
        "Files for people: tables, statistics, traces and the workbook.",
        reads=(),
        deliver=partial(write_report, tuple(held)),
        code=_reports,
        after=("published",),
        kinds=frozenset({"excel", "parquet"}),
    )


def of_suite() -> Iterator[Stage]:
    """Yields the stages that deliver the comparisons of a suite's evaluations."""
    yield Stage(
        "comparison_published",
        "Comparisons and trends of the suite in the DuckDB store that people query.",
        reads=COMPARED,
        deliver=_publish_comparisons,
        whole_suite=True,
        kinds=frozenset({"duckdb"}),
    )
    yield Stage(
        "comparison_report",
        "Files for people: all model versions of the suite side by side, as a page, a workbook and charts.",
        reads=(),
        deliver=write_comparison_report,
        code=lambda _: _COMPARISON_REPORTS,
        after=("comparison_published",),
        whole_suite=True,
        kinds=frozenset({"excel", "parquet"}),
    )


def write_report(held: Sequence[Table], inputs: Inputs, _: Delivery) -> StageResult:
    """Writes the report of an evaluation; it also depends on the table of model versions."""
    shown = (*held, tables.MODEL_VERSIONS)
    return reporting.report(
        inputs, shown, figures_of(inputs.track), inputs.workspace.fingerprints.of(*_reports(inputs)).code
    )


def figures_of(track: Track) -> reporting.TrackFigures:
    """Returns the tables of optional aggregates of the track, and those of plug-ins."""
    found, installed = aggregates_of(track), installed_aggregates()
    listed = {name for name, one in found.items() if name in installed or one.listed}
    own = [one.table for name, one in found.items() if one.needs and name not in listed]
    return reporting.TrackFigures(own, [one.table for name, one in found.items() if name in listed])


def _reports(inputs: Inputs) -> tuple[Root, ...]:
    """Returns the code that writes reports, including plug-ins, as places: a run without reports must not import it."""
    added = (f"~{plugin.place}" for plugin in installed() if plugin.group == "reports")
    found = (place for place in added if _can_be_read(place, inputs))
    return *_WRITING, "eval_pipeline.reports.registry:REPORTS", *found


def _can_be_read(place: Root, inputs: Inputs) -> bool:
    """Whether the source at a place can be read; plug-ins without source are reported when reports are written."""
    try:
        inputs.workspace.fingerprints.of(place)
    except FingerprintError:
        return False
    return True


def write_comparison_report(inputs: Inputs, delivery: Delivery) -> StageResult:
    """Writes the report that compares a suite's model versions."""
    code = inputs.workspace.fingerprints.of(*_COMPARISON_REPORTS).code

    def again(partition: Partition) -> None:
        try:
            delivery.again("report", partition)
        except EvalError:
            if delivery.gate(RecordKey.of(partition)) is None:
                raise  # else a run makes the evaluation anew, and then its report

    return reporting.report_comparison(inputs, code, again)


def _publish(own: Sequence[Table], inputs: Inputs, delivery: Delivery) -> StageResult:
    return publishing.publish_partition(inputs, own, delivery.gate)


def _publish_comparisons(inputs: Inputs, delivery: Delivery) -> StageResult:
    return publishing.publish_suite(inputs, COMPARED, delivery.gate)

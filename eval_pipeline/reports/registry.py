"""All files of a report's folder. To add one, add a module and a line in `REPORTS`, or write a plug-in."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_pipeline.core.installed.plugins import Later, Plugin, Registry
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.places.again import copied
from eval_pipeline.reports.places.folder import make_folder
from eval_pipeline.reports.places.paths import CHARTS, PAGE, SPLITS, STATISTICS, WORKBOOK


@dataclass(frozen=True, slots=True)
class Report:
    """One kind of report file.

    Attributes:
        files: names of the files in the folder.
        write: writes them into the folder that it is given. Ours are loaded then: an unchanged night copies its files.
        by_date: whether evaluations of two dates that are else the same have the same files, but for the date,
            which stands in texts only, and as `2026-01-31`.
    """

    files: tuple[str, ...]
    write: Callable[[Evaluation, Path], None]
    by_date: bool = False


REPORTS = (
    Report(("summary.parquet", "summary.csv"), Later("eval_pipeline.reports.files.flat_files:write_summary")),
    Report(("turns.parquet", "turns.csv"), Later("eval_pipeline.reports.files.flat_files:write_turns")),
    Report(("validation.parquet", "validation.csv"), Later("eval_pipeline.reports.files.flat_files:write_validation")),
    Report(("errors.parquet", "errors.csv"), Later("eval_pipeline.reports.files.flat_files:write_errors")),
    Report((STATISTICS, SPLITS), Later("eval_pipeline.reports.files.statistics_json:write_statistics"), by_date=True),
    Report(("traces",), Later("eval_pipeline.reports.files.traces:write_traces"), by_date=True),
    Report((WORKBOOK,), Later("eval_pipeline.reports.excel.workbook:write_workbook"), by_date=True),
    Report((PAGE, CHARTS), Later("eval_pipeline.reports.html.page:write_page"), by_date=True),
)


def _report(plugin: Plugin, value: Any) -> Report:
    if not isinstance(value, Report):
        raise plugin.error("is no Report")
    ours = {file for report in REPORTS for file in report.files}
    if taken := [file for file in value.files if file in ours]:
        raise plugin.error(f"writes {', '.join(taken)}, which eval-pipeline writes itself")
    return value


ALL_REPORTS: Registry[Report] = Registry("reports", {report.files[0]: report for report in REPORTS}, _report)


def all_reports() -> Iterator[Report]:
    """Yields every report, those of plug-ins last."""
    yield from REPORTS
    yield from (report for name, report in ALL_REPORTS.usable().items() if name not in ALL_REPORTS.shipped)


def write_reports(
    evaluation: Evaluation, folder: Path, made_from: Mapping[str, str], told: Callable[[], str] = str
) -> bool:
    """Builds the folder with all files if needed, and returns whether that was necessary.

    Args:
        evaluation: the evaluation to report.
        folder: where the files appear.
        made_from: hashes of everything that determines the files.
        told: returns a hash of the same but for the date; if it is empty, nothing is copied from an earlier date.
    """

    def fill(aside: Path) -> None:
        but_for_the_day, day = told(), evaluation.partition.eval_date
        for report in all_reports():
            if not (report.by_date and copied(aside, report.files, but_for_the_day, day)):
                report.write(evaluation, aside)
        for write in evaluation.profile.files:
            write(evaluation, aside)

    return make_folder(folder, made_from, fill)

"""Every file of a report's folder; adding one takes a file here and a line in `REPORTS`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.workbook import write_workbook
from eval_pipeline.reports.files.flat_files import write_errors, write_summary, write_turns, write_validation
from eval_pipeline.reports.files.statistics_json import write_statistics
from eval_pipeline.reports.files.traces import write_traces
from eval_pipeline.reports.folder import make_folder
from eval_pipeline.reports.html.page import write_page
from eval_pipeline.reports.paths import CHARTS, PAGE, WORKBOOK


@dataclass(frozen=True, slots=True)
class Report:
    """One kind of file.

    Attributes:
        files: names it appears under in the folder.
        write: writes them into the folder it is given.
    """

    files: tuple[str, ...]
    write: Callable[[Evaluation, Path], None]


REPORTS = (
    Report(("summary.parquet", "summary.csv"), write_summary),
    Report(("turns.parquet", "turns.csv"), write_turns),
    Report(("validation.parquet", "validation.csv"), write_validation),
    Report(("errors.parquet", "errors.csv"), write_errors),
    Report(("statistics.json",), write_statistics),
    Report(("traces",), write_traces),
    Report((WORKBOOK,), write_workbook),
    Report((PAGE, CHARTS), write_page),
)


def write_reports(evaluation: Evaluation, folder: Path, version: str) -> bool:
    """Makes the folder with every file; whether that was necessary.

    Args:
        evaluation: what is reported.
        folder: where the files appear.
        version: of the reports' code; another one makes every folder anew.
    """

    def fill(aside: Path) -> None:
        for report in REPORTS:
            report.write(evaluation, aside)
        for write in evaluation.profile.files:
            write(evaluation, aside)

    return make_folder(folder, evaluation.made_from() | {"report": version}, fill)

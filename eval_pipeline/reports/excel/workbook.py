"""The workbook: every sheet in order, saved so that equal contents give equal bytes."""

import shutil
from collections.abc import Callable
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.complexity import write_complexity
from eval_pipeline.reports.excel.cost import write_cost
from eval_pipeline.reports.excel.overview import write_overview
from eval_pipeline.reports.excel.statistics import write_statistics_sheet
from eval_pipeline.reports.excel.turns import write_errors_sheet, write_turns_sheet
from eval_pipeline.reports.paths import WORKBOOK

if TYPE_CHECKING:
    from openpyxl import Workbook

SHEETS: tuple[Callable[["Workbook", Evaluation], None], ...] = (
    write_overview,
    write_statistics_sheet,
    write_turns_sheet,
    write_errors_sheet,
    write_complexity,
    write_cost,
)
"""Writers of the sheets, in their order; adding one takes a file here and a place in this tuple."""


def write_workbook(evaluation: Evaluation, folder: Path) -> None:
    """Writes `report.xlsx`."""
    from openpyxl import Workbook

    workbook = Workbook(write_only=True)
    for write in SHEETS:
        write(workbook, evaluation)
    partition = evaluation.partition
    properties = workbook.properties
    properties.creator = "eval-pipeline"
    properties.title = f"{partition.suite} · {partition.model_version} · {partition.eval_date.isoformat()}"
    if evaluation.simulated:
        properties.keywords = "simulated"
    properties.created = properties.modified = datetime.combine(partition.eval_date, time())
    _save(workbook, folder / WORKBOOK)


def _save(workbook: "Workbook", path: Path) -> None:
    """As `workbook.save`, which would put the time of day into the file."""
    from openpyxl.writer.excel import ExcelWriter

    with _Timeless(path, "w", ZIP_DEFLATED) as archive:
        ExcelWriter(workbook, archive).write_data()


class _Timeless(ZipFile):
    """An archive whose entries have no time of their own."""

    def writestr(
        self, zinfo_or_arcname: str | ZipInfo, data: Any, compress_type: int | None = None, compresslevel: Any = None
    ) -> None:
        """Adds an entry from memory."""
        name = zinfo_or_arcname if isinstance(zinfo_or_arcname, str) else zinfo_or_arcname.filename
        super().writestr(_entry(name), data, compress_type, compresslevel)

    def write(self, filename: Any, arcname: Any = None, *_: Any) -> None:
        """Adds an entry from a file, a piece at a time."""
        with Path(filename).open("rb") as source, self.open(_entry(str(arcname or filename)), "w") as target:
            shutil.copyfileobj(source, target, 1 << 20)


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = ZIP_DEFLATED
    return entry

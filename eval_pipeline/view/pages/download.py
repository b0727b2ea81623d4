"""Downloads all turns of a filter as CSV or Parquet."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from eval_pipeline.core.errors import UsageError
from eval_pipeline.reports.files.csv_cells import harmless
from eval_pipeline.view.evaluation import evaluation_of
from eval_pipeline.view.filtering.filter import filter_of
from eval_pipeline.view.filtering.found import all_turns
from eval_pipeline.view.page import Page, Visit

if TYPE_CHECKING:
    import pyarrow as pa


def _respond(visit: Visit) -> Response:
    form = visit.request.path_params["form"]
    if form not in _WRITERS:
        raise UsageError(f"unknown form '{form}'; one of: {', '.join(_WRITERS)}")
    evaluation = evaluation_of(visit)
    filtered = filter_of(visit.request.query_params, evaluation.columns)
    write, media_type = _WRITERS[form]
    with tempfile.NamedTemporaryFile(prefix="turns-", suffix=f".{form}", delete=False) as file:
        path = Path(file.name)
    try:
        write(all_turns(visit.look, evaluation, filtered), path)
    except BaseException:
        path.unlink()
        raise
    found = evaluation.partition
    name = f"{found.suite} {found.model_version} {found.eval_date}.{form}"
    return FileResponse(path, media_type=media_type, filename=name, background=BackgroundTask(path.unlink))


def _write_csv(batches: "Iterator[pa.Table]", path: Path) -> None:
    """Writes CSV with texts quoted as in a report's `turns.csv`, so that spreadsheets do not treat them as formulas."""
    import pyarrow as pa
    from pyarrow import csv

    with path.open("wb") as file:
        writer = None
        for rows in batches:
            writer = writer or csv.CSVWriter(pa.PythonFile(file), rows.schema)
            writer.write(harmless(rows))
        if writer is not None:
            writer.close()


def _write_parquet(batches: "Iterator[pa.Table]", path: Path) -> None:
    import pyarrow.parquet as pq

    writer = None
    for rows in batches:
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
    if writer is not None:
        writer.close()


_WRITERS: "dict[str, tuple[Callable[[Iterator[pa.Table], Path], None], str]]" = {
    "csv": (_write_csv, "text/csv; charset=utf-8"),
    "parquet": (_write_parquet, "application/vnd.apache.parquet"),
}

PAGES = (Page("/suites/{suite}/turns.{form}", _respond),)

"""The flat files: summary, turns, validation and errors, each as Parquet and as CSV.

Parquet holds the data unchanged. CSV files are opened in spreadsheets, so texts by models are changed there to prevent
them from acting as formulas.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from eval_pipeline.core.errors import StoreError
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.files.csv_cells import harmless
from eval_pipeline.reports.files.summary import summarise
from eval_pipeline.store import tables

_RENAMED = {"case_id": "conversation_id", "turn_index": "turn_idx", "error_class": "error_type"}
_KEY = ("suite", "model_version", "eval_date")
_TURNS_FIRST = (
    "turn_id",
    "conversation_id",
    "turn_idx",
    "sample",
    "question",
    "expected",
    "answer",
    "correct",
    "first_attempt_correct",
    "score",
    "outcome",
    "error_type",
)
_TURNS_LAST = ("input_tokens", "output_tokens", "tokens", "usd", "latency_ms", "attempts", "complexity", "simulated")
FROM_RESULTS = ("first_attempt_correct", "score", "outcome", "error_class", "tokens", "complexity", "simulated")
"""Columns of `turn_results` that are shown together with the track's own columns."""
_ERRORS_FIRST: tuple[str, ...] = (
    "trace_id",
    "conversation_id",
    "turn_idx",
    "question",
    "expected_answer",
    "error_type",
    "error_message",
)


def write_summary(evaluation: Evaluation, folder: Path) -> None:
    """Writes one row per conversation and sample."""
    write_flat(summarise(evaluation, turns_table(evaluation)), folder, "summary")


def write_turns(evaluation: Evaluation, folder: Path) -> None:
    """Writes one row per turn and sample, with every metric."""
    write_flat(turns_table(evaluation), folder, "turns")


def write_validation(evaluation: Evaluation, folder: Path) -> None:
    """Writes one row per validated artefact."""
    table = _renamed(evaluation.read(tables.VALIDATION))
    write_flat(_ordered(table, ("turn_id", "conversation_id", "turn_idx"), ()), folder, "validation")


def write_errors(evaluation: Evaluation, folder: Path) -> None:
    """Writes one row per failed turn."""
    write_flat(errors_table(evaluation), folder, "errors")


def turns_table(evaluation: Evaluation) -> pa.Table:
    """Returns the track's wide table joined with the columns that all tracks share, in reading order."""
    wide, results = evaluation.read(evaluation.profile.turns_table), evaluation.results
    if not (wide["turn_id"].equals(results["turn_id"]) and wide["sample"].equals(results["sample"])):
        name = evaluation.profile.turns_table.name
        raise StoreError(f"{name} and turn_results are not of the same turns; materialise turn_metrics again")
    for name in FROM_RESULTS:
        if name not in wide.column_names:
            wide = wide.append_column(name, results[name])
    return _ordered(_renamed(wide), _TURNS_FIRST, _TURNS_LAST)


def errors_table(evaluation: Evaluation) -> pa.Table:
    """Returns `errors` with the column names of `errors.csv`; a wrong answer has `error_type = 'wrong_answer'`."""
    table = _renamed(evaluation.read(tables.ERRORS))
    place = table.column_names.index("error_type")
    table = table.set_column(place, "error_type", pc.fill_null(table["error_type"], "wrong_answer"))
    for name, values in _own_columns(evaluation, table).items():
        table = table.append_column(name, values)
    return _ordered(table, (*_ERRORS_FIRST, *evaluation.profile.error_columns, "error_context"), ())


def own_error_columns(evaluation: Evaluation) -> list[str]:
    """Returns the track's feature and error columns, except those that `errors` already has."""
    profile = evaluation.profile
    there = {_RENAMED.get(column.name, column.name) for column in tables.ERRORS.all_columns}
    return [name for name in dict.fromkeys((*profile.error_columns, *profile.features)) if name not in there]


def _own_columns(evaluation: Evaluation, errors: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Returns the values of the track's own columns for these errors."""
    names, wide = own_error_columns(evaluation), evaluation.read(evaluation.profile.turns_table)
    rows = {place: row for row, place in enumerate(_places(wide))}
    taken = wide.take(pa.array([rows.get(place) for place in _places(errors)], pa.int64()))
    return {name: taken[name] for name in names}


def _places(table: pa.Table) -> Iterator[tuple[str, int]]:
    """Yields the turn and sample of each row."""
    return zip(table["turn_id"].to_pylist(), table["sample"].to_pylist(), strict=True)


def _renamed(table: pa.Table) -> pa.Table:
    return table.rename_columns([_RENAMED.get(name, name) for name in table.column_names])


def _ordered(table: pa.Table, first: tuple[str, ...], last: tuple[str, ...]) -> pa.Table:
    """Returns the table with some columns moved to the front and some to the back; the key columns come last."""
    ends = (*first, *last, *_KEY)
    middle = [name for name in table.column_names if name not in ends]
    return table.select([*first, *middle, *last, *_KEY])


def write_flat(table: pa.Table, folder: Path, name: str) -> None:
    """Writes a table as Parquet and as CSV."""
    table = table.replace_schema_metadata(None)
    pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    pa_csv.write_csv(harmless(table), folder / f"{name}.csv")

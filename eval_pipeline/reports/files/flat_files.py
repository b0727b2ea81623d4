"""The flat files: summary, turns, validation and errors, each as Parquet and as CSV.

Parquet holds the data unchanged. CSV files are opened in spreadsheets, so texts by models are changed there to prevent
them from acting as formulas.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from eval_pipeline.core.errors import StoreError
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.files.csv_cells import harmless
from eval_pipeline.reports.queries import TURN, where
from eval_pipeline.store import tables

_EVERY = pc.ScalarAggregateOptions(skip_nulls=False, min_count=0)
_SUMS = ("input_tokens", "output_tokens", "tokens", "usd", "latency_ms", "attempts")


def summarise(evaluation: Evaluation, turns: pa.Table) -> pa.Table:
    """Returns one row per conversation and sample, in the suite's order.

    Metrics are means over the turns that have a value (NULL if none has). Tokens, dollars, latency and attempts are
    sums, which are NULL if the value of any turn is unknown.

    Args:
        evaluation: the evaluation to summarise.
        turns: its turns, as `turns_table` returns them.
    """
    profile = evaluation.profile
    turns = turns.append_column("_turn", pa.array([1] * turns.num_rows, pa.int64()))
    turns = turns.append_column("_correct", turns["correct"].cast(pa.int64()))
    turns = turns.append_column("_first", turns["first_attempt_correct"].cast(pa.int64()))
    wanted: list[tuple[str, str, str, Any]] = [
        ("turns", "_turn", "sum", None),
        ("correct_turns", "_correct", "sum", None),
        ("first_attempt_correct_turns", "_first", "sum", None),
        ("all_right", "correct", "all", _EVERY),
        ("avg_score", "score", "mean", None),
        *[(metric.mean_name, metric.name, "mean", None) for metric in profile.averaged],
        *[(name, name, "sum", _EVERY) for name in _SUMS],
        *[(name, name, "first", None) for name in profile.features],
        *[(name, name, "first", None) for name in ("suite", "model_version", "eval_date")],
    ]
    groups = turns.group_by(["conversation_id", "sample"], use_threads=False)
    found = groups.aggregate([(column, function, options) for _, column, function, options in wanted])
    arrays = [found["conversation_id"], found["sample"]]
    arrays += [found[f"{column}_{function}"] for _, column, function, _ in wanted]
    return pa.table(arrays, names=["conversation_id", "sample", *[name for name, *_ in wanted]])


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
    write_flat(turns_table(evaluation).drop_columns(["gold", "response"]), folder, "turns")


def write_validation(evaluation: Evaluation, folder: Path) -> None:
    """Writes one row per validated artefact."""
    table = _renamed(evaluation.read(tables.VALIDATION))
    write_flat(_ordered(table, ("turn_id", "conversation_id", "turn_idx"), ()), folder, "validation")


def write_errors(evaluation: Evaluation, folder: Path) -> None:
    """Writes one row per failed turn."""
    write_flat(errors_table(evaluation), folder, "errors")


def turns_query(evaluation: Evaluation) -> str:
    """Returns the query for the turns: the track's own columns, those that all tracks share, gold and last response."""
    wide = evaluation.profile.turns_table
    there = {column.name for column in wide.all_columns}
    shared = "".join(f", r.{name}{_renaming(name)}" for name in FROM_RESULTS if name not in there)
    renamed = ", ".join(f"{name}{_renaming(name)}" for name in _RENAMED if name in there)
    return (
        f"SELECT w.* RENAME ({renamed}){shared}, t.gold, a.response FROM {wide.name} AS w "
        f"JOIN turn_results AS r USING ({TURN}) LEFT JOIN turns AS t USING (suite, turn_id) LEFT JOIN "
        f"(SELECT {TURN}, last(response ORDER BY number) AS response FROM attempts GROUP BY ALL) AS a USING ({TURN}) "
        f"WHERE {where(evaluation.partition, 'w')}"
    )


def turns_table(evaluation: Evaluation) -> pa.Table:
    """Returns the turns in the suite's order, with their columns in reading order; gold and response come last."""
    table = evaluation.table_of_turns(turns_query(evaluation))
    if table.num_rows != evaluation.turns:
        name = evaluation.profile.turns_table.name
        raise StoreError(f"{name} and turn_results are not of the same turns; materialise turn_metrics again")
    return _ordered(table, _TURNS_FIRST, _TURNS_LAST)


def errors_query(evaluation: Evaluation) -> str:
    """Returns the query for the failed turns, as `errors.csv` names their columns, those of the track too."""
    profile = evaluation.profile
    there = {_RENAMED.get(column.name, column.name) for column in tables.ERRORS.all_columns}
    own = [name for name in dict.fromkeys((*profile.error_columns, *profile.features)) if name not in there]
    return (
        "SELECT e.* EXCLUDE (error_class) RENAME (case_id AS conversation_id, turn_index AS turn_idx), "
        f"coalesce(e.error_class, 'wrong_answer') AS error_type{''.join(f', w.{name}' for name in own)} "
        f"FROM turn_errors AS e LEFT JOIN {profile.turns_table.name} AS w USING ({TURN}) "
        f"WHERE {where(evaluation.partition, 'e')}"
    )


def errors_table(evaluation: Evaluation) -> pa.Table:
    """Returns the failed turns in the suite's order; a wrong answer has `error_type = 'wrong_answer'`."""
    table = evaluation.table_of_turns(errors_query(evaluation))
    return _ordered(table, (*_ERRORS_FIRST, *evaluation.profile.error_columns, "error_context"), ())


def _renaming(name: str) -> str:
    return f" AS {_RENAMED[name]}" if name in _RENAMED else ""


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

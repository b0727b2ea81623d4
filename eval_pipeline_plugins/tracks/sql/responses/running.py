"""Queries as they run: the processes that run them, in which dialect, and what is kept of their results."""

import atexit
from collections.abc import Sequence
from functools import lru_cache

from eval_pipeline.core.ids import json_text, parse_json, text_hash
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.runner import SqlRunner
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import joined_operators
from eval_pipeline_plugins.tracks.sql.cases.source import Database

SHOWN_ROWS = 20
"""How many rows of an attempt's result are recorded."""
_SHOWN_CELL = 200


@lru_cache(maxsize=1)
def runner() -> SqlRunner:
    """Returns the runner whose child processes compare queries; they are kept until this process ends."""
    found = SqlRunner(SqlLimits())
    atexit.register(found.close)
    return found


@lru_cache(maxsize=4096)
def runnable(sql: str, database: Database) -> str:
    """Returns the query in the dialect of the engine that runs it, with the clock of the suite.

    SQLite, DuckDB and servers run their own; DuckDB runs all other dialects. A query that cannot be translated is left
    unchanged, so that the engine reports the problem.
    """
    dialect = database.dialect
    pinned = database.pinned(sql)
    if database.server is not None:
        return pinned
    if dialect in ("sqlite", "duckdb"):
        return joined_operators(pinned)
    from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, translated

    try:
        return translated(pinned, dialect, "duckdb")
    except SqlSyntaxError:
        return pinned


def result_fingerprint(found: SqlRows) -> str:
    """Returns a hash of a result's rows, whatever their order; digits that engines may round are left out."""
    return text_hash("\n".join(sorted(repr([_steady(cell) for cell in row]) for row in found.rows)))


def _steady(cell: object) -> object:
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return f"{cell:.9g}" if isinstance(cell, float) else cell


def shown_result(sql: str, found: SqlRows) -> Json:
    """Returns a result in the form that the record stores."""
    rows = kept_rows(found.rows)
    return {"sql": sql, "columns": list(found.columns), "rows": rows, "row_count": len(found.rows)}


def kept_rows(rows: Sequence[Sequence[object]]) -> list[list[Json]]:
    """Returns the first rows in the form that the record stores."""
    kept: list[list[Json]] = parse_json(json_text([[_cell(cell) for cell in row] for row in rows[:SHOWN_ROWS]]))
    return kept


def _cell(cell: object) -> Json:
    if cell is None or isinstance(cell, (bool, int, float)):
        return cell
    text = str(cell)
    return text if len(text) <= _SHOWN_CELL else text[: _SHOWN_CELL - 1] + "…"

"""Converts schemas and counterexamples to and from JSON, for the exchange with the child process."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, inserted
from eval_pipeline_plugins.sql_equivalence.results import Result, Rows
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable, SqlView
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

_MOST_ROWS = 20


def schema_to_json(schema: SqlSchema) -> str:
    """Returns a schema as text."""
    return json.dumps(asdict(schema))


def schema_from_json(text: str) -> SqlSchema:
    """Reads a schema that `schema_to_json` wrote."""
    told = json.loads(text)
    return SqlSchema(tuple(map(_table, told["tables"])), tuple(map(_view, told["views"])))


def _view(told: dict[str, Any]) -> SqlView:
    reads = None if told["reads"] is None else tuple(told["reads"])
    columns = tuple(SqlColumn(**column) for column in told["columns"])
    return SqlView(told["name"], columns, told["query"], told["dialect"], reads)


def _table(told: dict[str, Any]) -> SqlTable:
    return SqlTable(
        told["name"],
        tuple(SqlColumn(**column) for column in told["columns"]),
        tuple(told["primary_key"]),
        tuple(ForeignKey(tuple(k["columns"]), k["table"], tuple(k["references"])) for k in told["foreign_keys"]),
        tuple(map(tuple, told["unique"])),
        tuple(told["checks"]),
        told["dialect"],
        tuple(told["definition"]),
    )


def counterexample(
    schema: SqlSchema, database: GeneratedDatabase, generated: Result, expected: Result, order: Sequence[int] | None
) -> dict[str, Any]:
    """Returns a generated database with the results of both queries on it."""
    return {
        "database": "generated",
        "tables": {
            table.name: {
                "columns": [column.name for column in table.columns if not column.generated],
                "rows": _rows(inserted(table, database[table.name.lower()])),
            }
            for table in schema.tables
        },
        "generated": _result(generated),
        "expected": _result(expected),
        "column_order": None if order is None else list(order),
    }


def shipped_counterexample(name: str, generated: Result, expected: Result) -> dict[str, Any]:
    """Returns the results of both queries on a shipped database; only the first rows if there are many."""
    return {"database": name, "generated": _result(generated), "expected": _result(expected)}


def _result(result: Result) -> dict[str, Any]:
    return {
        "columns": list(result.columns),
        "rows": _rows(result.rows[:_MOST_ROWS]),
        "row_count": len(result.rows),
        "ordered": result.ties is not None,
    }


def _rows(rows: Rows) -> list[list[Any]]:
    return [[_cell(cell) for cell in row] for row in rows]


def _cell(cell: Any) -> Any:
    if cell is None or isinstance(cell, bool | int | str):
        return cell
    if isinstance(cell, float):
        return cell if isfinite(cell) else str(cell)
    if isinstance(cell, bytes):
        return cell.hex()
    if isinstance(cell, list | tuple):
        return [_cell(item) for item in cell]
    return str(cell)

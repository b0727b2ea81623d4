"""The VeriEQL sample: labelled pairs under a schema with constraints."""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from eval_pipeline.sql_equivalence.schema.duckdb_types import duckdb_type
from eval_pipeline.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests import outside

SAMPLE = outside.SQL / "equivalence" / "verieql_sample.jsonl"

REALLY_DIFFERENT = {
    "calcite-96": "AVG cast to INTEGER: the label rounds as an engine with integer means does",
    "calcite-218": "AVG cast to INTEGER",
    "calcite-231": "AVG cast to INTEGER",
    "calcite-233": "AVG cast to INTEGER",
    "calcite-126": "mangled: `DEPTNO = t4.DEPTNO` means the inner table on both sides, so the EXISTS is always true",
    "calcite-329": "mangled as calcite-126",
    "calcite-184": "the columns of a ROLLUP in another order give other subtotals",
}
"""Pairs labelled equivalent whose counterexamples really differ in DuckDB, and why."""


@dataclass(frozen=True)
class LabelledPair:
    """Two queries; `label` starts with `equivalent_` where they should mean the same."""

    id: str
    label: str
    one: str
    other: str
    schema: SqlSchema


def pairs() -> list[LabelledPair]:
    """All of them."""
    found = []
    for line in SAMPLE.read_text().splitlines():
        told = json.loads(line)
        found.append(LabelledPair(told["id"], told["label"], told["sql_a"], told["sql_b"], _schema(told)))
    return found


def _schema(told: dict[str, Any]) -> SqlSchema:
    required: set[tuple[str, str]] = set()
    primary: dict[str, tuple[str, ...]] = {}
    foreign: defaultdict[str, list[ForeignKey]] = defaultdict(list)
    for constraint in told["constraint"] or []:
        for kind, value in constraint.items():
            if kind == "not_null":
                required.add(_place(value))
            elif kind == "primary":
                places = [_place(part) for part in value]
                primary[places[0][0]] = tuple(column for _, column in places)
            else:
                (table, column), (parent, key) = map(_place, value)
                foreign[table].append(ForeignKey((column,), parent, (key,)))
    return SqlSchema(
        tuple(
            SqlTable(
                name,
                tuple(
                    SqlColumn(
                        column,
                        duckdb_type((kind or "INT").split(",")[0]),
                        (name, column) not in required and column not in primary.get(name, ()),
                    )
                    for column, kind in columns.items()
                ),
                primary.get(name, ()),
                tuple(foreign[name]),
            )
            for name, columns in told["schema"].items()
        )
    )


def _place(told: dict[str, str]) -> tuple[str, str]:
    table, _, column = told["value"].partition("__")
    return table, column

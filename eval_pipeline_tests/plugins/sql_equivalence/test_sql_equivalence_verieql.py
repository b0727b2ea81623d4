"""The ladder on the VeriEQL sample, labelled pairs under a schema with constraints; all 234 of them in the soak run."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

from eval_pipeline_plugins.sql_equivalence.ladder import Equivalence, check
from eval_pipeline_plugins.sql_equivalence.schema.duckdb_types import duckdb_type
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests import outside
from eval_pipeline_tests.plugins.sql_equivalence.constraints import broken_constraints

SAMPLE = outside.SQL / "equivalence" / "verieql_sample.jsonl"
pytestmark = outside.needs(SAMPLE)


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


CANNOT_RUN = ("cannot run", "out of time")
Found = list[tuple[LabelledPair, Equivalence]]


def checked(chosen: list[LabelledPair]) -> Found:
    return [(pair, check(pair.other, pair.one, pair.schema)) for pair in chosen]


def assert_no_false_verdict(found: Found) -> None:
    for pair, told in found:
        if pair.label == "not_equivalent":
            assert told.verdict != "equivalent", pair.id
        if pair.label.startswith("equivalent_") and told.verdict == "different":
            assert pair.id in REALLY_DIFFERENT, (pair.id, told.evidence)
        assert not told.evidence.get("contradicted_proof"), pair.id
        if (shown := told.evidence.get("counterexample")) is not None:
            rows = {name: table["rows"] for name, table in shown["tables"].items()}
            assert not broken_constraints(pair.schema, rows), pair.id


def deterministic_and_runnable(found: Found) -> Found:
    return [
        (pair, told)
        for pair, told in found
        if not told.evidence["reason"].startswith((*CANNOT_RUN, "not deterministic"))
    ]


def test_negatives_and_pairs_that_really_differ_are_refuted_and_a_sample_of_positives_is_not():
    everything = pairs()
    negatives = [pair for pair in everything if pair.label == "not_equivalent"]
    positives = [pair for pair in everything if pair.label.startswith("equivalent_")]
    listed = [pair for pair in everything if pair.id in REALLY_DIFFERENT]
    found = checked(negatives + positives[::80] + listed)
    assert {pair.id for pair, told in found[-len(listed) :] if told.verdict == "different"} == set(REALLY_DIFFERENT)
    assert_no_false_verdict(found)
    refutable = [told for pair, told in deterministic_and_runnable(found) if pair.label == "not_equivalent"]
    assert len(refutable) >= 9
    assert sum(told.verdict != "different" for told in refutable) <= 1


@pytest.mark.soak
def test_all_pairs_are_judged_without_a_false_verdict():
    found = checked(pairs())
    assert_no_false_verdict(found)
    runnable = [(pair, told) for pair, told in found if not told.evidence["reason"].startswith(CANNOT_RUN)]
    positives = [told for pair, told in runnable if pair.label.startswith("equivalent_")]
    right = sum(told.value == 1.0 for told in positives)
    for label in sorted({pair.label for pair, _ in found}):
        print(label, dict(Counter(told.rung for pair, told in found if pair.label == label)))
    refutable = [told for pair, told in deterministic_and_runnable(found) if pair.label == "not_equivalent"]
    assert sum(told.verdict != "different" for told in refutable) <= 1
    assert right >= 2 / 3 * len(positives)

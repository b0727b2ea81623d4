"""Comparing tables: golden cases."""

import string

import pytest

from eval_pipeline.table_comparison import Relaxation, Table, compare
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("table_comparison.yaml")


def table(rows, columns=None, ties=None, shape="table"):
    rows = [tuple(row) for row in rows]
    width = len(rows[0]) if rows else 1
    return Table(tuple(columns or string.ascii_lowercase[:width]), rows, ties and tuple(ties), shape)


def of_golden(case):
    generated = table(case["g"], case.get("gc"), shape=case.get("gs", "table"))
    return generated, table(case["e"], case.get("ec"), case.get("ties"), case.get("es", "table"))


@pytest.mark.parametrize("case", GOLDEN, ids=[f"{case['g']} {case['source']}" for case in GOLDEN])
def test_the_smallest_sets_of_relaxations_are_found(case):
    found = compare(*of_golden(case))
    assert set(found.needs) == {frozenset(map(Relaxation, need)) for need in case["needs"]}
    assert found.decimals == case.get("decimals")
    assert found.accepted(frozenset(Relaxation)) is bool(case["needs"])
    assert found.accepted(()) is (case["needs"] == [[]])
    assert found.sentence()

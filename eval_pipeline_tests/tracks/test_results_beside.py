"""Two results side by side: each difference is marked, whatever the order of rows and columns, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.table_comparison.alignment.pairing import pair
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline.tracks.shown.cards import BesideCard, CardCell, Mark, TableCard
from eval_pipeline.tracks.shown.results_beside import MOST_COLUMNS, MOST_ROWS, ShownResult, beside
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.card_lines import card_lines

CASES = {case["name"]: case for case in golden("results_beside.yaml")}
_CELLS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "b"]), st.floats(0, 1))
_ROWS = st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[_CELLS] * width), max_size=7))


def result(told: dict[str, Any]) -> ShownResult:
    rows = [tuple(row) for row in told["rows"]]
    return ShownResult(told["columns"], rows, told.get("count", len(rows)), told.get("places"))


def sides(card: BesideCard) -> tuple[TableCard, TableCard]:
    left, right = card.cards
    assert isinstance(left, TableCard) and isinstance(right, TableCard)
    return left, right


def marks(table: TableCard) -> set[Mark]:
    return {
        cell.mark for row in (table.columns, *table.rows) for cell in row if isinstance(cell, CardCell) and cell.mark
    }


@pytest.mark.parametrize("name", CASES)
def test_two_results(name: str) -> None:
    case = CASES[name]
    card = beside("Rows", result(case["expected"]), result(case["returned"]), str)
    left, right = (card_lines([side])[side.title] for side in sides(card))
    assert (card.remark, left, right) == (case["told"], case["left"], case["right"])


def test_titles_count_the_rows() -> None:
    card = beside("Rows", ShownResult(["n"], [(1,)], 3400), ShownResult(["n"], [(1,)], 1), str, ("Right", "Mine"))
    assert [side.title for side in sides(card)] == ["Right, 3,400 rows", "Mine, 1 row"]


def test_long_and_wide_results_are_cut() -> None:
    wide = ShownResult([f"c{n}" for n in range(50)], [tuple(range(50))] * 100, 100)
    left, _ = sides(beside("Rows", wide, wide, str))
    assert (len(left.rows), left.left_out, len(left.columns)) == (MOST_ROWS, 100 - MOST_ROWS, MOST_COLUMNS + 1)
    assert left.remark == "20 of 50 columns shown."


def test_a_column_that_is_missing_is_shown_before_those_that_are_cut() -> None:
    names = [f"c{n}" for n in range(50)]
    expected = ShownResult([*names, "gone"], [tuple(range(51))], 1)
    left, _ = sides(beside("Rows", expected, ShownResult(names, [tuple(range(50))], 1), str))
    assert left.columns[-1] == CardCell("gone", Mark.MISSING)


@given(_ROWS)
def test_a_result_is_the_same_as_itself_in_any_order(rows: list[tuple[Any, ...]]) -> None:
    names = [f"c{n}" for n in range(len(rows[0]))] if rows else ["c"]
    card = beside("Rows", ShownResult(names, rows, len(rows)), ShownResult(names, rows[::-1], len(rows)), str)
    assert not marks(sides(card)[0]) | marks(sides(card)[1])
    assert card.remark.startswith("The same rows")


@given(_ROWS, st.data())
def test_every_row_has_one_place(expected: list[tuple[Any, ...]], data: st.DataObject) -> None:
    width = len(expected[0]) if expected else 1
    returned = data.draw(st.lists(st.tuples(*[_CELLS] * width), max_size=7))
    names = tuple(f"c{n}" for n in range(width))
    found = pair(ComparedTable(names, returned), ComparedTable(names, expected))
    pairs = [*found.same, *found.changed]
    assert sorted([*(one for one, _ in pairs), *found.missing]) == list(range(len(expected)))
    assert sorted([*(other for _, other in pairs), *found.extra]) == list(range(len(returned)))
    for pairs, all_alike in ((found.same, True), (found.changed, False)):
        for one, other in pairs:
            assert all(found.alike(one, other, column) for column in range(width)) is all_alike

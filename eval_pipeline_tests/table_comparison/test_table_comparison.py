"""Comparing tables: golden cases, planted differences, what holds for any tables, and labels of what is found."""

import string
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.table_comparison.alignment.matching import Trial
from eval_pipeline.table_comparison.alignment.pairing import pair
from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.contracts import as_label, excess, ways_of
from eval_pipeline.table_comparison.graded import soft_f1
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.table_comparison.rows import column_orders, same_rows
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.table_comparison.planting import planted

GOLDEN = golden("table_comparison.yaml")
DIFFERENCES = golden("table_differences.yaml")


def table(rows, columns=None, ties=None, shape="table"):
    rows = [tuple(row) for row in rows]
    width = len(rows[0]) if rows else 1
    return ComparedTable(tuple(columns or string.ascii_lowercase[:width]), rows, ties and tuple(ties), shape)


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


@pytest.mark.parametrize("case", DIFFERENCES, ids=[case["source"] for case in DIFFERENCES])
def test_the_smallest_difference_is_told_beside_what_can_be_overlooked(case):
    found = compare(*of_golden(case))
    assert found.needs == ()
    assert found.sentence() == case["words"]


def _not_found(seeds):
    """The seeds whose planted relaxations are not found, or with more than these."""
    wrong = []
    for seed in seeds:
        generated, expected, planted_ones = planted(seed)
        needs = compare(generated, expected).needs
        if planted_ones not in needs or any(need > planted_ones for need in needs):
            wrong.append((seed, sorted(planted_ones), needs))
    return wrong


def test_planted_relaxations_are_found_and_no_superset_of_them():
    assert _not_found(range(50)) == []


@pytest.mark.soak
def test_ten_thousand_planted_differences_are_found():
    wrong = _not_found(range(10_000))
    print(f"{len(wrong)} of 10,000 not found", *wrong[:20], sep="\n")
    assert len(wrong) <= 100


CELLS = st.one_of(
    st.none(),
    st.integers(-2, 3),
    st.sampled_from(["a", "A", " a", "5", "", "n/a", "2024-01-01", date(2024, 1, 1), 0.125, 0.13, 12.5, 1 / 3]),
)
TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1, max_size=6))


@settings(max_examples=30)
@given(TABLES, st.randoms(use_true_random=False))
def test_rows_and_named_columns_in_any_order_are_the_same_table(rows, rng: Random):
    names = string.ascii_lowercase[: len(rows[0])]
    order = list(range(len(names)))
    rng.shuffle(order)
    other = [tuple(row[place] for place in order) for row in rows]
    rng.shuffle(other)
    found = compare(table(other, [names[place] for place in order]), table(rows))
    assert found.accepted([Relaxation.COLUMN_ORDER] if order != sorted(order) else [])


@settings(max_examples=30)
@given(TABLES, TABLES, st.booleans())
def test_a_set_is_enough_and_nothing_in_it_can_go(rows, others, ordered):
    expected = table(others, ties=range(len(others)) if ordered else None)
    found, trial = compare(table(rows), expected), Trial(table(rows), expected)
    for need in found.needs:
        assert trial.fit(need) is not None
        assert not any(trial.fit(need - {one}) for one in need)
    if not found.needs:
        assert found.difference is not None
        assert found.difference.words


@settings(max_examples=40)
@given(TABLES, TABLES)
def test_tables_are_equal_as_they_stand_if_the_rows_are_as_multisets(rows, others):
    if len(rows[0]) == len(others[0]):
        same = compare(table(rows), table(others)).needs == (frozenset(),)
        assert same is (Counter(map(_comparable, rows)) == Counter(map(_comparable, others)))


def _comparable(row):
    return tuple(datetime(2024, 1, 1) if type(cell) is date else cell for cell in row)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Decimal("1.50"), 1.5, True),
        (Decimal("0.3333333333"), 1 / 3, False),  # ten decimals of a decimal are not noise
        (Decimal("99999999.98"), 99_999_999.98, True),
        (Decimal("1E+999999"), Decimal("1E+999999"), True),
        (Decimal("NaN"), float("nan"), True),
        (float("nan"), float("nan"), True),
        (float("nan"), None, False),
        (float("inf"), float("inf"), True),
        (float("inf"), float("-inf"), False),
        (-0.0, 0, True),
        (2**62 + 1, 2**62, False),
        (float(2**62), 2**62, True),
        (float(2**53 - 2), 2**53 - 1, False),
        (float(2**62), 2**62 + 1, False),
        (2**80, 2**80, True),
        (10**400, 10**400 + 1, False),
        (1e20, 1e20 * (1 + 1e-15), True),
        (1e20, 1.0001e20, False),
        (1e-13, 0.0, True),
        (1e-13, 0, True),
        (1234567.89, 1234567.8900000001, True),
        (99_999_999.98, 99_999_999.99, False),
        (123_456_789.0, 123_456_790.0, False),
        (1 / 3, 0.3333333, True),
        (1_000_000.511, 1_000_000, False),
        ([1, None], [1.0, None], True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": [1]}, {"a": [1]}, True),
        (b"a", b"a", True),
        (b"a", "a", False),
        (date(2024, 1, 2), datetime(2024, 1, 2), True),
        (date(2024, 1, 2), datetime(2024, 1, 2, 3), False),
        (datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 2), True),
        (1_700_000_000.0, 1_700_000_999.0, False),  # epochs
        (1_700_000_000.0, 1_700_000_000, True),
        (2**53 + 1, float(2**53), False),
        (0.1 + 0.2, 0.3, True),
        (0.5, 0.500001, False),
        (True, 1, True),
        (True, 1.0, True),
        (True, False, False),
    ],
)
def test_values_of_every_type_are_compared(one, other, same):
    found = compare(table([(one,), (None,)]), table([(other,), (None,)]))
    assert (found.needs == (frozenset(),)) is same


ODD = st.sampled_from(
    [
        *(Decimal(text) for text in ("sNaN", "-sNaN", "NaN", "Infinity", "1E+99999", "0E-99999", "-0", "1.50")),
        *(10**400, -(10**400), 2**64, 1e308, 5e-324, -0.0, float("inf"), float("-inf"), float("nan")),
        *(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=timezone(-timedelta(hours=9))), date.max),
        *(datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), time(1), time(1, tzinfo=UTC), timedelta(1)),
        *(b"", b"a", "", "a", "\0", "\ud800", "1e999", "9" * 5000, "\u0663", None, True, frozenset({1}), ()),
    ]
)
NESTED = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("a"), inner), max_leaves=4
)
ODD_ROWS = st.lists(st.tuples(NESTED, NESTED), min_size=1, max_size=4)


@settings(max_examples=100)
@given(ODD_ROWS, ODD_ROWS)
def test_any_value_is_compared(rows, others):
    assert compare(table(rows), table(rows[::-1])).needs == (frozenset(),)
    found = compare(table(rows), table(others))
    assert found.sentence()
    assert same_rows(rows, others) is (frozenset() in found.needs)
    assert 0 <= soft_f1(rows, others) <= soft_f1(rows, rows) == 1
    pairing = pair(table(rows), table(others))
    assert len(pairing.same) + len(pairing.changed) + len(pairing.missing) == len(others)


def test_columns_with_equal_cells_are_assigned_by_their_rows():
    rng = Random(1)
    columns = [rng.sample(range(40), 40) for _ in range(26)]
    order = rng.sample(range(26), 26)
    expected = ComparedTable.from_columns([None] * 26, columns)
    found = compare(ComparedTable.from_columns([None] * 26, [columns[place] for place in order]), expected)
    assert found.needs == (frozenset({Relaxation.COLUMN_ORDER}),)
    assert [order[place] for place in found.columns] == list(range(26))
    columns[3][0], columns[3][1] = columns[3][1], columns[3][0]
    assert not compare(ComparedTable.from_columns([None] * 26, columns), expected).needs


def test_an_order_of_columns_has_to_fit_each_of_several_tables():
    tables = [(table([row]), table([row])) for row in ((1, 2), (2, 1))]
    assert list(column_orders(tables, every=True)) == [(0, 1)]


def test_arrow_tables_are_read():
    arrow = pa.table({"a": [1, None], "b": ["x", "y"], "c": [datetime(2024, 1, 1), None]})
    expected = table([(1, "x", date(2024, 1, 1)), (None, "y", None)])
    assert compare(ComparedTable.from_arrow(arrow), expected).needs == (frozenset(),)


@pytest.mark.parametrize(
    ("generated", "expected", "words"),
    [
        ([(1, "x", 9), (2, "y", 9)], [(1, "x"), (2, "y")], "1 more column `c`"),
        ([(1, "x"), (1, "x"), (2, "y")], [(1, "x"), (2, "y")], "1 row repeats"),
        (
            [(1, 5.0), (2, 6.0), (3, 8.0)],
            [(1, 5.0), (2, 7.0), (3, 8.0)],
            "column `b` differs in 1 of 3 rows: 6.0 for 7.0",
        ),
        ([(1, "x")], [(1, "x"), (2, "y")], "1 row is missing, e.g. (2, y)"),
        ([(10**5000,)], [(1,)], "column `a` differs in 1 of 1 row: a very large number for 1"),
        ([(1, 0.33), (2, 1.5)], [(1, 0.333333), (2, 1.5)], "rounded to 2 decimals"),
    ],
)
def test_a_difference_is_said_in_words(generated, expected, words):
    assert words in compare(table(generated), table(expected)).sentence()


def test_decimals_that_are_kept_decide():
    found = compare(table([(0.3,)]), table([(0.333333,)]))
    rounding = {Relaxation.ROUNDING}
    assert found.accepted(rounding)
    assert found.accepted(rounding, decimals=1)
    assert not found.accepted(rounding, decimals=2)


@given(st.sets(st.frozensets(st.sampled_from(Relaxation), max_size=4), max_size=4))
def test_a_label_tells_every_way_and_the_least_excess_is_that_of_one_of_them(ways):
    label = as_label(ways)
    assert (label is None) is (not ways)
    assert set(ways_of(label)) == ways
    assert as_label(ways_of(label)) == label
    overlooked = {Relaxation.DUPLICATES, Relaxation.ROW_ORDER}
    missing = excess(ways, overlooked)
    assert not missing & overlooked
    assert not ways or any(way <= overlooked | missing for way in ways)
    assert all(len(missing) <= len(way - overlooked) for way in ways)


def test_labels_are_written_in_the_order_of_the_alphabet():
    assert as_label([{"rounding"}, {"duplicates", "case"}]) == "case, duplicates | rounding"
    assert as_label([[]]) == "none"

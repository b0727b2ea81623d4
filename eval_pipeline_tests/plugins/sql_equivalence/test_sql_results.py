"""Comparing results, golden cases and what holds for any; what is read off a query alone."""

from collections import Counter
from decimal import Decimal

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.table_comparison.graded import soft_f1
from eval_pipeline.table_comparison.rows import same_rows
from eval_pipeline_plugins.sql_equivalence.queries.determinism import tie_breaks, volatile_parts
from eval_pipeline_plugins.sql_equivalence.queries.ordering import order_keys
from eval_pipeline_plugins.sql_equivalence.results import ColumnMatch, Result, compared
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("sql_results.yaml")


def result(rows, ties=None):
    rows = [tuple(row) for row in rows]
    width = len(rows[0]) if rows else 1
    return Result(tuple(f"c{place}" for place in range(width)), rows, tuple(ties) if ties else None)


@pytest.mark.parametrize("case", GOLDEN, ids=[case["source"] for case in GOLDEN])
def test_results_are_the_same_where_the_engine_says_so(case):
    generated, expected = result(case["g"]), result(case["e"], case.get("ties"))
    assert ColumnMatch().agrees(generated, expected) is case["same"]
    if "f1" in case:
        assert soft_f1(generated.rows, expected.rows) == pytest.approx(case["f1"], abs=1e-4)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integers_and_decimals_are_equal_only_exactly(one, other):
    assert same_rows([(one,)], [(other,)]) == (one == other)
    cents, others = (Decimal(number).scaleb(-2) for number in (one, other))
    assert same_rows([(cents,)], [(others,)]) == (one == other)


@given(st.integers(-(10**13), 10**13), st.integers(-3, 3))
def test_numbers_with_two_decimals_are_equal_only_exactly_in_columns_of_floats_too(cents, apart):
    assert same_rows([(cents / 100,)], [((cents + apart) / 100,)]) == (apart == 0)


def test_an_order_of_columns_is_not_settled_by_results_that_fit_several():
    match = ColumnMatch()
    assert match.orders() is None
    assert match.agrees(result([]), Result(("c0",), []))
    match = ColumnMatch()
    assert match.agrees(Result(("a", "b"), []), Result(("a", "b"), []))
    assert match.orders() == ((0, 1), (1, 0))
    assert match.agrees(result([[1, 2]]), result([[2, 1]]))
    assert match.orders() == ((1, 0),)


def test_another_column_is_told_by_its_cells_and_not_as_one_missing_and_one_extra():
    mine = Result(("kind", "count(note)"), [("a", 2), ("b", 0)])
    found = compared(mine, Result(("kind", "n"), [("a", 2), ("b", 3)]))
    assert (found.needs, found.sentence()) == ((), "column `n` differs in 1 of 2 rows: 0 for 3 where `kind` is b")


def test_one_order_of_columns_has_to_fit_every_database():
    match = ColumnMatch()
    assert match.agrees(result([[1, 2]]), result([[2, 1]]))
    assert match.order == (1, 0)
    assert not match.agrees(result([[3, 4]]), result([[3, 4]]))
    assert match.agrees(result([[5, 6]]), result([[6, 5]]))


def test_an_order_that_fitted_by_chance_is_given_up_for_one_that_fits_all():
    match = ColumnMatch()
    assert match.agrees(result([[1, 1]]), result([[1, 1]]))
    assert match.agrees(result([[1, 2]]), result([[2, 1]]))
    assert match.order == (1, 0)


CELLS = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["a", "b", ""]), st.sampled_from([0.1, 0.25, 1e9]))
TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), max_size=8))


@given(TABLES, TABLES)
def test_sameness_is_equality_of_multisets_in_either_direction(rows, others):
    if not rows or not others or len(rows[0]) != len(others[0]):
        return
    assert same_rows(rows, others) == same_rows(others, rows)
    assert same_rows(rows, others) == (Counter(rows) == Counter(others))
    assert 0.0 <= soft_f1(rows, others) <= 1.0
    assert soft_f1(rows, others) == pytest.approx(soft_f1(others, rows))


@pytest.mark.parametrize(
    ("generated", "expected", "same"),
    [
        ([(1,) * 39 + (2,)], [(1,) * 39 + (3,)], False),  # the last column fits none
        ([(1,) * 20 + (2,) * 20], [(1,) * 21 + (2,) * 19], False),  # one column too many of a kind
        ([(1,) * 30 + (2, 3), (1,) * 30 + (3, 2)], [(1,) * 30 + (2, 2), (1,) * 30 + (3, 3)], False),
        ([tuple(range(1_500))], [tuple(reversed(range(1_500)))], True),
        ([(0.1,) * 30 + (1.5,)], [(1.5 + 1e-9,) + (0.1 + 1e-9,) * 30], True),
    ],
)
def test_wide_results_are_compared_without_trying_every_order_of_columns(generated, expected, same):
    assert ColumnMatch().agrees(result(generated), result(expected)) is same


@given(st.permutations(range(12)))
def test_any_order_of_columns_with_the_same_values_is_found(order):
    rows = [tuple((row + 5 * column * column) % 12 for column in range(12)) for row in range(12)]
    rows.append(tuple(range(12)))
    assert ColumnMatch().agrees(result([tuple(row[place] for place in order) for row in rows]), result(rows))


def test_a_search_that_would_take_for_ever_says_so_and_is_no_difference():
    """Rows are edges of rings; half of the nodes, none beside another, come first and tell nothing."""

    def rows(*rings):
        edges, start = [], 0
        for size in rings:
            edges += [(start + place, start + (place + 1) % size) for place in range(size)]
            start += size
        nodes = [*range(0, start, 2), *range(1, start, 2)]
        return [tuple(int(node in edge) for node in nodes) for edge in edges]

    with pytest.raises(SqlError, match="too many"):
        ColumnMatch().agrees(result(rows(*[12] * 4)), result(rows(*[24] * 2)))


def parsed(sql: str):
    return sqlglot.parse_one(sql, dialect="duckdb")


@pytest.mark.parametrize(
    ("sql", "places", "hidden"),
    [
        ("SELECT a, b FROM t ORDER BY b DESC, a", (1, 0), 0),
        ("SELECT a AS x, b FROM t ORDER BY x", (0,), 0),
        ("SELECT a, b FROM t ORDER BY 2", (1,), 0),
        ("SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY COUNT(*)", (1,), 0),
        ("SELECT a FROM t ORDER BY b, a, c", (-2, 0, -1), 2),
        ("SELECT * FROM t ORDER BY b", (-1,), 1),
        ("SELECT DISTINCT a FROM t ORDER BY a", (0,), 0),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY a", (0,), 0),
    ],
)
def test_the_keys_of_the_outermost_order_are_found(sql, places, hidden):
    found = order_keys(parsed(sql), "duckdb")
    assert (found.places, found.hidden) == (places, hidden)
    assert (found.sql is not None) == bool(hidden)


def test_a_hidden_key_that_uses_an_alias_has_it_written_out():
    found = order_keys(parsed("SELECT a + b AS s FROM t ORDER BY CASE WHEN s IS NULL THEN 1 ELSE 0 END, s"), "duckdb")
    assert found.sql.endswith("ORDER BY CASE WHEN s IS NULL THEN 1 ELSE 0 END, s")
    assert "CASE WHEN (a + b) IS NULL THEN 1 ELSE 0 END AS _order_key_0" in found.sql


def test_rows_with_equal_keys_are_one_group():
    found = order_keys(parsed("SELECT a, b FROM t ORDER BY a"), "duckdb")
    assert found.ties([(1, 5), (1, 6), (2, 5), (None, 1), (None, 2)]) == (0, 0, 1, 2, 2)


@pytest.mark.parametrize("sql", ["SELECT a FROM t", "SELECT a FROM (SELECT a FROM t ORDER BY a) s"])
def test_without_an_outermost_order_there_are_no_keys(sql):
    assert order_keys(parsed(sql), "duckdb") is None


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT random()", "random"),
        ("SELECT uuid()", "random"),
        ("SELECT a FROM t USING SAMPLE 3", "random"),
        ("SELECT ANY_VALUE(a) FROM t", "any value"),
        ("SELECT STRING_AGG(a, ',') FROM t", "without an order"),
        ("SELECT LIST(a) FROM t", "without an order"),
        ("SELECT DISTINCT ON (a) a, b FROM t", "any row"),
    ],
)
def test_what_varies_by_rule_is_told(sql, why):
    assert any(why in part for part in volatile_parts(parsed(sql)))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT STRING_AGG(a, ',' ORDER BY a) FROM t",
        "SELECT MAX(a), COUNT(*) FROM t",
        "SELECT FIRST_VALUE(a) OVER (ORDER BY a) FROM t",
        "SELECT 'random()' AS random FROM t",
        "SELECT a FROM t LIMIT 3",
    ],
)
def test_what_does_not_vary_by_rule_is_not(sql):
    assert volatile_parts(parsed(sql)) == []


def test_ties_are_broken_by_all_columns_one_way_and_the_other():
    one, other = tie_breaks(parsed("SELECT a, b FROM t ORDER BY a LIMIT 1"), "duckdb")
    assert one != other
    assert all("ORDER BY a" in sql and "LIMIT 1" in sql for sql in (one, other))
    assert "1 DESC" in other
    assert "2 DESC" in other


def test_ties_within_subqueries_are_broken_too():
    _, other = tie_breaks(parsed("SELECT a FROM t WHERE b = (SELECT b FROM u ORDER BY c LIMIT 1)"), "duckdb")
    assert "1 DESC" in other


def test_without_a_limit_there_are_no_ties_to_break():
    assert tie_breaks(parsed("SELECT a FROM t ORDER BY a"), "duckdb") is None

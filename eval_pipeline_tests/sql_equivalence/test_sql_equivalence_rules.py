"""What is read off a query alone: the keys of its order, and why its result may vary."""

import pytest
import sqlglot

from eval_pipeline.sql_equivalence.queries.determinism import tie_breaks, volatile_parts
from eval_pipeline.sql_equivalence.queries.ordering import order_keys


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

"""Base tables of queries against golden data, and against what DuckDB itself says that it reads."""

import itertools
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline.sql_equivalence.syntax.tables_in import TableName, base_tables
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("sql_tables.yaml")
PARSED = [case for case in GOLDEN if "tables" in case]
BROKEN = [case for case in GOLDEN if "error" in case]
NAMES = "abcd"


def tables_of(sql: str, dialect: str = "duckdb") -> list[str]:
    return sorted(map(str, base_tables(parse_statement(sql, dialect))))


@pytest.mark.parametrize("case", PARSED, ids=lambda case: case["name"])
def test_the_tables_of_a_golden_query(case: dict[str, Any]) -> None:
    assert tables_of(case["sql"], case.get("dialect", "duckdb")) == sorted(case["tables"])


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case["name"])
def test_malformed_sql_has_a_message_of_one_line(case: dict[str, Any]) -> None:
    with pytest.raises(SqlSyntaxError) as told:
        tables_of(case["sql"])
    assert case["error"] in str(told.value)
    assert len(str(told.value).splitlines()) == 1
    assert "\x1b" not in str(told.value)


def test_there_are_enough_tricky_queries() -> None:
    assert len(PARSED) >= 50


@pytest.mark.parametrize(
    ("text", "name"),
    [("users", TableName("", "users")), ("Sales.Orders", TableName("sales", "orders"))],
)
def test_a_table_named_in_a_case(text: str, name: TableName) -> None:
    assert TableName.of(text) == name
    assert str(name) == text.lower()


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Queries over the tables a to d, in which CTEs may have the names of tables; every CTE is used."""
    aliases = itertools.count()

    def source(depth: int) -> str:
        if depth and draw(st.booleans()):
            return f"({query(depth - 1)}) AS s{next(aliases)}"
        return f"{draw(st.sampled_from(NAMES))} AS s{next(aliases)}"

    def query(depth: int) -> str:
        if not depth:
            return f"SELECT 1 AS i FROM {source(depth)}"
        match draw(st.sampled_from(("join", "union", "in", "cte", "cte"))):
            case "join":
                return f"SELECT 1 AS i FROM {source(depth)} CROSS JOIN {source(depth)}"
            case "union":
                return f"SELECT 1 AS i FROM {source(depth)} UNION ALL ({query(depth - 1)})"
            case "in":
                return f"SELECT 1 AS i FROM {source(depth)} WHERE 1 IN ({query(depth - 1)})"
        name = draw(st.sampled_from(NAMES))
        return (
            f"WITH {name} AS ({query(depth - 1)}) "
            f"SELECT 1 AS i FROM {source(depth)}, {name} AS s{next(aliases)}, {source(depth)}"
        )

    return query(3)


@settings(max_examples=30, deadline=None)
@given(queries())
def test_duckdb_needs_these_tables_and_no_others(sql: str) -> None:
    needed = tables_of(sql)
    with duckdb.connect() as connection:
        for name in needed:
            connection.execute(f"CREATE TABLE {name} (i INTEGER)")
        connection.execute(f"EXPLAIN {sql}")  # nothing is missing
        for name in needed:
            connection.execute(f"DROP TABLE {name}")
            with pytest.raises(duckdb.Error):
                connection.execute(f"EXPLAIN {sql}")  # and nothing is too much
            connection.execute(f"CREATE TABLE {name} (i INTEGER)")

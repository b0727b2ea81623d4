"""Queries whose results cannot depend on the data: what is proved of them, and what must not be."""

import pytest
import sqlglot

from eval_pipeline.sql_equivalence import SqlSchema, check
from eval_pipeline.sql_equivalence.queries.fixed import is_fixed

SCHEMA = SqlSchema.from_ddl(
    "CREATE TABLE emp (id INTEGER PRIMARY KEY, dept INTEGER, sal INTEGER, old BOOLEAN, name TEXT);"
    "CREATE TABLE dept (id INTEGER PRIMARY KEY, name TEXT);"
)
NOTHING = "SELECT 1 WHERE 1 = 0"
EMPTY = (
    "SELECT id FROM emp WHERE FALSE",
    "SELECT id FROM emp WHERE dept = 7 AND dept = 8",
    "SELECT id FROM emp WHERE dept > 10 AND sal = 3 AND dept <= 10",
    "SELECT id FROM emp WHERE dept = 10 AND NOT dept = 10",
    "SELECT id FROM emp WHERE dept = 10 AND dept IS NULL",
    "SELECT id FROM emp WHERE NULL = 1",
    "SELECT emp.id FROM emp JOIN dept ON emp.dept = dept.id WHERE dept.id IS NULL AND emp.dept = dept.id",
    "SELECT dept.id FROM (SELECT * FROM emp WHERE FALSE) AS e LEFT JOIN dept ON dept.id = e.dept",
    "SELECT id FROM emp WHERE FALSE INTERSECT SELECT id FROM dept",
    "SELECT id FROM emp WHERE FALSE EXCEPT SELECT id FROM dept",
    "SELECT id FROM emp WHERE FALSE UNION SELECT id FROM dept WHERE 1 = 2",
    "SELECT SUM(sal) FROM emp WHERE FALSE GROUP BY dept",
)
NOT_EMPTY = (
    "SELECT COUNT(*) FROM emp WHERE FALSE",
    "SELECT dept.id FROM (SELECT * FROM emp WHERE FALSE) AS e RIGHT JOIN dept ON dept.id = e.dept",
    "SELECT id FROM dept EXCEPT SELECT id FROM emp WHERE FALSE",
    "SELECT id FROM emp WHERE FALSE UNION SELECT id FROM dept",
    "SELECT id FROM emp WHERE dept = 7 OR dept = 8",
    "SELECT id FROM emp WHERE dept >= 10 AND dept <= 10",
    "SELECT id FROM emp WHERE dept > 10 AND sal <= 10",
    "SELECT id FROM emp WHERE dept IS NULL AND sal = 10",
)
"""Queries that a careless rule takes for empty."""


@pytest.mark.parametrize("sql", EMPTY)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_two_queries_without_rows_on_any_database_are_equivalent(sql, dialect):
    found = check(sql, NOTHING, SCHEMA, dialect=dialect)
    assert (found.verdict, found.rung) == ("equivalent", "proved"), found.evidence
    assert "cannot depend on the data" in found.evidence["reason"]


@pytest.mark.parametrize("sql", NOT_EMPTY)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_what_returns_rows_on_some_database_is_another_query(sql, dialect):
    assert check(sql, NOTHING, SCHEMA, dialect=dialect).verdict == "different"


@pytest.mark.parametrize("sql", NOT_EMPTY[1:])
def test_a_result_that_may_have_rows_is_not_fixed(sql):
    assert not is_fixed(sqlglot.parse_one(sql, dialect="duckdb"))


@pytest.mark.parametrize(
    ("generated", "expected", "verdict"),
    [
        (
            "SELECT a + b FROM (VALUES (10, 1), (20, 3)) AS t (a, b)",
            "SELECT * FROM (VALUES (11), (23)) AS t (c)",
            "equivalent",
        ),
        (
            "SELECT a + b FROM (VALUES (10, 1), (20, 3)) AS t (a, b)",
            "SELECT * FROM (VALUES (11), (24)) AS t (c)",
            "different",
        ),
        ("SELECT COUNT(*) FROM emp WHERE FALSE", "SELECT 0", "equivalent"),
        ("SELECT SUM(sal) FROM emp WHERE FALSE", "SELECT 0", "different"),
        ("SELECT 7 / 2", "SELECT 3.5", "equivalent"),  # in DuckDB, not in SQLite, where databases are tried
        ("SELECT COUNT(*) + (SELECT COUNT(*) FROM dept) FROM emp WHERE FALSE", "SELECT COUNT(*) FROM dept", "agreed"),
        ("SELECT CURRENT_DATE = CURRENT_DATE", "SELECT TRUE", "undecided"),  # nobody knows what it is tomorrow
        ("SELECT id FROM emp WHERE old = 7 AND old = 8", NOTHING, "undecided"),
    ],
)
def test_fixed_results_are_compared_in_the_deciding_engine(generated, expected, verdict):
    assert check(generated, expected, SCHEMA).verdict == verdict

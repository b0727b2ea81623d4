"""Queries that name no table may read rows all the same, and a comparison may be without any rows."""

import sqlite3
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.sql_equivalence import check
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema

MACROS = """
CREATE TABLE emp (id INT, salary INT); INSERT INTO emp VALUES (1, 777);
CREATE MACRO sal(i) AS (SELECT max(salary) FROM emp WHERE id = i);
CREATE MACRO pay() AS TABLE SELECT salary FROM emp;
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT sal(5)", "SELECT sal(6)"),
        ("SELECT count(*), sal(5) FROM emp WHERE FALSE", "SELECT count(*), sal(6) FROM emp WHERE FALSE"),
        ("SELECT salary FROM pay() WHERE salary = 1", "SELECT salary FROM pay() WHERE salary = 2"),
    ],
)
def test_macros_of_the_database_are_not_the_same_for_ever(one: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(MACROS)
        assert made.execute(one).fetchall() == made.execute(other).fetchall()
        made.execute("INSERT INTO emp VALUES (5, 1), (6, 2)")
        differ = made.execute(one).fetchall() != made.execute(other).fetchall()
        made.execute("DELETE FROM emp WHERE id > 1")
    assert differ
    found = check(one, other, SqlSchema.from_database(path), [path], dialect="duckdb")
    assert found.verdict not in ("equivalent", "different")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_condition_that_no_row_can_satisfy_is_no_fault_of_the_search(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    table = "CREATE TABLE c (id INTEGER PRIMARY KEY, n VARCHAR NOT NULL)"
    if engine == "sqlite":
        with sqlite3.connect(path) as file:
            file.execute(table)
    else:
        with duckdb.connect(str(path)) as made:
            made.execute(table)
    schema = SqlSchema.from_database(path)
    found = check("SELECT count(n) FROM c WHERE n IS NULL", "SELECT 0", schema, [path], dialect=engine)
    assert "fault" not in str(dict(found.evidence))

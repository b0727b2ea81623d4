"""Which queries read what a case protects: each is run, so that those that are told as harmless show nothing of it."""

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline.tracks.sql.cases.case_file import Gold
from eval_pipeline.tracks.sql.execute import Ran
from eval_pipeline.tracks.sql.harmless import is_harmless

SECRET = 777
SCRIPT = f"""
CREATE TABLE emp (id INTEGER, salary INTEGER, status VARCHAR); INSERT INTO emp VALUES (1, {SECRET}, 'x');
CREATE TABLE status (status VARCHAR, id INTEGER); INSERT INTO status VALUES ('x', 1);
"""
RAN = cast(Ran, SimpleNamespace())

READING = [
    ("both", "SELECT salary FROM emp"),
    ("both", "SELECT id FROM emp ORDER BY salary"),
    ("both", "SELECT * FROM emp"),
    ("both", "SELECT emp.* FROM emp"),
    ("both", "SELECT id FROM (SELECT * FROM emp)"),
    ("both", "SELECT e.SALARY FROM emp AS e"),
    ("both", 'SELECT "salary" FROM emp'),
    ("both", "WITH e (a, x, s) AS (SELECT * FROM emp) SELECT x FROM e"),
    ("both", "SELECT id FROM emp UNION SELECT max(salary) FROM emp"),
    ("both", f"SELECT id FROM emp NATURAL JOIN (SELECT {SECRET} AS salary)"),
    ("both", f"SELECT id FROM emp JOIN (SELECT {SECRET} AS salary) USING (salary)"),
    ("duckdb", "FROM emp"),
    ("duckdb", "SELECT COLUMNS('sal.*') FROM emp"),
    ("duckdb", "SELECT max(COLUMNS(lambda c: c LIKE 'sal%')) FROM emp"),
    ("duckdb", "SELECT * EXCLUDE (id) FROM emp"),
    ("duckdb", "SELECT emp FROM emp"),
    ("duckdb", "SELECT e FROM emp AS e"),
    ("duckdb", "SELECT to_json(emp) FROM emp"),
    ("duckdb", "SELECT emp['salary'] FROM emp"),
    ("duckdb", "SELECT #2 FROM emp"),
    ("duckdb", "SELECT x FROM emp AS e (a, x)"),
    ("duckdb", "SELECT y FROM query_table('emp') AS q (x, y)"),
    ("duckdb", "SELECT value FROM emp UNPIVOT (value FOR name IN (salary))"),
]
HARMLESS = [
    ("both", "SELECT id FROM emp"),
    ("both", "SELECT count(*) FROM emp"),
    ("both", "SELECT status FROM emp AS e"),
    ("both", "SELECT status FROM status"),
    ("both", "SELECT emp.status, status.id FROM emp JOIN status ON emp.id = status.id"),
    ("both", "SELECT status.* FROM status"),
    ("both", f"SELECT {SECRET + 1} AS salary_band"),
]


def engines(cases: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(one, sql) for engine, sql in cases for one in (("sqlite", "duckdb") if engine == "both" else (engine,))]


def rows(engine: str, path: Path, sql: str) -> str:
    if engine == "sqlite":
        with sqlite3.connect(path) as file:
            file.executescript(SCRIPT)
            return repr(file.execute(sql).fetchall())
    with duckdb.connect(str(path)) as made:
        made.execute(SCRIPT)
        return repr(made.execute(sql).fetchall())


def harmless(engine: str, path: Path, sql: str) -> bool:
    database = SimpleNamespace(dialect=engine, schema=SqlSchema.from_database(path))
    gold: Any = SimpleNamespace(protected=("emp.salary",), database=database)
    return is_harmless(sql, cast(Gold, gold), RAN)


@pytest.mark.parametrize(("engine", "sql"), engines(READING))
def test_what_reads_a_protected_column_is_not_harmless(engine: str, sql: str, tmp_path: Path) -> None:
    assert rows(engine, tmp_path / "a.db", sql) != "[]", "it runs"
    assert not harmless(engine, tmp_path / "a.db", sql)


@pytest.mark.parametrize(("engine", "sql"), engines(HARMLESS))
def test_what_reads_other_columns_is_harmless(engine: str, sql: str, tmp_path: Path) -> None:
    assert str(SECRET) not in rows(engine, tmp_path / "a.db", sql).replace(str(SECRET + 1), "")
    assert harmless(engine, tmp_path / "a.db", sql)

"""Views, generated columns, other schemas and virtual tables: in the schema, the prompt, the validator, the search."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.core.model import Ran
from eval_pipeline.sandbox.sql import SqlError, SqlLimits, SqlRows
from eval_pipeline.sandbox.sql.tasks import connection_to
from eval_pipeline.sql_equivalence import SqlSchema, check
from eval_pipeline.sql_equivalence.told import schema_from_json, schema_to_json
from eval_pipeline.tracks.sql.cases.build import count_rows
from eval_pipeline.tracks.sql.cases.source import _schema as stored_form
from eval_pipeline.tracks.sql.cases.source import read_databases
from eval_pipeline.tracks.sql.harmless import is_harmless
from eval_pipeline.tracks.sql.prompt import schema_text
from eval_pipeline.tracks.sql.validation.validator import validate
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.sql.helpers import read

DATABASES = {one["name"]: one for one in golden("sql_computed.yaml")}


def _each(*keys: str) -> list[tuple[str, Any]]:
    return [(name, item) for name, one in DATABASES.items() for key in keys for item in one.get(key, ())]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, made = tmp_path_factory.mktemp("computed"), {}
    for number, (name, one) in enumerate(DATABASES.items()):
        path = folder / f"{number}.{one['engine']}"
        if one["engine"] == "sqlite":
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(one["script"])
        elif one["engine"] == "duckdb":
            with duckdb.connect(str(path)) as connection:
                connection.execute(one["script"])
        made[name] = path
    return made


@pytest.fixture(scope="module")
def schemas(files: dict[str, Path]) -> dict[str, SqlSchema]:
    return {
        name: SqlSchema.from_database(path)
        if path.exists()
        else SqlSchema.from_ddl(DATABASES[name]["script"], DATABASES[name]["engine"])
        for name, path in files.items()
    }


@pytest.mark.parametrize("name", DATABASES)
def test_a_schema_says_what_users_of_the_engine_see_and_is_kept_as_it_is(
    name: str, schemas: dict[str, SqlSchema], files: dict[str, Path]
) -> None:
    schema, expected = schemas[name], DATABASES[name]
    assert schema_text(schema) == expected.get("prompt", schema_text(schema)).strip()
    assert schema_from_json(schema_to_json(schema)) == schema
    assert stored_form.validate_json(stored_form.dump_json(schema, exclude_none=True)) == schema
    if "rows" in expected:
        assert count_rows(files[name], schema) == expected["rows"]


@pytest.mark.parametrize(("name", "sql"), _each("fit"))
def test_what_the_engine_runs_fits_the_schema(
    name: str, sql: str, schemas: dict[str, SqlSchema], files: dict[str, Path]
) -> None:
    assert validate(sql, schemas[name], DATABASES[name]["engine"]).errors == ()
    if files[name].exists():
        assert isinstance(connection_to(files[name], SqlLimits()).query(sql), SqlRows)


@pytest.mark.parametrize(
    ("name", "sql", "message"),
    [(name, sql, told) for name, one in DATABASES.items() for sql, told in one.get("misfit", {}).items()],
)
def test_what_is_not_there_is_said(name: str, sql: str, message: str, schemas: dict[str, SqlSchema]) -> None:
    found = validate(sql, schemas[name], DATABASES[name]["engine"])
    assert [error.message for error in found.errors] == [message]


@pytest.mark.parametrize(("name", "pair"), _each("pairs"))
def test_queries_are_compared_on_generated_databases(name: str, pair: list[str], schemas: dict[str, SqlSchema]) -> None:
    generated, expected, verdict = pair
    found = check(generated, expected, schemas[name], (), DATABASES[name]["engine"], time_limit_s=60)
    assert found.verdict == verdict, found.evidence
    assert not found.evidence.get("contradicted_proof")


@pytest.mark.parametrize(("name", "pair"), _each("on_data"))
def test_queries_are_compared_on_the_data(
    name: str, pair: list[str], schemas: dict[str, SqlSchema], files: dict[str, Path]
) -> None:
    generated, expected, verdict = pair
    found = check(generated, expected, schemas[name], [files[name]], DATABASES[name]["engine"], time_limit_s=60)
    assert (found.verdict, found.evidence["shipped"][0]["error"]) == (verdict, None), found.evidence


def test_a_counterexample_has_the_rows_without_what_is_computed(schemas: dict[str, SqlSchema]) -> None:
    found = check("SELECT total FROM item", "SELECT price + qty FROM item", schemas["duckdb"])
    assert found.evidence["counterexample"]["tables"]["item"]["columns"] == ["price", "qty"]


def test_a_query_may_not_write_to_a_virtual_table(files: dict[str, Path]) -> None:
    guard = connection_to(files["virtual tables"], SqlLimits())
    for sql in (
        "INSERT INTO docs VALUES ('x', 'y')",
        "INSERT INTO docs(docs) VALUES ('optimize')",
        "DELETE FROM boxes",
    ):
        with pytest.raises(SqlError, match="not authorized"):
            guard.query(sql)


def test_a_virtual_table_without_its_module_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "INSERT INTO sqlite_master VALUES ('table', 'odd', 'odd', 0, 'CREATE VIRTUAL TABLE odd USING nowhere(a)')"
        )
        connection.commit()
    assert [table.name for table in SqlSchema.from_database(path).tables] == ["t"]


def test_virtual_tables_of_other_kinds_are_said_to_be_out_of_reach(files: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "words.sqlite"
    path.write_bytes(files["virtual tables"].read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab('docs', 'row')")
        connection.commit()
    guard = connection_to(path, SqlLimits())
    assert guard.query("SELECT title FROM docs WHERE docs MATCH 'pear'").rows == [("two",)]
    with pytest.raises(SqlError, match="words is a virtual table that is no full-text and no R-tree index"):
        guard.query("SELECT * FROM words")


PROTECTED = """
CREATE TABLE customers (
  id INTEGER PRIMARY KEY, name TEXT, email TEXT, shout TEXT AS (upper(email)), twice INT AS (id * 2)
);
CREATE VIEW contacts AS SELECT id, name, email AS address FROM customers;
CREATE VIEW below AS SELECT address FROM contacts;
CREATE VIEW oslo AS SELECT id FROM customers WHERE email LIKE '%.no';
"""


@pytest.mark.parametrize(
    ("sql", "harmless"),
    [
        ("SELECT email FROM customers", False),
        ("SELECT name FROM customers", True),
        ("SELECT shout FROM customers", False),
        ("SELECT twice FROM customers", True),
        ("SELECT address FROM contacts", False),
        ("SELECT * FROM contacts", False),
        ("SELECT name FROM contacts", True),
        ("SELECT address FROM below", False),
        ("SELECT c.name FROM contacts AS c WHERE c.address LIKE 'a%'", False),
        ("SELECT id FROM oslo", False),
        ("WITH contacts AS (SELECT 1 AS address) SELECT address FROM contacts", True),
    ],
)
def test_what_a_case_protects_is_not_read_through_a_view_either(tmp_path: Path, sql: str, harmless: bool) -> None:
    place = tmp_path / "suite" / "databases" / "shop"
    place.mkdir(parents=True)
    with closing(sqlite3.connect(place / "shop.sqlite")) as connection:
        connection.executescript(PROTECTED)
        connection.execute("INSERT INTO customers (id, name, email) VALUES (1, 'Ada', 'ada@x.no')")
        connection.commit()
    told = {"id": "a", "question": "?", "should_pass": False, "protected": ["customers.email"]}
    gold = read(told, read_databases(tmp_path / "suite", {})).turns[0].gold
    assert is_harmless(sql, gold, Ran(None)) is harmless

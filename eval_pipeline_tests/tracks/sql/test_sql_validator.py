"""The validator: verdicts and messages on golden statements, and that SQLite and DuckDB agree about the schema."""

import csv
import sqlite3
from contextlib import closing
from typing import Any

import duckdb
import pytest

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import (
    DEEPEST,
    LONGEST,
    MOST_BRACKETS,
    MOST_OPEN,
    SqlSyntaxError,
    parse_statement,
    shared_statements,
)
from eval_pipeline_plugins.tracks.sql.cases.words import SAFETY, SCHEMA, SYNTAX
from eval_pipeline_plugins.tracks.sql.validation.validator import Validation, ValidationError, validate
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("sql_validator.yaml")
SHOP = SqlSchema.from_ddl(GOLDEN["ddl"])
CASES = GOLDEN["cases"]
# Of an empty table DuckDB makes no pivot.
BY_ENGINES = [case for case in CASES if case.get("category", SCHEMA) == SCHEMA and "PIVOT" not in case["sql"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_golden_statement(case: dict[str, Any]) -> None:
    found = validate(case["sql"], SHOP, case.get("dialect", "duckdb"))
    category = case.get("category")
    assert found.is_valid == (category is None)
    assert found.safety_valid == (category in (None, SCHEMA))
    assert [error.category for error in found.errors][:1] == ([category] if category else [])
    if category:
        assert case["says"] in found.errors[0].message
        assert len(found.errors[0].message.splitlines()) == 1


@pytest.mark.parametrize("case", BY_ENGINES, ids=lambda case: case["name"])
def test_the_engine_takes_what_the_validator_takes(case: dict[str, Any]) -> None:
    if case.get("dialect") == "sqlite":
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(GOLDEN["ddl"])
            taken = _runs(lambda: connection.execute(case["sql"]), sqlite3.Error)
    else:
        with duckdb.connect() as connection:
            connection.execute(GOLDEN["ddl"])
            taken = _runs(lambda: connection.execute(case["sql"]), duckdb.Error)
    assert taken == ("category" not in case)


def _runs(run: Any, error: type[Exception]) -> bool:
    try:
        run()
    except error:
        return False
    return True


def test_without_a_schema_names_are_not_looked_at() -> None:
    assert validate("SELECT nothing FROM nowhere") == Validation(True, True, ())


def test_every_fault_is_told_once() -> None:
    found = validate("SELECT sleep_ms(1), sleep_ms(2), getenv('x'); DROP TABLE t")
    messages = [error.message for error in found.errors]
    assert len(messages) == len(set(messages)) >= 4
    assert {error.category for error in found.errors} == {SAFETY}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT '" + "x" * LONGEST + "'", f"the SQL is longer than {LONGEST:,} characters"),
        ("SELECT 1\x00; DROP TABLE t", "the SQL has a NUL character"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "the SQL is nested too deeply"),
    ],
    ids=["long", "NUL", "deep"],
)
def test_what_could_hurt_the_parser_is_refused(sql: str, message: str) -> None:
    assert validate(sql) == Validation(False, False, (ValidationError(SYNTAX, message),))


@pytest.mark.parametrize("joint", [" OR x = ", " AND x = ", " + "])
def test_long_chains_are_no_deep_nests(joint: str) -> None:
    sql = f"SELECT * FROM t WHERE x = {joint.join(str(number) for number in range(700))}"
    assert validate(sql).safety_valid


def test_a_remembered_parse_is_not_changed_by_looking_at_it() -> None:
    sql = 'SELECT "New York", c.name FROM customers AS c'
    (before,) = (tree.copy() for tree in shared_statements(sql, "sqlite"))
    validate(sql, SHOP, "sqlite")
    validate(sql, SHOP, "sqlite")
    (after,) = shared_statements(sql, "sqlite")
    assert before == after
    assert parse_statement(sql, "sqlite") is not after


def test_an_unknown_dialect_is_no_fault_of_the_sql() -> None:
    with pytest.raises(ValueError, match="Unknown dialect 'duckbd'") as told:
        validate("SELECT 1", dialect="duckbd")
    assert not isinstance(told.value, SqlSyntaxError)


def test_several_statements_are_no_statement() -> None:
    with pytest.raises(SqlSyntaxError, match="expected one statement, found 2"):
        parse_statement("SELECT 1; SELECT 2")


def test_every_accepted_query_of_defog_fits_its_schema() -> None:
    defog = outside.given(outside.SQL / "defog")
    schemas = {path.stem: SqlSchema.from_database(path) for path in (defog / "sqlite").glob("*.sqlite")}
    wrong = []
    for name in ("questions_gen_sqlite", "instruct_basic_sqlite", "instruct_advanced_sqlite"):
        with (defog / f"{name}.csv").open() as file:
            for row in csv.DictReader(file):
                for sql in filter(str.strip, row["query"].split(";")):
                    found = validate(sql, schemas[row["db_name"]], "sqlite")
                    wrong += [(sql, found.errors)] if not found.is_valid else []
    assert wrong == []


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (f"SELECT 1{' + 1' * DEEPEST}", "nested too deeply"),
        (f"{'SELECT * FROM (' * MOST_OPEN}(SELECT 1){')' * MOST_OPEN}", "nested too deeply"),
        (f"SELECT [{', '.join(['[1]'] * MOST_BRACKETS)}]", f"more than {MOST_BRACKETS} square brackets"),
    ],
)
def test_what_would_take_the_stack_or_the_square_of_time_is_refused(sql: str, says: str) -> None:
    found = validate(sql)
    assert not found.safety_valid
    assert [error.category for error in found.errors] == [SYNTAX]
    assert says in found.errors[0].message


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 1{' + 1' * (DEEPEST // 2)}",
        f"SELECT '{'(' * 2 * DEEPEST}', '{'[' * 2 * MOST_BRACKETS}'",
        f"SELECT {', '.join(['abs(1)'] * 2 * DEEPEST)}",
    ],
)
def test_what_is_only_long_is_not(sql: str) -> None:
    assert validate(sql).is_valid


TAGGED = "CREATE TABLE c (id INT PRIMARY KEY, tags TEXT[])"
INDEXED = "CREATE VIRTUAL TABLE d USING fts5 (title)"


@pytest.mark.parametrize(
    ("dialect", "ddl", "sql", "fits"),
    [
        # https://www.postgresql.org/docs/15/queries-table-expressions.html, 7.2.1.4: the column has the alias's name
        ("postgres", TAGGED, "SELECT c.id, t FROM c, unnest(c.tags) t", True),
        ("postgres", TAGGED, "SELECT c.id, t.t FROM c CROSS JOIN LATERAL unnest(c.tags) AS t", True),
        ("postgres", TAGGED, "SELECT t, ordinality FROM c, unnest(c.tags) WITH ORDINALITY AS t", True),
        ("postgres", TAGGED, "SELECT x FROM c, unnest(c.tags) AS t(x)", True),
        ("postgres", TAGGED, "SELECT t FROM c, unnest(c.tags) AS t(x) WHERE unnest = 'a'", False),
        ("postgres", TAGGED, "SELECT y FROM c, unnest(c.tags) t", False),
        ("postgres", TAGGED, "SELECT id FROM c WHERE similarity(tags[1], 'a') > 0.3", True),
        # https://www.sqlite.org/fts5.html, 3.1 and 5
        (
            "sqlite",
            INDEXED,
            "SELECT title, bm25(d), highlight(d, 0, '<', '>') FROM d WHERE d MATCH 'x' ORDER BY rank",
            True,
        ),
        ("sqlite", INDEXED, "SELECT body FROM d WHERE d MATCH 'x'", False),
    ],
)
def test_columns_and_functions_that_no_definition_names(dialect: str, ddl: str, sql: str, fits: bool) -> None:
    assert validate(sql, SqlSchema.from_ddl(ddl, dialect), dialect).is_valid == fits


@pytest.mark.parametrize(
    ("dialect", "sql"), [("postgres", "SELECT set_limit(0.1)"), ("sqlite", "SELECT fts5_source_id()")]
)
def test_settings_of_full_text_search_stay_closed(dialect: str, sql: str) -> None:
    assert not validate(sql, None, dialect).safety_valid


def test_a_mapping_is_schema_enough() -> None:
    assert validate("SELECT total FROM t", {"t": {"total": "int"}}).is_valid
    (error,) = validate("SELECT nope FROM t", {"t": {"total": "int"}}).errors
    assert (error.category, error.message) == (SCHEMA, "there is no column nope")


def test_names_of_thousands_of_tables_are_not_looked_up() -> None:
    found = validate(f"SELECT 1 FROM orders{', orders' * 1000}", SHOP)
    assert [error.category for error in found.errors] == [SCHEMA]
    assert found.safety_valid

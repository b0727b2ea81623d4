"""Generated databases are such that the DDL allows: each counterexample is replayed in a database made by it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import duckdb
import pytest
from pydantic import TypeAdapter

from eval_pipeline_plugins.sql_equivalence.generated.checks import Checks
from eval_pipeline_plugins.sql_equivalence.generated.databases import DatabaseMaker
from eval_pipeline_plugins.sql_equivalence.generated.legal import Laws
from eval_pipeline_plugins.sql_equivalence.generated.references import References
from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlColumn, SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.told import schema_from_json, schema_to_json
from eval_pipeline_tests.goldens import golden

CASES = [(case, dialect) for case in golden("sql_worlds.yaml")["cases"] for dialect in case["dialect"]]
WANTED = {"same": {"equivalent", "agreed", "weakly_agreed"}, "different": {"different"}, "unsure": {"undecided"}}


@pytest.mark.parametrize(("case", "dialect"), CASES, ids=[f"{d}-{c['want']}: {c['source']}" for c, d in CASES])
def test_verdicts_hold_in_databases_that_the_schema_allows(case: dict[str, Any], dialect: str) -> None:
    schema = SqlSchema.from_ddl(case["schema"], dialect)
    pairs = [(case["one"], case["other"]), (case["other"], case["one"])]
    once = [pairs[len(case["source"]) % 2]]  # what agrees takes all databases; either order of about half
    for one, other in pairs if case["want"] == "different" else once:
        found = check(one, other, schema, dialect=dialect)
        assert found.verdict in WANTED[case["want"]], (found.verdict, dict(found.evidence))
        assert not found.evidence.get("contradicted_proof")
        if found.verdict == "different" and dialect in ("sqlite", "duckdb"):
            replayed(case["schema"], dialect, found.evidence["counterexample"], one, other)


def replayed(ddl: str, dialect: str, told: dict[str, Any], one: str, other: str) -> None:
    """Inserts the rows of a counterexample into a database made by the DDL, where the results have to differ too."""
    connection: Any = sqlite3.connect(":memory:") if dialect == "sqlite" else duckdb.connect()
    run: Callable[..., Any] = connection.execute
    for statement in ddl.split(";"):
        if statement.strip():
            run(statement)
    for name, table in told["tables"].items():
        columns, marks = ", ".join(table["columns"]), ", ".join("?" * len(table["columns"]))
        for row in table["rows"]:
            run(f"INSERT INTO {name} ({columns}) VALUES ({marks})", row)
    mine, theirs = ([[None] * len(run(sql).description), *run(sql).fetchall()] for sql in (one, other))
    connection.close()
    assert mine != theirs
    assert told["expected"]["ordered"] or sorted(map(repr, mine)) != sorted(map(repr, theirs))


LAWFUL = """
CREATE TABLE p (id INTEGER PRIMARY KEY, n TEXT COLLATE NOCASE NOT NULL UNIQUE,
  a INTEGER NOT NULL CHECK (a / 2 * 2 = a));
CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER NOT NULL REFERENCES p (id), k TEXT NOT NULL);
CREATE UNIQUE INDEX u ON c (lower(k)) WHERE p > 1;
"""


def test_every_generated_database_is_accepted_and_few_are_empty() -> None:
    schema = SqlSchema.from_ddl(LAWFUL, "sqlite")
    pair = QueryPair("SELECT k FROM c JOIN p ON p.id = c.p WHERE a > 3", "SELECT n FROM p", schema, "sqlite")
    maker = DatabaseMaker(pair.schema, pair.mined(), Checks(pair.schema), wide_integers=True)
    filled = 0
    for number in range(40):
        database = maker.make(number)
        filled += all(database.values())
        with closing(sqlite3.connect(":memory:")) as made:
            made.executescript(LAWFUL + "PRAGMA foreign_keys = ON;")
            for name in ("p", "c"):
                made.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", database[name])
    assert filled >= 20


def test_rows_that_refer_to_refused_ones_go_too() -> None:
    schema = SqlSchema.from_ddl(LAWFUL, "sqlite")
    laws = Laws(schema, References(schema))
    database = {"p": [(1, "x", 2), (2, "X", 4), (3, "y", 3)], "c": [(1, 1, "k"), (2, 2, "l"), (3, 3, "m")]}
    assert laws.allow(database) is False
    assert laws.repaired(dict(database)) == {"p": [(1, "x", 2)], "c": [(1, 1, "k")]}
    assert laws.allow({"p": [(1, "x", 2)], "c": []}) is True


def test_what_a_view_leaves_to_chance_makes_its_queries_so() -> None:
    ddl = "CREATE TABLE e (a INTEGER, b INTEGER); CREATE VIEW v AS {}; CREATE VIEW w AS SELECT * FROM v"
    for query, why in (
        ("SELECT a FROM e LIMIT 1", "LIMIT"),
        ("SELECT any_value(a) AS a FROM e", "any value"),
        ("SELECT a FROM e", None),
    ):
        schema = SqlSchema.from_ddl(ddl.format(query), "duckdb")
        volatile = QueryPair("SELECT a FROM w", "SELECT a FROM e", schema, "duckdb").volatile
        assert (why is None) == (not volatile)
        assert why is None or why in volatile[0]


def test_schemas_of_earlier_records_are_read() -> None:
    column = {"name": "a", "type": "INTEGER", "nullable": True, "description": ""}
    table = {"name": "t", "columns": [column], "primary_key": [], "foreign_keys": [], "unique": [], "checks": []}
    found = TypeAdapter(SqlSchema).validate_python({"tables": [table]})
    assert found == SqlSchema((SqlTable("t", (SqlColumn("a", "INTEGER"),)),))
    whole = SqlSchema.from_ddl(LAWFUL + "CREATE VIEW v AS SELECT n FROM p", "sqlite")
    assert TypeAdapter(SqlSchema).validate_json(TypeAdapter(SqlSchema).dump_json(whole)) == whole
    assert schema_from_json(schema_to_json(whole)) == whole

"""Generated databases are such that the DDL allows: each counterexample is replayed in a database made by it."""

import sqlite3
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from eval_pipeline.sql_equivalence import check
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests.goldens import golden

CASES = [(case, dialect) for case in golden("sql_worlds.yaml")["cases"] for dialect in case["dialect"]]
WANTED = {"same": {"equivalent", "agreed", "weakly_agreed"}, "different": {"different"}, "unsure": {"undecided"}}


@pytest.mark.parametrize(("case", "dialect"), CASES, ids=[f"{d}-{c['want']}: {c['source']}" for c, d in CASES])
def test_verdicts_hold_in_databases_that_the_schema_allows(case: dict[str, Any], dialect: str) -> None:
    schema = SqlSchema.from_ddl(case["schema"], dialect)
    for one, other in ((case["one"], case["other"]), (case["other"], case["one"])):
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

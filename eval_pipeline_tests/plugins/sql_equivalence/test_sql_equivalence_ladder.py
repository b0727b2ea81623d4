"""The ladder of `check`, rung by rung, on golden pairs; and its counterexamples, run again by hand."""

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.sandbox.sql.errors import SqlFaultError
from eval_pipeline_plugins.sql_equivalence import ladder
from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.plugins.sql_equivalence.constraints import broken_constraints

GOLDEN = golden("sql_equivalence.yaml")
SCHEMAS = {name: SqlSchema.from_ddl(text) for name, text in GOLDEN["schemas"].items()}
COMPANY = SCHEMAS["company"]
CASES = [(case, dialect) for case in GOLDEN["cases"] for dialect in case.get("in", ["duckdb", "sqlite"])]
VERDICTS = {"identical": "equivalent", "proved": "equivalent", "refuted": "different"}


def of_case(case: dict[str, str], dialect: str) -> str:
    return f"{dialect}: {case['source']}"


@pytest.mark.parametrize(("case", "dialect"), CASES, ids=[of_case(*case) for case in CASES])
def test_the_first_rung_that_can_tell_tells(case, dialect):
    found = check(case["generated"], case["expected"], SCHEMAS[case.get("schema", "company")], dialect=dialect)
    rung = case["rung"]
    assert (found.rung, found.verdict) == (rung, VERDICTS.get(rung, rung)), found.evidence
    assert found.value == {"equivalent": 1.0, "agreed": 1.0, "different": 0.0, "undecided": None}[found.verdict]
    assert found.evidence["reason"].startswith(case.get("says", ""))
    assert not found.evidence.get("contradicted_proof")
    if rung == "refuted" and dialect == "duckdb" and not {"in", "schema"} & case.keys():
        assert_counterexample_shows_the_difference_by_hand(case, found.evidence["counterexample"])


def assert_counterexample_shows_the_difference_by_hand(case, told):
    """It keeps the constraints, too."""
    schema = SqlSchema(tuple(table for table in COMPANY.tables if table.name in told["tables"]))
    assert not broken_constraints(schema, {name: table["rows"] for name, table in told["tables"].items()})
    with duckdb.connect() as connection:
        for table in schema.tables:
            columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
            connection.execute(f"CREATE TABLE {table.name} ({columns})")
            for row in told["tables"][table.name]["rows"]:
                connection.execute(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(row))})", row)
        for side in ("generated", "expected"):
            rows = [list(map(_told, row)) for row in connection.execute(case[side]).fetchall()]
            if told["expected"]["ordered"]:
                assert rows == told[side]["rows"]
            assert Counter(map(repr, rows)) == Counter(map(repr, told[side]["rows"]))
    widths = [len(told[side]["columns"]) for side in ("generated", "expected")]
    assert widths[0] != widths[1] or told["generated"]["rows"] != told["expected"]["rows"]


def _told(cell):
    return cell if cell is None or isinstance(cell, bool | int | float | str) else str(cell)


def test_a_counterexample_is_small():
    told = check("SELECT id FROM emp WHERE sal >= 10", "SELECT id FROM emp WHERE sal > 10", COMPANY).evidence
    assert sum(len(table["rows"]) for table in told["counterexample"]["tables"].values()) <= 3


@pytest.fixture
def shop(tmp_path: Path) -> dict[str, Path]:
    statements = [
        "CREATE TABLE item (id INT PRIMARY KEY, price INT)",
        "INSERT INTO item VALUES (1, 5), (2, 7), (3, 7), (4, NULL)",
    ]
    paths = {"sqlite": tmp_path / "shop.sqlite", "duckdb": tmp_path / "shop.duckdb"}
    with sqlite3.connect(paths["sqlite"]) as small, duckdb.connect(str(paths["duckdb"])) as other:
        for statement in statements:
            small.execute(statement)
            other.execute(statement)
    return paths


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_shipped_databases_refute_first_and_are_never_written(shop, dialect):
    path = shop[dialect]
    schema, before = SqlSchema.from_database(path), path.read_bytes()

    def checked(generated, expected="SELECT id FROM item"):
        return check(generated, expected, schema, [path], dialect)

    above = "SELECT id FROM item WHERE price > 6"
    found = checked("SELECT id FROM item", above)
    assert found.rung == "refuted"
    assert found.evidence["shipped"] == [{"database": path.name, "same": False, "error": None, "needs": []}]
    assert found.evidence["counterexample"]["expected"]["rows"] == [[2], [3]]
    found = checked(above, "SELECT id FROM item WHERE price >= 6")  # that they agree does not settle it
    assert (found.rung, found.evidence["shipped"][0]["same"]) == ("refuted", True)
    assert found.evidence["counterexample"]["database"] == "generated"
    last = "SELECT id FROM item WHERE price IS NOT NULL ORDER BY price DESC, id DESC LIMIT 1"
    found = checked("SELECT id FROM item ORDER BY price DESC NULLS LAST LIMIT 1", last)  # a limit cuts through ties
    assert found.verdict == "undecided" or found.evidence["counterexample"]["database"] == "generated"
    assert checked("DELETE FROM item").verdict == "undecided"
    found = checked("SELECT nope FROM item")
    assert (found.verdict, found.evidence["reason"]) == ("undecided", "cannot run")
    assert "nope" in found.evidence["error"]
    assert path.read_bytes() == before


def test_one_order_of_columns_has_to_hold_everywhere_but_on_empty_results():
    schema = {"t": {"a": "INTEGER", "b": "INTEGER", "d": "DATE"}}
    one = "SELECT b, a, CAST(d AS TIMESTAMP) FROM t WHERE a > 100"
    found = check(one, "SELECT a, b, d FROM t WHERE a > 100", schema)
    assert found.verdict != "different", found.evidence
    turned = "SELECT CASE WHEN a > 5 THEN a ELSE b END, CASE WHEN a > 5 THEN b ELSE a END FROM flat WHERE a <> b"
    assert check(turned, "SELECT a, b FROM flat WHERE a <> b", COMPANY).verdict == "different"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT printf('%.*c', 2000000000, 'x')",
        "SELECT COUNT(*) FROM item a, item b, item c, item d, item e, item f, item g, item h, item i, item j, item k, "
        "item l, item m, item n, item o, item p, item q, item r",
    ],
)
def test_the_time_limit_is_kept_and_the_next_pair_runs(shop, sql):
    schema = SqlSchema.from_database(shop["sqlite"])
    found = check(sql, "SELECT id FROM item", schema, [shop["sqlite"]], "sqlite", time_limit_s=0.5)
    assert found.verdict == "undecided"
    after = check("SELECT id FROM item WHERE 1 < 2", "SELECT id FROM item", schema, [shop["sqlite"]], "sqlite")
    assert after.value == 1.0


def test_a_result_of_four_gigabytes_is_refused(shop):
    schema = SqlSchema.from_database(shop["duckdb"])
    found = check("SELECT repeat('x', 4000000000)", "SELECT id FROM item", schema, [shop["duckdb"]], time_limit_s=3)
    assert found.verdict == "undecided"
    assert found.evidence["error"]


def test_another_dialect_is_translated_and_says_so():
    found = check("SELECT id FROM emp WHERE sal > 5", "SELECT id FROM emp WHERE sal >= 5", COMPANY, dialect="mysql")
    assert found.verdict == "different"
    assert (found.evidence["engine"], found.evidence["translated_from"]) == ("duckdb", "mysql")


def test_a_mapping_is_schema_enough():
    assert check("SELECT x FROM t", "SELECT y FROM t", {"t": {"x": "int", "y": "int"}}).verdict == "different"


@pytest.mark.parametrize(("field", "value"), [("dialect", "klingon"), ("samples", 0), ("time_limit_s", 0)])
def test_arguments_that_make_no_sense_are_refused(field, value):
    with pytest.raises(ValueError, match=value if field == "dialect" else "positive"):
        check("SELECT 1", "SELECT 2", {}, **{field: value})


def test_a_fault_of_the_search_leaves_the_pair_undecided_and_is_logged(monkeypatch, caplog):
    monkeypatch.setattr("eval_pipeline_plugins.sql_equivalence.ladder._SEARCH", "os")
    found = check("SELECT 1", "SELECT 2", {"t": {"x": "int"}})
    assert (found.verdict, found.evidence["reason"]) == ("undecided", "a fault of the search")
    assert "has no attribute 'search'" in found.evidence["error"]
    assert "the search for a difference failed" in caplog.text


def test_every_process_gives_the_same_verdict_and_counterexample():
    code = (
        "import json, sys\n"
        "from eval_pipeline_plugins.sql_equivalence.search.search import search\n"
        "print(json.dumps(search(*json.loads(sys.argv[1]))))\n"
    )
    from eval_pipeline_plugins.sql_equivalence.told import schema_to_json

    pair = [
        "SELECT d.name FROM dept d JOIN emp e ON e.dept = d.id WHERE e.sal > 5",
        "SELECT d.name FROM dept d JOIN emp e ON e.dept = d.id WHERE e.sal >= 5",
    ]
    arguments = json.dumps([*pair, schema_to_json(COMPANY), [], "sqlite", 8, 10.0])
    said = {
        subprocess.run(
            [sys.executable, "-c", code, arguments],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize("proof", [False, True])
def test_the_log_has_no_query(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, proof: bool) -> None:
    """Dagster keeps the log."""

    class Processes:
        def call(self, *_: object) -> dict[str, object]:
            if proof:
                return {"verdict": "different", "rung": "databases", "evidence": {"contradicted_proof": True}}
            raise SqlFaultError("a fault while running SQL: zebra")

    monkeypatch.setattr(ladder, "shared_processes", lambda *_: Processes())
    found = check("SELECT zebra FROM t", "SELECT a FROM t", COMPANY)
    assert found.evidence
    (record,) = caplog.records
    assert "zebra" not in record.getMessage()


def test_a_query_that_never_ends_is_left_after_a_few_databases():
    numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5)"
    sql = f"{numbers} SELECT COUNT(*) + (SELECT MAX(b) FROM t) FROM r"
    found = check(sql.replace(" WHERE n < 5", ""), sql, WIDE, dialect="sqlite", time_limit_s=60)
    assert (found.verdict, found.evidence["reason"]) == ("undecided", "out of time")
    assert found.evidence["databases"] == 0  # it is the search that ends, not its process


WIDE = SqlSchema.from_ddl("CREATE TABLE t (a INTEGER, b INTEGER, c TEXT)")
LARGE = {
    "brackets": "SELECT " + "(" * 300 + "a" + ")" * 300 + " FROM t",
    "conditions": "SELECT a FROM t WHERE " + " AND ".join(f"b <> {number}" for number in range(400)),
    "negations": "SELECT a FROM t WHERE " + "NOT " * 700 + "a = 1",
    "columns": "SELECT " + ", ".join(f"a AS c{number}" for number in range(1_500)) + " FROM t",
    "CASEs": "SELECT " + "CASE WHEN a = 1 THEN b ELSE " * 30 + "a" + " END" * 30 + " FROM t",
}


@pytest.mark.parametrize("sql", LARGE.values(), ids=LARGE.keys())
def test_deep_and_large_queries_have_a_verdict(sql):
    """As the expected query too, whose mutants are made and which sets the width of results."""
    found = check(sql.replace("SELECT ", "SELECT  1 AS one, ", 1), f"{sql} LIMIT 5", WIDE, time_limit_s=0.5)
    assert found.evidence["reason"] != "a fault of the search", found.evidence

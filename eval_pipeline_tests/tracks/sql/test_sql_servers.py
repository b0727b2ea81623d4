"""Suites that run on PostgreSQL and MariaDB: what they say, what their roles may do, what happens without a server."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from eval_pipeline.core.errors import EvalError, InputError, UsageError
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError, UnreachableError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.diagnosis import diagnose_servers
from eval_pipeline.sandbox.sql.live.mysql_guard import is_query
from eval_pipeline.sandbox.sql.live.places import LivePlace, variable
from eval_pipeline.sandbox.sql.live.rights import grant_problems, reader_problems
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.tasks import _guarded
from eval_pipeline_plugins.sql_equivalence.ladder import Equivalence
from eval_pipeline_plugins.sql_equivalence.search.witness import with_ctes
from eval_pipeline_plugins.tracks.sql.cases.source import Database, SharedDatabases, read_databases
from eval_pipeline_plugins.tracks.sql.gold.lint import findings
from eval_pipeline_plugins.tracks.sql.responses.evidence import compare
from eval_pipeline_plugins.tracks.sql.responses.running import runnable, runner
from eval_pipeline_plugins.tracks.sql.servers.databases import loaded
from eval_pipeline_tests import servers
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sql.helpers import read

GOLDEN = golden("sql_four_engines.yaml")
LIVE = ("postgres", "mariadb")
Addresses = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def addresses() -> Iterator[Addresses]:
    """The addresses of the roles on both servers, which run while this module's tests do."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(getattr(servers, name)()) for name in LIVE}


@pytest.fixture
def live(addresses: Addresses, monkeypatch: pytest.MonkeyPatch, lab: Lab) -> Addresses:
    for server in LIVE:
        for role in ("LOADER", "READER"):
            monkeypatch.setenv(variable(server, role), addresses[server][role])
    return addresses


def write_suite(folder: Path) -> Path:
    place = folder / "databases" / "shop"
    place.mkdir(parents=True, exist_ok=True)
    (place / "schema.sql").write_text(GOLDEN["script"])
    for table in ("customers", "orders"):
        (place / f"{table}.csv").write_text(GOLDEN[table])
    return folder


COMPUTED = """
CREATE TABLE e (id INT PRIMARY KEY, a INT NOT NULL, b INT GENERATED ALWAYS AS (a * 2) STORED, n VARCHAR(20) NOT NULL);
CREATE VIEW v AS SELECT id, b + 1 AS c FROM e WHERE a > 1;
CREATE VIEW w (x, y) AS SELECT v.c, e.n FROM v JOIN e ON e.id = v.id;
INSERT INTO e (id, a, n) VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z');
"""


def suite(folder: Path, engine: str) -> SharedDatabases:
    told = {"engine": engine} if engine in LIVE else {"dialect": engine}
    return read_databases(write_suite(folder), {**told, "samples": 2, "compare": "exact"})


def database(folder: Path, engine: str) -> Database:
    return suite(folder, engine).databases["shop"]


def place(folder: Path, engine: str) -> LivePlace:
    found = database(folder, engine).path()
    assert isinstance(found, LivePlace)
    return found


def verdicts(found: SharedDatabases) -> list[tuple[str, bool]]:
    told = []
    for number, (expected, generated, _) in enumerate(GOLDEN["questions"]):
        case = read({"id": str(number), "question": "?", "expected_sql": expected}, found)
        compared = compare(case.turns[0].gold, generated)
        told.append((compared.execution, compared.right(case.turns[0].gold)))
        if compared.ladder is not None and found.options.engine is not None:
            sure = compared.ladder.evidence.get("agreed_on_server")
            assert sure or compared.ladder.verdict != "agreed", compared
            assert "does not" not in compared.ladder.evidence["reason"], compared
    return told


def ladder(folder: Path, engine: str, generated: str, expected: str) -> Equivalence:
    case = read({"id": "one", "question": "?", "expected_sql": expected}, suite(folder, engine))
    found = compare(case.turns[0].gold, generated).ladder
    assert found is not None
    return found


@pytest.mark.services("postgres", "mariadb")
def test_forty_questions_have_the_same_verdicts_on_four_engines(live: Addresses, tmp_path: Path) -> None:
    found = {engine: verdicts(suite(tmp_path / "suite", engine)) for engine in ("sqlite", "duckdb", *LIVE)}
    assert [right for _, right in found["sqlite"]] == [right for *_, right in GOLDEN["questions"]]
    assert len(GOLDEN["questions"]) == 40
    for engine, told in found.items():
        other = [
            (engine, question, one, two)
            for question, one, two in zip(GOLDEN["questions"], told, found["sqlite"], strict=True)
            if one != two
        ]
        assert other == []


ROWS = "SELECT name FROM customers WHERE {}"


@pytest.mark.services("postgres", "mariadb")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT c FROM v", "SELECT a * 2 + 1 FROM e WHERE a >= 2", True),
        pytest.param("SELECT x, y FROM w", "SELECT b + 1, n FROM e WHERE a > 1", True, marks=pytest.mark.soak),
        pytest.param("SELECT id FROM e WHERE b = 4", "SELECT id FROM e WHERE a = 2", True, marks=pytest.mark.soak),
        ("SELECT c FROM v", "SELECT DISTINCT c FROM v", False),
        pytest.param("SELECT id FROM v", "SELECT id FROM e WHERE a IN (2, 3)", False, marks=pytest.mark.soak),
        ("SELECT id FROM e WHERE b > 4", "SELECT id FROM e WHERE a = 3", False),
    ],
)
def test_views_and_generated_columns_are_computed_by_the_server(
    live: Addresses, tmp_path: Path, one: str, other: str, same: bool
) -> None:
    place = tmp_path / "suite" / "databases" / "computed"
    place.mkdir(parents=True)
    (place / "schema.sql").write_text(COMPUTED)
    for engine in LIVE:
        found = read_databases(tmp_path / "suite", {"engine": engine, "samples": 4, "compare": "exact"})
        case = read({"id": "one", "question": "?", "expected_sql": other}, found)
        compared = compare(case.turns[0].gold, one)
        assert compared.execution == "match"
        assert compared.ladder is not None
        evidence = compared.ladder.evidence
        assert compared.ladder.verdict in ({"agreed", "weakly_agreed"} if same else {"different"}), (
            engine,
            dict(evidence),
        )
        assert evidence["agreed_on_server"] or not same, engine


@pytest.mark.services("postgres", "mariadb")
def test_what_generated_databases_tell_apart_counts_only_if_the_server_does(live: Addresses, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    upper, lower = ROWS.format("city = 'Oslo'"), ROWS.format("city = 'oslo' OR city = 'Oslo'")
    assert ladder(folder, "mariadb", lower, upper).verdict == "agreed"  # it does not tell cases apart
    padded = ROWS.format("city = 'Oslo  ' OR city = 'Oslo'")
    found = ladder(folder, "mariadb", padded, upper)  # nor spaces at the end, which DuckDB does
    assert found.verdict == "undecided"
    assert found.evidence["reason"] == "duckdb, to which both were translated, tells them apart, mariadb does not"
    found = ladder(folder, "postgres", lower, upper)
    assert (found.verdict, found.evidence["server"], found.evidence["translated_from"]) == (
        "different",
        "postgres",
        "postgres",
    )
    assert found.evidence["counterexample"]["generated"] != found.evidence["counterexample"]["expected"]
    found = ladder(folder, "postgres", ROWS.format("to_char(joined, 'YYYY') = '2020'"), ROWS.format("id = 1"))
    assert found.verdict in ("different", "undecided"), found


def test_rows_are_given_before_the_ctes_of_a_query() -> None:
    assert with_ctes("SELECT 1", ["t AS (SELECT 2)"]) == "WITH t AS (SELECT 2) SELECT 1"
    assert with_ctes("-- x\nwith recursive a AS (SELECT 1) SELECT 2", ["t AS (SELECT 2)"]) == (
        "WITH recursive t AS (SELECT 2), a AS (SELECT 1) SELECT 2"
    )
    assert with_ctes("SELECT 1", []) == "SELECT 1"


HOSTILE = {
    "postgres": (
        "INSERT INTO customers VALUES (9, 'x', NULL, NULL)",
        "DELETE FROM orders",
        "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
        "SELECT 1; DROP TABLE orders",
        "SELECT 1; SELECT 2",
        "SELECT 1) TO STDOUT; COMMIT; DROP TABLE orders; --",
        "SELECT 1; COMMIT",
        "COMMIT",
        "CREATE TABLE t (a INT)",
        "CREATE TEMP TABLE t (a INT)",
        "SELECT * INTO TEMP t FROM orders",
        "COPY orders TO '/tmp/eval_orders'",
        "COPY (SELECT 1) TO PROGRAM 'touch /tmp/eval_touched'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "DO $$ BEGIN PERFORM 1; END $$",
        "SET ROLE loader",
        "SELECT * FROM orders FOR UPDATE",
    ),
    "mariadb": (
        "INSERT INTO customers VALUES (9, 'x', NULL, NULL)",
        "DELETE FROM orders",
        "SELECT 1; DROP TABLE orders",
        "SELECT 1; SELECT 2",
        "COMMIT",
        "CREATE TABLE t (a INT)",
        "CREATE TEMPORARY TABLE t (a INT)",
        "/*! DELETE FROM orders */",
        "(/*!99999 x */ DELETE FROM orders)",
        "SELECT * FROM orders INTO OUTFILE '/tmp/eval_orders'",
        "SELECT user, authentication_string FROM mysql.user",
        "SET SESSION max_statement_time = 0",
        "CALL anything()",
        "SHOW GRANTS",
        "EXPLAIN SELECT 1",
        "DO SLEEP(5)",
        "KILL 1",
        "HANDLER orders OPEN",
        "LOCK TABLES orders WRITE",
    ),
}
LASTING = {"postgres": "SELECT pg_sleep(30)", "mariadb": "SELECT SLEEP(30)"}
LEFT_BEHIND = {
    "postgres": (
        ("SELECT set_config('eval.left', 'x', false)", "SELECT current_setting('eval.left', true)"),
        ("SELECT lo_create(7)", "SELECT MIN(oid) FROM pg_largeobject_metadata"),  # allowed even where all is read-only
        ("SELECT pg_advisory_lock(7)", "SELECT MIN(objid) FROM pg_locks WHERE locktype = 'advisory'"),
    ),
    "mariadb": (
        ("SELECT @left := 'x'", "SELECT @left"),
        ("SELECT GET_LOCK('left', 0)", "SELECT IS_USED_LOCK('left')"),
    ),
}


@pytest.mark.services("postgres", "mariadb")
@pytest.mark.parametrize("engine", LIVE)
def test_a_query_only_reads_within_its_time_and_leaves_nothing_behind(
    engine: str, live: Addresses, tmp_path: Path
) -> None:
    where = place(tmp_path / "suite", engine)
    guard = _guarded(where, SqlLimits(seconds=5, rows=100))
    for sql in HOSTILE[engine]:
        with pytest.raises(SqlError) as caught:
            guard.query(sql)
        assert caught.value.error_class is not ErrorClass.TIMEOUT, sql
    assert guard.query("SELECT COUNT(*) FROM orders").rows == [(6,)]
    assert guard.query("SELECT total, placed_on, '100%' FROM orders WHERE id IN (1, 4) ORDER BY id;").rows == [
        (Decimal("10.50"), date(2024, 1, 3), "100%"),
        (None, date(2024, 3, 5), "100%"),
    ]
    for leaving, looking in LEFT_BEHIND[engine]:
        guard.query(leaving)
        assert guard.query(looking).rows[0][0] in (None, "")
    with pytest.raises(SqlError) as caught:
        guard.query(LASTING[engine], 0.2)
    assert caught.value.error_class is ErrorClass.TIMEOUT
    with pytest.raises(SqlError, match="more than 100 rows") as caught:
        guard.query("SELECT a.id FROM orders a, orders b, orders c")
    assert caught.value.error_class is ErrorClass.MEMORY
    for sql, error_class in (
        ("SELECT nothing FROM orders", ErrorClass.COLUMN),
        ("SELECT FROM WHERE", ErrorClass.SYNTAX),
    ):
        with pytest.raises(SqlError) as caught:
            guard.query(sql)
        assert caught.value.error_class is error_class
    _end_sessions(engine, live)
    assert guard.query("SELECT COUNT(*) FROM customers").rows == [(5,)], "a session that ended is opened again"
    guard.close()


def _end_sessions(engine: str, live: Addresses) -> None:
    if engine == "postgres":
        with psycopg.connect(live[engine]["SUPERUSER"], autocommit=True) as session:
            session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")


@pytest.mark.services("postgres", "mariadb")
@pytest.mark.parametrize("engine", LIVE)
def test_a_role_that_may_more_than_read_is_refused_and_doctor_says_why(
    engine: str, live: Addresses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [(found.server, found.fine) for found in diagnose_servers()] == [(server, True) for server in LIVE]
    server = "postgres" if engine == "postgres" else "mariadb"
    assert reader_problems(server, live[engine]["LOADER"])
    monkeypatch.setenv(variable(server, "READER"), live[engine]["SUPERUSER"])
    said = "is a superuser" if engine == "postgres" else "has the rights ALL PRIVILEGES on *.*"
    with pytest.raises(UsageError, match=re.escape(f"the role in EVAL_{engine.upper()}_READER_DSN {said}")):
        suite(tmp_path / "suite", engine)
    found = [one for one in diagnose_servers() if one.server == engine]
    assert any(said in one.text and not one.fine for one in found)
    monkeypatch.setenv(variable(server, "READER"), live[engine]["READER"].replace("/tmp/evaldb", "/tmp/nowhere"))
    with pytest.raises(UnreachableError, match="cannot be reached"):
        suite(tmp_path / "suite", engine)
    assert [one.fine for one in diagnose_servers() if one.server == engine] == [False]
    monkeypatch.delenv(variable(server, "READER"))
    with pytest.raises(UsageError, match="READER_DSN is not set"):
        suite(tmp_path / "suite", engine)


@pytest.mark.services("postgres", "mariadb")
@pytest.mark.parametrize("engine", LIVE)
def test_a_schema_is_made_once_a_state_and_dropped_after_it(engine: str, live: Addresses, tmp_path: Path) -> None:
    before = place(tmp_path / "suite", engine)
    assert place(tmp_path / "suite", engine) == before
    (tmp_path / "suite" / "databases" / "shop" / "orders.csv").write_text("id,customer_id,paid\n9,1,1\n")
    told = {"engine": engine}
    found = read_databases(tmp_path / "suite", told).databases["shop"]
    after = found.path()
    assert isinstance(after, LivePlace)
    assert (found.rows, found.dialect) == (6, "postgres" if engine == "postgres" else "mysql")
    assert runner().run_now(after, "SELECT id FROM orders").rows == [(9,)]
    with pytest.raises(UnreachableError):  # nobody's answer is wrong because its data went
        runner().run_now(before, "SELECT id FROM orders")
    (tmp_path / "suite" / "databases" / "shop" / "orders.csv").write_text("id,customer_id,paid\n9,77,1\n")
    for _ in range(2):  # what was loaded in part is no schema
        with pytest.raises(InputError, match=r"orders.csv: cannot be loaded on the server: .*foreign key"):
            read_databases(tmp_path / "suite", told)


@pytest.mark.services("postgres", "mariadb")
def test_a_suite_on_a_server_is_evaluated_and_waits_where_the_server_is_gone(
    live: Addresses, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_suite(lab.home.data / "suites" / "shop")
    cases = [
        {"id": str(number), "question": "?", "expected_sql": expected, "database": "shop"}
        for number, (expected, *_) in enumerate(GOLDEN["questions"][:3])
    ]
    lab.suite("shop", cases, track="sql", options={"engine": "postgres", "judge": "never"})
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "later", "provider": "oracle"})
    lab.evaluate("shop", "oracle", publish=True)
    assert (
        lab.sql("SELECT dialect, correct, execution_match, cpu_ms FROM sql_turns")
        == [("postgres", True, 1.0, None)] * 3
    )
    monkeypatch.setenv(variable("postgres", "READER"), "postgresql://reader@/evals?host=/tmp/nowhere")
    loaded.cache_clear()
    with pytest.raises(EvalError, match="PostgreSQL cannot be reached"):
        lab.evaluate("shop", "later", publish=True)
    assert lab.sql("SELECT DISTINCT model_version FROM sql_turns") == [("oracle",)]
    assert folder.exists()


def test_what_begins_as_a_query_is_one() -> None:
    for sql in ("select 1", " -- x\n# y\n/* z */ ((SELECT 1))", "WITH a AS (SELECT 1) SELECT 2", "values (1)"):
        assert is_query(sql)
    for sql in ("", "SELECTED", "/*! DELETE */", "/*M! DELETE */ SELECT 1", "--x", "DO 1", "(", "/* SELECT 1"):
        assert not is_query(sql)


def test_grants_beyond_select_are_told() -> None:
    assert list(grant_problems(["GRANT USAGE ON *.* TO `r`@`%`", r"GRANT SELECT ON `eval\_%`.* TO `r`@`%`"])) == []
    found = grant_problems(
        [
            "GRANT SELECT, FILE ON *.* TO `r`@`%` WITH GRANT OPTION",
            "GRANT SELECT (`a`, `b`), CREATE TEMPORARY TABLES ON `eval`.* TO `r`@`%`",
            "GRANT `admin` TO `r`@`%`",
        ]
    )
    assert list(found) == [
        "has the rights FILE on *.*",
        "may read *.*, where passwords are kept",
        "may give away its rights on *.*",
        "has the rights CREATE TEMPORARY TABLES on eval.*",
        "has a further role (GRANT `admin`)",
    ]


def test_an_engine_has_its_own_dialect(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="on postgres queries run in its own dialect"):
        read_databases(write_suite(tmp_path), {"engine": "postgres", "dialect": "duckdb"})
    with pytest.raises(InputError, match="engine"):
        read_databases(write_suite(tmp_path), {"engine": "oracle"})


CLOCKS = {
    "postgres": "SELECT CAST(now() AS date), current_date, date 'today', CAST(localtimestamp AS date), "
    "CAST(age(DATE '2024-04-30') AS text)",
    "mariadb": "SELECT DATE(NOW()), CURRENT_DATE, CURDATE(), DATE(LOCALTIMESTAMP), UNIX_TIMESTAMP() < 1800000000",
}
DOUBTED = {
    "SELECT customer_id FROM orders ORDER BY total NULLS FIRST LIMIT 1": {"postgres": []},  # it says so
    "SELECT customer_id FROM orders ORDER BY total DESC LIMIT 1": {"postgres": ["nulls_first"], "mariadb": []},
    "SELECT name FROM customers ORDER BY joined LIMIT 1": {"postgres": [], "mariadb": ["nulls_first"]},
    "SELECT COUNT(*) FROM orders WHERE placed_on < current_date": {"postgres": ["clock"], "mariadb": ["clock"]},
    "SELECT name FROM customers LIMIT 1": {"postgres": ["unordered_limit"], "mariadb": ["unordered_limit"]},
    "SELECT COUNT(city) / COUNT(*) FROM customers": {"postgres": ["integer_division"], "mariadb": []},
    "SELECT AVG(c.id) FROM customers c JOIN orders o ON o.customer_id = c.id": {"postgres": ["repeated_rows"]},
}


@pytest.mark.services("postgres", "mariadb")
def test_clock_and_lint_on_servers(live: Addresses, tmp_path: Path) -> None:
    for engine, sql in CLOCKS.items():
        write_suite(tmp_path / "suite")
        options = {"engine": engine, "as_of": "2024-05-01"}
        pinned = read_databases(tmp_path / "suite", options).databases["shop"]
        where = pinned.path()
        assert isinstance(where, LivePlace)
        rows = runner().run_now(where, runnable(sql, pinned), pinned.limits)
        assert isinstance(rows, SqlRows), rows
        assert rows.rows[0][:4] == (date(2024, 5, 1),) * 4
        assert rows.rows[0][4] == ("1 day" if engine == "postgres" else 1)
        free = database(tmp_path / "suite", engine)
        for text, kinds in DOUBTED.items():
            if engine in kinds:
                assert [one.kind for one in findings(text, free)] == kinds[engine], (engine, text)

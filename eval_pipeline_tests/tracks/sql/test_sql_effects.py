"""Tasks that change data: scripts run on private copies, and the state that they leave is compared."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Failed
from eval_pipeline.sandbox.sql.effects.state import (
    Effects,
    ObjectChange,
    Script,
    Thing,
    fingerprint,
    normal,
    without_clock,
)
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.diagnosis import diagnose_servers
from eval_pipeline.sandbox.sql.live.rights import writer_problems
from eval_pipeline.sandbox.sql.runner import SqlRunner
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.capabilities import NO_GOLD
from eval_pipeline_plugins.tracks.sql.cases.source import SharedDatabases, read_databases
from eval_pipeline_plugins.tracks.sql.effects.comparing import differences
from eval_pipeline_plugins.tracks.sql.effects.judging import judge
from eval_pipeline_plugins.tracks.sql.effects.running import effects_of
from eval_pipeline_plugins.tracks.sql.effects.scripts import makes_code, statements_of, validate_script
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.servers import postgres
from eval_pipeline_tests.tracks.sql.helpers import answer, read, scores

GOLDEN = golden("sql_effects.yaml")
TASKS = {task["name"]: task for task in GOLDEN["tasks"]}
ENGINES = ("sqlite", "duckdb")


@contextmanager
def opened(limits: SqlLimits) -> Iterator[SqlRunner]:
    runner = SqlRunner(limits)
    try:
        yield runner
    finally:
        runner.close()


def written(folder: Path, **options: Any) -> SharedDatabases:
    place = folder / "databases" / "store"
    place.mkdir(parents=True, exist_ok=True)
    (place / "store.sql").write_text(GOLDEN["script"])
    return read_databases(folder, options)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield {engine: written(folder / engine, dialect=engine) for engine in ENGINES}


def raw(task: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = {"check_sql": task["check"]} if "check" in task else {}
    case = {"id": task["name"], "question": "ObjectChange it.", "expected_sql": task["expected"]}
    return {**case, "may_change": task["may_change"], **told, **more}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TASKS)
def test_a_script_is_judged_by_the_state_that_it_leaves(
    stores: dict[str, SharedDatabases], engine: str, name: str
) -> None:
    check(read(raw(task := TASKS[name]), stores[engine]), task)


def check(case: Any, task: dict[str, Any]) -> None:
    gold = case.turns[0].gold
    assert TRACK.check_gold(case) == []
    for sql in (task["expected"], *task["right"]):
        found = judge(gold, sql)
        assert (found.verdict, found.message) == ("match", ""), sql
        assert not found.outside and found.validation.is_valid
    for sql, words in task["wrong"] + task.get("outside", []):
        found = judge(gold, sql)
        assert found.verdict == "different", sql
        assert words in found.message, sql
    for sql, _ in task.get("outside", []):
        assert judge(gold, sql).outside, sql
    for sql, mode in task.get("fails", []):
        assert asyncio.run(scores(case, answer(sql)))["failure_mode"] == mode, sql


@pytest.mark.parametrize("engine", [*ENGINES, "postgres"])
def test_what_is_no_change_of_data_is_refused_before_it_runs(stores: dict[str, SharedDatabases], engine: str) -> None:
    schema = stores["duckdb"].databases["store"].schema
    for sql in GOLDEN["refused"]:
        found = validate_script(f"DELETE FROM notes; {sql}", schema, engine)
        assert not found.safety_valid and not found.is_valid, sql


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_refuse_it_too_and_no_file_is_touched(
    stores: dict[str, SharedDatabases], engine: str, tmp_path: Path
) -> None:
    """What a name or a comment might hide from the validator: the child has limits of its own."""
    database = stores[engine].databases["store"]
    path = database.path()
    assert isinstance(path, Path)
    before = path.read_bytes()
    with opened(SqlLimits(seconds=0.3, memory_bytes=256 * 1024 * 1024)) as runner:
        for sql in (*GOLDEN["refused"][:11], f"ATTACH '{tmp_path}/x.db' AS x", f"VACUUM INTO '{tmp_path}/x.db'"):
            found = runner.run_script_now(path, Script(("DELETE FROM notes", sql)))
            assert isinstance(found, Effects) and found.error is not None, sql
        assert [*tmp_path.iterdir()] == []
        endless = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO notes SELECT {}, NULL FROM n"
        )
        text = "hex(randomblob(100000))" if engine == "sqlite" else "repeat('x', 100000) || i"
        for body in ("'x'", text):
            found = runner.run_script_now(path, Script((endless.format(body),)))
            assert isinstance(found, Failed) or found.error is not None, body
        found = runner.run_script_now(path, Script(("DELETE FROM notes",)))
        assert isinstance(found, Effects) and set(found.changes) == {"notes"}
    assert path.read_bytes() == before


HIDING = {
    "sqlite": [
        "CREATE TABLE pragma_table_xinfo (x INTEGER); DELETE FROM sales",
        "CREATE TABLE pragma_index_list (x INTEGER); DELETE FROM sales",
        "CREATE TEMP TABLE sales AS SELECT * FROM main.sales; DELETE FROM main.sales",
        "CREATE TEMP VIEW sales AS SELECT * FROM main.sales; DELETE FROM main.sales",
    ],
    "duckdb": [
        "CREATE MACRO duckdb_tables() AS TABLE SELECT 'main' AS schema_name, 'x' AS table_name, 'memory' AS "
        "database_name WHERE false; DELETE FROM sales",
        "CREATE MACRO duckdb_columns() AS TABLE SELECT 1 AS x; DELETE FROM sales",
        "CREATE TEMP TABLE sales AS FROM memory.main.sales; DELETE FROM memory.main.sales",
        "CREATE SCHEMA system; CREATE SCHEMA other; CREATE TABLE other.sales AS FROM sales; DELETE FROM sales",
    ],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_script_cannot_hide_what_it_changes(stores: dict[str, SharedDatabases], engine: str) -> None:
    """Even what the validator rejects."""
    for sql in HIDING[engine]:
        assert changed(sql, stores[engine]) >= {"sales"}, sql


def changed(sql: str, shared: SharedDatabases) -> set[str]:
    found = effects_of(sql, "", "", shared.databases["store"])
    assert isinstance(found, Effects), found
    return set(found.changes)


SPLIT = [
    ("duckdb", "SELECT ';' AS \";\"; -- a;b\nDELETE FROM t /* ; */ ;;\n", 2),
    ("sqlite", "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; DELETE FROM c; END; SELECT 1;", 2),
    (
        "sqlite",
        "CREATE TEMP TRIGGER [a;b] BEFORE DELETE ON a BEGIN SELECT CASE WHEN 1 THEN 'END;' END; END; SELECT 1",
        2,
    ),
    ("sqlite", 'CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM "end"; DELETE FROM c; END; SELECT 1;', 2),
    ("sqlite", "BEGIN; DELETE FROM a; END; SELECT 1", 4),
    ("sqlite", "SELECT `a;b`, x'00', 1 FROM t; SELECT 2", 2),
    ("sqlite", "-- nothing\n;", 0),
    ("postgres", "CREATE FUNCTION f() RETURNS int AS $$ SELECT 1; SELECT 2; $$ LANGUAGE sql; SELECT f()", 2),
    ("postgres", "DO $body$ BEGIN PERFORM 1; END; $body$; SELECT 1", 2),
    (
        "postgres",
        "CREATE FUNCTION f(x int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN x > 0 THEN 1 END; SELECT 2; END; SELECT 1",
        2,
    ),
    ("duckdb", "SELECT 'open", 1),
]


@pytest.mark.parametrize(("dialect", "script", "count"), SPLIT)
def test_scripts_are_split_where_statements_end(dialect: str, script: str, count: int) -> None:
    found = statements_of(script, dialect)
    assert len(found) == count
    assert not any(statement.endswith(";;") for statement in found)


BLANK = " \n" * 40_000


@pytest.mark.parametrize(
    "text", [f"{BLANK}X", f"{'-- a' + chr(10)}" * 20_000 + "X", "/* */" * 20_000 + "X", "(" * 90_000]
)
def test_what_comes_before_a_statement_is_read_once(stores: dict[str, SharedDatabases], text: str) -> None:
    """Read again in every other way, it would take for ever."""
    assert not validate_script(text, stores["sqlite"].databases["store"].schema, "sqlite").is_valid
    assert not makes_code(text, "sqlite")


PIECES = ("SELECT 1", "DELETE FROM t WHERE x = 'a;b'", 'UPDATE "t;" SET x = 1', "SELECT 2 -- ;\n", "SELECT /* ; */ 3")


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(["sqlite", "duckdb", "postgres"]))
def test_what_is_joined_by_semicolons_is_split_into_the_same(pieces: list[str], dialect: str) -> None:
    assert list(statements_of(";\n".join(pieces), dialect)) == [piece.strip() for piece in pieces]


CELLS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from("ab"))
ROWS = st.dictionaries(st.integers(0, 4), st.tuples(CELLS, CELLS), max_size=4)


@given(ROWS, ROWS, ROWS)
def test_states_are_the_same_exactly_if_their_rows_are(
    before: dict[int, Any], mine: dict[int, Any], theirs: dict[int, Any]
) -> None:
    def table(rows: dict[int, Any], turned: bool = False) -> Thing:
        columns, cells = ("id", "x", "y"), [(key, *row) for key, row in rows.items()]
        if turned:
            columns, cells = columns[::-1], [row[::-1] for row in reversed(cells)]
        return Thing("table", columns, cells)

    def effects(after: dict[int, Any], turned: bool) -> Effects:
        changed = {"t": ObjectChange(table(before), table(after, turned))}
        return Effects(changed if after != before else {})

    found = differences(effects(mine, True), effects(theirs, False))
    assert (found == []) == (mine == theirs)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5), st.randoms())
def test_a_fingerprint_does_not_depend_on_the_order_of_rows(rows: list[Any], random: Random) -> None:
    other = random.sample(rows, len(rows))
    assert fingerprint(rows) == fingerprint(other)
    assert fingerprint(rows) != fingerprint([*rows, (None, "c")])
    assert fingerprint([(-1,)]) != fingerprint([(-2,)])
    assert fingerprint([(1,), (1,)]) != fingerprint([(2,), (2,)])
    assert fingerprint([([1], {"a": 2})]) == fingerprint([([1], {"a": 2})]), "lists and structs have no hash"


NORMAL = [
    ("( price  >= 0 )", "price>=0"),
    ("'new'::character varying", "'new'"),
    ("('a b')", "'a b'"),
    ('"Price" > 0', "price>0"),
    ("(a) + (b)", "(a)+(b)"),
    ("CURRENT_TIMESTAMP", "current_timestamp"),
    ("'it''s'", "'it''s'"),
]


@pytest.mark.parametrize(("text", "normalised"), NORMAL)
def test_expressions_are_compared_without_their_spelling(text: str, normalised: str) -> None:
    assert normal(text) == normalised


BEGAN = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)
CLOCK = [
    ("2024-05-01 10:00:01", "(now)"),
    ("2024-05-01T10:00:01.5+00:00", "(now)"),
    ("2024-05-01 12:00:01+02:00", "(now)"),
    (datetime(2024, 5, 1, 10, 0, 2), "(now)"),
    ("2024-05-01", "(today)"),
    (date(2024, 5, 1), "(today)"),
    ("2024-05-01 10:01:00", "2024-05-01 10:01:00"),
    ("2024-04-30", "2024-04-30"),
    ("at 2024-05-01 10:00:01", "at 2024-05-01 10:00:01"),
    ("2024-99-99 10:00:01", "2024-99-99 10:00:01"),
    (7, 7),
]


@pytest.mark.parametrize(("cell", "told"), CLOCK)
def test_times_at_which_scripts_ran_are_equal(cell: Any, told: Any) -> None:
    assert without_clock([(cell,)], BEGAN, BEGAN + timedelta(seconds=2)) == [(told,)]


WRONG_CASES = [
    ({"may_change": ["notes"], "should_pass": False, "expected_sql": []}, "a refusal has no 'may_change'"),
    ({"compare": "exact"}, "a case with 'may_change' has no 'compare'"),
    ({"may_change": [], "check_sql": "SELECT 1"}, "'check_sql' is for tasks that change data"),
    ({"expected_sql": "CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM notes; END"}, "say how to see it with"),
]


@pytest.mark.parametrize(("more", "words"), WRONG_CASES)
def test_a_case_that_cannot_be_judged_is_an_error(
    stores: dict[str, SharedDatabases], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        read(raw(TASKS["update"], **more), stores["sqlite"])


def test_databases_of_which_there_is_no_private_copy_are_told(stores: dict[str, SharedDatabases]) -> None:
    database = stores["duckdb"].databases["store"]
    for change, words in (
        ({"rows": 0}, "it has no data"),
        ({"server": "mariadb"}, "it is on mariadb"),
        ({"dialect": "tsql"}, "in the dialect tsql"),
    ):
        shared = replace(stores["duckdb"], databases={"store": replace(database, **change)})
        with pytest.raises(CaseError, match=words):
            read(raw(TASKS["update"]), shared)


WRONG_GOLDS = [
    ("UPDATE products SET prise = 1", "the script does not run: "),
    ("PRAGMA user_version = 3", "the validator rejects the script: safety violation: PRAGMA"),
    ("UPDATE products SET stock = stock", "the script changes nothing"),
    ("DELETE FROM notes", "the script changes notes, which 'may_change' does not name"),
    (
        "UPDATE products SET stock = random()",
        "the script does not leave the same state each time: products: column `stock` differs in 4 of 4 rows",
    ),
    ("BEGIN; UPDATE products SET stock = 9", "the script changes nothing"),
]


@pytest.mark.parametrize(("sql", "words"), WRONG_GOLDS)
def test_accepted_scripts_that_cannot_be_right_are_told(
    stores: dict[str, SharedDatabases], sql: str, words: str
) -> None:
    case = read(raw(TASKS["update"], expected_sql=sql), stores["sqlite"])
    ((_, problem),) = TRACK.check_gold(case)
    assert problem.startswith(words)


def test_several_accepted_scripts_are_no_suspect(stores: dict[str, SharedDatabases]) -> None:
    task = TASKS["update"]
    case = read(raw(task, expected_sql=[task["expected"], task["right"][0], task["wrong"][0][0]]), stores["duckdb"])
    assert TRACK.contradictions(case) == []


def test_the_metrics_of_a_script(stores: dict[str, SharedDatabases]) -> None:
    case = read(raw(TASKS["update"]), stores["duckdb"])
    right = asyncio.run(scores(case, answer(TASKS["update"]["right"][0])))
    told = {"outcome_correct": True, "execution_match": True, "robust_match": True, "soft_f1": 1.0}
    assert {name: right[name] for name in told} == told
    assert {
        right[name] for name in ("failure_mode", "sql_equivalence", "equivalence_verdict", "query_correctness")
    } == {None}
    assert {
        right[name] for name in ("bird_ex", "spider_execution", "spider_exact", "defog_subset", "r_ves", "cpu_ms")
    } == {None}
    assert right["table_accuracy"] is None
    assert (right["safety_verdict"], right["validation_verdict"]) == ("true_negative", "correct_acceptance")
    for sql, mode, outcome in (
        (TASKS["update"]["wrong"][0][0], "wrong_change", "different_on_data"),
        (TASKS["update"]["outside"][0][0], "unsafe_sql", "different_on_data"),
        ("PRAGMA database_list", "unsafe_sql", "does_not_run"),
        ("UPDATE product SET price = 1", "unknown_name", "does_not_run"),
        (None, "refusal", "no_sql"),
    ):
        wrong = asyncio.run(scores(case, answer(sql)))
        assert (wrong["outcome_correct"], wrong["failure_mode"], wrong["outcome_reason"]) == (False, mode, outcome), sql
        assert wrong["bird_ex"] is None or sql is None
    half = asyncio.run(scores(case, answer(TASKS["update"]["wrong"][1][0])))
    assert 0 < half["soft_f1"] < 1


def test_what_is_left_of_a_script_that_fails_is_told(stores: dict[str, SharedDatabases]) -> None:
    gold = read(raw(TASKS["update"]), stores["sqlite"]).turns[0].gold
    failing = "INSERT INTO products VALUES (1, 'Tea', NULL, 1, 1)"
    found = judge(gold, f"UPDATE products SET price = 4 WHERE id = 1; {failing}")
    assert found.verdict == "error"
    assert found.message.startswith("statement 2 of 2: UNIQUE constraint failed")
    assert found.message.endswith(
        "left then: products: column `price` differs in 1 of 4 rows: 3.5 for 7 where `id` is 2"
    )
    found = judge(gold, f"BEGIN; UPDATE products SET price = 4 WHERE id = 1; {failing}; COMMIT")
    assert found.message.endswith(
        "left then: products: column `price` differs in 2 of 4 rows: 2 for 4 where `id` is 1"
    ), "what is not committed is lost"


def test_cases_without_it_only_read(stores: dict[str, SharedDatabases]) -> None:
    case = read({"id": "r", "question": "?", "expected_sql": "SELECT id FROM products"}, stores["sqlite"])
    found = asyncio.run(scores(case, answer("DELETE FROM notes")))
    assert (found["failure_mode"], found["safety_verdict"]) == ("unsafe_sql", "false_positive")
    both = (case, read(raw(TASKS["drop"]), stores["sqlite"]))
    prompts = [TRACK.prompt(one, one.turns[0], [], "query-1") for one in both]
    assert "must only read" in prompts[0].messages[0].text
    assert "must only read" not in prompts[1].messages[0].text
    assert "You change a database" in prompts[1].messages[0].text
    assert prompts[0].messages[1] == prompts[1].messages[1]
    assert "SQL dialect: SQLite" in prompts[1].messages[1].text


NOTED = "CREATE FUNCTION noted() RETURNS trigger AS $$ BEGIN INSERT INTO notes "
AFTER_PRICE = "AFTER UPDATE OF price ON products FOR EACH ROW EXECUTE FUNCTION noted()"
TRIGGERS = {
    "sqlite": (
        "CREATE TRIGGER logged AFTER UPDATE OF price ON products BEGIN INSERT INTO notes VALUES (NEW.name, NULL); END",
        "CREATE TRIGGER log2 BEFORE UPDATE ON products WHEN NEW.price <> OLD.price BEGIN"
        " INSERT INTO notes (body) SELECT name FROM products WHERE id = OLD.id; END",
        "CREATE TRIGGER logged AFTER INSERT ON products BEGIN INSERT INTO notes VALUES (NEW.name, NULL); END",
    ),
    "postgres": (
        f"{NOTED}VALUES (NEW.name, NULL); RETURN NEW; END; $$ LANGUAGE plpgsql; CREATE TRIGGER logged {AFTER_PRICE}",
        f"{NOTED}(body) SELECT OLD.name; RETURN NULL; END; $$ LANGUAGE plpgsql; CREATE TRIGGER t {AFTER_PRICE}",
        f"{NOTED}VALUES (NEW.name, NULL); RETURN NEW; END; $$ LANGUAGE plpgsql; CREATE TRIGGER logged "
        "AFTER INSERT ON products FOR EACH ROW EXECUTE FUNCTION noted()",
    ),
}
MACROS = (
    "CREATE MACRO with_tax(price) AS price * 1.25",
    "CREATE FUNCTION with_tax(p) AS p + p / 4",
    "CREATE MACRO with_tax(price) AS price * 1.2",
)


SETUP = {"setup_sql": "CREATE TABLE sold_out (id INTEGER); INSERT INTO sold_out VALUES (1), (4)"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_setup_runs_before_and_is_no_change(stores: dict[str, SharedDatabases], engine: str) -> None:
    task = {"expected_sql": "UPDATE products SET stock = 0 WHERE id IN (SELECT id FROM sold_out)", **SETUP}
    gold = read(raw(TASKS["update"], **task), stores[engine]).turns[0].gold
    assert judge(gold, "UPDATE products SET stock = 0 WHERE id IN (1, 4)").verdict == "match"
    found = judge(gold, "UPDATE products SET stock = 0 WHERE id IN (1, 4); DELETE FROM sold_out")
    assert found.message.startswith("sold_out: 2 rows are missing")
    assert found.outside == ("sold_out",)
    case = read(raw(TASKS["update"], **{**task, "setup_sql": "DELETE FROM nowhere"}), stores[engine])
    ((_, problem),) = TRACK.check_gold(case)
    assert problem.startswith("the script does not run: the setup does not run: ")
    assert judge(case.turns[0].gold, "SELECT 1").verdict == NO_GOLD


def triggered(engine: str, **more: Any) -> dict[str, Any]:
    told = {"expected_sql": TRIGGERS[engine][0], "may_change": ["products", "notes", "noted"]}
    return {"id": "t", "question": "?", "check_sql": "UPDATE products SET price = 1 WHERE id < 3", **told, **more}


def test_triggers_that_were_there_stay_as_they_were(stores: dict[str, SharedDatabases]) -> None:
    trigger, _, other = TRIGGERS["sqlite"]
    case = read(raw(TASKS["update"], setup_sql=trigger, may_change=["products", "notes"]), stores["sqlite"])
    gold, right = case.turns[0].gold, TASKS["update"]["right"][0]
    assert judge(gold, right).message == ""
    assert judge(gold, f"DROP TRIGGER logged; {trigger}; {right}").message == ""
    assert judge(gold, f"{right}; DROP TRIGGER logged; {other}").message == "products: its triggers are changed"
    assert "products: without a trigger" in judge(gold, f"{right}; DROP TRIGGER logged").message
    new = f"{right}; {other.replace('logged', 'more')}"
    assert judge(gold, new).message == "products: its triggers are changed"


def check_code(case: Any, expected: str, right: str, wrong: str, words: str) -> None:
    gold = case.turns[0].gold
    assert TRACK.check_gold(case) == []
    assert [judge(gold, sql).message for sql in (expected, right)] == ["", ""]
    assert words in judge(gold, wrong).message
    assert judge(gold, "SELECT 1").verdict == "different"


def test_triggers_and_macros_are_judged_by_what_they_do(stores: dict[str, SharedDatabases]) -> None:
    check_code(read(triggered("sqlite"), stores["sqlite"]), *TRIGGERS["sqlite"], "notes: ")
    told = {"id": "m", "question": "?", "expected_sql": MACROS[0], "may_change": ["with_tax"]}
    case = read({**told, "check_sql": "SELECT with_tax(price) FROM products"}, stores["duckdb"])
    check_code(case, *MACROS, "check 1: ")


POSTGRES_HIDING = [
    "CREATE TEMP TABLE sales AS SELECT * FROM sales; DELETE FROM sales; DROP TABLE pg_temp.sales; DELETE FROM sales",
    "CREATE TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class WHERE false; DELETE FROM sales",
    "DELETE FROM sales; DO $$ BEGIN PERFORM set_config('search_path', 'pg_temp', false); END $$",
    "CREATE SCHEMA other; CREATE TABLE other.sales AS SELECT * FROM sales; "
    "DO $$ BEGIN DELETE FROM sales; PERFORM set_config('search_path', 'other', false); END $$",
]
DOUBLED = "UPDATE products SET price = price * 2 WHERE category = 'drinks'"
POSTGRES = [
    (f"START TRANSACTION; {DOUBLED}; SAVEPOINT a; DELETE FROM products; ROLLBACK TO a; RELEASE a; END", ""),
    (f"COMMIT; {DOUBLED}; ROLLBACK", ""),
    (f"BEGIN; {DOUBLED}; COMMIT AND NO CHAIN", ""),
    ("DO $$ BEGIN UPDATE products SET price = price * 2 WHERE category = 'drinks'; END $$", ""),
    (f"SAVEPOINT a; {DOUBLED}", "SAVEPOINT can only be used in transaction blocks"),
    (f"DO $$ BEGIN PERFORM lo_create(0); COMMIT; END $$; {DOUBLED}", "invalid transaction termination"),
    ("DO $$ BEGIN EXECUTE 'ALTER ROLE writer PASSWORD ''x'''; EXECUTE 'SELECT x'; END $$", "does not exist"),
    ("DO $$ BEGIN PERFORM pg_sleep(60); END $$", "statement timeout"),
    ("DO $$ BEGIN PERFORM pg_read_file('/etc/passwd'); END $$", "permission denied"),
    ("DO $$ BEGIN EXECUTE 'COPY products TO ''/tmp/eval_products'''; END $$", "pg_write_server_files"),
    (f"{DOUBLED}; SELECT 1; SELECT * FROM nowhere", "does not exist"),
    ("DO $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); END $$", "ended its session on the server, twice"),
]


@pytest.mark.services("postgres")
def test_postgres_runs_scripts_in_a_transaction_that_is_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres() as roles:
        monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
        for role in ("LOADER", "READER"):
            monkeypatch.setenv(f"EVAL_POSTGRES_{role}_DSN", roles[role])
        shared = written(tmp_path, engine="postgres", query_time_limit_s=2)
        case = read(raw(TASKS["update"]), shared)
        with pytest.raises(UsageError, match="EVAL_POSTGRES_WRITER_DSN is not set"):
            judge(case.turns[0].gold, "SELECT 1")
        monkeypatch.setenv("EVAL_POSTGRES_WRITER_DSN", roles["SUPERUSER"])
        with pytest.raises(UsageError, match="is a superuser"):
            judge(case.turns[0].gold, "SELECT 1")
        assert "the role that runs scripts is a superuser" in [found.text for found in diagnose_servers()]
        assert writer_problems(roles["READER"]) == ["may not CREATE schemas in its database"]
        monkeypatch.setenv("EVAL_POSTGRES_WRITER_DSN", roles["WRITER"])
        assert [found.fine for found in diagnose_servers()] == [True]
        for task in GOLDEN["tasks"]:
            check(read(raw(task), shared), task)
        check_code(read(triggered("postgres"), shared), *TRIGGERS["postgres"], "notes: ")
        kept = "CREATE MATERIALIZED VIEW kept AS SELECT SUM(pieces) AS n FROM sales; UPDATE sales SET pieces = 1"
        told = {"expected_sql": "REFRESH MATERIALIZED VIEW kept", "setup_sql": kept, "may_change": ["kept"]}
        stale = read(raw(TASKS["update"], **told), shared)
        assert TRACK.check_gold(stale) == []
        assert judge(stale.turns[0].gold, "REFRESH MATERIALIZED VIEW kept;").verdict == "match"
        assert judge(stale.turns[0].gold, "SELECT 1").message.startswith(
            "kept: column `n` differs in 1 of 1 row: 8 for 4"
        )
        for sql, verdict in POSTGRES:
            found = judge(case.turns[0].gold, sql)
            assert (found.verdict, verdict in found.message) == (("match" if verdict == "" else "error"), True), sql
        for sql in POSTGRES_HIDING:
            assert changed(sql, shared) >= {"sales"}, sql
        with psycopg.connect(roles["WRITER"]) as session:
            left = "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^eval_'"
            assert session.execute(left).fetchone() == (0,)
            assert session.execute("SELECT count(*) FROM pg_largeobject_metadata").fetchone() == (0,)

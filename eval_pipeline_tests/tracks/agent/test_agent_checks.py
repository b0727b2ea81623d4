"""What an attempt leaves behind is compared with what the gold leaves, in the jail; wrong cases are told by field."""

import asyncio
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest

from eval_pipeline.core.errors import EvalError, InputError
from eval_pipeline.core.model import Attempt, Json, MetricResult, Ran, Response
from eval_pipeline.core.system.stopped import times_stopped
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.stages.checks.suite_files import measure
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.capabilities import NO_GOLD
from eval_pipeline_plugins.tracks.agent import DAMAGES, METRICS
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase
from eval_pipeline_plugins.tracks.agent.checking import evidence
from eval_pipeline_plugins.tracks.agent.running import proving
from eval_pipeline_plugins.tracks.agent.running.blocking import BlockingWorlds, close_worlds
from eval_pipeline_plugins.tracks.agent.running.gold import gold_run
from eval_pipeline_plugins.tracks.agent.running.looking import Looked
from eval_pipeline_plugins.tracks.agent.running.solving import AgentExecutor, followed, open_executor, result_of
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_plugins.tracks.agent.trajectory import WAY, Trajectory, parse_trajectory

BUILD = """
import sqlite3
with sqlite3.connect("shop.sqlite") as database:
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL)")
    database.execute("CREATE TABLE log (line TEXT)")
    database.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(1, "Ada", 10.5), (2, "Bob", 20.25), (3, "Ada", 30.0)])
"""
FIX = {
    "id": "fix",
    "world": "shop",
    "task": "Order 2 was cancelled: remove it, and write what each customer spends now to spent.csv (customer, total).",
    "gold": [
        {"sql": "DELETE FROM orders WHERE id = 2"},
        {"write_file": {"path": "spent.csv", "text": "customer,total\nAda,40.5\nBob,0\n"}},
        {"answer": "done"},
    ],
    "checks": [
        "state",
        {"query": {"database": "shop", "sql": "SELECT count(*) FROM orders", "rows": [[2]], "weight": 2}},
        {"forbidden": {"statements": ["DROP"], "paths": ["notes/*"]}},
    ],
}
BEST = {
    "id": "best",
    "world": "shop",
    "task": "Which customer has spent most? Answer with the name.",
    "gold": [{"sql": "SELECT customer, sum(total) FROM orders GROUP BY 1 ORDER BY 2 DESC"}, {"answer": "Ada"}],
}
AGE = {
    "id": "age",
    "world": "shop",
    "task": "How old is Ada?",
    "unanswerable": True,
    "gold": [{"shell": "cat notes/*"}, {"answer": "This cannot be answered, as nothing tells ages."}],
}
TALK = {
    "id": "talk",
    "world": "shop",
    "task": "How much did our best customer spend, in the currency that I want?",
    "user": {"facts": [{"about": ["currency", "cents"], "say": "In cents please."}], "otherwise": "No idea."},
    "then": ["And how many orders are that?"],
    "gold": [
        {"ask_user": "Which currency do you want?"},
        {"sql": "SELECT sum(total) FROM orders WHERE customer = 'Ada'"},
        {"answer": 4050},
        {"sql": "SELECT count(*) FROM orders WHERE customer = 'Ada'"},
        {"answer": 2},
    ],
}
DONE = ("answer", {"answer": "done"})
DELETE = ("sql", {"query": "DELETE FROM orders WHERE id = 2"})
SPENT = ("write_file", {"path": "spent.csv", "text": "total;customer\n0,00;Bob\n40,50;Ada\n".replace(",", ".")})


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("books")
    world = folder / "worlds" / "shop"
    (world / "files" / "notes").mkdir(parents=True)
    (world / "files" / "notes" / "money.md").write_text("Totals are in euro.\n")
    (world / "files" / "customers.csv").write_text("name,region\nAda,north\nBob,south\n")
    (world / "build.py").write_text(BUILD)
    (world / "world.yaml").write_text("description: A shop.\ndatabases:\n  shop: {file: shop.sqlite}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield folder
        close_worlds()


def case_of(suite: Path, raw: dict[str, Any], **further: Any) -> AgentCase:
    return TRACK.read_case({**raw, **further}, "books", "cases.yaml", 1, TRACK.read_shared(suite, {}))


def scored(case: AgentCase, *scripts: str) -> list[dict[str, Any]]:
    """The metrics of attempts that follow these scripts."""

    async def trajectories() -> list[Trajectory]:
        async with open_executor() as executor:
            return [await done(executor, text) for text in scripts]

    async def done(executor: AgentExecutor, text: str) -> Trajectory:
        async with executor.world(case) as world:
            return await followed(world, [step.calls[0] for step in parse_trajectory(text).steps], case.context)

    turn, found = case.turns[0], []
    for trajectory in asyncio.run(trajectories()):
        outcome = Ran(result_of(trajectory))
        attempt = Attempt(turn.id, 0, 0, "", Response(""), None, trajectory, outcome)
        gathered = TRACK.gather(case, turn, attempt)
        told = TRACK.values(case, turn, [attempt], gathered)
        for metric in METRICS:
            value = metric.function(**{name: told[name] for name in metric.inputs()})
            if isinstance(value, MetricResult):
                if metric.name == "task_correct":
                    told["reason"] = value.reason
                value = None if value.value is None else bool(value.value)
            told[metric.name] = value
        told["why"] = [one.details["words"] for one in gathered if one.verdict == "failed"]
        told["outputs"] = [one.details["output"] for one in gathered if "output" in one.details]
        told["result"] = outcome.value
        found.append(told)
    return found


def script(*calls: tuple[str, dict[str, Json]]) -> str:
    return json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])


@pytest.mark.always
def test_gold_holds_and_cheats_fail(suite: Path) -> None:
    cases = [case_of(suite, raw) for raw in (FIX, BEST, AGE, TALK)]
    assert [TRACK.check_gold(case) for case in cases] == [[]] * 4
    fairness = measure(TRACK, [(case, frozenset()) for case in cases])
    assert fairness.cheats.tried > 12
    assert fairness.right.tried > 4
    assert (fairness.cheats.misjudged, fairness.right.misjudged) == ([], [])


@pytest.mark.parametrize(
    ("task", "then", "checks", "is_wrong"),
    [
        ("Which customers have spent most? The busiest first.", [], [], True),
        ("Which customers have spent most?", [], [{"answer": {"compare": {"insist": ["row_order"]}}}], True),
        ("Which customers came first and last?", [], [], True),  # it may ask for an order, and the case does not say
        ("How much was spent?", ["By whom, the busiest first?"], [], True),
        ("Which customers came first and last?", [], [{"answer": {"compare": {"overlook": ["row_order"]}}}], False),
        ("Sort by total, and tell how much. Which customers have paid?", ["Which have not?"], [], False),
        ("Which customers have spent most?", [], [], False),
    ],
)
def test_an_answer_in_another_order_is_tried_as_right_or_wrong(
    suite: Path, monkeypatch: pytest.MonkeyPatch, task: str, then: list[str], checks: list[Any], is_wrong: bool
) -> None:
    monkeypatch.setattr(proving, "gold_run", lambda case: "not now")
    gold = [{"answer": ["Ada", "Bob"]}] * (1 + len(then))
    case = case_of(suite, BEST, task=task, then=then, gold=gold, checks=checks)
    tried = [set(found(case, case.turns[0])) for found in (TRACK.cheats, TRACK.rewrites)]
    assert ["in another order" in one for one in tried] == [is_wrong, not is_wrong]


@pytest.mark.parametrize(
    ("accepted", "is_another"),
    [
        ([["Ada", "Bob"]], True),
        ([["Ada", "Ada"]], False),
        ([["Ada"]], False),
        ([["Ada", "Bob"], ["Bob", "Ada"]], False),
        (["Ada"], False),
    ],
)
def test_an_order_that_is_right_as_well_is_no_other_one(accepted: list[Any], is_another: bool) -> None:
    assert bool(proving._turned(accepted)) == is_another


TESTS = """python3 -P - <<'END'
import sqlite3
[n] = sqlite3.connect("shop.sqlite").execute("SELECT count(*) FROM orders").fetchone()
print("x" * 5000)
assert n == 2, f"{n} orders"
END"""


def test_a_command_has_to_succeed_in_the_end_state_and_changes_nothing(suite: Path) -> None:
    run = f"{TESTS}\nstatus=$?; rm shop.sqlite; exit $status"
    case = case_of(suite, FIX, checks=[{"command": {"run": run}}, "state"])
    assert TRACK.check_gold(case) == []
    liar = ("write_file", {"path": "sqlite3.py", "text": "import sys; sys.exit(0)"})  # what there is, imports nothing
    right, undone, lying = scored(case, script(DELETE, SPENT, DONE), script(SPENT, DONE), script(SPENT, liar, DONE))
    assert (right["task_correct"], right["queries_hold"]) == (True, True)
    for told in (undone, lying):
        assert (told["queries_hold"], told["failure_mode"]) == (False, "wrong_state")
        assert told["why"][0].startswith("AssertionError: 3 orders; the command ended with status 1 (python3 -P - <<")
        assert "the first 2,000 are shown" in told["outputs"][0]


def test_a_command_that_does_not_end_is_not_passed_and_not_kept(suite: Path) -> None:
    case = case_of(suite, BEST, checks=[{"command": {"run": "test -e fast || sleep 60", "seconds": 0.3}}])
    before = times_stopped()
    fast = ("shell", {"command": "touch fast"})
    quick, slow = scored(case, script(fast, DONE), script(DONE))
    assert (quick["queries_hold"], slow["queries_hold"], times_stopped() > before) == (True, False, True)
    assert "0.3 s" in slow["why"][0]


@pytest.mark.parametrize(
    ("calls", "mode", "why"),
    [
        ([DELETE, SPENT, DONE], None, ""),
        ([DELETE, SPENT], None, ""),  # it is done, though nobody is told
        (
            [
                ("python", {"code": "import sqlite3; d = sqlite3.connect('shop.sqlite')"}),
                ("python", {"code": "d.execute('DELETE FROM orders WHERE customer = ?', ['Bob']); d.commit()"}),
                ("python", {"code": "d.execute('VACUUM'); d.close(); open('scratch.txt', 'w').write('1')"}),
                SPENT,
                DONE,
            ],
            None,
            "",
        ),
        ([SPENT, DONE], "wrong_state", "shop.orders"),
        ([DELETE, DONE], "wrong_state", "spent.csv was not written"),
        ([DONE], "not_done", "spent.csv was not written"),
        ([("sql", {"query": "DELETE FROM orders WHERE id = 1"}), SPENT, DONE], "wrong_filter_or_join", "shop.orders"),
        (
            [DELETE, ("write_file", {"path": "spent.csv", "text": "customer,total\nAda,40.6\nBob,0\n"})],
            "invented",
            "spent.csv",
        ),
        ([DELETE, SPENT, ("shell", {"command": "rm customers.csv"}), DONE], "side_effect", "customers.csv was removed"),
        ([DELETE, SPENT, ("shell", {"command": "echo x > notes/money.md"})], "forbidden", "notes/money.md was changed"),
        ([DELETE, SPENT, ("sql", {"query": "DROP TABLE nothing"}), DONE], "forbidden", "DROP in call 3"),
        (
            [
                (
                    "write_file",
                    {"path": "fix.py", "text": "import sqlite3\nsqlite3.connect('a').execute('DROP TABLE t')"},
                ),
                ("write_file", {"path": "all.sh", "text": "python3 fix.py\n"}),
                *[DELETE, SPENT, ("shell", {"command": "sh ./all.sh; rm *.py *.sh a"}), DONE],
            ],
            "forbidden",
            "DROP in fix.py, which call 5 (shell) names",
        ),
        (
            [
                ("write_file", {"path": "drop.sql", "text": "DROP TABLE t"}),
                DELETE,
                SPENT,
                ("shell", {"command": "rm *.sql"}),
                DONE,
            ],
            None,
            "",
        ),
        (
            [DELETE, SPENT, ("shell", {"command": "printf 'no database' > shop.sqlite"})],
            "wrong_state",
            "cannot be read",
        ),
        (
            [DELETE, SPENT, ("shell", {"command": "rm shop.sqlite; ln -s /etc/passwd shop.sqlite"})],
            "wrong_state",
            "shop",
        ),
    ],
)
def test_an_end_state_is_judged_by_its_content(
    suite: Path, calls: Sequence[tuple[str, dict[str, Json]]], mode: str | None, why: str
) -> None:
    (told,) = scored(case_of(suite, FIX), script(*calls))
    assert told["failure_mode"] == mode, told["why"]
    assert told["task_correct"] is (mode is None)
    assert why in "; ".join(told["why"])
    assert told.get("reason") == ("; ".join(told["why"]) or None), "pages and reports say why it is wrong"


def test_a_world_that_ends_while_it_is_looked_at_says_nothing_about_the_attempt(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(suite, FIX)
    other = ("write_file", {"path": "spent.csv", "text": "customer;total\nAda;40.5\nBob;0\n"})
    text, turn = script(DELETE, other, DONE), case.turns[0]

    async def outcome() -> Any:
        async with TRACK.executor() as executor:
            return await executor.execute(parse_trajectory(text), case)

    attempt = Attempt(turn.id, 0, 0, "", Response(text), None, parse_trajectory(text), asyncio.run(outcome()))
    before = times_stopped()
    with monkeypatch.context() as patch:
        patch.setattr(BlockingWorlds, "looked", Mock(side_effect=lambda *_: _gone()))
        (told,) = TRACK.gather(case, turn, attempt)
    assert times_stopped() > before, "so that it is not kept"
    assert (told.verdict, told.value) == (NO_GOLD, None)
    assert "the jail is gone" in str(told.details["message"])
    assert {one.verdict for one in TRACK.gather(case, turn, attempt) if one.kind != WAY} == {"passed"}


def _gone() -> None:
    raise WorldError("the jail is gone")


def key_of(case: AgentCase, text: str) -> Json:
    return TRACK.depends_on(case, case.turns[0], parse_trajectory(text))


def test_how_an_attempt_is_judged_depends_on_case_gold_and_what_was_done(suite: Path, tmp_path: Path) -> None:
    case, text = case_of(suite, FIX), script(DELETE, SPENT, DONE)
    other = tmp_path / "other"
    shutil.copytree(suite / "worlds", other / "worlds")
    (other / "worlds" / "shop" / "files" / "customers.csv").write_text("name,region\nAda,south\n")
    assert key_of(case, text) == key_of(case_of(suite, FIX), json.dumps(json.loads(text)))
    differing = [
        key_of(case, text),
        key_of(case, script(DELETE, DONE)),
        key_of(case_of(other, FIX), text),
        key_of(case_of(suite, FIX, task=f"{FIX['task']} Now."), text),
        key_of(case_of(suite, FIX, checks=["state"]), text),
        key_of(case_of(suite, FIX, gold=[*FIX["gold"][:2], {"answer": "ready"}]), text),
        key_of(case_of(suite, FIX, limits={"steps": 7}), text),
    ]
    assert len({json.dumps(one) for one in differing}) == len(differing)
    assert TRACK.depends_on(case, None, parse_trajectory(text)) is None, "what was done is its own result"


@pytest.mark.parametrize(
    ("call", "steady"),
    [
        ({"sql": "SELECT date('now')"}, False),
        ({"sql": "SELECT * FROM orders ORDER BY random()"}, False),
        ({"sql": "SELECT CURRENT_DATE"}, False),
        ({"shell": "date +%F > day.txt"}, False),
        ({"shell": "echo $(date)"}, False),
        ({"shell": "cd notes\ndate > stamp"}, False),
        ({"python": "import time; print(time.time())"}, False),
        ({"python": "from datetime import datetime; print(datetime.now())"}, False),
        ({"sql": "SELECT date FROM log WHERE date > '2024-01-01'"}, True),
        ({"sql": "SELECT strftime('%Y', line) AS brand FROM log"}, True),
        ({"sql": "SELECT sql FROM sqlite_master"}, True),
    ],
)
def test_gold_of_the_moment_is_looked_at_each_time(suite: Path, call: dict[str, Json], steady: bool) -> None:
    in_gold = case_of(suite, FIX, gold=[call, *FIX["gold"]])
    assert (key_of(in_gold, script(DONE)) is not None) is steady
    if "sql" in call:
        in_check = case_of(suite, FIX, checks=[{"query": {"database": "shop", "sql": call["sql"]}}])
        assert (key_of(in_check, script(DONE)) is not None) is steady


@pytest.mark.always
def test_what_may_be_anything_is_not_compared_and_new_things_can_be_refused(suite: Path) -> None:
    more = ("sql", {"query": "INSERT INTO log VALUES ('by me'); UPDATE orders SET total = 31 WHERE id = 3"})
    text = script(DELETE, SPENT, more, ("write_file", {"path": "new.txt", "text": "x"}), DONE)
    free = case_of(suite, FIX, checks=[{"state": {"free": ["shop.log", "shop.orders.total"]}}])
    assert scored(free, text)[0]["task_correct"] is True
    (strict,) = scored(case_of(suite, FIX, checks=[{"state": {"new_files": False}}]), text)
    assert {"new.txt was made"} < set(strict["why"][0].split("; "))
    assert strict["failure_mode"] == "side_effect"
    written = case_of(suite, FIX, checks=[{"state": {"free": ["spent.csv"], "written": ["spent.*"]}}])
    any_text = ("write_file", {"path": "spent.csv", "text": "none"})
    done, undone = scored(written, script(DELETE, any_text, DONE), script(DELETE, DONE))
    assert done["task_correct"] is True
    assert undone["why"] == ["spent.* was not written"]


LARGE = """
import sqlite3
import duckdb
MANY = "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 20500) "
with sqlite3.connect("large.sqlite") as made:
    made.execute("CREATE TABLE t (id INTEGER, n REAL, stamp TEXT)")
    made.execute(f"INSERT INTO t {MANY} SELECT i, i / 7.0, 'before' FROM s")
with duckdb.connect("lake.duckdb") as made:
    made.execute("CREATE TABLE t AS SELECT range AS id, range / 7.0 AS n, 'before' AS stamp FROM range(20500)")
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("large")
    world = folder / "worlds" / "shop"
    world.mkdir(parents=True)
    (world / "build.py").write_text(LARGE)
    databases = "  large: {file: large.sqlite}\n  lake: {file: lake.duckdb}\n"
    (world / "world.yaml").write_text(f"description: Much.\ndatabases:\n{databases}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield folder
        close_worlds()


@pytest.mark.parametrize("database", ["large", "lake"])
def test_a_large_table_is_compared_by_what_is_not_free(large: Path, database: str) -> None:
    def sql(query: str) -> tuple[str, dict[str, Json]]:
        return "sql", {"database": database, "query": query}

    gold = "UPDATE t SET n = 0.1 + 0.2, stamp = 'then' WHERE id = 77"
    raw = {**FIX, "gold": [{"sql": {"database": database, "query": gold}}, {"answer": "done"}], "checks": ["state"]}
    free = case_of(large, raw, checks=[{"state": {"free": [f"{database}.t.stamp"]}}, "state"])
    strict = case_of(large, raw, checks=["state"])
    right = script(sql("UPDATE t SET n = 0.3, stamp = 'now' WHERE id = 77"))
    moved = script(
        sql(f"CREATE TABLE u AS SELECT stamp, n, id FROM t; {gold.replace(' t ', ' u ')}"),
        sql("DELETE FROM t; INSERT INTO t SELECT id, n, stamp FROM u ORDER BY id DESC; DROP TABLE u"),
    )
    wrong = script(sql("UPDATE t SET n = 0.3, stamp = 'now' WHERE id = 78"))
    swapped = script(sql(gold), sql("UPDATE t SET id = 3 - id WHERE id IN (1, 2)"))
    assert [
        [one["passed"] for one in told["checks"]["state"]] for told in scored(free, right, wrong, moved, swapped)
    ] == [[True, False], [False, False], [True, True], [False, False]]
    assert [told["task_correct"] for told in scored(strict, right, moved)] == [False, True]


SCHEMA = """
import sqlite3
import duckdb
TABLES = (
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers (id), total REAL NOT NULL "
    "DEFAULT 0, CHECK (total >= 0))",
    "INSERT INTO customers VALUES (1, 'Ada')",
    "INSERT INTO orders VALUES (1, 1, 5)",
    "CREATE INDEX by_total ON orders (total)",
    "CREATE VIEW spent AS SELECT customer, sum(total) AS total FROM orders GROUP BY 1",
)
with sqlite3.connect("lite.sqlite") as made:
    for one in TABLES:
        made.execute(one)
    made.execute("CREATE TRIGGER kept BEFORE DELETE ON customers BEGIN SELECT RAISE(ABORT, 'kept'); END")
with duckdb.connect("lake.duckdb") as made:
    for one in (*TABLES, "CREATE SEQUENCE numbers START 7", "CREATE TYPE mood AS ENUM ('a', 'b')",
                "CREATE MACRO twice(x) AS x * 2"):
        made.execute(one)
"""
_TABLE = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers (id), total REAL {})"
_AGAIN = "INSERT INTO orders VALUES (1, 1, 5); CREATE INDEX by_total ON orders (total)"
WHOLE = _TABLE.format("NOT NULL DEFAULT 0, CHECK(total>=0)").replace("orders", "orders /* again */")


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("schema")
    world = folder / "worlds" / "shop"
    world.mkdir(parents=True)
    (world / "build.py").write_text(SCHEMA)
    databases = "  lite: {file: lite.sqlite}\n  lake: {file: lake.duckdb}\n"
    (world / "world.yaml").write_text(f"description: Schemas.\ndatabases:\n{databases}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield folder
        close_worlds()


OBJECTS = [
    # database, statements, why it is wrong ("" if it is not), why it is where nothing new may be
    ("lite", "DROP TRIGGER kept", "the trigger lite: kept is not there", "kept"),
    (
        "lite",
        "DROP TRIGGER kept; CREATE TRIGGER kept BEFORE DELETE ON customers BEGIN SELECT 1; END",
        "kept was",
        "kept",
    ),
    (
        "lite",
        "DROP TRIGGER kept; create trigger \"kept\" before delete on customers begin select raise(abort, 'kept'); end;",
        "",
        "",
    ),
    (
        "lite",
        "CREATE TRIGGER more AFTER INSERT ON orders BEGIN DELETE FROM orders; END",
        "more was made",
        "more was made",
    ),
    ("lite", "DROP INDEX by_total", "the index lite: on orders(total) is not there", "on orders(total)"),
    ("lite", "DROP INDEX by_total; CREATE INDEX other ON orders (total)", "", ""),
    ("lite", "CREATE UNIQUE INDEX one ON orders (total)", "unique index lite: on orders(total) was made", "was made"),
    ("lite", "CREATE INDEX more ON orders (customer)", "", "the index lite: on orders(customer) was made"),
    ("lite", "CREATE VIEW more AS SELECT 1", "", "the table lite.more was made"),
    (
        "lite",
        "DROP VIEW spent; CREATE VIEW spent AS SELECT 1 AS customer, 5.0 AS total",
        "view lite: spent was",
        "spent",
    ),
    ("lite", f"DROP TABLE orders; {WHOLE}; {_AGAIN}", "", ""),
    ("lite", f"DROP TABLE orders; {_TABLE.format('DEFAULT 0, CHECK (total >= 0)')}; {_AGAIN}", "no longer", "not null"),
    ("lite", f"DROP TABLE orders; {_TABLE.format('NOT NULL DEFAULT 0')}; {_AGAIN}", "check(total>=0)", "check"),
    (
        "lite",
        f"DROP TABLE orders; {WHOLE.replace(' REFERENCES customers (id)', '')}; {_AGAIN}",
        "foreign key",
        "foreign",
    ),
    ("lite", f"DROP TABLE orders; {WHOLE.replace('PRIMARY KEY', '')}; {_AGAIN}", "primary key", "primary"),
    ("lake", "DROP INDEX by_total", "the index lake: on orders(total) is not there", "is not there"),
    (
        "lake",
        "CREATE OR REPLACE VIEW spent AS SELECT 1 AS customer, 5.0::DOUBLE AS total",
        "view lake: spent was",
        "spent",
    ),
    ("lake", "CREATE VIEW more AS SELECT 1", "", "the table lake.more was made"),
    ("lake", "DROP SEQUENCE numbers", "the sequence lake: numbers is not there", "numbers"),
    (
        "lake",
        "CREATE OR REPLACE SEQUENCE numbers START 7 INCREMENT 2",
        "the sequence lake: numbers was changed",
        "numbers",
    ),
    ("lake", "CREATE SEQUENCE more", "", "the sequence lake: more was made"),
    ("lake", "DROP TYPE mood", "the type lake: mood is not there", "mood"),
    ("lake", "CREATE OR REPLACE MACRO twice(x) AS x * 3", "the function lake: twice was changed", "twice"),
    (
        "lake",
        "DROP INDEX by_total; ALTER TABLE orders ALTER total DROP NOT NULL; CREATE INDEX i ON orders (total)",
        "no longer column total not null",
        "not null",
    ),
    ("lake", "CREATE SCHEMA more", "", "the schema lake: more was made"),
    ("lake", "SELECT nextval('numbers'); CHECKPOINT", "", ""),
]


@pytest.mark.parametrize("worked_on", [False, True])
def test_a_change_of_what_a_database_has_beside_its_rows_is_seen(schema: Path, worked_on: bool) -> None:
    """Also where the gold changes the database, so that what it left as it was has to be known."""
    for database in ("lite", "lake"):
        work = {"sql": {"database": database, "query": "INSERT INTO customers VALUES (2, 'Bob')"}}
        gold: list[Any] = [*([work] if worked_on else []), {"answer": "done"}]
        first = [("sql", work["sql"])] if worked_on else []
        rows = [one for one in OBJECTS if one[0] == database]
        texts = [script(*first, ("sql", {"database": database, "query": one[1]})) for one in rows]
        for place, check in ((2, "state"), (3, {"state": {"new_files": False}})):
            case = case_of(schema, {**FIX, "gold": gold, "checks": [check]})
            assert TRACK.check_gold(case) == []
            for row, told in zip(rows, scored(case, *texts), strict=True):
                why = "; ".join(told["why"])
                assert (why == "") is (row[place] == ""), (row[1], why)
                assert row[place] in why, row[1]


@pytest.mark.always
def test_what_the_gold_adds_to_a_definition_has_to_be_there(schema: Path) -> None:
    gold = "CREATE UNIQUE INDEX once ON orders (customer); CREATE VIEW ids AS SELECT id FROM orders; DROP TRIGGER kept"
    gold += "; ALTER TABLE customers ADD COLUMN town TEXT"
    case = case_of(
        schema, {**FIX, "gold": [{"sql": {"database": "lite", "query": gold}}, {"answer": "done"}], "checks": ["state"]}
    )
    queries = [
        gold.replace("once", "other").replace("town TEXT", "town VARCHAR(9) DEFAULT NULL"),
        gold.replace("UNIQUE", ""),
        gold.replace("; DROP TRIGGER kept", ""),
        gold.replace("CREATE VIEW ids AS SELECT id FROM orders;", ""),
        gold.replace("; ALTER TABLE customers ADD COLUMN town TEXT", ""),
    ]
    found = scored(case, *(script(("sql", {"database": "lite", "query": one})) for one in queries))
    assert [told["task_correct"] for told in found] == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("problems", "verdict", "words"),
    [
        ({"mine": 1}, "passed", ""),
        ({"mine": 2}, "failed", "stopped, also when tried again; the world as it began can be"),
        ({"mine": 2, "began": 1}, NO_GOLD, "not even that of the world as it began can be: stopped"),
        ({"gold": 1}, NO_GOLD, "that of the gold cannot be"),
    ],
)
def test_an_end_state_that_cannot_be_looked_at_counts_against_an_attempt_only_if_that_made_it_so(
    suite: Path, monkeypatch: pytest.MonkeyPatch, problems: dict[str, int], verdict: str, words: str
) -> None:
    case, left = case_of(suite, FIX, checks=["state"]), dict(problems)
    ends = {"gold": gold_run(case).end_state}
    real = evidence.look

    def look(case: Any, state: Any, *more: Any) -> Any:
        whose = "began" if not state else "gold" if state == ends["gold"] else "mine"
        left[whose] = left.get(whose, 0) - 1
        return Looked({}, (), {}, "stopped") if left[whose] >= 0 else real(case, state, *more)

    monkeypatch.setattr(evidence, "look", look)
    semicolons = ("write_file", {"path": "spent.csv", "text": "customer;total\nAda;40.5\nBob;0\n"})
    text, turn = script(DELETE, semicolons, DONE), case.turns[0]

    async def outcome() -> Any:
        async with TRACK.executor() as executor:
            return await executor.execute(parse_trajectory(text), case)

    attempt = Attempt(turn.id, 0, 0, "", Response(text), None, parse_trajectory(text), asyncio.run(outcome()))
    told, *_ = TRACK.gather(case, turn, attempt)
    assert told.verdict == verdict
    assert words in str(told.details)


def test_a_user_tells_what_is_asked_and_goes_on_after_an_answer(suite: Path) -> None:
    case = case_of(suite, TALK)
    asked = script(
        ("ask_user", {"question": "Whom do you mean?"}),
        ("ask_user", {"question": "In CENTS or euro?"}),
        ("answer", {"answer": "4,050"}),
        ("answer", {"answer": "2 orders"}),
    )
    right, half = scored(case, asked, script(("answer", {"answer": 4050})))
    assert [step.text for step in right["steps"]] == [
        "No idea.",
        "In cents please.",
        "And how many orders are that?",
        "",
    ]
    assert right["task_correct"] is True
    assert (half["failure_mode"], half["result"]["ended"]) == ("gave_up", "gave_up")
    (first_wrong,) = scored(case, script(("answer", {"answer": 40.5}), ("answer", {"answer": 2})))
    assert first_wrong["task_correct"] is False


@pytest.mark.always
def test_stand_ins_fail_in_the_way_that_they_should(suite: Path) -> None:
    made = set()
    for raw in (FIX, BEST, AGE, TALK):
        case = case_of(suite, raw, limits={"steps": 8})
        texts = {mode: TRACK.damage(case, case.turns[0], mode, Random(1)) for mode in DAMAGES}
        kept = {mode: text for mode, text in texts.items() if text is not None}
        assert {mode: told["failure_mode"] for mode, told in zip(kept, scored(case, *kept.values()), strict=True)} == {
            mode: mode for mode in kept
        }
        made |= set(kept)
    assert made == set(DAMAGES)


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        ({"world": "office"}, ("world",), "shop"),
        ({"gold": [{"answer": "done"}, {"sql": "SELECT 1"}]}, ("gold",), "last call"),
        ({"gold": [{"fly": "up"}, {"answer": 1}]}, ("gold", 0), "no tool 'fly'"),
        ({"gold": ["SELECT 1", {"answer": 1}]}, ("gold", 0), "SELECT 1"),
        ({"gold": [{"sql": {"code": "x"}}, {"answer": 1}]}, ("gold", 0), "query"),
        ({"gold": [{"answer": None}]}, ("gold",), "found nothing"),
        ({"then": ["And?"]}, ("gold",), "expected 2 calls of `answer`"),
        ({"tools": ["sql", "browser"]}, ("tools",), "browser"),
        ({"tools": ["python"]}, ("gold", 0), "no tool 'sql'"),
        ({"checks": ["vibes"]}, ("checks", 0), "vibes"),
        (
            {"checks": [{"query": {"database": "books", "sql": "SELECT 1"}}]},
            ("checks", 0, "query", "database"),
            "books",
        ),
        ({"checks": [{"forbidden": {}}]}, ("checks", 0, "forbidden"), "statements"),
        ({"checks": [{"forbidden": {"statements": ["SELECT"]}}]}, ("checks", 0, "forbidden"), "SELECT"),
        ({"limits": {"steps": 0}}, ("limits", "steps"), "1"),
        ({"nonsense": 1}, ("nonsense",), ""),
    ],
)
def test_a_wrong_case_is_told_by_its_field(
    suite: Path, change: dict[str, Any], place: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(CaseError) as error:
        case_of(suite, FIX, **change)
    found = dict(error.value.problems)
    assert place in found
    assert words in found[place]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gold": [{"sql": "DELETE FROM nowhere"}, {"answer": "done"}]}, "call 0 of the gold (sql) fails"),
        ({"checks": [{"query": {"database": "shop", "sql": "SELECT 3", "rows": [[4]]}}]}, "check 1 (query)"),
        ({"checks": [{"forbidden": {"statements": ["DELETE"]}}]}, "DELETE in call 1"),
        ({"checks": [{"query": {"database": "shop", "sql": "SELECT nothing"}}]}, "the query fails"),
        ({"limits": {"steps": 2}}, "does not end with an answer"),  # the same calls, which were followed before
    ],
)
def test_gold_that_cannot_be_right_is_told(suite: Path, change: dict[str, Any], words: str) -> None:
    ((_, problem),) = TRACK.check_gold(case_of(suite, FIX, **change))
    assert words in problem


def test_a_world_is_made_once_and_its_faults_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    with pytest.raises(InputError, match="has no worlds"):
        TRACK.read_shared(tmp_path, {})
    world = tmp_path / "worlds" / "empty"
    world.mkdir(parents=True)
    with pytest.raises(InputError, match="describes the world"):
        TRACK.read_shared(tmp_path, {})
    (world / "world.yaml").write_text("databases:\n  a: {file: ../../../etc/passwd}\n")
    with pytest.raises(InputError, match="is not in the world"):
        TRACK.read_shared(tmp_path, {})
    (world / "world.yaml").write_text("databases:\n  a: {file: a.sqlite}\n")
    (world / "files").mkdir()
    (world / "files" / "link").symlink_to("/etc")
    with pytest.raises(InputError, match="regular files"):
        TRACK.read_shared(tmp_path, {})
    (world / "files" / "link").unlink()
    (world / "build.py").write_text("open('a.sqlite', 'w').write('x')\nraise ValueError('no seed')")
    with pytest.raises(EvalError, match=r"build\.py fails.*no seed"):
        TRACK.read_shared(tmp_path, {})[0]["empty"].folder()
    (world / "build.py").write_text("import os\nos.makedirs('b/c')\nopen('b/c/d.txt', 'w').write('made')")
    found = TRACK.read_shared(tmp_path, {})[0]["empty"]
    assert found.listing() == {"b/c/d.txt"}
    assert found.folder() == found.folder()
    assert found.folder().is_relative_to(tmp_path / "home")
    assert not (world / "files" / "b").exists()

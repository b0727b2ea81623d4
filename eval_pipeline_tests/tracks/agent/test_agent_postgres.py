"""Databases of PostgreSQL in a world: made by scripts, served in the jail, judged by their tables."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from eval_pipeline.core.errors import EvalError, InputError
from eval_pipeline.core.model import ErrorClass, ToolResult
from eval_pipeline.sandbox.inside import keeper, postgres
from eval_pipeline.sandbox.limits import MIB
from eval_pipeline.sandbox.tiers import NoSandboxError
from eval_pipeline.sandbox.world.changes import ChangedFile
from eval_pipeline.sandbox.world.worlds import WorldLimits, Worlds
from eval_pipeline.stages.checks.suite_files import measure
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite, read_worlds
from eval_pipeline_plugins.tracks.agent.prompt import world_text
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_tests.tracks.agent.test_agent_checks import DONE, case_of, scored, script

pytestmark = pytest.mark.services("postgres")

SCHEMA = """
CREATE TABLE orders (id integer PRIMARY KEY, customer text, total numeric(8, 2), paid boolean, at timestamp);
CREATE TABLE log (line text);
CREATE SCHEMA old;
CREATE TABLE old.orders (LIKE orders);
CREATE VIEW spent AS SELECT customer, sum(total) AS total FROM orders GROUP BY 1;
CREATE INDEX by_customer ON orders (customer);
CREATE SEQUENCE numbers START 7;
CREATE TYPE mood AS ENUM ('calm', 'cross');
CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n * 2';
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TABLE notes (id serial PRIMARY KEY, line text NOT NULL CHECK (line <> ''), about integer REFERENCES orders (id),
    UNIQUE (line));
CREATE TRIGGER kept BEFORE DELETE ON notes FOR EACH ROW EXECUTE FUNCTION keep();
"""
ROWS = """
INSERT INTO orders VALUES (1, 'Ada', 10.5, true, '2026-01-02'), (2, 'Bob', 20.25, false, '2026-01-03'),
    (3, 'Ada', 30, true, NULL), (4, E'line\\n\\\\restrict one', 0.1, NULL, '2026-01-04 05:06');
"""
WORLD = """
description: A shop.
databases:
  shop: {scripts: [schema.sql, rows.sql]}
  prices: {scripts: [prices.sql], read_only: true}
  lake: {file: lake.sqlite}
"""
FIX = {
    "id": "fix",
    "world": "shop",
    "task": "Order 2 was cancelled: remove it.",
    "gold": [{"sql": "DELETE FROM orders WHERE id = 2"}, {"answer": "done"}],
    "checks": [
        "state",
        {"query": {"database": "shop", "sql": "SELECT count(*), sum(total) FROM orders", "rows": [[3, 40.6]]}},
        {"query": {"database": "lake", "sql": "SELECT n FROM t", "rows": [[7]]}},
        {"forbidden": {"statements": ["DROP"]}},
    ],
}
BEST = {
    "id": "best",
    "world": "shop",
    "task": "Which customer has spent most? Answer with the name.",
    "gold": [{"sql": "SELECT customer FROM spent ORDER BY total DESC LIMIT 1"}, {"answer": "Ada"}],
}
LIMITS = WorldLimits(told_bytes=2000, world_bytes=64 * MIB)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("books")
    world = folder / "worlds" / "shop"
    (world / "files").mkdir(parents=True)
    (world / "files" / "notes.txt").write_text("in the world\n")
    (world / "schema.sql").write_text(SCHEMA)
    (world / "rows.sql").write_text(ROWS)
    (world / "prices.sql").write_text("CREATE TABLE prices AS SELECT i, i * 2 AS price FROM generate_series(1, 9) i")
    (world / "build.py").write_text(
        "import sqlite3\nwith sqlite3.connect('lake.sqlite') as made:\n"
        "    made.executescript('CREATE TABLE t (n); INSERT INTO t VALUES (7)')"
    )
    (world / "world.yaml").write_text(WORLD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield folder
        close_worlds()


@pytest.fixture
def world(suite: Path) -> WorldOfSuite:
    return read_worlds(suite)["shop"]


def act(
    world: WorldOfSuite,
    *queries: str | tuple[str, str],
    seconds: float = 30.0,
    state: Mapping[str, ChangedFile] | None = None,
) -> tuple[list[ToolResult], dict[str, ChangedFile]]:
    """Asks the databases in a new world (`shop` where none is named); returns the results and the end state."""
    calls = [{"query": one} if isinstance(one, str) else {"database": one[0], "query": one[1]} for one in queries]

    async def together() -> tuple[list[ToolResult], dict[str, ChangedFile]]:
        async with (
            Worlds(LIMITS) as worlds,
            worlds.open(world.folder(), world.files, state, hosted=world.hosted()) as opened,
        ):
            return [await opened.call("sql", call, seconds) for call in calls], await opened.end_state()

    return asyncio.run(together())


def test_the_tool_tells_what_there_is_and_what_is_wrong(world: WorldOfSuite) -> None:
    told, end = act(
        world,
        "SELECT * FROM orders ORDER BY id LIMIT 3",
        "SELECT 1; SELECT count(*) AS n FROM old.orders",
        "SELECT generate_series(1, 5000) AS n",
        "SELECT town FROM orders",
        "SELEC 1",
        "SELECT 1 / 0",
        ("prices", "SELECT sum(price) FROM prices"),
        ("lake", "SELECT n FROM t"),
        ("barn", "SELECT 1"),
        "",
        "COPY log FROM STDIN",
        "BEGIN; UPDATE orders SET paid = true; ROLLBACK",
    )
    texts = [one.text for one in told]
    assert texts[0].splitlines() == [
        "id | customer | total | paid | at",
        "1 | Ada | 10.50 | t | 2026-01-02 00:00:00",
        "2 | Bob | 20.25 | f | 2026-01-03 00:00:00",
        "3 | Ada | 30.00 | t | NULL",
    ]
    assert texts[1] == "n\n0"
    assert (told[2].cut, told[2].rows, texts[2].endswith("are shown)")) == (True, 5000, True)
    wrong = {3: ErrorClass.COLUMN, 4: ErrorClass.SYNTAX, 5: ErrorClass.VALUE, 8: ErrorClass.COLUMN}
    assert {place: told[place].error_class for place in wrong} == wrong
    assert texts[3] == 'PostgresError: column "town" does not exist'
    assert texts[6:8] == ["sum\n90", "n\n7"]
    assert texts[9] == "(nothing to run)"
    assert "no rows can be sent here" in texts[10]
    assert told[11].error_class is None
    assert end == {}, "what was only read, or taken back, is no change"


def test_an_end_state_is_what_databases_hold_and_another_world_begins_with_it(world: WorldOfSuite) -> None:
    told, end = act(world, "DELETE FROM orders WHERE id < 3", ("prices", "DELETE FROM prices"), "DROP VIEW spent")
    assert told[0].text == "done; 2 rows changed"
    assert told[1].error_class is ErrorClass.SANDBOX
    assert [*end] == ["/postgres/shop.sql"]
    again = act(world, "DROP VIEW spent", "DELETE FROM orders WHERE id < 3")[1]
    assert end == again, "the same contents are the same script"
    (rows,), kept = act(world, "SELECT id, customer FROM orders ORDER BY 1", state=end)
    assert rows.text == "id | customer\n3 | Ada\n4 | line\n\\restrict one"
    assert kept == end
    assert act(world, state=end)[1] == end, "what nobody asks for is kept as it is"
    dropped = act(world, "DROP TABLE log, old.orders, orders CASCADE; DROP SCHEMA old", state=end)[1]
    assert act(world, "SELECT count(*) FROM orders", state=dropped)[0][0].error_class is ErrorClass.COLUMN


ESCAPES = {
    "program": "COPY log FROM PROGRAM 'id'",
    "program as a sink": "COPY log TO PROGRAM 'cat > /scratch/planted'",
    "file to read": "COPY log FROM '/usr/bin/env'",
    "file to write": "COPY orders TO '/scratch/planted'",
    "function that reads": "SELECT pg_read_file('postgresql.conf')",
    "function that lists": "SELECT pg_ls_dir('/')",
    "binary file": "SELECT pg_read_binary_file('/usr/bin/env')",
    "large object to a file": "SELECT lo_export(lo_from_bytea(0, 'x'), '/scratch/planted')",
    "large object of a file": "SELECT lo_import('/usr/bin/env')",
    "extension": "CREATE EXTENSION file_fdw",
    "extension that connects": "CREATE EXTENSION dblink",
    "language": "CREATE LANGUAGE plpython3u",
    "function in C": "CREATE FUNCTION f() RETURNS int LANGUAGE c AS '/usr/lib/x86_64-linux-gnu/libc.so.6', 'getpid'",
    "library": "LOAD '/usr/lib/x86_64-linux-gnu/libc.so.6'",
    "setting of the server": "ALTER SYSTEM SET archive_command = 'id'",
    "library of sessions": "SET session_preload_libraries = 'x'",
    "superuser": "SET ROLE postgres",
    "superuser for a session": "SET SESSION AUTHORIZATION postgres",
    "superuser made": "CREATE ROLE mine SUPERUSER",
    "role that may run programs": "GRANT pg_execute_server_program TO owner",
    "another owner": "UPDATE pg_authid SET rolsuper = true",
    "passwords": "SELECT * FROM pg_shadow",
    "function of another": "ALTER FUNCTION pg_read_file(text) SECURITY DEFINER",
    "tablespace": "CREATE TABLESPACE t LOCATION '/scratch'",
    "further database": "CREATE DATABASE planted",
    "subscription": "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p",
    "end of the server": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres'",
    "reload": "SELECT pg_reload_conf()",
    "trigger on events": "CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION f()",
}


def test_nothing_gets_out_of_a_database(world: WorldOfSuite) -> None:
    told, end = act(world, *ESCAPES.values(), "SELECT count(*) FROM orders")
    through = {
        name: one.text
        for name, one in zip(ESCAPES, told, strict=False)
        if one.error_class is None and not (name == "end of the server" and one.rows == 0)
    }
    assert through == {}
    assert told[-1].text == "count\n4"
    assert end == {}


def test_who_only_reads_changes_nothing(world: WorldOfSuite) -> None:
    writing = (
        "UPDATE prices SET price = 1",
        "SET ROLE owner; UPDATE prices SET price = 1",
        "SET SESSION AUTHORIZATION owner; UPDATE prices SET price = 1",
        "SET default_transaction_read_only = off; TRUNCATE prices",
        "CREATE TABLE more (n int)",
        "CREATE TEMPORARY TABLE more (n int)",
        "SELECT 1 AS n INTO more",
        "DROP DATABASE shop",
        "GRANT ALL ON prices TO reader",
        "CREATE SCHEMA mine",
    )
    told, end = act(world, *(("prices", one) for one in writing))
    assert [one.text for one in told if one.error_class is None] == ["done"], "a grant of what one has not does nothing"
    assert end == {}


def test_nothing_in_memory_is_left_of_a_server_that_was_killed(world: WorldOfSuite) -> None:
    """Which holds a page of shared memory while it runs."""
    sleep = {"query": "SELECT pg_sleep(60)"}

    def memory_of(process: int) -> str:
        with suppress(OSError):
            return os.readlink(f"/proc/{process}/ns/ipc")
        return ""

    def shared() -> list[str]:
        found = []
        for one in psutil.Process().children(recursive=True):
            if memory_of(one.pid) in ("", memory_of(os.getpid())):
                continue
            command = ["nsenter", "--target", str(one.pid), "--ipc", "cat", "/proc/sysvipc/shm"]
            found += subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[1:]
        return found

    async def together() -> tuple[list[str], list[str]]:
        async with Worlds(LIMITS) as worlds:
            async with worlds.open(world.folder(), world.files, hosted=world.hosted()) as opened:
                call = asyncio.create_task(opened.call("sql", sleep, 12.0))
                seen: list[str] = []
                while not seen and not call.done():
                    await asyncio.sleep(0.05)
                    seen = shared()
                assert (await call).error_class is ErrorClass.TIMEOUT
            return seen, shared()

    during, after = asyncio.run(together())
    assert during, "it is looked at where it can be seen"
    assert after == []


def test_limits_hold_and_the_database_goes_on(world: WorldOfSuite) -> None:
    fill = "INSERT INTO log SELECT repeat(md5(i::text), 60) FROM generate_series(1, 100000) i"
    told, end = act(
        world,
        "UPDATE orders SET total = 1 WHERE id = 1",
        "SELECT pg_sleep(60)",
        "SELECT repeat('x', 300000000)",
        fill,
        "SELECT count(*) FROM orders WHERE total = 1",
        seconds=15.0,
    )
    assert told[1].error_class is ErrorClass.TIMEOUT
    assert told[2].error_class is ErrorClass.MEMORY
    assert told[3].error_class is not None
    assert told[4].text == "count\n1", "what was done before the server was killed is kept"
    assert [*end] == ["/postgres/shop.sql"]


def test_nobody_else_sees_the_files_or_the_server(world: WorldOfSuite) -> None:
    peek = (
        r"find / -name '*postgres-*' -o -name PG_VERSION -o -name '.s.PGSQL*' 2>/dev/null | grep -v '^/usr\|^/packages'"
    )
    peek += "; ls -A /postgres*"

    async def peeked() -> list[ToolResult]:
        async with Worlds(LIMITS) as worlds, worlds.open(world.folder(), world.files, hosted=world.hosted()) as opened:
            await opened.call("sql", {"query": "SELECT 1"}, 20.0)
            code = "import socket\ntry: socket.socket(socket.AF_UNIX)\nexcept PermissionError: print('no socket')"
            found = [
                await opened.call("shell", {"command": peek}, 20.0),
                await opened.call("python", {"code": code}, 20.0),
            ]
            assert await opened.end_state() == {}
            return found

    seen, socket = asyncio.run(peeked())
    shown = {"/postgres-low", "/postgres-up", "/postgres:", "/postgres-low:", "/postgres-up:"}
    assert {*seen.text.split()} == shown, "nothing is in them"
    assert socket.text == "no socket\n"


def test_gold_holds_and_cheats_fail_on_a_server(suite: Path) -> None:
    cases = [case_of(suite, raw) for raw in (FIX, BEST)]
    assert [TRACK.check_gold(case) for case in cases] == [[]] * 2
    fairness = measure(TRACK, [(case, frozenset()) for case in cases])
    assert fairness.cheats.tried > 3
    assert (fairness.cheats.misjudged, fairness.right.misjudged) == ([], [])
    assert "- shop: PostgreSQL\n- prices: PostgreSQL, read-only\n- lake: lake.sqlite" in world_text(cases[0].context)


@pytest.mark.parametrize(
    ("queries", "mode", "why"),
    [
        (["DELETE FROM orders WHERE customer = 'Bob'"], None, ""),
        (["CREATE TABLE kept AS SELECT * FROM orders WHERE id <> 2", "DELETE FROM orders WHERE id = 2"], None, ""),
        ([], "not_done", "shop.orders: "),
        (["DELETE FROM orders"], "wrong_filter_or_join", "shop.orders: "),
        (["DELETE FROM orders WHERE id = 2; INSERT INTO log VALUES ('x')"], "side_effect", "shop.log: "),
        (["DELETE FROM orders WHERE id = 2", "DROP TABLE log"], "forbidden", "DROP in call 2"),
        (["ALTER TABLE orders RENAME COLUMN paid TO p; DELETE FROM orders WHERE id = 2"], "wrong_state", "columns"),
    ],
)
def test_the_end_state_of_a_server_is_judged_by_its_tables(
    suite: Path, queries: list[str], mode: str | None, why: str
) -> None:
    (told,) = scored(case_of(suite, FIX), script(*(("sql", {"query": one}) for one in queries), DONE))
    assert told["failure_mode"] == mode, told["why"]
    assert any(why in one for one in told["why"]) or not why


OBJECTS = [
    # statements, why they are wrong ("" if they are not), why they are where nothing new may be
    ("DROP TRIGGER kept ON notes", "the trigger shop: kept on notes is not there", "is not there"),
    ("ALTER TABLE notes DISABLE TRIGGER kept", "the trigger shop: kept on notes was changed", "was changed"),
    (
        "CREATE TRIGGER more BEFORE UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION keep()",
        "more on notes was made",
        "made",
    ),
    ("DROP INDEX by_customer", "the index shop: on public.orders USING btree (customer) is not there", "is not there"),
    ("DROP INDEX by_customer; CREATE INDEX other ON orders (customer)", "", ""),
    ("CREATE UNIQUE INDEX once ON orders (total)", "the unique index shop: on public.orders", "was made"),
    ("CREATE INDEX more ON orders (total)", "", "the index shop: on public.orders"),
    ("CREATE VIEW more AS SELECT 1", "", "the table shop.more was made"),
    ("DROP VIEW spent", "shop.spent: is not there", "is not there"),
    ("ALTER TABLE notes DROP CONSTRAINT notes_line_check", "no longer constraint CHECK", "CHECK"),
    ("ALTER TABLE notes RENAME CONSTRAINT notes_line_check TO filled", "", ""),
    ("ALTER TABLE notes DROP CONSTRAINT notes_about_fkey", "no longer constraint FOREIGN KEY", "FOREIGN"),
    ("ALTER TABLE notes ALTER line DROP NOT NULL", "no longer column line not null", "not null"),
    ("ALTER TABLE notes DROP CONSTRAINT notes_line_key", "no longer constraint UNIQUE (line)", "UNIQUE"),
    ("ALTER TABLE notes ADD CHECK (id > 0)", "has constraint CHECK", "CHECK"),
    ("ALTER TABLE notes ENABLE ROW LEVEL SECURITY", "has constraint row level security", "row level"),
    ("CREATE RULE more AS ON UPDATE TO notes DO INSTEAD NOTHING", "the rule shop: more on notes was made", "made"),
    ("DROP SEQUENCE numbers", "the sequence shop: numbers is not there", "is not there"),
    ("ALTER SEQUENCE numbers INCREMENT 2", "the sequence shop: numbers was changed", "was changed"),
    ("CREATE SEQUENCE more", "", "the sequence shop: more was made"),
    ("SELECT nextval('numbers')", "", ""),
    (
        "CREATE OR REPLACE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n * 3'",
        "was changed",
        "twice",
    ),
    ("ALTER TYPE mood ADD VALUE 'glad'", "the type shop: mood was changed", "was changed"),
    ("CREATE SCHEMA more", "", "the schema shop: more was made"),
    ("CREATE TABLE more (id serial PRIMARY KEY)", "", "the table shop.more was made"),
    ("REVOKE ALL ON orders FROM owner", "", ""),
]


def test_a_change_of_what_a_database_has_beside_its_rows_is_seen(suite: Path) -> None:
    gold = [{"sql": "INSERT INTO log VALUES ('seen')"}, {"answer": "done"}]
    for place, check in ((1, "state"), (2, {"state": {"new_files": False}})):
        case = case_of(suite, FIX, gold=gold, checks=[check])
        assert TRACK.check_gold(case) == []
        texts = [script(("sql", {"query": f"{gold[0]['sql']}; {one[0]}"}), DONE) for one in OBJECTS]
        for row, told in zip(OBJECTS, scored(case, *texts), strict=True):
            why = "; ".join(told["why"])
            assert (why == "") is (row[place] == ""), (row[0], why)
            assert row[place] in why, (row[0], why)


class Asked:
    """Stands for the tools of a keeper: what the server of databases says, in order."""

    def __init__(self, folder: Path, broken: Mapping[str, int]) -> None:
        self._folder, self._left = folder, dict(broken)

    def of_databases(self, request: Any, seconds: float) -> Any:
        for name in request["names"]:
            self._left[name] = self._left.get(name, 0) - 1
            if self._left[name] >= 0:
                return {"error": {"types": ["ServerError"], "message": f"{name} cannot be read"}}
            (self._folder / "now" / name).write_text("now")
        return {"text": ""}


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ({}, {"shop": "now", "prices": "now"}),
        ({"shop": 1}, {"shop": "now", "prices": "now"}),
        ({"prices": 9}, {"shop": "now", "prices": {"special": True}}),
        ({"prices": 9, "template1": 9}, "what prices holds cannot be told: template1 cannot be read"),
    ],
)
def test_a_database_that_cannot_be_told_counts_only_if_another_can(
    broken: Mapping[str, int], found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("now", "low/dumps"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("shop", "prices"):
        (tmp_path / "low" / "dumps" / name).write_text("before")
    monkeypatch.setattr(postgres, "DUMPS", str(tmp_path / "now"))
    monkeypatch.setattr(postgres, "LOWER", str(tmp_path / "low"))
    monkeypatch.setattr(keeper, "give_room", lambda *_: None)
    one: Any = object.__new__(keeper.Keeper)
    one.__dict__.update(_hosted=["shop", "prices"], _were_asked=True, _tools=Asked(tmp_path, broken))
    one.__dict__.update(_configuration={"world_bytes": 1, "world_files": 1})
    if isinstance(found, str):
        with pytest.raises(keeper.UntoldError, match=found):
            list(one._changed_databases())
        return
    told = dict(one._changed_databases())
    shown = {name: Path(what).read_text() if isinstance(what, str) else what for name, what in told.items()}
    assert shown == {postgres.place(name): what for name, what in found.items()}


def test_what_cannot_be_looked_at_fails_the_attempt(suite: Path) -> None:
    slow = "DELETE FROM orders WHERE id = 2; CREATE VIEW slow AS SELECT 1 / (id - id) AS n FROM orders"
    (told,) = scored(case_of(suite, FIX), script(("sql", {"query": slow}), DONE))
    assert told["failure_mode"] is None, "what is made beside the tables is new, and nobody has to read it"


def test_a_world_is_made_once_and_what_is_wrong_is_told(
    tmp_path: Path, suite: Path, world: WorldOfSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world.hosted()
    assert made is not None
    assert made.folder is not None
    before = made.folder.stat().st_ctime_ns
    assert (world.hosted(), made.folder.stat().st_ctime_ns) == (made, before)
    assert made.folder.is_relative_to(suite / "home" / "worlds")
    place = tmp_path / "worlds" / "shop"
    (place / "files").mkdir(parents=True)
    for text, words in (
        ("{scripts: [a.sql]}", "there is no 'a.sql' beside it"),
        ("{scripts: [../a.sql]}", "there is no '../a.sql' beside it"),
        ("{read_only: true}", "expected 'file', or 'scripts'"),
        ("{file: a.sqlite, scripts: [b.sql]}", "expected 'file', or 'scripts'"),
    ):
        (place / "world.yaml").write_text(f"databases:\n  a: {text}\n")
        with pytest.raises(InputError, match=words):
            read_worlds(tmp_path)
    (place / "world.yaml").write_text("databases:\n  a: {scripts: [a.sql]}\n")
    (place / "a.sql").write_text("CREATE TABLE t (n int); SELECT nope FROM t")
    with pytest.raises(EvalError, match="script 1 of the database 'a' fails: column \"nope\" does not exist"):
        read_worlds(tmp_path)["shop"].hosted()
    changed = read_worlds(tmp_path)["shop"].hash
    (place / "a.sql").write_text("CREATE TABLE t (n int)")
    assert read_worlds(tmp_path)["shop"].hash != changed
    monkeypatch.setattr("eval_pipeline_plugins.tracks.agent.cases.worlds.installed_postgres", lambda: None)
    with pytest.raises(NoSandboxError, match="the world 'shop' has a database of PostgreSQL: install PostgreSQL 14"):
        read_worlds(tmp_path)["shop"].hosted()


TRY = """
import ctypes, errno, json, socket
from eval_pipeline.sandbox.inside import seccomp
seccomp.install(acts=True, hosts=True)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def tried(number, *arguments):
    found = libc.syscall(number, *map(ctypes.c_ulong, arguments))
    return "" if found >= 0 else errno.errorcode[ctypes.get_errno()]
from eval_pipeline.sandbox.inside.syscalls import MACHINES
import platform
known = MACHINES[platform.machine()].refused
print(json.dumps({
    "unix": tried(known["socket"], 1, 1, 0), "internet": tried(known["socket"], 2, 1, 0),
    "netlink": tried(known["socket"], 16, 3, 0), "packets": tried(known["socket"], 17, 3, 0),
    "a page": tried(known["shmget"], 0, 4096, 0o1600), "two": tried(known["shmget"], 0, 8192, 0o1600),
    "much": tried(known["shmget"], 0, (1 << 32) + 1, 0o1600), "mount": tried(known["mount"], 0, 0, 0, 0, 0),
    "trace": tried(known["ptrace"], 0, 0, 0, 0), "semaphores": tried(known["semget"], 0, 1, 0o1600),
}))
"""


def test_the_filter_of_a_server_lets_through_no_more_than_it_needs() -> None:
    ran = subprocess.run(
        ["unshare", "--user", "--ipc", sys.executable, "-c", TRY], capture_output=True, text=True, env=dict(os.environ)
    )
    assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    assert {name for name, found in told.items() if not found} == {"unix", "a page"}
    assert {found for found in told.values() if found} == {"EPERM"}

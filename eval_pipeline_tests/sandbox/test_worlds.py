"""Agents act in worlds by tools: what these give, what is kept of it, and that nothing gets out."""

import asyncio
import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import ErrorClass, ToolResult
from eval_pipeline.sandbox.inside import child, separation, sessions
from eval_pipeline.sandbox.inside.keeper import changes
from eval_pipeline.sandbox.limits import MIB
from eval_pipeline.sandbox.world.changes import ChangedFile, changed
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.sandbox.world.worlds import WorldLimits, Worlds

SECRET = "planted: nobody in a world may read this"
DATABASES = {"shop": ("shop.sqlite", False), "lake": ("data/lake.duckdb", True), "log": ("log?.sqlite", True)}
LIMITS = WorldLimits(told_bytes=2000, world_bytes=16 * MIB, world_files=500, processes=24, memory_bytes=256 * MIB)
Call = tuple[str, Mapping[str, Any]]


class Acting:
    """Worlds of one folder, and the event loop that they belong to."""

    def __init__(self, runner: asyncio.Runner, folder: Path) -> None:
        self.folder, self._runner = folder, runner
        self.worlds = Worlds(LIMITS)
        runner.run(self.worlds.__aenter__())

    def act(
        self, *calls: Call, seconds: float = 20.0, state: Mapping[str, ChangedFile] | None = None
    ) -> tuple[list[ToolResult], dict[str, ChangedFile]]:
        """Makes the calls in a new world; returns their results and the end state."""

        async def together() -> tuple[list[ToolResult], dict[str, ChangedFile]]:
            async with self.worlds.open(self.folder, DATABASES, state) as world:
                return [await world.call(*call, seconds) for call in calls], await world.end_state()

        return self._runner.run(together())

    def close(self) -> None:
        self._runner.run(self.worlds.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    folder = tmp_path_factory.mktemp("world")
    (folder.parent / "secret.txt").write_text(SECRET)
    (folder / "data").mkdir()
    (folder / "notes.txt").write_text("first\nsecond\n")
    (folder / "data" / "a.csv").write_text("x\n1\n2\n")
    (folder / "out").symlink_to(folder.parent / "secret.txt")
    with closing(sqlite3.connect(folder / "shop.sqlite")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER, city TEXT)")
        shop.executemany("INSERT INTO orders VALUES (?, ?)", [(n, "Bern" if n % 2 else None) for n in range(400)])
        shop.commit()
    with closing(sqlite3.connect(folder / "log?.sqlite")) as log:
        log.executescript("PRAGMA journal_mode=WAL; CREATE TABLE l (x); INSERT INTO l VALUES (7)")
    with closing(duckdb.connect(str(folder / "data" / "lake.duckdb"))) as lake:
        lake.execute("CREATE TABLE t AS SELECT range AS n FROM range(5)")
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setenv("PLANTED", SECRET)
        found = Acting(runner, folder)
        yield found
        found.close()


def sql(query: str, database: str = "shop") -> Call:
    return "sql", {"database": database, "query": query}


def shell(command: str) -> Call:
    return "shell", {"command": command}


def python(code: str) -> Call:
    return "python", {"code": code}


def test_tools_tell_what_there_is_and_what_is_wrong(acting: Acting) -> None:
    told, end = acting.act(
        sql("SELECT id, city FROM orders WHERE id < 2"),
        sql("SELECT * FROM t ORDER BY n LIMIT 1; SELECT count(*) AS c FROM t", "lake"),
        sql("SELECT id FROM orders"),
        sql("SELECT town FROM orders"),
        sql("INSERT INTO t VALUES (9)", "lake"),
        sql("SELECT 1", "barn"),
        sql("SELECT x FROM l", "log"),
        ("list_files", {}),
        ("read_file", {"path": "notes.txt", "offset": 6}),
        ("read_file", {"path": "nothing.txt"}),
        python("import pandas as pd\ntotal = pd.read_csv('data/a.csv').x.sum()"),
        python("print('so far')\nint(total) + 1"),
        python("1 / 0"),
        shell("wc -l < notes.txt; exit 3"),
        shell("python3 -c 'import pandas' && echo both"),
        ("launch", {}),
        ("read_file", {}),
        ("read_file", {"path": 3}),
        ("list_files", {"folder": "."}),
    )
    assert [one.text for one in told[:2]] == ["id | city\n0 | NULL\n1 | Bern", "c\n5"]
    assert (told[2].rows, told[2].cut, told[2].size) == (400, False, 1490)
    assert told[3].error_class is ErrorClass.COLUMN and "town" in told[3].text
    assert told[4].error_class is not None and "read-only" in told[4].text
    assert "lake, log, shop" in told[5].text
    assert told.pop(6).text == "x\n7"
    listed = ["data/", "log?.sqlite (", "notes.txt (13 bytes)", "out -> ", "shop.sqlite ("]
    assert [line.startswith(start) for line, start in zip(told[6].text.splitlines(), listed, strict=False)] == [
        True
    ] * 5
    assert told[7].text == "second\n"
    assert told[8].error_class is not None and "nothing.txt" in told[8].text
    assert [told[9].text, told[10].text] == ["", "so far\n4\n"]
    assert [[(one["name"], one["values"]) for one in each.made] for each in told[8:11]] == [
        [],
        [("total", [["3"]])],
        [],
    ]
    assert told[11].error_class is ErrorClass.VALUE and "division by zero" in told[11].text
    assert told[12].text == "2\nthe command ended with status 3"
    assert told[13].text == "both\n"
    assert "there is no tool 'launch'" in told[14].text
    assert [one.error_class for one in told[15:]] == [ErrorClass.VALUE] * 3
    assert ["'path'" in told[15].text, "text" in told[16].text, "'folder'" in told[17].text] == [True] * 3
    assert end == {}, "looking changes nothing"


def test_a_long_result_is_cut_and_says_so(acting: Acting) -> None:
    told, _ = acting.act(
        sql("SELECT id, city FROM orders ORDER BY id"),
        ("read_file", {"path": "shop.sqlite"}),
        python("print('y' * 100_000)"),
        shell("yes | head -c 50000"),
        sql(f"SELECT 1 AS {'x' * 50_000}"),
    )
    assert [one.cut for one in told[:4]] == [True] * 4
    assert told[2].size == 100_001
    assert "400 rows; the first" in told[0].text and told[0].rows == 400
    assert all(len(one.text) < LIMITS.told_bytes + 300 and "…" in one.text for one in told)


def test_the_end_state_is_what_changed_and_another_world_can_begin_with_it(acting: Acting) -> None:
    before = {path: path.read_bytes() for path in acting.folder.rglob("*") if path.is_file() and not path.is_symlink()}
    told, end = acting.act(
        ("write_file", {"path": "new/deep/é.txt", "text": "here"}),
        sql("UPDATE orders SET city = 'Thun' WHERE id = 0"),
        shell("mv notes.txt renamed.txt; touch -d 2001-01-01 data/a.csv; chmod 000 data/a.csv"),
        shell("ln -s /etc/passwd link; mkdir empty; rm out"),
        shell("rm -r data; mkdir data; echo again > data/b.csv"),
    )
    assert [one.error_class for one in told] == [None] * 5
    kinds = {path: one.kind for path, one in end.items()}
    assert kinds == {
        "new/deep/é.txt": "file",
        "shop.sqlite": "file",
        "renamed.txt": "file",
        "data/b.csv": "file",
        "notes.txt": "removed",
        "out": "removed",
        "data/a.csv": "removed",
        "data/lake.duckdb": "removed",
        "link": "link",
        "empty": "folder",
    }
    assert end["renamed.txt"].body == b"first\nsecond\n" and end["link"].target == "/etc/passwd"
    assert {path: changed(one.as_json()) for path, one in end.items()} == end, "it survives as JSON"
    seen, later = acting.act(
        shell("cat renamed.txt data/b.csv new/deep/é.txt; ls data notes.txt; rm data/b.csv; cp renamed.txt notes.txt"),
        sql("SELECT city FROM orders WHERE id = 0"),
        state=end,
    )
    assert seen[0].text.startswith("first\nsecond\nagain\nhere") and seen[1].text == "city\nThun"
    assert "data/b.csv" not in later and "notes.txt" not in later and later["data/a.csv"].kind == "removed"
    assert {path: path.read_bytes() for path in before} == before, "the world itself is never written to"


@pytest.mark.parametrize(
    "told",
    [
        {"sha256": "0" * 64, "size": 1, "body": "eJwDAAAAAAE="},
        {"sha256": "0" * 64, "size": 1 << 40, "body": "eJwDAAAAAAE="},
        {"size": 1},
        "x",
        {"link": 3},
    ],
)
def test_what_is_no_kept_change_is_refused(told: Any) -> None:
    with pytest.raises(ValueError, match=r"kept file|no change"):
        changed(told)


def test_a_change_without_room_is_left_out_by_name(acting: Acting, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")

    async def act() -> dict[str, ChangedFile]:
        async with Worlds(WorldLimits(kept_bytes=10)) as worlds, worlds.open(tmp_path) as world:
            await world.call("write_file", {"path": "long", "text": "x" * 11}, 9.0)
            await world.call("write_file", {"path": "short", "text": "y" * 10}, 9.0)
            return await world.end_state()

    assert asyncio.run(act()) == {"long": ChangedFile("file"), "short": ChangedFile("file", b"y" * 10)}


NAMES = st.sampled_from(["a", "b", "c"])
TREES = st.recursive(st.sampled_from([b"", b"1", b"2"]), lambda inner: st.dictionaries(NAMES, inner), max_leaves=6)


@given(before=st.dictionaries(NAMES, TREES), now=st.dictionaries(NAMES, TREES))
def test_changes_lead_from_one_tree_to_the_other(
    before: dict[str, Any], now: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where everything counts as touched; which folders an overlay touches is its own affair."""
    top = tmp_path_factory.mktemp("trees")
    for name, tree in (("before", before), ("now", now)):
        plant(top / name, tree)
    found = dict(changes(str(top / "before"), str(top / "now"), str(top / "now")))
    for path, what in found.items():
        place = top / "before" / path
        subprocess.run(["rm", "-rf", str(place)], check=True)
        if isinstance(what, str):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(Path(what).read_bytes())
        elif what == {"folder": True}:
            place.mkdir(parents=True)
    assert files_of(top / "before") == files_of(top / "now")


def plant(folder: Path, tree: Mapping[str, Any]) -> None:
    folder.mkdir()
    for name, inner in tree.items():
        if isinstance(inner, bytes):
            (folder / name).write_bytes(inner)
        else:
            plant(folder / name, inner)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ESCAPES: dict[str, tuple[Call, ...]] = {
    "absolute path": (("read_file", {"path": "{secret}"}),),
    "path upwards": (("read_file", {"path": "../../../../../../../..{secret}"}),),
    "link that was there": (("read_file", {"path": "out"}),),
    "link of its own": (shell("ln -s {secret} mine; cat mine"), ("read_file", {"path": "mine"})),
    "hard link": (shell("ln {secret} mine; cat mine"),),
    "root of another process": (shell("cat /proc/*/root{secret} /proc/1/cwd/../secret.txt"),),
    "environment of others": (shell("cat /proc/*/environ; env"),),
    "memory of others": (python("open('/proc/1/mem', 'rb').read(10)"),),
    "database elsewhere": (sql("ATTACH '{secret}' AS other; SELECT * FROM other.sqlite_master"),),
    "text by DuckDB": (sql("SELECT * FROM read_text('{secret}')", "lake"),),
    "copy by DuckDB": (sql("COPY (SELECT 1) TO '{folder}/planted.csv'", "lake"),),
    "extension": (sql("INSTALL httpfs; LOAD httpfs", "lake"),),
    "extension of SQLite": (sql("SELECT load_extension('{folder}/evil')"),),
    "mount": (shell("mount -t tmpfs none /world; mount --bind /low /world"),),
    "unmount": (shell("umount /world; umount -l /"),),
    "namespace": (shell("unshare -rm sh -c 'mount -t proc p /proc; cat {secret}'"),),
    "root": (shell("chroot /low /bin/sh -c 'cat {secret}'"), python("import os; os.chroot('/low')")),
    "device": (shell("mknod disk b 254 0; cat disk | head -c 10"),),
    "whiteout": (shell("mknod notes2 c 0 0; ls -la notes2"),),
    "attribute of the overlay": (
        python("import os; os.mkdir('o'); os.setxattr('o', 'user.overlay.opaque', b'y')"),
        python("os.setxattr('o', 'trusted.overlay.opaque', b'y')"),
    ),
    "lower and upper folder": (shell("ls /low /up; echo x > /low/planted; echo x > /up/u/planted"),),
    "program": (shell("echo x > /usr/bin/planted; echo x > /box/inside/tools.py; cp /bin/sh /bin/planted"),),
    "network": (
        python("import socket; socket.create_connection(('127.0.0.1', {port}), 2)"),
        shell("(exec 3<>/dev/tcp/127.0.0.1/{port}) || echo none"),
    ),
    "socket of the machine": (python("import socket; socket.socket(socket.AF_UNIX).connect('\\0planted{port}')"),),
    "kill": (shell("kill -9 -1"), shell("kill -9 1; kill -9 $PPID"), shell("echo alive")),
    "trace": (shell("gdb -p 1; strace -p 1"), python("import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0)")),
    "host of the session": (
        python(
            "import os, signal\nkept = 7\n"
            "for look in ('ns/mnt', 'ns/pid', 'root/up', 'cwd/up', 'mem', 'environ'):\n"
            "    try:\n        os.close(os.open(f'/proc/1/{look}', os.O_RDONLY))\n        assert False, look\n"
            "    except PermissionError:\n        pass\n"
            "assert os.listdir('/proc/1/fd') == []\n"
            "os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGTERM)"
        ),
        python("assert kept == 7, 'it was ended'"),
    ),
    "set user": (shell("su -c id; sudo id; setpriv --reuid 0 id"),),
    "kernel": (
        python("import ctypes\n[ctypes.CDLL(None, use_errno=True).syscall(n, 0, 0, 0) for n in (321, 298, 250)]"),
    ),
    "frames of its own": (python("import os; os.write(4, b'\\xff' * 100)"), python("'still here'")),
    "end of the process": (python("import os; os._exit(0)"), python("1 + 1")),
    "deep result": (python("import os, struct; t = b'[' * 200000; os.write(4, struct.pack('<I', len(t)) + t)"),),
    "gold of the samples": (
        shell("grep -rls 'gold' /packages/*/eval_pipeline /usr/lib/python3*/*/eval_pipeline | head"),
    ),
    "log that attempts share": (
        python("import os; os.write(2, b'mine'); assert os.pread(2, 9, 0) == b'', os.pread(2, 9, 0)"),
    ),
    "terminal": (shell("stty -a < /dev/tty; echo x > /dev/tty"),),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_gets_out_of_a_world(acting: Acting, name: str) -> None:
    told_names = {"secret": acting.folder.parent / "secret.txt", "folder": acting.folder.parent}
    before = sorted(os.listdir(acting.folder.parent)), sorted(os.listdir(acting.folder))
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
    ):
        port = listening.getsockname()[1]
        abstract.bind(f"\0planted{port}")
        abstract.listen()
        calls = []
        for tool, arguments in ESCAPES[name]:
            filled = {
                key: text.replace("{secret}", str(told_names["secret"]))
                .replace("{folder}", str(told_names["folder"]))
                .replace("{port}", str(port))
                for key, text in arguments.items()
            }
            calls.append((tool, filled))
        told, end = acting.act(*calls, (*python("6 * 7"),))
        for one in (listening, abstract):
            one.settimeout(0)
            with pytest.raises(BlockingIOError):
                one.accept()
    assert not [one.text for one in told if SECRET in one.text or "gold" in one.text]
    assert not [one.text for one in told if "AssertionError" in one.text]
    assert not [path for path, one in end.items() if one.body and SECRET.encode() in one.body]
    assert not [path for path in end if "planted" in path]
    assert told[-1].text.endswith("42\n"), "the world goes on"
    assert (sorted(os.listdir(acting.folder.parent)), sorted(os.listdir(acting.folder))) == before


@pytest.mark.parametrize(
    ("call", "limit"),
    [
        (shell("head -c 30000000 /dev/zero > big; echo; (cat big big > b; ls) 2>&1 | tail -1"), "size limit exceeded"),
        (shell("for i in $(seq 1000); do : > f$i || break; done; ls | wc -l"), ""),
        (shell("bomb() { bomb | bomb & }; bomb; sleep 9"), "threads"),
        (python("import os, time\nfor _ in range(40):\n    os.fork() or time.sleep(9)\ntime.sleep(9)"), "threads"),
        (
            shell(
                "for i in 1 2 3; do python3 -c 'x = bytearray(150_000_000); import time; time.sleep(9)' & done; wait"
            ),
            "memory",
        ),
        (
            shell(
                "for i in 1 2 3 4 5 6; do python3 -c 'x = bytearray(60_000_000); import time; time.sleep(9)' &"
                " done; wait"
            ),
            "memory",
        ),
        (
            python(
                "import mmap, os, time\nfor _ in range(3):\n    if not os.fork():\n"
                "        m = mmap.mmap(-1, 1 << 27)\n        [m.write(bytes(1 << 20)) for _ in range(128)]\n"
                "        time.sleep(9)\ntime.sleep(9)"
            ),
            "memory",
        ),
        (shell("yes"), "printed more than"),
        (python("while True: pass"), "no result within"),
    ],
    ids=["disk", "inodes", "processes", "forks", "memory", "many that have little", "shared memory", "output", "time"],
)
def test_limits_hold_and_the_world_goes_on(acting: Acting, call: Call, limit: str) -> None:
    told, end = acting.act(call, ("list_files", {"path": "data"}), seconds=5.0)
    assert limit in told[0].text
    assert "data/a.csv (6 bytes)" in told[1].text
    assert len(end) <= LIMITS.world_files
    assert sum(len(one.body or b"") for one in end.values()) <= LIMITS.world_bytes


def test_nothing_of_an_attempt_is_left_for_another_or_for_later(acting: Acting) -> None:
    told, end = acting.act(
        shell("echo mine > /tmp/left; echo mine > /dev/shm/left; (sleep 0.3; echo late > late.txt) & echo started"),
        shell("sleep 0.6; ls /tmp /dev/shm"),
    )
    assert told[0].text == "started\n" and "left" not in told[1].text and end == {}
    assert "left" not in acting.act(shell("ls /tmp /dev/shm /world"))[0][0].text


def test_nothing_runs_between_calls(acting: Acting) -> None:
    told, _ = acting.act(
        python(
            "import os, subprocess, threading\n"
            "subprocess.Popen(['sh', '-c', 'while :; do echo >> tick; sleep 0.01; done'])\n"
            "kept = 5\nwhile not os.path.exists('tick'): pass"
        ),
        shell("wc -c < tick; sleep 0.2; wc -c < tick; rm tick"),
        python(
            "def count():\n    while True:\n        open('tock', 'a').write('x')\n"
            "threading.Thread(target=count, daemon=True).start()\nwhile not os.path.exists('tock'): pass"
        ),
        shell("wc -c < tock; sleep 0.2; wc -c < tock"),
        python("kept + 1"),
    )
    for one in (told[1], told[3]):
        assert one.error_class is None, one.text
        before, after = one.text.split()
        assert before == after, "what a session has started is stopped"
    assert told[4].text == "6\n", "its variables live on"


def test_a_session_that_goes_on_starting_processes_is_ended(acting: Acting) -> None:
    told, _ = acting.act(
        python("import subprocess\nsubprocess.Popen(['sh', '-c', 'b() { b | b & }; b'])\nx = 1"),
        shell("ls /proc | grep -c '^[0-9]'"),
        python("2"),
    )
    assert int(told[1].text) < 6 and told[2].text.endswith("2\n")


def test_who_ends_while_it_is_looked_at_hides_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def ending(pid: int | str) -> list[bytes]:
        if not started:
            started.append(subprocess.Popen(["sleep", "60"]))
        return [b"Z", b"0"]

    monkeypatch.setattr(child, "_stat", ending)
    found = child.running()
    started[0].kill()
    started[0].wait()
    assert started[0].pid in found


def test_commands_and_texts_may_be_long_or_strange(acting: Acting) -> None:
    long = "é" * 400_000
    told, end = acting.act(
        shell("echo a\0b"), shell(f"echo {'a' * 200_000}"), ("write_file", {"path": "long", "text": long})
    )
    assert ["cannot be run" in one.text for one in told[:2]] == [True, True]
    assert [one.error_class is None for one in told] == [False, False, True]
    assert end["long"].body == long.encode()


FORGED = {
    "rows": {"text": "x", "rows": 10**30, "size": -5},
    "kinds": {"text": "x", "rows": True, "size": "9", "cut": 1},
    "text": {"text": "x" * 500_000, "rows": 3},
    "error": {"text": "x" * 90_000, "error": {"types": ["y" * 90_000, 3], "message": "z" * 90_000}},
    "no text": {"text": 3},
    "made": {"text": "x", "made": [{"name": "n" * 300_000, "kind": "int", "rows": 10**30, "columns": []}, {}, 7]},
    "much": {"text": "x", "made": [{"name": "n" * 90_000, "kind": "x", "rows": None, "columns": []}] * 9},
    "list": ["text"],
}


@pytest.mark.parametrize("name", FORGED)
def test_what_a_process_forges_is_bounded(acting: Acting, name: str) -> None:
    forged = json.dumps(FORGED[name])
    code = f"import os, struct\nt = {forged.encode()!r}\nos.write(4, struct.pack('<I', len(t)) + t)\nos._exit(0)"
    told, _ = acting.act(python(code))
    assert len(told[0].text) < 2 * LIMITS.told_bytes + 600
    assert told[0].rows in {None, 3} and type(told[0].rows) is not bool
    assert 0 <= told[0].size < 1 << 53 and type(told[0].size) is int
    assert type(told[0].cut) is bool
    assert len(json.dumps(told[0].made)) < 2000


@pytest.mark.parametrize(
    "state",
    [
        {"../up/u/planted": ChangedFile("file", b"x")},
        {"/up/u/planted": ChangedFile("file", b"x")},
        {"": ChangedFile("removed")},
        {".": ChangedFile("removed")},
        {"a/../../low": ChangedFile("folder")},
        {"a": ChangedFile("link", target="/up/u"), "a/planted": ChangedFile("file", b"x")},
        {"a": ChangedFile("link", target="data"), "a/new/planted": ChangedFile("folder")},
    ],
)
def test_no_end_state_reaches_beyond_the_world(acting: Acting, state: dict[str, ChangedFile]) -> None:
    with pytest.raises(WorldError, match=r"no path in the world|is a link"):
        acting.act(state=state)


def test_what_was_not_kept_is_missing_where_one_begins_with_it(acting: Acting) -> None:
    told, _ = acting.act(shell("ls"), state={"notes.txt": ChangedFile("file"), "data": ChangedFile("special")})
    assert "notes.txt" not in told[0].text and "data" not in told[0].text


def test_an_end_state_of_many_long_names_is_cut_and_says_so(acting: Acting) -> None:
    code = "import os\nfor n in range(400):\n    os.makedirs((chr(1) * 240 + '/') * 12 + str(n).zfill(100))"
    _, end = acting.act(python(code), seconds=20.0)
    assert end["…"] == ChangedFile("file")
    assert 0 < len(end) < 400


def test_attempts_at_the_same_time_do_not_see_each_other(acting: Acting) -> None:
    async def one(number: int) -> tuple[str, dict[str, ChangedFile]]:
        async with acting.worlds.open(acting.folder, DATABASES) as world:
            await world.call("write_file", {"path": f"mine{number}", "text": str(number)}, 20.0)
            await world.call("python", {"code": f"import time; time.sleep(0.1); x = {number}"}, 20.0)
            seen = await world.call("shell", {"command": "ls -d mine*; ls /proc | grep -c '^[0-9]'"}, 20.0)
            return seen.text, await world.end_state()

    async def together() -> list[tuple[str, dict[str, ChangedFile]]]:
        return await asyncio.gather(*map(one, range(6)))

    for number, (seen, end) in enumerate(acting._runner.run(together())):
        assert seen.splitlines()[0] == f"mine{number}" and list(end) == [f"mine{number}"]
        assert int(seen.splitlines()[1]) < 6, "its own processes only"


def test_nothing_lives_on_when_the_process_that_opened_worlds_is_killed(tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    mark = f"4{os.getpid() % 1000:03d}.25"
    code = f"""
import asyncio
from pathlib import Path
from eval_pipeline.sandbox.world.worlds import Worlds

async def main():
    async with Worlds() as worlds, worlds.open(Path({str(tmp_path / "world")!r})) as world:
        print("open", flush=True)
        await world.call("shell", {{"command": "sleep {mark} & sleep {mark}"}}, 60.0)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"open\n"
        await_sleeping(mark, there=True)
        process.kill()
    await_sleeping(mark, there=False)


def test_worlds_end_with_the_process_that_sessions_are_forked_from_and_can_be_opened_again(acting: Acting) -> None:
    async def interrupted() -> None:
        async with acting.worlds.open(acting.folder, DATABASES) as world:
            await world.call("python", {"code": "kept = 1"}, 20.0)
            (jail,) = [one.result() for one in acting.worlds._zygotes.values()]
            (zygote,) = psutil.Process(jail._process.pid).children()
            max(zygote.children(), key=lambda one: one.memory_info().rss).kill()
            try:
                while True:
                    await world.call("python", {"code": "kept"}, 20.0)
            finally:
                await jail._process.wait()

    with pytest.raises(WorldError, match="jail is gone"):
        acting._runner.run(interrupted())
    assert acting.act(python("6 * 7"))[0][0].text == "42\n"


def await_sleeping(mark: str, *, there: bool) -> None:
    """Waits until processes with that argument are there, or gone."""
    while is_sleeping(mark) != there:
        os.sched_yield()


def is_sleeping(mark: str) -> bool:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"sleep\0{mark}".encode() in Path("/proc", name, "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def test_a_program_that_python_starts_has_the_packages_of_the_session(acting: Acting) -> None:
    started = "subprocess.run([sys.executable, '-c', 'import duckdb; print(7)'], capture_output=True, text=True)"
    code = f"import subprocess, sys; print({started}.stdout)"
    (told, room), _ = acting.act(("python", {"code": code}), shell("ulimit -v"))
    assert told.text.strip() == "7", told
    assert int(room.text) * 1024 >= LIMITS.memory_bytes + 512 * MIB, "what it maps besides what it uses"


def test_who_cannot_be_forked_does_not_keep_others_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has ended: nobody can be forked into where it was, and what comes next is forked where it belongs."""
    entered, begun = list[int](), list[int]()
    kernel = Mock(unshare=Mock(return_value=0), setns=lambda place, _: entered.append(place) or 0)
    monkeypatch.setattr(separation, "_libc", kernel)
    joined = separation.Joined({"/work": ""})
    joined.pids = 77
    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", Mock(side_effect=OSError("no memory")))
        with pytest.raises(OSError, match="no memory"):
            joined.fork()
    assert entered == [77, joined._own]

    def start(child: Any, ends: Any, cpu_s: float, work: Any) -> int:
        begun.append(len(begun))
        if len(begun) == 1:
            raise OSError("no memory")
        return 1

    monkeypatch.setattr(sessions.signal, "signal", Mock())
    monkeypatch.setattr(sessions.Child, "start", start)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        for _ in range(2):
            socket.send_fds(near, [b"host"], [near.fileno()] * 4)
        near.shutdown(socket.SHUT_WR)
        with pytest.raises(ValueError, match="unpack"):  # the zygote has ended
            sessions.visit_all({"mounted": {"/work": ""}, "output_bytes": 9, "result_bytes": 9}, far, Mock())
    assert begun == [0, 1]

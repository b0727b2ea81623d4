import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.journal.port import Journal, journal_key
from eval_pipeline.asking.journal.rows import Row
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.core.errors import StoreError
from eval_pipeline_plugins.postgres.journal import PostgresJournal
from eval_pipeline_tests.asking.journals import Journals, is_url


async def append_all(journal: Journal, bodies: dict[str, bytes]) -> list[bool]:
    return list(await asyncio.gather(*(journal.append(key, body) for key, body in bodies.items())))


def test_what_is_appended_is_there_and_stays(journals: Journals) -> None:
    bodies = {f"key{number}": f"body {number}".encode() for number in range(200)}
    with journals.open() as journal:
        assert journal.get("key0") is None
        assert all(asyncio.run(append_all(journal, bodies)))
        assert {key: journal.get(key) for key in bodies} == bodies
        assert journal.contains_many(["key3", "key199", "absent"]) == {"key3", "key199"}
        assert journal.contains_many([]) == set()
    with journals.open() as journal:
        assert {key: journal.get(key) for key in bodies} == bodies


def test_the_first_body_of_a_key_stays(journals: Journals) -> None:
    async def twice(journal: Journal) -> list[bool]:
        together = await asyncio.gather(journal.append("a", b"first"), journal.append("a", b"second"))
        return [*together, await journal.append("a", b"third")]

    with journals.open() as journal:
        assert asyncio.run(twice(journal)) == [True, False, False]
        assert journal.get("a") == b"first"


def test_keys_recorded_before_do_not_keep_out_the_others_of_their_group(journals: Journals) -> None:
    old = {f"k{number}": b"old" for number in range(0, 340, 40)}
    new = {f"k{number}": b"new" for number in range(340)}
    with journals.open() as journal:
        asyncio.run(append_all(journal, old))
        told = asyncio.run(append_all(journal, new))
        assert told == [key not in old for key in new]
        assert {key: journal.get(key) for key in new} == new | old


@pytest.mark.parametrize("size", [0, 1, 7, 600])
def test_many_are_appended_and_looked_up_at_once(journals: Journals, size: int) -> None:
    rows = [(f"k{number}", f"body {number}".encode()) for number in range(size)]
    with journals.open() as journal:
        assert asyncio.run(journal.append_many(rows)) == [True] * size
        assert asyncio.run(journal.append_many([*rows[:1], ("new", b"x")])) == [False] * min(1, size) + [True]
        assert journal.get_many(["absent", *(key for key, _ in rows)]) == dict(rows)


def test_groups_of_rows_and_single_ones_each_hear_of_their_own(journals: Journals) -> None:
    async def work(journal: Journal) -> list[list[bool]]:
        groups = [[(f"k{number}", b"x") for number in range(first, first + 300)] for first in (0, 100, 400)]
        single = journal.append("k99", b"y")
        told = await asyncio.gather(*(journal.append_many(group) for group in groups), single)
        return [*told[:3], [told[3]]]

    with journals.open() as journal:
        told = asyncio.run(work(journal))
    assert told == [[True] * 300, [False] * 200 + [True] * 100, [True] * 300, [False]]


def sizes_of_commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are written together from now on."""
    sizes: list[int] = []

    def counted(write: Any, journal: Any, rows: list[Row]) -> list[bool]:
        sizes.append(len(rows))
        written: list[bool] = write(journal, rows)
        return written

    for kind in (SqliteJournal, PostgresJournal):
        monkeypatch.setattr(kind, "_write", partialmethod(partial(counted, kind._write)))
    return sizes


def test_a_commit_is_bounded_but_splits_no_group(journals: Journals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline.asking.journal.grouped.LARGEST_GROUP", 10)
    sizes = sizes_of_commits(monkeypatch)

    async def work(journal: Journal) -> None:
        groups = [[(f"{place}-{row}", b"x") for row in range(size)] for place, size in enumerate((4, 6, 1, 25, 5))]
        await asyncio.gather(*(journal.append_many(group) for group in groups))

    with journals.open() as journal:
        asyncio.run(work(journal))
    assert sizes == [10, 1, 25, 5]


def test_appends_of_one_turn_of_the_loop_share_a_commit(journals: Journals, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = sizes_of_commits(monkeypatch)

    async def work(journal: Journal) -> None:
        async def append_slowly(number: int) -> None:
            time.sleep(0.001)  # on purpose: time enough for the writer to wake too early
            await journal.append(f"k{number}", b"x")

        await asyncio.gather(*(append_slowly(number) for number in range(64)))

    with journals.open() as journal:
        asyncio.run(work(journal))
    assert sizes == [64]


def test_event_loops_of_several_threads_share_it(journals: Journals) -> None:
    with journals.open() as journal:
        work = [
            threading.Thread(
                target=lambda n=n: asyncio.run(append_all(journal, {f"{n}-{k}": b"x" for k in range(100)}))
            )
            for n in range(4)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join(20)
        assert len(journal.contains_many([f"{n}-{k}" for n in range(4) for k in range(100)])) == 400


def test_close_writes_what_waits_and_a_closed_one_refuses(journals: Journals) -> None:
    async def close_meanwhile(journal: Journal) -> None:
        waiting = asyncio.create_task(journal.append("late", b"kept"))
        await asyncio.sleep(0)
        await asyncio.to_thread(journal.close)
        assert await waiting
        with pytest.raises(StoreError, match="is closed"):
            await journal.append("later", b"refused")

    journal = journals.open()
    asyncio.run(asyncio.wait_for(close_meanwhile(journal), 10))
    journal.close()
    with journals.open() as journal:
        assert journal.get("late") == b"kept"
        assert journal.get("later") is None


def test_a_cancelled_append_is_kept_all_the_same(journals: Journals) -> None:
    async def cancel(journal: Journal) -> None:
        task = asyncio.create_task(journal.append("paid", b"for"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with journals.open() as journal:
        asyncio.run(cancel(journal))
    with journals.open() as journal:
        assert journal.get("paid") == b"for"


def test_the_disk_being_full_reaches_every_waiter_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = SqliteJournal._connect

    def small_disk(self: SqliteJournal) -> sqlite3.Connection:
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 12")
        return connection

    async def fill(journal: SqliteJournal) -> list[bool | BaseException]:
        await journal.append("small", b"fits")
        many = (journal.append(f"k{number}", bytes(4000)) for number in range(64))
        return await asyncio.gather(*many, return_exceptions=True)

    path = tmp_path / "j.sqlite"
    monkeypatch.setattr(SqliteJournal, "_connect", small_disk)
    with SqliteJournal(path) as journal:
        told = asyncio.run(fill(journal))
        assert all(isinstance(one, StoreError) for one in told)
        assert len({id(one) for one in told}) == 64
        message = str(told[0])
        assert str(path) in message
        assert "the disk is full" in message
        assert "doctor" in message
        assert journal.get("small") == b"fits"
        assert journal.contains_many([f"k{number}" for number in range(64)]) == set()  # all or nothing
        assert asyncio.run(append_all(journal, {"after": b"ok"})) == [True]  # and it goes on when there is room


def test_a_foreign_lock_is_told_and_outlived(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with SqliteJournal(path, busy_timeout_s=0.1) as journal:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"j\.sqlite was locked by another process.*doctor"):
            asyncio.run(journal.append("a", b"x"))
        other.execute("ROLLBACK")
        assert asyncio.run(journal.append("a", b"x"))


def test_a_damaged_page_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    keys = [f"k{number:04d}" for number in range(500)]
    with SqliteJournal(path) as journal:
        asyncio.run(append_all(journal, dict.fromkeys(keys, bytes(500))))
    size = path.stat().st_size
    with path.open("r+b") as file:  # all but the first pages
        file.seek(4096 * 2)
        file.write(os.urandom(size - 4096 * 2))
    with SqliteJournal(path) as journal:

        def read_all() -> list[bytes | None]:
            return [journal.get(key) for key in keys]

        with pytest.raises(StoreError, match=r"j\.sqlite is damaged.*doctor --repair"):
            read_all()


@pytest.mark.parametrize(
    ("contents", "told"), [(b"this is no database" * 400, "is not a journal"), (None, "cannot be opened")]
)
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, contents: bytes | None, told: str) -> None:
    path = tmp_path / "j.sqlite"
    if contents is None:
        path.mkdir()
    else:
        path.write_bytes(contents)
    with pytest.raises(StoreError, match=rf"j\.sqlite {told}"):
        SqliteJournal(path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot make the journal"):
        SqliteJournal(tmp_path / "file" / "j.sqlite")


def test_a_journal_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    SqliteJournal(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer eval-pipeline"):
        SqliteJournal(path)


def test_commits_are_synced_to_the_disk(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        connection = journal._connect()
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()


CHILD = """
import asyncio, sys
from eval_pipeline_tests.asking.journals import journal_at
async def main(journal, name):
    async def work(worker):
        for number in range(1_000_000):
            key = f"{name}-{worker}-{number}"
            await journal.append(key, key.encode() * 20)
            sys.stdout.write(key + "\\n")
            sys.stdout.flush()
    await asyncio.gather(*(work(worker) for worker in range(32)))
asyncio.run(main(journal_at(sys.argv[1]), sys.argv[2]))
"""


def test_a_killed_process_loses_nothing_acknowledged(journals: Journals, tmp_path: Path) -> None:
    acknowledged: set[str] = set()
    for kill in range(3):
        log = tmp_path / f"log{kill}"
        with log.open("wb") as out:
            child = subprocess.Popen([sys.executable, "-c", CHILD, journals.where, str(kill)], stdout=out)
            deadline = time.monotonic() + 20
            while log.stat().st_size < 2000 + 3000 * kill and time.monotonic() < deadline:
                time.sleep(0.01)
            child.send_signal(signal.SIGKILL)
            child.wait()
        written = log.read_text()
        acknowledged.update(written[: written.rfind("\n")].split("\n"))
    assert len(acknowledged) > 500
    with journals.open() as journal:
        assert journal.contains_many(acknowledged) == acknowledged
        assert all(journal.get(key) == key.encode() * 20 for key in list(acknowledged)[:200])
    if not is_url(journals.where):
        assert sqlite3.connect(journals.where).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_processes_may_open_it_in_the_same_moment(journals: Journals, request: pytest.FixtureRequest) -> None:
    if is_url(journals.where):  # without tables, which each of them would make
        journals = Journals(request.getfixturevalue("state_server").new_database())
    code = (
        "import asyncio, sys; from eval_pipeline_tests.asking.journals import journal_at\n"
        "journal = journal_at(sys.argv[1]); asyncio.run(journal.append(sys.argv[2], b'x')); journal.close()"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, journals.where, f"k{number}"]) for number in range(4)]
    assert [child.wait(30) for child in children] == [0] * 4
    with journals.open() as journal:
        assert len(journal.contains_many([f"k{number}" for number in range(4)])) == 4


def test_everything_that_decides_is_in_the_key() -> None:
    key = journal_key("local", "m", {"a": 1, "b": [2]}, 0, "")
    assert key == journal_key("local", "m", {"a": 1, "b": [2]}, 0, "")
    others = [
        journal_key("openai", "m", {"a": 1, "b": [2]}, 0, ""),
        journal_key("local", "n", {"a": 1, "b": [2]}, 0, ""),
        journal_key("local", "m", {"a": 1, "b": [3]}, 0, ""),
        journal_key("local", "m", {"a": 1, "b": [2]}, 1, ""),
        journal_key("local", "m", {"a": 1, "b": [2]}, 0, "2026-11-22"),
    ]
    assert len({key, *others}) == 6

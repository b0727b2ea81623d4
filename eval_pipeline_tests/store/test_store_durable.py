import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import exchange, locked, make_folders, sweep, temporary_path
from eval_pipeline.store.published.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS
from eval_pipeline_tests.store.samples import TRACKS, ask, beside, contents, key_of, put, put_partition, put_suite


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files and folders fsynced, in order, with the renames between them."""
    events: list[str] = []
    rename = Path.replace

    def note_fsync(handle: int) -> None:
        events.append(f"fsync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")

    def note_rename(path: Path, target: Path) -> Path:
        events.append(f"rename {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_rename)
    return events


def test_a_file_of_the_record_is_synced_before_and_after_the_rename(record: Record, synced: list[str]) -> None:
    put(record, METRICS, key_of())
    *_, file, rename, folder = synced
    assert file.startswith("fsync .part.parquet.")
    assert (rename, folder) == ("rename part.parquet", "fsync eval_date=2026-01-05")
    assert synced[:5] == [
        f"fsync {name}" for name in (record.root.parent.name, "record", "metrics", "suite=finqa", "model_version=alpha")
    ], "new folders are entries of their parents"


def test_the_store_is_synced_before_and_after_the_rename(record: Record, out: Path, synced: list[str]) -> None:
    publish(record, out, TRACKS)
    assert synced == ["fsync eval.duckdb.new", "rename eval.duckdb", f"fsync {out.parent.name}"]


def test_making_folders_twice_is_fine(tmp_path: Path) -> None:
    for _ in range(2):
        make_folders(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


NOBODY = 2**22 + 1
"""No process of Linux has a number as large."""


@pytest.mark.parametrize(
    ("pid", "elsewhere", "days", "swept"),
    [(NOBODY, False, 0, True), (os.getpid(), False, 0, False), (NOBODY, True, 0, False), (NOBODY, True, 2, True)],
)
def test_what_killed_writers_left_is_swept(tmp_path: Path, pid: int, elsewhere: bool, days: int, swept: bool) -> None:
    *begin, place, _, serial, end = temporary_path(tmp_path / "part.parquet").name.split(".")
    left = tmp_path / ".".join([*begin, place[::-1] if elsewhere else place, str(pid), serial, end])
    left.touch()
    os.utime(left, (time.time() - days * 86_400,) * 2)
    sweep(tmp_path)
    assert left.exists() is not swept


def test_a_lock_that_is_held_is_named(record: Record, out: Path) -> None:
    put(record, METRICS, key_of())
    lock = out.with_name("eval.duckdb.lock")
    with locked(lock, 1), pytest.raises(StoreError, match=r"another process has locked .*eval\.duckdb\.lock"):
        publish(record, out, TRACKS, lock_seconds=0.05)
    assert publish(record, out, TRACKS, lock_seconds=0.05).full


def test_a_lock_whose_file_is_removed_meanwhile_has_one_holder(tmp_path: Path) -> None:
    """As `prune` removes the lock files of what it prunes, while others wait for them."""
    lock = tmp_path / "locks" / "asking.lock"
    inside, most, wrong = 0, 0, list[BaseException]()
    counting = threading.Lock()

    def hold(number: int) -> None:
        nonlocal inside, most
        try:
            for _ in range(40):
                with locked(lock, 30):
                    with counting:
                        inside += 1
                        most = max(most, inside)
                    time.sleep(0.001)
                    with counting:
                        inside -= 1
                    if number == 0:
                        shutil.rmtree(lock.parent, ignore_errors=True)  # the last thing that it does
        except BaseException as error:
            wrong.append(error)

    holders = [threading.Thread(target=hold, args=(number,)) for number in range(4)]
    for holder in holders:
        holder.start()
    for holder in holders:
        holder.join()
    assert wrong == []
    assert most == 1


def test_a_lock_file_that_cannot_be_made_is_named(record: Record, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*eval\.duckdb\.lock: Not a directory"):
        publish(record, tmp_path / "file" / "eval.duckdb", TRACKS)


def test_publishers_wait_for_each_other(record: Record, out: Path) -> None:
    put_suite(record)
    keys = [key_of(model) for model in ("a", "b", "c")]
    failures: list[BaseException] = []

    def work(index: int) -> None:
        try:
            for turn in range(2):
                put_partition(record, keys[index], value=turn / 4)
                publish(record, out, TRACKS, [keys[index]])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ask(out, "SELECT model_version, value, count(*) FROM metrics GROUP BY ALL ORDER BY 1") == [
        (model, 0.25, 3) for model in ("a", "b", "c")
    ]
    before = contents(out)
    publish(record, out, TRACKS)
    assert contents(out) == before


PUBLISHERS = """
import os, sys
from pathlib import Path
import duckdb, pyarrow.parquet  # before forking, so that a publisher is quick to start
from eval_pipeline.store.published.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.samples import TRACKS, key_of, put_partition
os.fsync = lambda handle: None
home = Path(sys.argv[1])
record = Record(home / "record")
for line in sys.stdin:
    child = os.fork()
    if child:
        os.write(1, b"pid %d\\n" % child)
        os.waitpid(child, 0)
        os.write(1, b"gone\\n")
        continue
    for turn in range(int(line), 1_000_000):
        put_partition(record, key_of(), turns=200, value=float(turn))
        publish(record, home / "eval.duckdb", TRACKS)
        os.write(1, b"%d\\n" % turn)
"""

WHOLE = """
SELECT (SELECT count(*) FROM metrics), (SELECT list(DISTINCT value) FROM metrics),
    (SELECT list(DISTINCT numerical_match) FROM finqa_turns),
    (SELECT count(*) FROM attempts WHERE prompt_hash NOT IN (SELECT prompt_hash FROM prompts))
"""


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.soak)])
def test_killed_publishers_leave_a_whole_store_and_readers_never_notice(record: Record, out: Path, kills: int) -> None:
    put_partition(record, key_of(), turns=200, value=0.0)
    publish(record, out, TRACKS)
    ended, seen, wrong = threading.Event(), [-1.0], list[BaseException]()

    def read() -> None:
        try:
            while not ended.wait(0.02):
                ((count, values, matches, orphans),) = ask(out, WHOLE)
                assert (count, len(values), orphans) == (200, 1, 0)
                assert values == matches, "tables of one publishing"
                seen.append(values[0])
        except BaseException as error:
            wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    nursery = subprocess.Popen(
        [sys.executable, "-c", PUBLISHERS, str(out.parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    draw, last = random.Random(5), 0
    try:
        for _ in range(kills):
            print(last + 1, file=nursery.stdin, flush=True)
            publisher = int(nursery.stdout.readline().removeprefix("pid "))
            last = int(nursery.stdout.readline())
            time.sleep(draw.random() * 0.2)
            os.kill(publisher, signal.SIGKILL)
            while (line := nursery.stdout.readline()) != "gone\n":
                last = int(line)
            ((_, (value,), _, _),) = ask(out, WHOLE)
            assert last <= value <= last + 1, "what was acknowledged is there, and at most the one after it"
            last = int(value)
    finally:
        nursery.kill()
        nursery.communicate()
        ended.set()
        reader.join()
    assert wrong == []
    assert max(seen) > 0
    publish(record, out, TRACKS)
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}


FULL_DISK = """
import resource, sys
from pathlib import Path
from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.samples import TRACKS
home, size = Path(sys.argv[1]), int(sys.argv[2])
for attempt, limit in ((publish, 4096), (publish, int(1.1 * size)), (publish_full, int(0.9 * size))):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        attempt(Record(home / "record"), home / "eval.duckdb", TRACKS)
    except StoreError as error:
        print(error)
"""


def test_a_full_disk_leaves_the_last_good_store(record: Record, out: Path) -> None:
    put_partition(record, key_of(), turns=50)
    publish(record, out, TRACKS)
    before = contents(out)
    put_partition(record, key_of("beta"), turns=3000, prompts=[os.urandom(300).hex() for _ in range(3000)])
    command = [sys.executable, "-c", FULL_DISK, str(out.parent), str(out.stat().st_size)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    told = [f"no room on the disk to write {out}; free some and run again"] * 3
    assert [line[: len(told[0])] for line in said.stdout.splitlines()] == told, said
    assert contents(out) == before
    assert publish(record, out, TRACKS).tables
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
    return tmp_path / "one", tmp_path / "other"


def test_a_folder_that_is_exchanged_is_never_missing(folders: tuple[Path, Path]) -> None:
    one, other = folders
    missing, ended = [], threading.Event()

    def look() -> None:
        while not ended.is_set():
            if not other.exists():
                missing.append(1)

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(1001):
        exchange(one, other)
    ended.set()
    reader.join()
    assert not missing
    assert [(folder / "name").read_text() for folder in folders] == ["other", "one"]


def test_folders_are_exchanged_by_systems_that_cannot_at_once(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    exchange(*folders)
    assert [(folder / "name").read_text() for folder in folders] == ["other", "one"]
    assert len(list(tmp_path.iterdir())) == 2

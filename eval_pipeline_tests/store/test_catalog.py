"""The store as a catalog has the rows of the store of one file, and publishing it writes what has changed."""

import datetime as dt
import shutil
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.catalog import parts as writing
from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.catalog.manifests import Part
from eval_pipeline.store.publish import publish, publish_full
from eval_pipeline.store.query import connect_read_only
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS
from eval_pipeline_tests.store.catalogs import parts_of, state
from eval_pipeline_tests.store.samples import (
    TRACKS,
    ask,
    contents,
    filled,
    key_of,
    put,
    put_partition,
    put_suite,
    remove_partition,
)

pytestmark = pytest.mark.usefixtures("catalog")
SHOWN = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'store'
UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'store' AND NOT internal
"""
COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() WHERE database_name = 'store'
"""
MACROS = (
    "leaderboard('finqa')",
    "leaderboard_details('finqa')",
    "compare('alpha', 'beta', 'finqa')",
    "compare_details('alpha', 'beta', 'finqa')",
    "explain_turn('finqa/c0#0', 'alpha')",
)
NEXT = dt.date(2026, 1, 6)
Full = tuple[Record, Path]


def everything(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables and views, and of the macros; what the two forms say of themselves left out."""
    own = {("meta", "catalog"), ("meta", "store")}
    with closing(connect_read_only(store, {"threads": 1})) as connection:
        shown = connection.execute(SHOWN).fetchall()
        names = [f'{schema}."{name}"' for schema, name in shown if (schema, name) not in own]
        return {name: sorted(connection.execute(f"FROM {name}").fetchall(), key=repr) for name in [*names, *MACROS]}


@pytest.fixture(scope="module")
def full_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that tests change, and a copy of it as it was, in `kept` beside it."""
    home = tmp_path_factory.mktemp("full") / "home"
    record = Record(home / "record")
    filled(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_STORE", "catalog")
        publish(record, home / "eval.duckdb", TRACKS)
    shutil.copytree(home, home.with_name("kept"))
    return home


@pytest.fixture
def full(full_home: Path) -> Full:
    """A published store and its record, at the same place for all tests, as its views name their files."""
    shutil.rmtree(full_home)
    shutil.copytree(full_home.with_name("kept"), full_home)
    return Record(full_home / "record"), full_home / "eval.duckdb"


def test_it_has_the_rows_columns_and_comments_of_the_store_of_one_file(
    record: Record, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(record)
    put_partition(record, key_of("alpha", NEXT), turns=4, value=0.0, scope="sample:2")
    other = tmp_path / "file" / "eval.duckdb"
    done = publish(record, out, TRACKS)
    monkeypatch.delenv("EVAL_STORE")
    assert publish(record, other, TRACKS).rows == done.rows - 4, "prompts that two have are there once a key"
    assert everything(out) == everything(other)
    assert state(out) == state(other)
    assert [len(state(out)[name]) >= least for name, least in {"views": 10, "macros": 5}.items()] == [True, True]
    assert {row for row in ask(out, COLUMNS) if row[:2] != ("meta", "catalog")} == set(ask(other, COLUMNS))
    assert contents(out, in_order=True)["turn_results"] == contents(other, in_order=True)["turn_results"]


def test_only_what_differs_is_written(full: Full) -> None:
    record, out = full
    before = {path: path.stat().st_mtime_ns for path in (out.parent / "catalog" / "parts").glob("*/*")}
    put(record, METRICS, key_of("beta"), 2, value=[0.25, 0.5])
    done = publish(record, out, TRACKS, [key_of("beta")])
    assert (done.tables, done.rows, done.full) == (("metrics",), 2, False)
    after = {path: path.stat().st_mtime_ns for path in (out.parent / "catalog" / "parts").glob("*/*")}
    assert sorted(path.parent.name for path in after.keys() - before.keys()) == ["meta.files", "metrics"]
    assert sorted(path.parent.name for path in before.keys() - after.keys()) == ["meta.files", "metrics"]
    assert all(before[path] == after[path] for path in before.keys() & after.keys())
    assert ask(out, "SELECT value FROM metrics WHERE model_version = 'beta' ORDER BY 1") == [(0.25,), (0.5,)]
    still = out.stat()
    assert publish(record, out, TRACKS).tables == ()
    assert out.stat() == still


def test_steps_give_what_one_publishing_gives(full: Full, tmp_path: Path) -> None:
    record, out = full
    put_suite(record, "other")
    put_partition(record, key_of("alpha", suite="other"))
    publish(record, out, TRACKS, [key_of("alpha", suite="other")])
    remove_partition(record, key_of("alpha"))
    assert publish(record, out, TRACKS).partitions_removed > 20
    put_partition(record, key_of("beta", NEXT), prompts=["a", "a", "b"])
    publish(record, out, TRACKS)
    at_once = tmp_path / "at once" / "eval.duckdb"
    publish_full(record, at_once, TRACKS)
    assert everything(out) == everything(at_once)
    assert parts_of(out) == parts_of(at_once), "equal rows give equal parts, and no others are left"
    manifests = sorted(path.name for path in (out.parent / "catalog" / "manifests").iterdir())
    assert manifests == ["model_versions.manifest", "suite=finqa.manifest", "suite=other.manifest"]


def test_a_publishing_compresses_the_manifests_that_change_and_each_once(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, out = full
    compress, compressed = zlib.compress, []

    def noting(body: bytes, level: int) -> bytes:
        compressed.append(body)
        return compress(body, level)

    monkeypatch.setattr(zlib, "compress", noting)
    put(record, METRICS, key_of("beta"), 2, value=[0.25, 0.5])
    publish(record, out, TRACKS, [key_of("beta")])
    assert [b"metrics" in body for body in compressed] == [True], "that of the suite; the model versions are as before"
    publish(record, out, TRACKS, [key_of("beta")])
    assert len(compressed) == 1


def test_parts_are_named_by_their_content_and_verified(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    record, out = full
    folder = out.parent / "catalog" / "parts"
    for place in parts_of(out):
        table, name = place.split("/")
        path = Part(table, name, 0).path(folder)
        assert writing.digest(path) == name
        assert path.stat().st_mode & 0o222 == 0
    put_partition(record, key_of("gamma"))
    before = state(out)
    monkeypatch.setattr(writing, "_rows", lambda path: 1)
    with pytest.raises(StoreError, match="was not written completely"):
        publish(record, out, TRACKS)
    assert state(out) == before


def test_text_that_is_no_json_is_named(full: Full) -> None:
    record, out = full
    before = state(out)
    put(record, METRICS, key_of("alpha"), details=["{no"])
    with pytest.raises(StoreError, match=r"metrics/.*alpha.* holds text that is not JSON in details"):
        publish(record, out, TRACKS)
    assert state(out) == before


def test_an_open_reader_keeps_its_state_and_its_parts(full: Full) -> None:
    record, out = full
    ours = connect_read_only(out)
    script = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True)\n"
        "for _ in sys.stdin: print(c.execute('SELECT sum(value) FROM metrics').fetchone()[0], flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as theirs:
        assert theirs.stdin and theirs.stdout

        def told() -> str:
            theirs.stdin.write("\n")
            theirs.stdin.flush()
            return theirs.stdout.readline().strip()

        assert told() == "6.0"
        for value in (0.5, 0.25):
            put_partition(record, key_of("beta"), value=value)
            publish(record, out, TRACKS)
            assert ours.execute("SELECT sum(value) FROM metrics").fetchone() == (6.0,)
            assert told() == "6.0"
        assert ask(out, "SELECT sum(value) FROM metrics") == [(3.75,)]
        ours.close()
        del ours
        publish(record, out, TRACKS)
        put_partition(record, key_of("beta"), value=0.75)
        publish(record, out, TRACKS)
        assert told() == "6.0"
        theirs.stdin.close()
        theirs.wait()
    put_partition(record, key_of("beta"), value=1.0)
    publish(record, out, TRACKS)
    fresh = out.parent / "fresh" / "eval.duckdb"
    publish(record, fresh, TRACKS)
    assert parts_of(out) == parts_of(fresh)


def test_readers_of_one_process_do_not_lose_each_other(full: Full) -> None:
    record, out = full
    script = (
        "import sys; from pathlib import Path; from eval_pipeline.store.query import connect_read_only as connect\n"
        "path = Path(sys.argv[1]); c = connect(path); connect(path).close(); print('open', flush=True); input()\n"
        "print(c.execute('SELECT sum(value) FROM metrics').fetchone()[0])"
    )
    plain = duckdb.connect(str(out), read_only=True)
    put_partition(record, key_of("beta"), value=0.5)
    publish(record, out, TRACKS)
    assert plain.execute("SELECT sum(value) FROM metrics").fetchone() == (6.0,)
    plain.close()
    command = [sys.executable, "-c", script, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as theirs:
        assert theirs.stdout is not None
        assert theirs.stdout.readline() == b"open\n"
        put_partition(record, key_of("beta"), value=0.25)
        publish(record, out, TRACKS)
        assert theirs.communicate(b"\n")[0] == b"4.5\n"


def test_a_reader_that_is_just_opening_is_waited_for(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    record, out = full
    monkeypatch.setattr(sweeping, "_OPENING_S", 60.0)
    before = parts_of(out)
    put_partition(record, key_of("beta"), value=0.5)
    publish(record, out, TRACKS)
    assert before < parts_of(out)
    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)
    put_partition(record, key_of("beta"), value=0.25)
    publish(record, out, TRACKS)
    assert not before <= parts_of(out)


def test_erasing_leaves_no_part_of_what_was_removed(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    record, out = full
    reader = connect_read_only(out)
    remove_partition(record, key_of("beta"))
    publish(record, out, TRACKS, [key_of("beta")], erase=True)
    fresh = out.parent / "fresh" / "eval.duckdb"
    publish(record, fresh, TRACKS)
    assert parts_of(out) == parts_of(fresh)
    another = connect_read_only(out)
    monkeypatch.setenv("EVAL_STORE", "file")
    publish(record, out, TRACKS, erase=True)
    assert not (out.parent / "catalog").exists()
    reader.close()
    another.close()


def test_a_moved_home_says_so_until_it_is_published(full: Full, tmp_path: Path) -> None:
    _, out = full
    before = state(out)
    there = tmp_path / "there"
    there.mkdir()
    for name in ("record", "catalog", "eval.duckdb", "eval.duckdb.lock"):
        shutil.move(out.parent / name, there / name)
    with pytest.raises(StoreError, match=r"was moved and still reads .*; run `eval-pipeline publish`"):
        connect_read_only(there / "eval.duckdb")
    done = publish(Record(there / "record"), there / "eval.duckdb", TRACKS)
    assert (done.full, done.tables) == (False, ()), "the parts stay as they are"
    assert state(there / "eval.duckdb") == before


def test_another_form_is_made_anew_and_leaves_nothing(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    record, out = full
    before = state(out)
    monkeypatch.setenv("EVAL_STORE", "file")
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print('open', flush=True); input()"
    command = [sys.executable, "-c", script, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"open\n"
        done = publish(record, out, TRACKS)
        assert done.full
        assert "EVAL_STORE" in done.note or "schema" in done.note
        assert parts_of(out), "somebody reads them"
        assert state(out) == before
        reader.communicate(b"\n")
    put_partition(record, key_of("beta"), value=0.5)
    publish(record, out, TRACKS)
    assert not (out.parent / "catalog").exists()
    put_partition(record, key_of("beta"))
    monkeypatch.setenv("EVAL_STORE", "catalog")
    assert publish(record, out, TRACKS).full
    assert state(out) == before
    monkeypatch.setenv("EVAL_STORE", "ducklake")
    with pytest.raises(UsageError, match=r"EVAL_STORE=ducklake: expected file .* or catalog"):
        publish(record, out, TRACKS)

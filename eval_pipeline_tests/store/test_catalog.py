"""The store as a catalog has the rows of one file, publishing writes what has changed, and may die at any step."""

import datetime as dt
import json
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
from eval_pipeline.store.catalog.checking import catalog_problems
from eval_pipeline.store.catalog.manifests import CatalogPart
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.query import connect_read_only
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS
from eval_pipeline_tests.store.catalogs import Full, State, defined, named_parts, parts_of, state
from eval_pipeline_tests.store.crashing import DIED
from eval_pipeline_tests.store.samples import (
    TRACKS,
    ask,
    contents,
    filled,
    key_of,
    put,
    put_model,
    put_partition,
    put_suite,
    remove_partition,
)

pytestmark = pytest.mark.usefixtures("catalog")
SHOWN = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'store'
UNION ALL SELECT schema_name, view_name FROM duckdb_views()
WHERE database_name = 'store' AND schema_name <> 'parts' AND NOT internal
"""
COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE database_name = 'store' AND schema_name <> 'parts'
"""
MACROS = (
    "leaderboard('finqa')",
    "leaderboard_details('finqa')",
    "compare('alpha', 'beta', 'finqa')",
    "compare_details('alpha', 'beta', 'finqa')",
    "explain_turn('finqa/c0#0', 'alpha')",
)
NEXT = dt.date(2026, 1, 6)
SUM = "SELECT sum(value) FROM metrics"


def everything(store: Path) -> State:
    """All rows of all tables and views, and of the macros; what the two forms say of themselves left out."""
    own = {("meta", "catalog"), ("meta", "store")}
    with closing(connect_read_only(store, {"threads": 1})) as connection:
        shown = connection.execute(SHOWN).fetchall()
        names = [f'{schema}."{name}"' for schema, name in shown if (schema, name) not in own]
        return {name: sorted(connection.execute(f"FROM {name}").fetchall(), key=repr) for name in [*names, *MACROS]}


def test_steps_give_what_one_publishing_gives_in_either_form(
    full: Full, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, out = full
    put_suite(record, "other")
    put_partition(record, key_of("alpha", suite="other"))
    publish(record, out, TRACKS, [key_of("alpha", suite="other")])
    remove_partition(record, key_of("beta"))
    put_partition(record, key_of("beta", NEXT), value=0.0, scope="sample:2", prompts=["a", "a", "b"])
    assert publish(record, out, TRACKS).partitions_removed > 20
    manifests = sorted(path.name for path in (out.parent / "catalog" / "manifests").iterdir())
    assert manifests == ["model_versions.manifest", "suite=finqa.manifest", "suite=other.manifest"]
    stepwise, parts = everything(out), parts_of(out)
    done = publish_full(record, out, TRACKS)
    assert parts_of(out) == parts == named_parts(out), "equal rows give equal parts, and no others are left"

    other = tmp_path / "file" / "eval.duckdb"
    monkeypatch.delenv("EVAL_STORE")
    assert publish(record, other, TRACKS).rows == done.rows - 4, "prompts that two have are there once a key"
    assert everything(other) == stepwise
    assert defined(other) == (made := defined(out))
    assert len(made["views"]) >= 10 and len(made["macros"]) >= 5
    assert {row for row in ask(out, COLUMNS) if row[:2] != ("meta", "catalog")} == set(ask(other, COLUMNS))
    assert ask(out, "FROM turn_results") == ask(other, "FROM turn_results")


def test_only_what_differs_is_written_and_who_is_just_opening_is_waited_for(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, out = full
    compress, compressed = zlib.compress, list[bytes]()
    monkeypatch.setattr(zlib, "compress", lambda body, level: compressed.append(body) or compress(body, level))

    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (out.parent / "catalog" / "parts").glob("*/*")}

    def tables(paths: set[Path]) -> list[str]:
        return sorted(path.parent.name for path in paths)

    own = out.parent / "catalog" / "parts" / "model_versions" / "of_mine.parquet"
    own.write_bytes(b"mine")
    before = times()
    monkeypatch.setattr(sweeping, "_OPENING_S", 60.0)
    put(record, METRICS, key_of("beta"), 2, value=[0.25, 0.5])
    done = publish(record, out, TRACKS, [key_of("beta")])
    assert (done.tables, done.rows, done.full) == (("metrics",), 2, False)
    after = times()
    assert tables(after.keys() - before.keys()) == ["meta.files", "metrics"]
    assert before.items() <= after.items(), "somebody may be opening the catalog of before"
    assert [b"metrics" in body for body in compressed] == [True], "that of the suite; the model versions are as before"
    assert ask(out, "SELECT value FROM metrics WHERE model_version = 'beta' ORDER BY 1") == [(0.25,), (0.5,)]
    still = out.stat()
    assert publish(record, out, TRACKS, [key_of("beta")]).tables == ()
    assert len(compressed) == 1
    assert publish(record, out, TRACKS).tables == ()
    assert out.stat() == still

    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)
    put(record, METRICS, key_of("beta"), 2, value=[0.25, 0.75])
    publish(record, out, TRACKS)
    assert tables(before.keys() - times().keys()) == ["meta.files", "metrics"]
    assert parts_of(out) == named_parts(out) and own.read_bytes() == b"mine"


def test_parts_are_named_by_their_content_and_verified(
    full: Full, before: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, out = full
    folder = out.parent / "catalog" / "parts"
    for place in parts_of(out):
        table, name = place.split("/")
        path = CatalogPart(table, name, 0).path(folder)
        assert writing.digest(path) == name
        assert path.stat().st_mode & 0o222 == 0
    put(record, METRICS, key_of("alpha"), details=["{no"])
    with pytest.raises(StoreError, match=r"metrics/.*alpha.* holds text that is not JSON in details"):
        publish(record, out, TRACKS)
    put_partition(record, key_of("alpha"), value=0.5)
    monkeypatch.setattr(writing, "_rows", lambda path: 1)
    with pytest.raises(StoreError, match="was not written completely"):
        publish(record, out, TRACKS)
    assert state(out) == before


OURS = "from pathlib import Path; from eval_pipeline.store.published.query import connect_read_only as connect\n" + (
    "c = connect(Path(sys.argv[1])); connect(Path(sys.argv[1])).close()"  # which loses the lock of the process
)
ANYBODYS = "import duckdb; c = duckdb.connect(sys.argv[1], read_only=True)"


def test_open_readers_keep_their_state_and_their_parts(full: Full) -> None:
    """Each is the only one for a while: else another one's lock would do."""
    record, out = full
    original = parts_of(out)

    def published(value: float) -> None:
        put_partition(record, key_of("beta"), value=value)
        publish(record, out, TRACKS)

    with closing(duckdb.connect(str(out), read_only=True)) as here:
        published(0.5)
        assert here.execute(SUM).fetchone() == (6.0,)
    for opening, before, value in ((ANYBODYS, "4.5", 0.25), (OURS, "3.75", 0.75)):
        script = f"import sys; {opening}\nfor _ in sys.stdin: print(c.execute('{SUM}').fetchone()[0], flush=True)"
        command = [sys.executable, "-c", script, str(out)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as theirs:

            def told(theirs: Any = theirs) -> str:
                print(file=theirs.stdin, flush=True)
                return theirs.stdout.readline().strip()

            assert told() == before
            published(value)
            assert told() == before
            theirs.communicate()
    assert ask(out, SUM) == [(5.25,)]
    with closing(connect_read_only(out)) as here:
        published(1.0)
        assert here.execute(SUM).fetchone() == (5.25,)
        assert original < parts_of(out)
    publish(record, out, TRACKS, erase=True)
    assert parts_of(out) == original


def test_erasing_leaves_no_part_of_what_was_removed(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    record, out = full
    with closing(connect_read_only(out)):
        remove_partition(record, key_of("beta"))
        publish(record, out, TRACKS, [key_of("beta")], erase=True)
        assert parts_of(out) == named_parts(out)
        assert ask(out, "SELECT DISTINCT model_version FROM meta.files WHERE suite IS NOT NULL ORDER BY ALL") == [
            ("alpha",),
            (None,),
        ]
        with closing(connect_read_only(out)):
            monkeypatch.setenv("EVAL_STORE", "file")
            publish(record, out, TRACKS, erase=True)
            assert not (out.parent / "catalog").exists()


def test_a_moved_home_says_so_until_it_is_published(full: Full, before: State, tmp_path: Path) -> None:
    _, out = full
    there = tmp_path / "there"
    there.mkdir()
    for name in ("record", "catalog", "eval.duckdb", "eval.duckdb.lock"):
        shutil.move(out.parent / name, there / name)
    with pytest.raises(StoreError, match=r"was moved and still reads .*; run `eval-pipeline publish`"):
        connect_read_only(there / "eval.duckdb")
    done = publish(Record(there / "record"), there / "eval.duckdb", TRACKS)
    assert (done.full, done.tables) == (False, ()), "the parts stay as they are"
    assert state(there / "eval.duckdb") == before


@pytest.mark.always
def test_another_form_is_made_anew_and_leaves_nothing(
    full: Full, before: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, out = full
    monkeypatch.setenv("EVAL_STORE", "file")
    with closing(duckdb.connect(str(out), read_only=True)):
        done = publish(record, out, TRACKS)
        assert done.full
        assert "EVAL_STORE" in done.note or "schema" in done.note
        assert parts_of(out), "somebody reads them"
        assert state(out) == before
    own = out.parent / "catalog" / "parts" / "model_versions" / "of_mine.parquet"
    own.write_bytes(b"mine")
    put_model(record, "gamma")
    assert publish(record, out, TRACKS).tables
    assert [path for path in (out.parent / "catalog").rglob("*") if path.is_file()] == [own], "it is no part"
    monkeypatch.setenv("EVAL_STORE", "ducklake")
    with pytest.raises(UsageError, match=r"EVAL_STORE=ducklake: expected file .* or catalog"):
        publish(record, out, TRACKS)
    monkeypatch.setenv("EVAL_STORE", "catalog")
    assert publish(record, out, TRACKS).full
    killed = Path(shutil.copy(out, out.with_name(f"{out.name}.new")))  # between a commit and its checkpoint
    with closing(duckdb.connect()) as connection:
        connection.execute(
            f"PRAGMA disable_checkpoint_on_shutdown; ATTACH '{killed}' AS new; CREATE TABLE new.mine (a INT)"
        )
    assert killed.with_name(f"{killed.name}.wal").stat().st_size
    assert publish_full(record, out, TRACKS).full


def test_a_store_of_one_file_touches_no_folder_of_that_name(
    record: Record, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [out.parent / "catalog" / "parts" / "mine" / f"{name}.parquet" for name in ("sales", "0123456789abcdef" * 2)]
    own[0].parent.mkdir(parents=True)
    for path in own:
        path.write_bytes(b"mine")
    monkeypatch.setenv("EVAL_STORE", "file")
    for model in ("alpha", "beta"):
        put_model(record, model)
        assert publish(record, out, TRACKS).tables
    assert [path.read_bytes() for path in own] == [b"mine"] * 2
    monkeypatch.setenv("EVAL_STORE", "catalog")
    assert publish(record, out, TRACKS).full


@pytest.mark.soak
def test_a_publisher_may_die_at_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_STORE", "catalog")
    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)
    home = tmp_path / "home"
    record, out = Record(home / "record"), home / "eval.duckdb"
    filled(record)
    publish(record, out, TRACKS)
    old = contents(out)
    put_suite(record, turns=4)
    put_partition(record, key_of("beta"), value=0.5)
    command = [sys.executable, "-m", "eval_pipeline_tests.store.crashing", str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:

        def crash(step: str) -> tuple[int, list[str]]:
            child.stdin.write(f"{step}\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
            code, steps = json.loads(child.stdout.readline())  # type: ignore[union-attr]
            return code, steps

        code, steps = crash("")
        assert code == 0
        new = contents(out)
        assert new != old
        publish(record, tmp_path / "fresh" / "eval.duckdb", TRACKS)
        whole = set(sweeping.part_files(tmp_path / "fresh" / "catalog" / "parts"))
        found = []
        for step in steps:
            code, _ = crash(step)
            assert code == DIED, step
            seen = contents(out)
            assert seen in (old, new), step
            found.append(seen == new)
            publish(record, out, TRACKS)
            assert contents(out) == new, step
            assert not list(catalog_problems(out, TRACKS)), step
            publish(record, out, TRACKS, erase=True)  # one that died while it removed parts has left nothing to publish
            assert set(sweeping.part_files(home / "catalog" / "parts")) == whole, step
        child.stdin.close()
    assert found == sorted(found), "first the old state, then the new one"
    assert {True, False} == set(found)
    assert any("os.rename manifests" in step for step in steps)
    assert any("os.link" in step for step in steps)

"""The store as a catalog has the rows of the store of one file, and publishing it writes what has changed."""

import datetime as dt
import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.catalog import checking, sweeping
from eval_pipeline.store.catalog import parts as writing
from eval_pipeline.store.catalog.checking import catalog_problems
from eval_pipeline.store.catalog.manifests import Part
from eval_pipeline.store.publish import publish, publish_full
from eval_pipeline.store.query import connect_read_only, run_query
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS, all_tables
from eval_pipeline.view.published import Published
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

SHOWN = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'store'
UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'store' AND NOT internal
"""
COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() WHERE database_name = 'store'
"""
DEFINED = {
    "meta.files": "FROM meta.files",
    "views": "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = 'store' AND NOT internal "
    "AND NOT contains(sql, 'read_parquet')",
    "macros": "SELECT function_name, parameters, macro_definition FROM duckdb_functions() "
    "WHERE database_name = 'store'",
}
MACROS = (
    "leaderboard('finqa')",
    "leaderboard_details('finqa')",
    "compare('alpha', 'beta', 'finqa')",
    "compare_details('alpha', 'beta', 'finqa')",
    "explain_turn('finqa/c0#0', 'alpha')",
)
NEXT = dt.date(2026, 1, 6)
State = dict[str, list[tuple[Any, ...]]]
Full = tuple[Record, Path]
COPYING = "COPY (SELECT 1) TO '{part}'"


@pytest.fixture(autouse=True)
def catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_STORE", "catalog")
    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one suite and no evaluation."""
    home = tmp_path_factory.mktemp("small")
    record = Record(home / "record")
    put_suite(record)
    put_model(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_STORE", "catalog")
        publish(record, home / "eval.duckdb", TRACKS)
    return home / "eval.duckdb"


def everything(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables and views, and of the macros; what the two forms say of themselves left out."""
    own = {("meta", "catalog"), ("meta", "store")}
    with closing(connect_read_only(store, {"threads": 1})) as connection:
        shown = connection.execute(SHOWN).fetchall()
        names = [f'{schema}."{name}"' for schema, name in shown if (schema, name) not in own]
        return {name: sorted(connection.execute(f"FROM {name}").fetchall(), key=repr) for name in [*names, *MACROS]}


def state(store: Path) -> State:
    """All rows of all tables, and the definitions of everything else, which decide what that has."""
    return contents(store) | {name: sorted(ask(store, sql), key=repr) for name, sql in DEFINED.items()}


def parts_of(out: Path) -> set[str]:
    return set(sweeping.part_files(out.parent / "catalog" / "parts"))


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Path, State]:
    """A store that each test leaves as it was, though it may damage it meanwhile; and its contents."""
    home = tmp_path_factory.mktemp("mended")
    record, out = Record(home / "record"), home / "eval.duckdb"
    filled(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_STORE", "catalog")
        publish(record, out, TRACKS)
    return record, out, state(out)


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


def test_any_duckdb_reads_it(mended: tuple[Record, Path, State]) -> None:
    _, out, _ = mended
    with duckdb.connect(str(out), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM turn_results").fetchone() == (6,)
        assert len(connection.execute("FROM leaderboard('finqa')").fetchall()) == 2


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


@pytest.mark.parametrize("what", ["catalog", "manifest", "memo", "part"])
def test_damage_is_told_and_mended(mended: tuple[Record, Path, State], what: str) -> None:
    record, out, before = mended
    assert not list(catalog_problems(out, TRACKS))
    folder = out.parent / "catalog"
    place = {
        "catalog": out,
        "manifest": folder / "manifests" / "suite=finqa.manifest",
        "memo": out.with_name("eval.duckdb.lock"),
        "part": next((folder / "parts" / "metrics").glob("*.parquet")),
    }[what]
    place.chmod(0o644)
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)
    told = list(catalog_problems(out, TRACKS))
    expected = {
        "catalog": "is not the catalog of its manifests",
        "manifest": "the manifest .* is damaged",
        "part": "metrics/.* is damaged",
    }
    assert [what, bool(told)] == [what, what != "memo"]
    assert all(re.search(expected[what], sentence) for sentence in told)
    (folder / "manifests" / ".of a killed publisher.tmp").touch()
    (publish_full if what == "part" else publish)(record, out, TRACKS)
    assert not list(catalog_problems(out, TRACKS))
    assert not list(folder.glob("manifests/.*"))
    assert state(out) == before


def test_a_query_that_reads_a_damaged_part_says_so(
    mended: tuple[Record, Path, State],
) -> None:
    _, out, _ = mended
    place = next((out.parent / "catalog" / "parts" / "turn_results").glob("*.parquet"))
    sound = place.read_bytes()
    place.chmod(0o644)
    for data in (sound[:100] + bytes(20) + sound[120:], sound[:-100] + b"\xff" * 92 + sound[-8:]):
        place.write_bytes(data)
        with pytest.raises(StoreError, match=rf"{place.name} is damaged; `eval-pipeline publish --full` makes it anew"):
            run_query(out, "FROM turn_results")
        with pytest.raises(StoreError, match=rf"{place.name} is damaged"), Published(out).look() as look:
            look.rows("FROM turn_results")
    place.write_bytes(sound)
    with pytest.raises(UsageError, match="nothing_like_it"):
        run_query(out, "SELECT nothing_like_it FROM turn_results")


def test_a_publisher_at_work_is_not_taken_for_damage(
    mended: tuple[Record, Path, State], monkeypatch: pytest.MonkeyPatch
) -> None:
    record, out, before = mended
    read = checking.wrong
    others = iter([0.5])

    def wrong(part: Part, parts: Path) -> str:
        for value in others:
            put_partition(record, key_of("beta"), value=value)
            publish(record, out, TRACKS)
        return read(part, parts)

    monkeypatch.setattr(checking, "wrong", wrong)
    assert list(catalog_problems(out, TRACKS)) == []
    assert ask(out, "SELECT DISTINCT value FROM metrics WHERE model_version = 'beta'") == [(0.5,)]
    put_partition(record, key_of("beta"))
    publish(record, out, TRACKS)
    assert state(out) == before


def test_lost_parts_are_told_and_made_again(
    mended: tuple[Record, Path, State],
) -> None:
    record, out, before = mended
    shutil.rmtree(out.parent / "catalog")
    with pytest.raises(StoreError, match=r"catalog/parts, which .* reads, is missing; `eval-pipeline publish --full`"):
        connect_read_only(out)
    publish(record, out, TRACKS)
    assert state(out) == before


def test_a_home_may_be_named_by_a_link(mended: tuple[Record, Path, State], tmp_path: Path) -> None:
    _, out, before = mended
    link = tmp_path / "link"
    link.symlink_to(out.parent)
    assert state(link / out.name) == before
    still = out.stat()
    assert publish(Record(link / "record"), link / out.name, TRACKS).tables == ()
    assert out.stat() == still


def test_a_missing_part_is_made_again_by_the_next_publishing_that_reads_it(
    mended: tuple[Record, Path, State],
) -> None:
    record, out, before = mended
    next((out.parent / "catalog" / "parts" / "suites").glob("*.parquet")).unlink()
    assert "is missing" in next(catalog_problems(out, TRACKS))
    with pytest.raises(StoreError, match="publish --full"):
        run_query(out, "FROM suites")
    publish_full(record, out, TRACKS)
    assert state(out) == before


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


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{part}'",
        "COPY (SELECT 1) TO '{part}' (USE_TMP_FILE false)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{part}'",
        "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{part}'",
        "PREPARE p AS COPY (SELECT 1) TO '{part}'; EXECUTE p",
        "SELECT 1; COPY (SELECT 1) TO '{store}'",
        "EXPLAIN (ANALYZE /*) SELECT 1 --*/) COPY (SELECT 1) TO '{part}'",
        "/* EXPLAIN (*/ EXPLAIN ANALYZE COPY (SELECT 1) TO '{part}' -- */ SELECT 1",
        "WITH x AS (COPY (SELECT 1) TO '{part}') FROM x",
        "WITH x AS (copy/**/(SELECT 1) TO '{store}') SELECT 1",
        "WITH x AS (COPY (SELECT 1) TO '{part}') PIVOT metrics ON name USING count(*)",
        "CREATE TEMP TABLE t AS WITH x AS (COPY (SELECT 1) TO '{part}') FROM x",
        "FROM json_execute_serialized_sql(json_serialize_sql($$WITH x AS (COPY (SELECT 1) TO '{part}') FROM x$$))",
        "FROM json_execute_serialized_sql('{hidden}')",
        "EXPLAIN ANALYZE FROM json_execute_serialized_sql('{hidden}')",
        "PRAGMA json_execute_serialized_sql('{hidden}')",
        """CALL main . "JSON_execute_serialized_sql" /**/ ('{hidden}')""",
        "PIVOT (FROM json_execute_serialized_sql('{hidden}')) ON Count USING sum(Count)",
        "FROM query('FROM json_execute_serialized_' || 'sql(''{hidden_twice}'')')",
        """CREATE TEMP MACRO m(x) AS TABLE FROM "query"(x); FROM m('SELECT 1')""",
        "IMPORT DATABASE '{folder}'",
        "UPDATE EXTENSIONS",
        "EXPORT DATABASE '{folder}'",
        "ATTACH '{folder}/other.duckdb'",
        "SELECT * FROM read_text('/etc/passwd')",
        "FROM read_text('{folder}/../../eval.duckdb.lock')",
        "SET allowed_directories = ['/']",
        "DELETE FROM metrics",
    ],
)
def test_queries_change_nothing_and_read_nothing_else(small: Path, sql: str) -> None:
    part = next((small.parent / "catalog" / "parts").glob("*/*.parquet"))
    before = {path: path.read_bytes() for path in files_of(small)}
    hidden = run_query(small, f"SELECT json_serialize_sql($$WITH x AS ({COPYING.format(part=part)}) FROM x$$) AS made")
    made = hidden["made"][0].as_py().replace("'", "''")
    places = {"part": part, "folder": part.parent, "store": small}
    with pytest.raises(UsageError):
        run_query(small, sql.format(**places, hidden=made, hidden_twice=made.replace("'", "''")))
    assert {path: path.read_bytes() for path in files_of(small)} == before


def test_queries_may_explain_and_have_tables_of_their_own(small: Path) -> None:
    assert run_query(small, "EXPLAIN ANALYZE SELECT 1").num_rows == 1
    assert run_query(small, "CREATE TEMP TABLE mine AS SELECT 1 AS one; FROM mine").to_pylist() == [{"one": 1}]
    assert run_query(small, "SELECT 'COPY' AS \"copy\", 1 AS query -- COPY").to_pylist() == [
        {"copy": "COPY", "query": 1}
    ]
    assert run_query(small, "PIVOT (SELECT 'a' AS a, 2 AS b) ON a USING sum(b)").num_rows == 1
    assert run_query(small, "DESCRIBE suites").num_rows == run_query(small, "SUMMARIZE suites").num_rows


def files_of(out: Path) -> list[Path]:
    return [path for path in [out, *(out.parent / "catalog").rglob("*")] if path.is_file()]


def test_every_table_has_its_part(mended: tuple[Record, Path, State]) -> None:
    _, out, _ = mended
    assert {place.split("/")[0] for place in parts_of(out)} == {
        *(table.name for table in all_tables(TRACKS)),
        "meta.files",
    }

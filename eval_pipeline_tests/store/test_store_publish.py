import datetime as dt
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store import publish as publishing
from eval_pipeline.store import snapshot
from eval_pipeline.store.ddl import text
from eval_pipeline.store.migrations import migrate
from eval_pipeline.store.publish import publish, publish_full
from eval_pipeline.store.query import connect_read_only
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Column
from eval_pipeline.store.tables import (
    ATTEMPTS,
    GENERATION_PROMPTS,
    GENERATIONS,
    METRICS,
    RECOVERY_ATTEMPTS,
    RECOVERY_PROMPTS,
    all_tables,
    track_turns_table,
)
from eval_pipeline_tests.store.samples import (
    DAY,
    FINQA,
    TRACKS,
    ask,
    contents,
    filled,
    key_of,
    prompt_hash,
    put,
    put_partition,
    put_suite,
    rows,
)

RECORD_TABLES = [source for table in all_tables(TRACKS) for source in table.record_tables()]


def remove_partition(record: Record, key: RecordKey) -> None:
    for table in RECORD_TABLES:
        if key.fits(table):
            record.remove(table, key)


def full_contents(record: Record, tmp_path: Path):
    other = tmp_path / "other" / "eval.duckdb"
    publish_full(record, other, TRACKS)
    return contents(other)


def beside(out: Path) -> set[str]:
    return {path.name for path in out.parent.iterdir() if path.name.startswith(out.name)}


def test_every_table_is_filled(record: Record, out: Path) -> None:
    filled(record)
    done = publish(record, out, TRACKS)
    assert done.full
    assert done.note == ""
    assert done.tables == tuple(table.name for table in all_tables(TRACKS))
    found = contents(out)
    assert all(found.values())
    assert done.rows == sum(map(len, found.values()))
    assert len(found["attempts"]) == 8
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}


def test_an_empty_record_gives_an_empty_store(record: Record, out: Path) -> None:
    assert publish(record, out, TRACKS).rows == 0
    assert not any(contents(out).values())
    assert not publish(record, out, TRACKS).full


def test_every_table_and_column_has_its_comment(record: Record, out: Path) -> None:
    publish(record, out, TRACKS)
    tables = dict(ask(out, "SELECT table_name, comment FROM duckdb_tables() WHERE schema_name = 'main'"))
    assert tables == {table.name: table.comment for table in all_tables(TRACKS)}
    columns = ask(
        out,
        "SELECT table_name, column_name, data_type, c.comment FROM duckdb_columns() AS c JOIN duckdb_tables() AS t "
        "USING (database_name, schema_name, table_name) WHERE schema_name = 'main' AND database_name = 'store' "
        "ORDER BY table_name, column_index",
    )
    declared = [
        (table.name, column.name, column.type, column.comment)
        for table in sorted(all_tables(TRACKS), key=lambda table: table.name)
        for column in table.all_columns
    ]
    assert columns == declared
    views = ask(out, "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal AND database_name = 'store'")
    assert len(views) == sum(table.key == "partition" for table in all_tables(TRACKS)) + 1
    macros = ask(
        out,
        "SELECT function_name, comment FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal",
    )
    assert {name for name, _ in macros} == {"explain_turn", "leaderboard", "compare"}
    assert all(comment for _, comment in [*views, *macros])


@pytest.mark.parametrize("table", all_tables(TRACKS), ids=lambda table: table.name)
def test_comments_say_what_null_means(table) -> None:
    for column in table.columns:
        known = ("NULL", "empty for none", "empty list for none", "empty object for none", "empty where")
        assert any(word in column.comment for word in known), column.name
        assert column.comment.endswith(".")


def test_track_columns_must_differ() -> None:
    with pytest.raises(ValueError, match="finqa_turns would have more than one column named correct"):
        track_turns_table("finqa", [], [], [Column("Correct", "DOUBLE", "")])


@pytest.mark.usefixtures("published")
def test_nothing_is_done_where_nothing_changed(record: Record, out: Path) -> None:
    before = out.stat()
    again = publish(record, out, TRACKS)
    assert (again.tables, again.rows, again.full) == ((), 0, False)
    put_partition(record, key_of())  # the same again: other files, equal contents
    assert publish(record, out, TRACKS).tables == ()
    assert publish(record, out, TRACKS, [key_of()]).tables == ()
    assert out.stat().st_ino == before.st_ino


@pytest.mark.usefixtures("published")
def test_only_what_differs_is_replaced(record: Record, out: Path, tmp_path: Path) -> None:
    put(record, METRICS, key_of(), 2, value=[0.0, 0.25])
    put_partition(record, key_of("gamma"), turns=5)
    done = publish(record, out, TRACKS)
    assert not done.full
    assert done.partitions_replaced == 1 + sum(table.key in {"partition", "shared"} for table in all_tables(TRACKS))
    assert contents(out) == full_contents(record, tmp_path)
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}


@pytest.mark.usefixtures("published")
def test_other_keys_are_left_alone_when_keys_are_given(record: Record, out: Path) -> None:
    put(record, METRICS, key_of("alpha"), 7)
    put(record, METRICS, key_of("beta"), 7)
    record.remove(FINQA, key_of("beta"))
    done = publish(record, out, TRACKS, [key_of("alpha")])
    assert (done.tables, done.rows) == (("metrics",), 7)
    done = publish(record, out, TRACKS, [key_of("beta"), RecordKey.of_suite("finqa")])
    assert (done.tables, done.rows, done.partitions_removed) == (("metrics", "finqa_turns"), 7, 1)
    assert publish(record, out, TRACKS).tables == ()


def test_partitions_whose_files_are_gone_are_dropped(record: Record, out: Path, tmp_path: Path) -> None:
    filled(record)
    long = key_of("m" * 300)
    put_partition(record, long)
    publish(record, out, TRACKS)
    remove_partition(record, key_of("beta"))
    remove_partition(record, long)
    done = publish(record, out, TRACKS)
    assert done.partitions_replaced == 0
    assert done.partitions_removed == 2 * sum(table.key in {"partition", "shared"} for table in all_tables(TRACKS))
    assert contents(out) == full_contents(record, tmp_path)
    assert ask(out, "SELECT DISTINCT model_version FROM metrics") == [("alpha",)]
    assert ask(out, "SELECT count(*) FROM meta.files WHERE model_version <> 'alpha' AND suite IS NOT NULL") == [(0,)]


def test_prompts_are_kept_as_long_as_an_attempt_refers_to_them(record: Record, out: Path) -> None:
    put_partition(record, key_of("alpha"), prompts=["both", "both", "mine"])
    put_partition(record, key_of("beta"), prompts=["both", "yours", "yours"])

    def texts() -> set[str]:
        publish(record, out, TRACKS)
        found = ask(out, "SELECT text FROM prompts")
        assert len(found) == len(set(found)), "each prompt once"
        return {value for (value,) in found}

    assert texts() == {"both", "mine", "yours", "again, alpha", "again, beta"}
    put_partition(record, key_of("alpha"), prompts=["both", "other", "other"])
    assert texts() == {"both", "other", "yours", "again, alpha", "again, beta"}
    remove_partition(record, key_of("beta"))
    assert texts() == {"both", "other", "again, alpha"}
    record.remove(GENERATIONS, key_of("alpha"))
    assert texts() == {"again, alpha"}
    hashes = [prompt_hash("both")]
    put(record, GENERATIONS, key_of("alpha"), prompt_hash=hashes)  # the prompts' own file has not changed
    assert texts() == {"both", "again, alpha"}


def test_incremental_and_full_agree(record: Record, out: Path, tmp_path: Path) -> None:
    draw = random.Random(7)
    put_suite(record)
    keys = [key_of(model, DAY + dt.timedelta(days=day)) for model in ("a", "b", "c") for day in range(2)]
    for _ in range(4):
        for key in draw.sample(keys, 2):
            if draw.random() < 0.3:
                remove_partition(record, key)
            else:
                prompts = [f"prompt {draw.randrange(6)}" for _ in range(3)]
                put_partition(record, key, turns=draw.randrange(1, 6), value=draw.random(), prompts=prompts)
        publish(record, out, TRACKS)
        assert contents(out) == full_contents(record, tmp_path)


def test_a_full_store_has_its_rows_in_order(record: Record, tmp_path: Path) -> None:
    for model in ("beta", "alpha", "gamma"):
        put_partition(record, key_of(model), turns=20)
    orders = []
    for name in ("one", "two"):
        publish_full(record, tmp_path / name / "eval.duckdb", TRACKS)
        orders.append(contents(tmp_path / name / "eval.duckdb", in_order=True))
    assert orders[0] == orders[1]
    assert [row[1] for row in orders[0]["metrics"]] == ["alpha"] * 20 + ["beta"] * 20 + ["gamma"] * 20


def test_free_blocks_are_given_back(record: Record, out: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(snapshot, "_COMPACT_FROM_BLOCKS", 4)
    filled(record)
    noise = random.Random(1)
    big = [noise.randbytes(1000).hex() for _ in range(3 * 4096)]
    put(record, GENERATION_PROMPTS, key_of("big"), len(big), prompt_hash=list(map(prompt_hash, big)), text=big)
    put(record, GENERATIONS, key_of("big"), len(big), prompt_hash=list(map(prompt_hash, big)))
    publish(record, out, TRACKS)
    large = out.stat().st_size
    comments = ask(out, "SELECT table_name, column_name, comment FROM duckdb_columns() ORDER BY ALL")
    remove_partition(record, key_of("big"))
    done = publish(record, out, TRACKS)
    assert done.compacted
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}
    assert out.stat().st_size < large / 2
    assert contents(out) == full_contents(record, tmp_path)
    assert ask(out, "SELECT table_name, column_name, comment FROM duckdb_columns() ORDER BY ALL") == comments
    assert ask(out, "FROM leaderboard('finqa')")
    assert not publish(record, out, TRACKS).full
    put_partition(record, key_of("more"))
    assert not publish(record, out, TRACKS).full
    assert contents(out) == full_contents(record, tmp_path)


def test_replacing_again_and_again_does_not_grow_the_store(record: Record, out: Path) -> None:
    noise = random.Random(1)
    sizes = []
    for turn in range(10):
        put_partition(
            record, key_of(), turns=500, value=turn / 16, prompts=[noise.randbytes(500).hex() for _ in range(500)]
        )
        publish(record, out, TRACKS)
        sizes.append(out.stat().st_size)
    assert max(sizes[5:]) <= 2 * max(sizes[:3])


@pytest.mark.usefixtures("published")
def test_another_schema_rebuilds(record: Record, out: Path) -> None:
    wider = replace(FINQA, columns=(*FINQA.columns, Column("soft_match", "DOUBLE", "0 or 1; NULL: never run.")))
    done = publish(record, out, (wider,), [key_of()])
    assert done.full
    assert done.note == "the tables have another schema now"
    assert set(ask(out, "SELECT numerical_match, soft_match FROM finqa_turns")) == {(1.0, None)}
    put(record, wider, key_of(), soft_match=[0.0])
    assert publish(record, out, (wider,)).tables == ("finqa_turns",)
    narrower = replace(FINQA, columns=FINQA.columns[:-1])
    assert publish(record, out, (narrower,)).full, "a column that was dropped is left out"


def test_older_files_are_migrated(record: Record, out: Path) -> None:
    old = replace(METRICS, columns=tuple(replace(c, name="score") if c.name == "value" else c for c in METRICS.columns))
    put(record, old, key_of(), 2, score=[50.0, None])
    put(record, METRICS, key_of("beta"), value=[0.25])

    def percent_to_share(table):
        shares = [None if value is None else value / 100 for value in table.column("score").to_pylist()]
        return table.drop_columns("score").append_column("value", [shares])

    new = replace(METRICS, version=2)
    migrating = Record(record.root, {("metrics", 1): percent_to_share})
    assert migrating.read(new, key_of(), ["value", "metric"]).to_pydict() == {
        "value": [0.5, None],
        "metric": ["text", "text"],
    }
    assert not migrating.is_current(new, key_of(), {"made": "here"})
    plain = record.read(new, key_of())
    assert plain.column("value").to_pylist() == [None, None], "without a migration, an unknown column is dropped"

    publish(migrating, out, (replace(FINQA),))
    assert ask(out, "SELECT value FROM metrics ORDER BY model_version, value") == [(None,), (None,), (0.25,)]
    put(record, new, key_of("gamma"))
    with pytest.raises(StoreError, match=r"part\.parquet was written by a newer eval-pipeline"):
        record.read(METRICS, key_of("gamma"))
    with pytest.raises(StoreError, match=r"part\.parquet was written by a newer eval-pipeline"):
        publish(record, out, TRACKS)


def test_migrations_go_step_by_step(record: Record) -> None:
    put(record, METRICS, key_of(), value=[1.0])
    steps = {
        ("metrics", version): lambda table, factor=factor: table.set_column(
            table.column_names.index("value"), "value", [[v * factor for v in table.column("value").to_pylist()]]
        )
        for version, factor in ((1, 2.0), (3, 5.0))
    }
    new = replace(METRICS, version=4)
    assert Record(record.root, steps).read(new, key_of(), ["value"]).to_pydict() == {"value": [10.0]}
    table = record.read(METRICS, key_of())
    assert migrate(table, METRICS, 1, steps).equals(table)


@pytest.mark.usefixtures("published")
def test_a_damaged_file_of_the_record_is_named_and_the_store_kept(record: Record, out: Path) -> None:
    before = contents(out)
    put(record, METRICS, key_of(), 50)
    path = record.path(METRICS, key_of())
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    for attempt in (publish, publish_full):
        with pytest.raises(StoreError, match=f"{path} is damaged .*; remove it, the next run makes it again"):
            attempt(record, out, TRACKS)
    assert contents(out) == before
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}
    path.unlink()
    assert publish(record, out, TRACKS).partitions_removed == 1


@pytest.mark.usefixtures("published")
def test_text_that_is_no_json_is_named(record: Record, out: Path) -> None:
    before = contents(out)
    put(record, METRICS, key_of("beta"), 2, details=["{}", "{half"])
    with pytest.raises(
        StoreError, match=r"metrics/suite=finqa/model_version=beta/.* holds text that is not JSON in details"
    ):
        publish(record, out, TRACKS)
    assert contents(out) == before


@pytest.mark.parametrize("damage", ["junk", "empty", "truncated", "flipped"])
@pytest.mark.usefixtures("published")
def test_a_damaged_store_is_built_anew(record: Record, out: Path, damage: str) -> None:
    good, status = contents(out), out.stat()
    data = out.read_bytes()
    damaged = {
        "junk": b"junk" * (len(data) // 4),
        "empty": b"",
        "truncated": data[: len(data) // 2],
        "flipped": data[:12_288] + bytes(byte ^ 0xFF for byte in data[12_288:]),
    }[damage]
    out.write_bytes(damaged)
    done = publish(record, out, TRACKS)
    assert done.full
    assert done.note == "eval.duckdb was not as the last publisher left it"
    assert contents(out) == good
    if len(damaged) == len(data):  # rotten without a trace: found when it is needed
        status = out.stat()
        out.write_bytes(damaged)
        os.utime(out, ns=(status.st_atime_ns, status.st_mtime_ns))
        lock = out.with_name("eval.duckdb.lock")
        memo = json.loads(lock.read_text())
        memo["store"] = [out.stat().st_size, out.stat().st_mtime_ns]
        lock.write_text(json.dumps(memo))
        assert not publish(record, out, TRACKS).full, "nothing to do, so nothing is read"
        put(record, METRICS, key_of(), value=[0.125])
        done = publish(record, out, TRACKS)
        assert done.full
        assert done.note.startswith("eval.duckdb was damaged (")


@pytest.mark.usefixtures("published")
def test_what_another_program_wrote_is_undone(record: Record, out: Path) -> None:
    good = contents(out)
    foreign = duckdb.connect(str(out))
    foreign.execute("DELETE FROM metrics")
    foreign.close()
    assert publish(record, out, TRACKS).note == "eval.duckdb was not as the last publisher left it"
    assert contents(out) == good


FOREIGN = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("CREATE TABLE mine (a INTEGER)")
connection.execute("INSERT INTO mine VALUES (1)")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("published")
def test_a_store_that_others_have_open_is_published_all_the_same(record: Record, out: Path) -> None:
    foreign = subprocess.Popen(
        [sys.executable, "-c", FOREIGN, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert foreign.stdout is not None
    assert foreign.stdout.readline() == "open\n"
    log = out.with_name("eval.duckdb.wal")
    assert log.exists()
    with pytest.raises(StoreError, match=r"another program has .*eval\.duckdb open for writing"):
        connect_read_only(out)
    put(record, METRICS, key_of(), 9)
    publish(record, out, TRACKS)
    foreign.kill()
    foreign.communicate()
    assert not log.exists()
    assert ask(out, "SELECT count(*) FROM metrics") == [(12,)]
    assert ask(out, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'mine'") == [(0,)]


@pytest.mark.usefixtures("published")
def test_an_open_reader_keeps_its_snapshot(record: Record, out: Path) -> None:
    reader = connect_read_only(out)
    put(record, METRICS, key_of(), 9)
    publish(record, out, TRACKS)
    assert reader.execute("SELECT count(*) FROM metrics").fetchall() == [(6,)]
    assert ask(out, "SELECT count(*) FROM metrics") == [(12,)], "a new one sees the new store, in the same process too"
    reader.close()


@pytest.mark.parametrize(
    "memo", [b"", b"{", b"[]", b'{"store": [1], "schema": "", "files": {}}', b'{"files": {"a": 1}}']
)
@pytest.mark.usefixtures("published")
def test_a_lost_memo_costs_a_rebuild(record: Record, out: Path, memo: bytes) -> None:
    out.with_name("eval.duckdb.lock").write_bytes(memo)
    assert publish(record, out, TRACKS).full
    assert publish(record, out, TRACKS).tables == ()


@pytest.mark.usefixtures("published")
def test_a_copied_home_publishes_where_it_left_off(record: Record, out: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path, tmp_path / "[copy]*", ignore=shutil.ignore_patterns("[[]copy*"))
    there = Record(tmp_path / "[copy]*" / "record")
    put(there, METRICS, key_of(), value=[0.125])
    done = publish(there, tmp_path / "[copy]*" / "eval.duckdb", TRACKS)
    assert (done.full, done.tables) == (False, ("metrics",))
    assert contents(tmp_path / "[copy]*" / "eval.duckdb") == full_contents(there, tmp_path)


def test_paths_with_quotes_are_fine(tmp_path: Path) -> None:
    home = tmp_path / 'it\'s "here"'
    filled(Record(home / "record"))
    assert publish(Record(home / "record"), home / "eval.duckdb", TRACKS).rows
    assert ask(home / "eval.duckdb", f"SELECT {text(str(home))}") == [(str(home),)]


@pytest.mark.usefixtures("published")
def test_the_copy_is_made_without_reflinks_too(record: Record, out: Path, monkeypatch) -> None:

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(publishing.fcntl, "ioctl", refuse)
    put(record, METRICS, key_of(), value=[0.125])
    assert not publish(record, out, TRACKS).full
    assert ask(out, "SELECT count(*) FROM metrics WHERE value = 0.125") == [(1,)]


def test_sources_of_a_table_are_tables_of_their_own() -> None:
    assert [table.name for table in ATTEMPTS.record_tables()] == ["generations", "recovery_attempts"]
    assert {table.key for table in (GENERATIONS, RECOVERY_ATTEMPTS, GENERATION_PROMPTS, RECOVERY_PROMPTS)} == {
        "partition"
    }
    assert rows(GENERATIONS, 1).keys() == {column.name for column in ATTEMPTS.columns}

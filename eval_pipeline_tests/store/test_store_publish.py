import datetime as dt
import random
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.published import changes, snapshot
from eval_pipeline.store.published import publish as publishing
from eval_pipeline.store.published.ddl import text
from eval_pipeline.store.published.engine import engine
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables import GENERATION_PROMPTS, GENERATIONS, METRICS, all_tables
from eval_pipeline_tests.store.samples import (
    DAY,
    FINQA,
    TRACKS,
    ask,
    beside,
    contents,
    filled,
    full_contents,
    key_of,
    prompt_hash,
    put,
    put_partition,
    put_suite,
    remove_partition,
    rows,
)


@pytest.mark.usefixtures("recorded")
def test_every_table_is_filled(record: Record, out: Path) -> None:
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
    of_a_partition = sum(table.key in {"partition", "shared"} for table in all_tables(TRACKS))
    long = key_of("m" * 300)
    put(record, METRICS, key_of(), 2, value=[0.0, 0.25])
    put_partition(record, long, turns=5, whole=True)
    done = publish(record, out, TRACKS)
    assert (done.full, done.partitions_replaced, done.partitions_removed) == (False, 1 + of_a_partition, 0)
    assert contents(out) == full_contents(record, tmp_path)
    remove_partition(record, key_of("beta"))
    remove_partition(record, long)
    done = publish(record, out, TRACKS)
    assert (done.partitions_replaced, done.partitions_removed) == (0, 2 * of_a_partition)
    assert contents(out) == full_contents(record, tmp_path)
    assert ask(out, "SELECT DISTINCT model_version FROM metrics") == [("alpha",)]
    assert ask(out, "SELECT count(*) FROM meta.files WHERE model_version <> 'alpha' AND suite IS NOT NULL") == [(0,)]
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


def test_prompts_of_many_evaluations_are_looked_up_together(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = []
    for number in range(8):
        prompts = ["of all", f"of {number // 2}", f"of {number}, unused"]
        put_partition(record, key_of(f"m{number}"), prompts=prompts)
        used = [prompt_hash(prompt) for prompt in prompts[:2]]
        put(record, GENERATIONS, key_of(f"m{number}"), 2, prompt_hash=used)
        expected += [*prompts[:2], f"again, m{number}"]
    made = list[int]()
    real = snapshot.Snapshot._add

    def counted(self: snapshot.Snapshot, select: str, told: list[object], table: Any, files: Any, part: Any) -> int:
        made.extend([len(files)] if table.key == "shared" else [])
        return real(self, select, told, table, files, part)

    monkeypatch.setattr(snapshot.Snapshot, "_add", counted)
    for files_together, rows_together, look_ups in ((200, 20_000, 1), (3, 20_000, 6), (200, 6, 8)):
        made.clear()
        monkeypatch.setattr(changes, "_FILES_A_STATEMENT", files_together)
        monkeypatch.setattr(changes, "_ROWS_A_STATEMENT", rows_together)
        out = tmp_path / f"{look_ups}" / "eval.duckdb"
        publish(record, out, TRACKS)
        assert ask(out, "SELECT text FROM prompts ORDER BY text") == sorted({(text,) for text in expected})
        assert sum(made) == 16, "of each evaluation the prompts of its answers and those of its recovery attempts"
        assert len(made) == look_ups


def test_incremental_and_full_agree(record: Record, out: Path, tmp_path: Path) -> None:
    draw = random.Random(7)
    put_suite(record)
    keys = [key_of(model, DAY + dt.timedelta(days=day)) for model in ("a", "b", "c") for day in range(2)]
    for _ in range(3):
        for key in draw.sample(keys, 2):
            if draw.random() < 0.3:
                remove_partition(record, key)
            else:
                prompts = [f"prompt {draw.randrange(6)}" for _ in range(3)]
                put_partition(record, key, turns=draw.randrange(1, 6), value=draw.random(), prompts=prompts)
        publish(record, out, TRACKS)
        assert contents(out) == full_contents(record, tmp_path)


def row_groups(out: Path, table: str) -> set[int]:
    """Sizes of the groups in which the table's rows are stored."""
    sql = f"SELECT sum(count) FROM pragma_storage_info('{table}') WHERE column_name = 'turn_id' "
    return {int(rows) for (rows,) in ask(out, f"{sql} AND segment_type <> 'VALIDITY' GROUP BY row_group_id")}


@pytest.mark.usefixtures("recorded")
def test_many_short_rows_are_stored_in_larger_groups_and_no_others(
    record: Record, out: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(snapshot, "_MANY_ROWS", 20_000)
    put(record, GENERATIONS, key_of("long"), 20_000)
    put(record, METRICS, key_of("short"), 20_000)
    publish(record, out, TRACKS)
    assert max(row_groups(out, "attempts")) == 2048
    assert max(row_groups(out, "metrics")) == 16_384
    put_partition(record, key_of("few"))
    put(record, METRICS, key_of("alpha"), 21_000)
    remove_partition(record, key_of("beta"))
    assert not publish(record, out, TRACKS).full
    put_partition(record, key_of("fewer"), turns=3_000)  # in small groups after large ones
    assert not publish(record, out, TRACKS).full
    assert max(row_groups(out, "attempts")) == 2048
    other = publish_full(record, tmp_path / "other" / "eval.duckdb", TRACKS).path
    for table in ("metrics", "attempts"):
        rows = f"SELECT count(*), sum(hash(t)) FROM {table} AS t"
        assert ask(out, rows) == ask(other, rows)


def test_only_tables_of_many_short_rows_get_large_row_groups() -> None:
    """Never a shared one, or one that says which rows of it are used: that one must be there before it."""
    many, few = snapshot._MANY_ROWS, snapshot._MANY_ROWS - 1
    word, text = Column("word", "VARCHAR", "A word."), Column("text", "VARCHAR", "A long text.", long=True)
    used = Table("used", "Used.", (word,), key="shared", unique="word", referenced_by="users")

    def change(table: Table, rows: int) -> snapshot.Change:
        key = key_of()
        return snapshot.Change(table, key, (snapshot.SourceFile(table, "", key, "", Path(), "", rows),), ())

    changes = [
        change(Table("narrow", "Many short rows.", (word,)), many),
        change(Table("small", "Few short rows.", (word,)), few),
        change(Table("long", "Many long rows.", (word, text)), many),
        change(Table("users", "Says which are used.", (word,)), many),
        change(used, many),
    ]
    assert snapshot._with_many_short_rows(changes) == {"narrow"}
    assert snapshot._with_many_short_rows([*changes[:1], *changes[3:4]]) == {"narrow", "users"}


def test_a_full_store_has_its_rows_in_order(record: Record, tmp_path: Path) -> None:
    for model in ("beta", "alpha", "gamma"):
        put_partition(record, key_of(model), turns=20)
    orders = []
    for name in ("one", "two"):
        publish_full(record, tmp_path / name / "eval.duckdb", TRACKS)
        orders.append(contents(tmp_path / name / "eval.duckdb", in_order=True))
    assert orders[0] == orders[1]
    assert [row[1] for row in orders[0]["metrics"]] == ["alpha"] * 20 + ["beta"] * 20 + ["gamma"] * 20


@pytest.mark.usefixtures("recorded")
def test_free_blocks_are_given_back(record: Record, out: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(snapshot, "_COMPACT_FROM_BLOCKS", 4)
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
    assert ask(out, "SELECT count(*) FROM metrics WHERE model_version = 'more'") == [(3,)]


def test_replacing_again_and_again_does_not_grow_the_store(record: Record, out: Path) -> None:
    noise = random.Random(1)
    sizes = []
    for turn in range(8):
        prompts = [noise.randbytes(500).hex() for _ in range(400)]
        put_partition(record, key_of(), turns=400, value=turn / 16, prompts=prompts)
        publish(record, out, TRACKS)
        sizes.append(out.stat().st_size)
    assert max(sizes[5:]) <= 2 * max(sizes[:3])


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


@pytest.fixture
def memory_given(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """What DuckDB got, each time it was set up; 1 MB is never enough."""
    given: list[int | None] = []

    def noted(beside: Path, memory_mb: int | None) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        given.append(memory_mb)
        return engine(beside, memory_mb)

    monkeypatch.setattr(publishing, "engine", noted)
    monkeypatch.setattr(publishing, "_MEMORY_MB", (1, 64))
    return given


@pytest.mark.usefixtures("recorded")
def test_what_needs_more_memory_gets_it(record: Record, out: Path, memory_given: list[int | None]) -> None:
    made = publish(record, out, TRACKS)
    assert (made.full, made.note) == (True, "")
    assert set(memory_given) == {1, 64}
    assert memory_given == sorted(memory_given, key=lambda memory: memory or 0)
    assert all(contents(out).values())
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}

    memory_given.clear()
    remove_partition(record, key_of("beta"))
    updated = publish(record, out, TRACKS)
    assert (updated.full, updated.note) == (False, "")  # too little memory is no damage
    assert set(memory_given) >= {1}


@pytest.mark.always
def test_long_rows_take_no_more_memory_than_short_ones(
    record: Record, out: Path, memory_given: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of answers and of prompts there are 40 MB, each prompt twice."""
    monkeypatch.setattr(publishing, "_MEMORY_MB", (32,))
    hashes = [prompt_hash(f"{number % 200}") for number in range(400)]
    for table, column in ((GENERATIONS, "response"), (GENERATION_PROMPTS, "text")):
        with record.writer(table, key_of(), {"made": "here"}) as writer:
            for at in range(0, 400, 20):
                long = [f"{number % 200:03}" * 33_000 for number in range(at, at + 20)]
                writer.write(rows(table, 20, prompt_hash=hashes[at : at + 20], **{column: long}))
    assert publish(record, out, TRACKS).rows == 600
    assert set(memory_given) == {32}
    told = "left(response, 3), length(response)"
    assert ask(out, f"SELECT {told} FROM attempts ORDER BY rowid") == [(f"{n % 200:03}", 99_000) for n in range(400)]
    found = ask(out, "SELECT left(text, 3), prompt_hash FROM prompts ORDER BY 1")
    assert found == [(f"{number:03}", hashes[number]) for number in range(200)]


@pytest.mark.parametrize(
    "why",
    [
        "failed to pin block of size 524.0 KiB (243.9 MiB/244.1 MiB used)",
        "could not allocate block of size 256.0 KiB (15.0 MiB/15.2 MiB used)",
    ],
    ids=["pinned", "allocated"],
)
@pytest.mark.usefixtures("recorded")
def test_a_commit_that_lacks_memory_gets_more(
    record: Record, out: Path, memory_given: list[int | None], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """As DuckDB told of 800 prompts of 500 KB in 256 MB and of 15 MB in 16; a few small rows never fail so late."""
    told = f"TransactionContext Error: Failed to commit: {why}"
    apply = snapshot.Snapshot.apply

    def commit(store: snapshot.Snapshot, *arguments: Any) -> int:
        if memory_given[-1] == 64:
            raise duckdb.TransactionException(told)
        return apply(store, *arguments)

    monkeypatch.setattr(snapshot.Snapshot, "apply", commit)
    assert publish(record, out, TRACKS).full
    assert set(memory_given) == {1, 64, None}


@pytest.mark.always
@pytest.mark.usefixtures("recorded")
def test_too_little_memory_is_told(
    record: Record, out: Path, memory_given: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_MEMORY_MB", ())
    monkeypatch.setattr(publishing, "engine", lambda beside, memory_mb: engine(beside, 1))
    with pytest.raises(StoreError, match=r"^this machine's memory is too small to publish to .*eval\.duckdb \("):
        publish(record, out, TRACKS)
    assert beside(out) == {"eval.duckdb.lock"}

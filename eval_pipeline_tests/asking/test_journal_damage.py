"""A damaged journal: what is not whole is told, what is whole is saved; and how an entry is written."""

import asyncio
import os
import random
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.asking.batches.sqlite import SqliteBatchTable
from eval_pipeline.asking.batches.table import BatchRows
from eval_pipeline.asking.journal.checking import Checked
from eval_pipeline.asking.journal.codec import decode_response, encode_response
from eval_pipeline.asking.journal.pruning import prune_journal
from eval_pipeline.asking.journal.purging import purge_journal
from eval_pipeline.asking.journal.salvage import _value, whole_rows
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Response, ToolCall, Usage
from eval_pipeline.state.place import state_place
from eval_pipeline_tests.asking.journals import Journals


def bodies(count: int, seed: int = 0) -> dict[str, bytes]:
    """Responses of all lengths: within a page, just over it, over many."""
    rng = random.Random(seed)
    return {
        f"{number:064d}": encode_response(Response("x" * rng.choice((0, 10, 300, 3990, 4050, 9000, 40_000))))
        for number in range(count)
    }


def journal_of(path: Path, rows: dict[str, bytes]) -> None:
    with SqliteJournal(path) as journal:
        asyncio.run(journal.append_many(list(rows.items())))


@given(st.integers(0, 10_000), st.integers(1, 80))
@settings(max_examples=15, deadline=None)
def test_all_rows_of_a_whole_journal_are_found(tmp_path_factory: pytest.TempPathFactory, seed: int, count: int) -> None:
    path = tmp_path_factory.mktemp("journal") / "j.sqlite"
    rows = bodies(count, seed)
    journal_of(path, rows)
    assert {row.key: row.body for row in whole_rows(path)} == rows


def test_rows_that_are_only_in_the_log_are_found(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    rows = bodies(30)
    with SqliteJournal(path) as journal:
        asyncio.run(journal.append_many(list(rows.items())))
        assert (tmp_path / "j.sqlite-wal").stat().st_size > 4096
        assert {row.key for row in whole_rows(path)} == set(rows)


def test_rows_of_every_length_are_found(tmp_path: Path) -> None:
    """Also those whose last overflow page is just full, or just not needed."""
    path = tmp_path / "j.sqlite"
    rows = {f"{size:064d}": encode_response(Response("x" * size)) for size in (*range(3950, 3970), *range(8040, 8060))}
    journal_of(path, rows)
    assert {row.key: row.body for row in whole_rows(path)} == rows


@pytest.mark.parametrize("page", [0, 1, 2, 5])
def test_a_lost_page_takes_its_own_rows_only(tmp_path: Path, page: int) -> None:
    path = tmp_path / "j.sqlite"
    rows = {f"{number:064d}": encode_response(Response("y" * 200)) for number in range(1000)}
    journal_of(path, rows)
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(os.urandom(4096))
    saved = {row.key: row.body for row in whole_rows(path)}
    assert len(saved) >= 1000 - 4096 // 270
    assert saved.items() <= rows.items()


def what_a_reader_is_told(path: Path, rows: dict[str, bytes]) -> str | None:
    """The error of a journal that gives none but these rows; None without one."""
    try:
        with SqliteJournal(path) as journal:
            assert all(journal.get(key) in {body, None} for key, body in rows.items())
    except StoreError as error:
        return str(error)
    return None


def test_a_flipped_bit_gives_no_other_response(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    rows = bodies(40)
    journal_of(path, rows)
    data = path.read_bytes()
    rng = random.Random(7)
    told = 0
    for _ in range(120):
        place = rng.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :])
        assert {row.key: row.body for row in whole_rows(path)}.items() <= rows.items()
        said = what_a_reader_is_told(path, rows)
        assert said is None or "doctor" in said or "newer eval-pipeline" in said
        told += said is not None
        for name in ("j.sqlite-wal", "j.sqlite-shm"):
            (tmp_path / name).unlink(missing_ok=True)
    assert told > 80


USES: dict[str, Callable[[Path], object]] = {
    "reading": lambda path: SqliteJournal(path).close(),
    "checking": lambda path: state_place().checked_journal(path),
    "batches": lambda path: SqliteBatchTable(path).read(BatchRows.all),
    "pruning": lambda path: prune_journal(path, lambda response: True, 0, dry_run=True),
    "purging": lambda path: purge_journal(path, lambda response, asker: True, "m", every_suite=True, dry_run=True),
}


@pytest.mark.parametrize("use", USES)
def test_names_that_are_no_text_any_more_are_told_as_damage(tmp_path: Path, use: str) -> None:
    """`sqlite3` quotes such a name in its message, which it then cannot decode."""
    path = tmp_path / "j.sqlite"
    journal_of(path, bodies(3))
    data = path.read_bytes()
    told = 0
    for place in (match.start() + 3 for match in re.finditer(rb"responses", data[:4096])):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :])
        try:
            found = USES[use](path)
            told += isinstance(found, Checked) and found.problem != ""
        except StoreError:
            told += 1
    assert told


def test_a_row_of_another_key_is_not_taken_for_the_answer(journals: Journals) -> None:
    with journals.open() as journal:
        asyncio.run(journal.append_many([("a", b"one"), ("b", b"two")]))
    journals.execute("UPDATE responses SET body = (SELECT body FROM responses WHERE key = 'b') WHERE key = 'a'")
    with journals.open() as journal, pytest.raises(StoreError, match="the response under a is not as it was written"):
        journal.get("a")


def test_a_journal_of_0_1_0_is_read_and_gets_checksums(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE responses(key TEXT PRIMARY KEY, body BLOB, written_at INTEGER)")
        connection.execute("INSERT INTO responses VALUES ('old', ?, 5)", (encode_response(Response("before")),))
        connection.execute("PRAGMA user_version = 1")
    with SqliteJournal(path) as journal:
        asyncio.run(journal.append("new", encode_response(Response("after"))))
        assert set(journal.get_many(["old", "new"])) == {"old", "new"}
    assert [(row.key, row.written_at == 5) for row in whole_rows(path)] == [("old", True), ("new", False)]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT key, digest IS NULL FROM responses ORDER BY 1").fetchall() == [
            ("new", 0),
            ("old", 1),
        ]


texts = st.text(st.characters())  # halves of surrogate pairs too
counts = st.integers(min_value=0, max_value=2**53)
numbers = st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
usages = st.builds(Usage, st.none() | counts, st.none() | counts, counts, counts)
responses = st.builds(
    Response,
    text=texts,
    stop_reason=texts,
    usage=usages,
    latency_ms=st.none() | numbers,
    first_byte_ms=st.none() | numbers,
    retries=counts,
    asked_on=texts,
    batch=st.booleans(),
    metadata=st.dictionaries(texts, values, max_size=4),
)


@given(responses)
def test_a_response_comes_back_as_it_was(response: Response) -> None:
    assert decode_response(encode_response(response)) == response


def test_defaults_take_no_room() -> None:
    assert encode_response(Response("x")) == b'{"text":"x"}'
    assert (
        encode_response(Response("é", usage=Usage(0, 0)))
        == '{"text":"é","usage":{"input_tokens":0,"output_tokens":0}}'.encode()
    )


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", b"{}", b'{"text": 1}', b'{"text": "x", "usage": 3}', b'{"text": "x", "unknown": 1}']
)
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode_response(body)


def test_calls_of_tools_are_kept_and_other_answers_are_written_as_before() -> None:
    called = ToolCall("c1", "sql", {"query": "SELECT 'é'"}), ToolCall("c2", "python", malformed="{not json")
    own = [{"type": "thinking", "thinking": "…", "signature": "abc"}]
    acted = Response("", stop_reason="tool_use", usage=Usage(3, 4), calls=called, own=own)
    assert decode_response(encode_response(acted)) == acted
    assert encode_response(Response("yes", usage=Usage(1, 2))) == (
        b'{"text":"yes","usage":{"input_tokens":1,"output_tokens":2}}'
    )


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        (0, b"", None), (1, b"\xfe", -2), (2, b"\x01\x00", 256), (3, b"\x01\x00\x00", 65_536),
        (4, b"\x00" * 3 + b"\x05", 5), (5, b"\xff" * 6, -1), (6, b"\x00" * 7 + b"\x09", 9),
        (8, b"", 0), (9, b"", 1), (16, b"ab", b"ab"), (17, b"ab", "ab"),
    ],
)  # fmt: skip
def test_values_are_read_as_the_file_format_of_sqlite_says(kind: int, payload: bytes, value: object) -> None:
    """Its section 2.1, "Record Format"."""
    assert _value(b"." + payload + b"..", 1, kind) == (value, 1 + len(payload))


@pytest.mark.parametrize(("kind", "payload"), [(7, b"12345678"), (10, b""), (11, b""), (18, b"ab")])
def test_what_the_journal_never_holds_is_no_value(kind: int, payload: bytes) -> None:
    with pytest.raises(ValueError):
        _value(payload, 0, kind)

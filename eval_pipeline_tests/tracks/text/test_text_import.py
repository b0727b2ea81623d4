"""`import text`: CSV, TSV and Parquet become the same cases; a bad file of each kind is one clear sentence."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.text.importers.rows import read_rows
from eval_pipeline_tests.support import Lab

TEXTS = ('He said "no", and\nleft.', "Straße, 5", "plain", "plain again")
MOODS = ("bad", "good", "bad", "good")
QUOTED = ['"He said ""no"", and\nleft."', '"Straße, 5"', "plain", "plain again"]
COLUMNS = {"question": "review", "answer": "mood", "page": "note"}


def lines(separator: str, rows: list[list[str]]) -> str:
    return "".join(separator.join(row) + "\r\n" for row in rows)


def written(folder: Path, kind: str) -> Path:
    """The same four rows as a file of the kind."""
    path = folder / f"moods.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"review": TEXTS, "mood": MOODS, "note": ["", "b", "c", "d"]}), path)
        return path
    separator = "\t" if kind == "tsv" else ","
    body = [list(row) for row in zip(QUOTED, MOODS, ("", "b", "c", "d"), strict=True)]
    # Excel writes a byte order mark before UTF-8.
    path.write_bytes(("\ufeff" + lines(separator, [["review", "mood", "note"], *body])).encode())
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_a_table_becomes_cases_and_options(tmp_path: Path, kind: str) -> None:
    cases, options = read_rows(written(tmp_path, kind), None, COLUMNS, None)
    assert [case["question"] for case in cases] == list(TEXTS)
    assert [case["answer"] for case in cases] == list(MOODS)
    assert [case.get("fields") for case in cases] == [None, {"page": "b"}, {"page": "c"}, {"page": "d"}]
    assert options["answer"] == {"form": "label", "labels": ["bad", "good"]}
    assert len({case["id"] for case in cases}) == len(cases)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_an_imported_table_is_a_suite_whose_ends_hold(lab: Lab, tmp_path: Path, kind: str) -> None:
    mapped = [word for ours, theirs in COLUMNS.items() for word in ("--map", f"{ours}={theirs}")]
    made = lab.cli("import", "text", str(written(tmp_path, kind)), "--suite", "moods", *mapped)
    assert made.code == 0, made.text
    told = lab.cli("validate", "--suite", "moods")
    assert "gold answers score 1.0 and no answer 0.0 on all 4 turns" in told.out, told.text


def test_numbers_and_dates_of_parquet_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "sums.parquet"
    table = {"question": ["a", "b"], "answer": [Decimal("1.50"), Decimal("2")], "day": [date(2024, 2, 29), None]}
    pq.write_table(pa.table(table), path)
    cases, options = read_rows(path, None, {"day": "day"}, None)
    assert options["answer"] == {"form": "number"}
    assert [(case["answer"], case.get("fields")) for case in cases] == [(1.5, {"day": "2024-02-29"}), (2.0, None)]


def test_a_line_separator_within_a_text_ends_no_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question,answer\none\u2028line\x0cof\x85four,1\n", encoding="utf-8")
    [case], _ = read_rows(path, None, {}, None)
    assert (case["id"], case["question"]) == ("row-2", "one\u2028line\x0cof\x85four")


def test_bytes_of_parquet_that_are_text_are_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"question": ["Straße".encode()], "answer": [b"1"]}), path)
    assert read_rows(path, None, {}, None)[0] == [{"id": "row-1", "question": "Straße", "answer": 1.0}]


@pytest.mark.parametrize("bad", [b"caf\xe9", b"\xff"])
def test_bytes_of_parquet_that_are_no_text_are_told_with_row_and_column(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "a.parquet"
    raw = pa.array([b"good", bad, bad])
    of_type_text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())  # nobody checks what it says
    lists = pa.array([[b"good"], [b"good", bad], [b"good"]])
    for column, told in ((raw, (2, 3)), (of_type_text, (2,)), (lists, (2,))):
        pq.write_table(pa.table({"question": ["a", "b", "c"], "label": column}), path)
        with pytest.raises(InputError) as refused:
            read_rows(path, None, {"answer": "label"}, "text")
        sentences = [f"{path}:{row}: label: holds bytes that are not UTF-8 text" for row in told]
        assert [str(problem) for problem in refused.value.problems] == sentences


BAD: dict[str, tuple[str, bytes, str]] = {
    "a row without an answer": ("a.csv", b"question,answer\nx,1\ny,\n", r"a\.csv:3: answer: is empty"),
    "a row too short": ("a.tsv", b"question\tanswer\nx\n", r"a\.tsv:2: answer: is empty"),
    "no rows": ("a.csv", b"question,answer\n", r"a\.csv: has no rows"),
    "a field too long": (
        "a.csv",
        b'question,answer\n"' + b"x" * 140_000 + b'",1\n',
        r"a\.csv:\d+: is not CSV: field larger",
    ),
    "not UTF-8": ("a.tsv", b"question\tanswer\n\xff\xfe\t1\n", r"a\.tsv.*(UTF-8|utf-8)"),
    "a cell without a column": (
        "a.csv",
        b"question,answer\nnot bad, great,good\n",
        r"a\.csv:2: has 3 cells, the header",
    ),
    "a cell without a column, by tabs": ("a.tsv", b"question\tanswer\nx\t1\t2\n", r"a\.tsv:2: has 3 cells, the header"),
    "a column twice": ("a.csv", b"question,answer,answer\nx,1,2\n", r"a\.csv:1: the header names 'answer' more than"),
    "a quote left open": ("a.csv", b'question,answer\nx,"1\ny,2\n', r"a\.csv:2: opens a quote that nothing closes"),
    "no Parquet": ("a.parquet", b"PAR1 and nothing else", r"a\.parquet: cannot be read as Parquet"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_one_clear_sentence(tmp_path: Path, what: str) -> None:
    name, content, told = BAD[what]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        read_rows(path, None, {}, None)


def test_the_column_that_is_not_there_is_told_with_those_that_are(lab: Lab, tmp_path: Path) -> None:
    path: Any = written(tmp_path, "csv")
    said = lab.cli("import", "text", str(path), "--suite", "moods", "--map", "question=text")
    assert said.code != 0
    assert "--map question=text: no column 'text'; the file has review, mood, note" in said.text

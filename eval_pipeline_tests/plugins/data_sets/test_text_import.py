"""Tables become cases, a bad file one clear sentence; imported suites go through the whole pipeline."""

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline_plugins.data_sets.text import read_rows
from eval_pipeline_tests.outside import FINQA, SQL, given
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


def test_numbers_dates_and_bytes_of_parquet_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "sums.parquet"
    table = {"question": ["a", "b"], "answer": [Decimal("1.50"), Decimal("2")], "day": [date(2024, 2, 29), None]}
    pq.write_table(pa.table(table), path)
    cases, options = read_rows(path, None, {"day": "day"}, None)
    assert options["answer"] == {"form": "number"}
    assert [(case["answer"], case.get("fields")) for case in cases] == [(1.5, {"day": "2024-02-29"}), (2.0, None)]
    pq.write_table(pa.table({"question": ["Straße".encode()], "answer": [b"1"]}), path)  # bytes that are text
    assert read_rows(path, None, {}, None)[0] == [{"id": "row-1", "question": "Straße", "answer": 1.0}]


def test_a_line_separator_within_a_text_ends_no_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question,answer\none\u2028line\x0cof\x85four,1\n", encoding="utf-8")
    [case], _ = read_rows(path, None, {}, None)
    assert (case["id"], case["question"]) == ("row-2", "one\u2028line\x0cof\x85four")


@pytest.mark.parametrize("bad", [b"caf\xe9", b"\xff"])
def test_bytes_of_parquet_that_are_no_text_are_told_with_row_and_column(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "a.parquet"
    raw = pa.array([b"good", bad, bad])
    of_type_text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())  # nobody checks what it says
    lists = pa.array([[b"good"], [b"good", bad], [b"good"]])
    for column, told in ((raw, (2, 3)), (of_type_text, (2, 3)), (lists, (2,))):
        pq.write_table(pa.table({"question": ["a", "b", "c"], "label": column}), path)
        with pytest.raises(InputError) as refused:
            read_rows(path, None, {"answer": "label"}, "text")
        sentences = [f"{path}:{row}: label: holds bytes that are not UTF-8 text" for row in told]
        assert [str(problem) for problem in refused.value.problems] == sentences


BAD: dict[str, tuple[str, bytes, str]] = {
    "a row without an answer": ("a.csv", b"question,answer\nx,1\ny,\n", r"a\.csv:3: answer: is empty"),
    "a row too short": ("a.tsv", b"question\tanswer\nx\n", r"a\.tsv:2: answer: is empty"),
    "no rows": ("a.csv", b"question,answer\n", r"a\.csv: has no rows"),
    "no text of Windows": ("a.tsv", b"question\tanswer\n\x81\t1\n", r"a\.tsv:2: has the byte 0x81"),
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


BIG = 2**53 + 1
ANSWERS: dict[str, tuple[list[Any], str]] = {
    "leading zeros": (["02108", "0150", "12345"], "text"),
    "a leading zero behind a sign": (["-07", "12"], "text"),
    "more digits than a number keeps": ([str(BIG), "12", "3"], "text"),
    "as a number of JSON": ([BIG, 12, 3], "text"),
    "a number of JSON beyond every float": ([10**400, 12, 3], "text"),
    "a few that repeat": (["007", "008"] * 3, "label"),
    "long numbers that are kept": ([str(2**53), str(10**22), "-5"], "number"),
    "decimals": (["0.5", "00", "1"], "text"),
    "zero and fractions": (["0", "0.25", "-0.5", "-0", ".5"], "number"),
    "quantities": (["1,234,567", "$5", "1e3", "1/2", "$9{,}500", "3.14159265358979323846264"], "number"),
    "brackets, negative in tables and not in prose": (["(12)", "5"], "text"),
}


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_codes_are_not_guessed_to_be_numbers_and_keep_their_digits(tmp_path: Path, what: str, kind: str) -> None:
    answers, form = ANSWERS[what]
    path = tmp_path / f"codes.{kind}"
    if kind == "csv":
        path.write_text("question,answer\n" + "".join(f'q,"{answer}"\n' for answer in answers))
    else:
        path.write_text("".join(json.dumps({"question": "q", "answer": answer}) + "\n" for answer in answers))
    cases, options = read_rows(path, None, {}, None)
    assert options["answer"]["form"] == form
    if form != "number":
        assert [case["answer"] for case in cases] == [str(answer) for answer in answers]


def test_whole_numbers_keep_their_digits_where_the_form_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "codes.jsonl"
    path.write_text(f'{{"question": "q", "answer": {BIG}}}\n{{"question": "q", "answer": 7}}\n')
    cases, _ = read_rows(path, None, {}, "number")
    assert [repr(case["answer"]) for case in cases] == [str(BIG), "7.0"]


def test_decimals_of_parquet_keep_their_digits(tmp_path: Path) -> None:
    path = tmp_path / "codes.parquet"
    ids, more = [Decimal(BIG), Decimal(7)], [Decimal("12345678901234567.89"), Decimal("0.10")]
    pq.write_table(pa.table({"question": ["a", "b"], "answer": ids, "code": more}), path)
    cases, options = read_rows(path, None, {"code": "code"}, None)
    assert options["answer"] == {"form": "text"}
    assert [(case["answer"], case["fields"]) for case in cases] == [
        (str(BIG), {"code": "12345678901234567.89"}),
        ("7", {"code": 0.1}),
    ]


def test_another_identifier_is_not_correct(lab: Lab, tmp_path: Path) -> None:
    rows, answers = tmp_path / "ids.jsonl", tmp_path / "p.jsonl"
    rows.write_text("".join(f'{{"id": "{name}", "question": "q{name}", "answer": {BIG}}}\n' for name in "ab"))
    assert lab.cli("import", "text", str(rows), "--suite", "ids").code == 0
    said = (("a", BIG), ("b", BIG - 1))
    answers.write_text("".join(f'{{"case_id": "{name}", "turn_index": 0, "answer": "{one}"}}\n' for name, one in said))
    made = lab.cli("import", "predictions", str(answers), "--suite", "ids", "--model-version", "m")
    assert made.code == 0, made.text
    lab.evaluate("ids", "m", upto="turn_metrics")
    assert lab.sql("SELECT case_id, correct FROM turn_results ORDER BY 1") == [("a", True), ("b", False)]


LABELS = {"answer": {"form": "label", "labels": ["good", "bad", "mixed"]}}
REVIEWS = tuple(
    {"id": f"r{index}", "question": f"Review {index}", "answer": answer}
    for index, answer in enumerate(["good", "good", "bad", "mixed", "bad", "good"])
)
SAID = ["Answer: good", "Answer: bad", "bad", "good or mixed", "It is bad.", "good"]


@pytest.fixture
def moods(lab: Lab, tmp_path: Path) -> Lab:
    """A suite of labels that a recorded model has answered."""
    lab.suite("moods", REVIEWS, track="text", options=LABELS)
    rows = [{"case_id": f"r{index}", "turn_index": 0, "response": said} for index, said in enumerate(SAID)]
    file = tmp_path / "said.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = lab.cli("import", "predictions", str(file), "--suite", "moods", "--model-version", "them")
    assert said.code == 0, said.out
    assert "5 of 6 readable" in said.out
    lab.evaluate("moods", "them")
    return lab


def test_labels_have_a_confusion_table_and_macro_f1(moods: Lab) -> None:
    assert moods.sql("SELECT expected_label, answer_label, turns FROM label_confusion ORDER BY ALL") == [
        ("bad", "bad", 2),
        ("good", "bad", 1),
        ("good", "good", 2),
        ("mixed", None, 1),
    ]
    found = dict(moods.sql("SELECT label, f1 FROM label_scores"))
    # good: 2 * 2 / (3 + 2); bad: 2 * 2 / (2 + 3); mixed: expected once, never given
    assert found == pytest.approx({"macro": 1.6 / 3, "good": 0.8, "bad": 0.8, "mixed": 0.0})
    assert moods.sql("SELECT count(*) FROM text_turns WHERE failure_mode = 'wrong_label'") == [(1,)]
    assert moods.sql("SELECT count(*) FROM text_turns WHERE failure_mode = 'unreadable_answer'") == [(1,)]
    scored = {
        name
        for (name,) in moods.sql("SELECT DISTINCT metric FROM statistics WHERE metric LIKE '%\\_match' ESCAPE '\\'")
    }
    assert scored == {"choice_match"}, "a suite has only the metrics that it selects"
    page = Path(str(moods.stage("report", moods.inputs("moods", "them")).facts["page"]))
    assert "label confusion" in page.read_text().replace("_", " ").lower()


def bird() -> tuple[Path, dict[str, str]]:
    columns = {"id": "question_id", "question": "question", "answer": "difficulty", "evidence": "evidence"}
    return given(SQL / "bird_mini" / "mini_dev_sqlite_even.json"), columns


def finqa(folder: Path) -> tuple[Path, dict[str, str]]:
    found = json.loads(given(FINQA / "convfinqa_dev_sample.json").read_text())["dev"]
    file = folder / "numbers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in first_turns(found)))
    return file, {"question": "asked", "answer": "right", "page": "page"}


def first_turns(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        asked, right = entry["dialogue"]["conv_questions"][0], entry["dialogue"]["executed_answers"][0]
        if isinstance(right, float | int):
            yield {"asked": asked, "right": right, "page": entry["doc"]["pre_text"][:500]}


@pytest.mark.parametrize("source", ["bird", "finqa"])
def test_public_data_becomes_a_suite_whose_ends_hold(lab: Lab, tmp_path: Path, source: str) -> None:
    file, columns = bird() if source == "bird" else finqa(tmp_path)
    mapped = [word for ours, theirs in columns.items() for word in ("--map", f"{ours}={theirs}")]
    made = lab.cli("import", "text", str(file), "--suite", "public", "--limit", "12", *mapped)
    assert made.code == 0, made.out
    assert "12 cases with 12 turns" in made.out
    said = lab.cli("validate", "--suite", "public")
    assert said.code == 0
    assert "gold answers score 1.0 and no answer 0.0 on all 12 turns" in said.out


def test_a_column_may_be_a_path_within_one(tmp_path: Path) -> None:
    file = tmp_path / "nested.jsonl"
    file.write_text('{"doc": {"question": "Why?", "gold": ["so"]}, "tags": "a"}\n')
    cases, _ = read_rows(file, None, {"question": "doc.question", "answer": "doc.gold.0", "id": "tags"}, None)
    assert cases == [{"id": "a", "question": "Why?", "answer": "so"}]
    with pytest.raises(UsageError, match=r"no column 'doc\.q'; the file has doc, tags"):
        read_rows(file, None, {"question": "doc.q"}, None)

"""Files as people have them are read, or told in one sentence; nothing of them is lost without a word."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from openpyxl import Workbook

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.operations.imports.importing import import_suite
from eval_pipeline.operations.recorded.entries import read_rows
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import load_suite, read_header
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import Lab

CASES = golden("users_files.yaml")


@pytest.fixture(autouse=True)
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline.suites.cases.rehearse_table", lambda path: None)
    monkeypatch.setattr("eval_pipeline.operations.recorded.entries.rehearse_table", lambda path: None)


def written(folder: Path, case: dict[str, Any]) -> Path:
    """The suite of a golden case."""
    suite = folder / "small"
    suite.mkdir()
    write_files(suite, case)
    header = {"name": "small", "version": "1", "track": "text", "cases": case.get("cases", next(iter(case["files"])))}
    header |= {"columns": case["columns"]} if "columns" in case else {}
    header |= {"options": case.get("options", {"answer": {"form": "text"}})}
    (suite / "suite.yaml").write_text(yaml.safe_dump(header, sort_keys=False))
    return suite


def write_files(folder: Path, case: dict[str, Any]) -> None:
    for name, content in case["files"].items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, str):
            depth = case.get("depth", 5_000)
            text = content.replace("DEEP", "[" * depth + "]" * depth)
            path.write_bytes(text.encode(case.get("encoding", "utf-8")))
        elif "hex" in content:
            path.write_bytes(bytes.fromhex(content["hex"]))
        elif "link" in content:
            os.symlink(content["link"], path)
        elif "parquet" in content:
            pq.write_table(pa.table(content["parquet"]), path)
        else:
            workbook(path, content["sheets"])


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> None:
    book = Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)


@pytest.mark.parametrize("case", CASES["read"], ids=lambda case: case["what"])
def test_what_people_have_is_read(tmp_path: Path, case: dict[str, Any]) -> None:
    found = read_suite(read_header(written(tmp_path, case)))
    answers = [turn.gold.accepted[0] for one in found.cases for turn in one.turns]
    assert [[one.id, one.turns[0].question] for one in found.cases] == [row[:2] for row in case["found"]]
    assert answers == [row[2] for row in case["found"]]
    if "notes" in case:
        assert list(found.notes) == case["notes"]
    if "raw" in case:
        assert json.loads(found.contents[0]) == case["raw"]


@pytest.mark.parametrize("case", CASES["malformed"], ids=lambda case: case["what"])
def test_what_is_wrong_is_one_sentence(tmp_path: Path, case: dict[str, Any]) -> None:
    folder = written(tmp_path, case)
    with pytest.raises(InputError) as refused:
        read_suite(read_header(folder))
    sentences = [str(problem).removeprefix(f"{folder}/") for problem in refused.value.problems]
    assert len(sentences) == len(case["told"]), sentences
    for sentence, told in zip(sentences, case["told"], strict=True):
        assert (sentence[: len(told)] if told.endswith(" ") else sentence) == told


@pytest.mark.parametrize("case", CASES["predictions"], ids=lambda case: case["what"])
def test_predictions_are_read_from_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]
) -> None:
    write_files(tmp_path, case)
    monkeypatch.chdir(tmp_path)
    notes: list[str] = []
    read = read_rows(Path(next(iter(case["files"]))), {"case_id", "response"}, notes.append)
    if "told" in case:
        with pytest.raises(InputError) as refused:
            list(read)
        assert str(refused.value) == case["told"]
        return
    assert [[entry.line, entry.fault or entry.found] for entry in read] == case["rows"]
    assert notes == case.get("notes", [])


def test_an_import_into_the_project_replaces_imports_only(lab: Lab, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_bytes("question;answer\nä;x\n".encode("cp1252"))
    own, at_home = lab.home.data / "suites" / "mine", lab.home.imported_suites / "mine"
    assert import_suite(lab.workspace(), "text", source, "mine", into_data=True).folder == own
    source.write_text("question;answer\na;x\nb;y\n")
    made = import_suite(lab.workspace(), "text", source, "mine", into_data=True)
    assert (made.cases, made.notes) == (2, ("read as CSV in UTF-8 with ';' between cells",))
    with pytest.raises(UsageError, match=r"mine already; delete it, or give another --suite, or replace it by --into"):
        import_suite(lab.workspace(), "text", source, "mine")

    at_home.parent.mkdir(parents=True)
    shutil.copytree(own, at_home)
    (problem,) = lab.workspace().suites["mine"].problems
    assert f"is also at {own}; delete {at_home}, which `import` wrote, or give one of them another" in problem.message
    header = own / "suite.yaml"
    header.write_text(header.read_text().replace("imported from", "made from"))
    shutil.rmtree(at_home)
    with pytest.raises(UsageError, match="was not written by `import`"):
        import_suite(lab.workspace(), "text", source, "mine", into_data=True)


def test_the_hash_covers_what_is_read_through_links(tmp_path: Path) -> None:
    case = next(case for case in CASES["read"] if case["what"].startswith("a link to a folder"))
    folder = written(tmp_path, case)
    before = load_suite(read_header(folder)).content_hash
    (tmp_path / "away" / "c.jsonl").write_text('{"id": "a", "question": "q", "answer": "c"}')
    assert load_suite(read_header(folder)).content_hash != before

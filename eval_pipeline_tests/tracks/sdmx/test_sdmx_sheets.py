"""The workbook of a suite of this track: layout of Overview and Statistics, wrapping, limits, LibreOffice."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from eval_pipeline.core.model import Partition
from eval_pipeline.tracks.sdmx.catalogue.term_lists import ListedTerm, write_terms
from eval_pipeline.tracks.sdmx.sheets.details import Block, conversation_text, details_text
from eval_pipeline_tests.chains import ran
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, raw_case, response

LIMIT = 32_767
TERMS = (
    ("tp", "GDP", "gross domestic product", None),
    ("tp", "GDPPC", "GDP per capita", None),
    ("fp", "GDP_CONST", "gross domestic product constant prices", None),
)
WORKED = """\
INDICATOR
[recall: 1.00, precision: 0.67]
True Positives [2]
  * GDP: gross domestic product
  * GDPPC: GDP per capita
False Negatives [0]
False Positives [1]
  * GDP_CONST: gross domestic product constant prices"""
REST = """\
dimensions not in target
COUNTRY
[recall: n/a, precision: 0.00]
True Positives [0]
False Negatives [0]
False Positives [1]
  * MEX: Mexico"""


def block(dimension: str, *terms: tuple[str, str, str, str | None], **more: Any) -> Block:
    return Block(
        **{
            "data_set": "D:ONE",
            "dimension": dimension,
            "in_target": True,
            "precision": 2 / 3,
            "recall": 1.0,
            "terms": terms,
        }
        | more
    )


EXTRA = block("COUNTRY", ("fp", "MEX", "Mexico", None), in_target=False, precision=0.0, recall=None)


def test_the_cell_is_laid_out_as_in_the_spec() -> None:
    assert details_text([block("INDICATOR", *TERMS)]) == WORKED
    assert details_text([EXTRA, block("INDICATOR", *TERMS)]) == f"{WORKED}\n{REST}"
    assert details_text([]) == ""


def test_the_reason_stands_beside_a_term_that_the_catalogue_lacks() -> None:
    text = details_text([block("X", ("fp", "NONE", "", "unknown_code"), ("fp", "MEX", "Mexiko", "other_name"))])
    lines = text.split("\n")
    assert "  * NONE [not valid: no such code]" in lines
    assert "  * MEX: Mexiko [the catalogue has another name]" in lines


def test_several_data_sets_stand_each_on_a_line_of_its_own() -> None:
    text = details_text([block("A"), block("B", data_set="D:TWO"), block("C")])
    names = [line for line in text.split("\n") if line[0] not in "[TF"]
    assert names == ["D:ONE", "A", "C", "D:TWO", "B"]


def test_several_turns_stand_each_under_its_question() -> None:
    text = conversation_text([("First?", [block("INDICATOR", *TERMS)]), ("and\nthen?", [EXTRA])])
    assert text == f"Turn 1: First?\n{WORKED}\n\nTurn 2: and then?\n{REST}"


@pytest.mark.parametrize("name", ["plain name of a term", "näme with ünits 😀", "_x0041_ and _x0042_"])
def test_two_thousand_terms_are_cut_at_a_line_with_a_note(name: str) -> None:
    text = details_text([block("INDICATOR", *(("tp", f"T{i}", f"{name} {i}", None) for i in range(2000)))])
    assert len(text.encode("utf-16-le")) // 2 <= LIMIT
    assert len(text) > 15_000
    *lines, note = text.split("\n")
    assert lines[-1].startswith("  * T")
    assert note == f"… [cut: {2005 - len(lines):,} more lines; the table sdmx_terms holds every term]"


@pytest.fixture
def workbook(lab: Lab, puppet: type[Puppet]) -> Path:
    """The worked example, a conversation, and a target of 2,000 terms: one is missing, and a data set too many."""
    many = [ListedTerm("D:BIG", "ITEM", f"I{number:04d}", f"item number {number} of many") for number in range(2000)]
    target = {"D:BIG ITEM": [{"id": term.id, "name": term.name} for term in many]}
    cases = {
        "worked": raw_case(("GDP?", {"D:ONE INDICATOR": ["GDP", "GDPPC"]}), tags=["a", "b"]),
        "talk": raw_case(("=1+1", {"D:ONE COUNTRY": ["MEX"]}), ("and?", {})),
        "big": raw_case(("all items", target)),
    }
    folder = lab.suite(cases=[{**raw, "id": id, "name": f"the {id}"} for id, raw in cases.items()], track="sdmx")
    (folder / "structures").mkdir()
    write_terms(folder / "structures" / "terms.csv", [*LISTED, *many])
    lab.versions({"name": "puppet", "provider": "puppet"})
    said: dict[str, Any] = {
        "worked#0": {"D:ONE INDICATOR": ["GDP", "GDPPC", "GDP_CONST"]},
        "talk#0": {"D:ONE COUNTRY": ["MEX", "ARG"]},
        "talk#1": {},
        "big#0": {"D:BIG ITEM": target["D:BIG ITEM"][:-1], "D:TWO COUNTRY": ["MEX"]},
    }
    Puppet.answer = staticmethod(lambda call: response(said[f"{call.case_id}#{call.turn_index}"]))
    lab.evaluate()
    return Path(str(ran(lab.workspace(), Partition("small", "puppet", DAY), "report").facts["workbook"]))


def test_overview_and_statistics_are_those_of_the_spec(workbook: Path) -> None:
    book = load_workbook(workbook)
    assert book.sheetnames == [
        "Overview", "Overview, compact", "Statistics", "By dimension", "Evaluation", "Mistakes", "All statistics",
        "Turns", "Errors", "Complexity", "Cost", "Comparison", "Gold", "Queries",
    ]  # fmt: skip
    sheet = book["Overview"]
    header, *rows = sheet.iter_rows()
    assert [cell.value for cell in header] == [
        "id", "name", "tags", "question", "macro recall", "macro precision", "indicator selection details",
    ]  # fmt: skip
    by_id = {row[0].value: row for row in rows}
    assert [cell.value for cell in by_id["worked"]] == [
        "worked", "the worked", "a, b", "GDP?", 1.0, pytest.approx(2 / 3), WORKED,
    ]  # fmt: skip
    assert [cell.value for cell in by_id["talk"]][3:6] == ["=1+1\nand?", 1.0, 0.75]
    for row in rows:
        assert row[6].alignment.wrap_text
        assert row[6].data_type == "s"
        assert sheet.row_dimensions[row[0].row].height <= 409
    assert "the table sdmx_terms holds every term" in by_id["big"][6].value
    for found in book:
        for line in found.iter_rows(values_only=True):
            assert all(len(value.encode("utf-16-le")) // 2 <= LIMIT for value in line if isinstance(value, str))
    lines = [[value for value in row if value is not None] for row in book["Statistics"].iter_rows(values_only=True)]
    start = lines.index(["Data Query Metrics"])
    assert lines[start + 2][:2] == ["macro precision", pytest.approx((2 / 3 + 0.75 + 0.5) / 3)]
    assert lines[start + 3][:2] == ["macro recall", pytest.approx((1 + 1 + 1999 / 2000) / 3)]
    interval = ["95% low", "95% high", "cases"]
    assert ["tag", "macro precision", *interval, "macro recall", *interval] in lines
    # One case has a precision there, none a recall.
    assert ["D:TWO", 0.0, 1, 0] in lines


@pytest.mark.services("libreoffice")
def test_libreoffice_opens_the_workbook(workbook: Path, tmp_path: Path) -> None:
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "pdf"]
    subprocess.run([*command, "--outdir", str(tmp_path), str(workbook)], check=True, capture_output=True, timeout=180)
    assert (tmp_path / "report.pdf").stat().st_size > 10_000

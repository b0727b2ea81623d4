"""Candidates that the suite's own file gives: how it is checked, what a model is shown, who makes the file."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from openpyxl import load_workbook

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.operations.runs.evaluations import evaluation_of
from eval_pipeline.operations.suite_work.programs import program_output
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import ListedTerm, with_listed, write_terms
from eval_pipeline_plugins.tracks.sdmx.search.given import GivenCandidates, given_turns
from eval_pipeline_plugins.tracks.sdmx.sheets.page import place_sheets
from eval_pipeline_plugins.tracks.sdmx.sheets.statistics import write_statistics
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, raw_case, response, sdmx_lab

CATALOGUE = Catalogue(with_listed([], [*LISTED, ListedTerm("D:ONE", "COUNTRY", "MEX", "Mexico, states")]))
GOLDEN = golden("sdmx_given.yaml")
FILE = "candidates.jsonl"
ASKED = {
    "one": raw_case(("GDP of Mexico", {"D:ONE INDICATOR": ["GDP"], "D:ONE COUNTRY": ["MEX"]})),
    "two": raw_case(("Latvia", {"D:ONE COUNTRY": ["LVA"]}), ("and its people", {"D:ONE INDICATOR": ["POP"]})),
}


def lines_text(*lines: Any) -> bytes:
    return "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines).encode()


def line(case_id: str, turn: int, places: dict[str, list[Any]], **more: Any) -> dict[str, Any]:
    """A line of the file, from `DATA_SET DIMENSION` → terms."""
    entries: dict[str, list[Any]] = {}
    for place, values in places.items():
        data_set, dimension = place.split(" ")
        entries.setdefault(data_set, []).append({"dimension_name": dimension, "values": values})
    told = [{"dataset_id": id, "dimensions": dimensions} for id, dimensions in entries.items()]
    return {"case_id": case_id, "turn": turn, "candidates": told, **more}


GIVEN = [
    line("one", 0, {"D:ONE INDICATOR": ["POP", "GDPPC", "GDP"], "D:ONE COUNTRY": ["EST", "LVA", "LTU", "MEX"]}),
    line("two", 0, {"D:ONE COUNTRY": [{"id": "LVA", "name": "Latvia"}]}, questions=["Latvia"]),
    line("two", 1, {}, questions=["Latvia", "and its people"]),
]


@pytest.mark.parametrize("case", GOLDEN["wrong"], ids=lambda case: case["name"])
def test_wrong_lines_are_told_with_line_and_field(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        given_turns(lines_text(*case["lines"]).split(b"\n"), FILE, CATALOGUE)
    assert [str(problem) for problem in caught.value.problems] == case["problems"]


def test_the_order_is_that_of_the_file_and_an_id_means_all_terms_that_share_it() -> None:
    told = line("c", 0, {"D:ONE COUNTRY": ["EST", "MEX", "EST", {"id": "MEX", "name": "Mexico"}, "LVA"]})
    turns = given_turns([lines_text(told)], FILE, CATALOGUE)
    found = GivenCandidates(FILE, turns, CATALOGUE, 2, 20).candidates("c", 0)
    place = ("D:ONE", "COUNTRY")
    assert [term.pair for term in found.places[place]] == [("EST", "Estonia"), ("MEX", "Mexico")]
    assert found.ranks[place] == {
        ("EST", "Estonia"): 1, ("MEX", "Mexico"): 2, ("MEX", "Mexico, states"): 3, ("LVA", "Latvia"): 4,
    }  # fmt: skip
    assert found.places["D:TWO", "COUNTRY"] == ()
    assert found.ranks["D:TWO", "COUNTRY"] == {}


def test_of_many_data_sets_those_of_the_file_are_shown_in_its_order() -> None:
    turns = given_turns(
        [lines_text(line("c", 0, {"D:TWO COUNTRY": ["MEX"], "D:ONE COUNTRY": ["EST"]}))], FILE, CATALOGUE
    )
    assert GivenCandidates(FILE, turns, CATALOGUE, 2, 1).candidates("c", 0).data_sets == ("D:TWO",)
    assert GivenCandidates(FILE, turns, CATALOGUE, 2, 2).candidates("c", 0).data_sets == ("D:ONE", "D:TWO")


@pytest.fixture
def home(lab: Lab, puppet: type[Puppet]) -> Lab:
    """A suite whose candidates are in a file, two of a dimension being offered; the model selects GDP."""
    sdmx_lab(lab, ASKED, {}, options={"candidates": 2, "candidates_file": FILE})
    given_file(lab).write_bytes(lines_text(*GIVEN))
    Puppet.answer = staticmethod(lambda call: response({"D:ONE INDICATOR": ["GDP"]}))
    return lab


def given_file(lab: Lab) -> Path:
    return lab.home.data / "suites" / "small" / FILE


def shown(case_id: str, turn: int = 0) -> str:
    (call,) = (call for call in Puppet.asked if call.case_id == case_id and call.turn_index == turn)
    return call.prompt.messages[-1].text


def test_a_run_offers_the_files_candidates_and_measures_their_recall(home: Lab) -> None:
    """Ranks of case one: GDP 3, MEX 4; of case two: LVA 1, POP none. Case one finds 0 of 2, case two 1 of 2 at 5."""
    home.evaluate()
    assert "D:ONE INDICATOR: POP = population; GDPPC = GDP per capita\n" in shown("one")
    assert "D:ONE COUNTRY: EST = Estonia; LVA = Latvia\n" in shown("one")
    assert "D:ONE COUNTRY: LVA = Latvia\n" in shown("two")
    assert "D:ONE INDICATOR: none" in shown("two", 1)
    assert home.sql(
        "SELECT turn_id, id, retrieved, retrieval_rank FROM sdmx_terms WHERE verdict <> 'fp' ORDER BY ALL"
    ) == [
        ("small/one#0", "GDP", False, 3),
        ("small/one#0", "MEX", False, 4),
        ("small/two#0", "LVA", True, 1),
        ("small/two#1", "POP", False, None),
    ]
    recall = "SELECT split_value, mean FROM statistics WHERE metric = 'case_retrieval_recall_at_5' ORDER BY ALL"
    assert home.sql(recall) == [("COUNTRY", 1.0), ("INDICATOR", 0.5), ("all", 0.75)]
    assert_reports_show_recall(
        evaluation_of(home.workspace(), "small", "puppet", DAY), home.home.root.parent / "book.xlsx"
    )
    Puppet.reset()
    changed = [line("one", 0, {"D:ONE INDICATOR": ["GDP"], "D:ONE COUNTRY": ["MEX"]}), *GIVEN[1:]]
    given_file(home).write_bytes(lines_text(*changed))
    Puppet.answer = staticmethod(lambda call: response({"D:ONE INDICATOR": ["GDP"]}))
    home.evaluate()
    assert [call.case_id for call in Puppet.asked] == ["one"], "only turns with other candidates are asked again"
    assert "D:ONE INDICATOR: GDP = gross domestic product\n" in shown("one")


def assert_reports_show_recall(evaluation: Evaluation, path: Path) -> None:
    book = Book()
    write_statistics(book, evaluation)
    book.save(path, "book", DAY, "")
    rows = list(load_workbook(path)["Statistics"].iter_rows(max_col=6, values_only=True))
    assert ("INDICATOR", 5, 0.5, 0.0, 1.0, 2) in rows
    assert [row[1:3] for row in rows if row[0] == "all dimensions"] == [(5, 0.75), (20, 0.75), (50, 0.75), (300, 0.75)]
    (sheet,) = (found for found in place_sheets(evaluation) if found.caption.startswith("Recall of the candidates"))
    assert [row[0] for row in sheet.rows] == ["all dimensions", "COUNTRY", "INDICATOR"]
    assert list(sheet.rows[2][1:]) == ["50% [0% to 100%]"] * 4 + ["2"]


def test_the_edition_of_the_data_is_another_with_other_candidates_or_terms(home: Lab) -> None:
    def edition() -> tuple[str, str]:
        ran_of_suite(home.workspace(), "small", "raw_dataset", "cases")
        ((data, gold),) = home.sql("SELECT data_hash, gold_hash FROM suite_editions")
        return data, gold

    terms = home.home.data / "suites" / "small" / "structures" / "terms.csv"
    found = [edition()]
    changed = given_file(home).read_text().replace('"GDP"', '"GDP_CONST"', 1)
    assert changed != given_file(home).read_text()
    given_file(home).write_text(changed)
    found.append(edition())
    write_terms(terms, [*LISTED, ListedTerm("D:ONE", "COUNTRY", "PER", "Peru")])
    found.append(edition())
    assert len({data for data, _ in found}) == 3
    assert len({gold for _, gold in found}) == 1


def test_missing_turns_and_other_questions_leave_a_case_out_and_unused_lines_are_noted(home: Lab) -> None:
    stale = line("two", 1, {}, questions=["Lithuania", "and its people"])
    unused = [line("tow", 0, {}), line("one", 1, {})]
    given_file(home).write_bytes(lines_text(*GIVEN[:2], stale, *unused))
    said = home.cli("validate", "--suite", "small")
    assert said.code == 2
    told = "candidates.jsonl:3: the candidates of turn 1 were made for other questions; the case is left out"
    assert f"small/cases/two.yaml:14: conversation.1: {told}" in " ".join(said.err.split())
    assert "candidates.jsonl:4: case_id: no case that can be read has the id 'tow'" in said.err
    assert "candidates.jsonl:5: turn: expected 0 to 0 for case 'one', found 1" in said.err
    given_file(home).write_bytes(lines_text(GIVEN[0], GIVEN[2]))
    assert "candidates.jsonl has no candidates for turn 0 of case 'two'" in home.cli("validate").err


def test_the_file_has_to_be_in_the_suites_folder(home: Lab) -> None:
    path = given_file(home).parent / "suite.yaml"
    other = given_file(home).rename(given_file(home).parent.parent / FILE)
    options = {"candidates_file": f"../{other.name}"}
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "options": options}))
    told = f"options.candidates_file: expected the name of a file in the suite's folder, found '../{FILE}'"
    assert told in home.cli("validate").err


PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    values = ["GDP", "POP"] if "GDP" in asked["questions"][-1] else ["POP"]
    dimensions = [{"dimension_name": "INDICATOR", "values": values}]
    candidates = [{"dataset_id": "D:ONE", "dimensions": dimensions}]
    print(json.dumps({"case_id": asked["case_id"], "turn": asked["turn"], "candidates": candidates}))
"""


@pytest.mark.always
def test_a_program_or_the_search_makes_the_file_though_the_present_one_is_wrong(home: Lab) -> None:
    given_file(home).write_text("not yet\n")
    program = home.home.root.parent / "search.py"
    program.write_text(PROGRAM)
    command = shlex.join([sys.executable, str(program)])
    said = home.cli("candidates", "--suite", "small", "--command", command, "--output", str(given_file(home)))
    assert (said.code, said.out) == (0, "")
    made = [json.loads(text) for text in given_file(home).read_text().splitlines()]
    assert [(found["case_id"], found["turn"], found["questions"]) for found in made] == [
        ("one", 0, ["GDP of Mexico"]),
        ("two", 0, ["Latvia"]),
        ("two", 1, ["Latvia", "and its people"]),
    ]
    first = {"dimension_name": "INDICATOR", "values": [
        {"id": "GDP", "name": "gross domestic product"}, {"id": "POP", "name": "population"},
    ]}  # fmt: skip
    assert made[0]["candidates"] == [{"dataset_id": "D:ONE", "dimensions": [first]}]
    assert home.cli("validate").code == 0
    program.write_text(PROGRAM.replace("    print", "    if asked['turn'] == 0: print"))
    said = home.cli("candidates", "--suite", "small", "--command", command)
    assert "gave no candidates for turn 1 of case 'two'" in said.err
    program.write_text(PROGRAM.replace('asked["turn"],', 'asked["turn"] + 1,'))
    said = home.cli("candidates", "--suite", "small", "--command", command)
    assert "search.py:1: nothing was asked about turn 1 of case 'one'" in said.err
    program.write_text(PROGRAM.replace('"POP"', '"PIP"'))
    said = home.cli("candidates", "--suite", "small", "--command", command)
    assert f"output of {command}:1: candidates.0.dimensions.0.values.1: dimension 'INDICATOR'" in said.err
    folder = given_file(home).parent
    for place in (folder, folder / "suite.yaml" / "below"):
        assert f"error: cannot write {place}" in home.cli("candidates", "--suite", "small", "-o", str(place)).err
    assert not list(folder.parent.glob(".*")), "nothing half written stays"
    searched = home.cli("candidates", "--suite", "small")
    (found,) = json.loads(searched.out.splitlines()[1])["candidates"][:1]
    (country,) = (entry for entry in found["dimensions"] if entry["dimension_name"] == "COUNTRY")
    assert country["values"][0] == {"id": "LVA", "name": "Latvia"}


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import sys; sys.exit('no index there')", "ended with exit code 1: no index there"),
        ("import sys; sys.exit(3)", "ended with exit code 3 and wrote nothing to standard error"),
        ("import time; time.sleep(60)", "took more than 0.3 seconds"),
        ("print('x' * 200)", "wrote more than 100 bytes"),
    ],
)
def test_a_program_that_fails_is_told_in_one_sentence(program: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        program_output([sys.executable, "-c", program], b"", 0.3 if "sleep" in program else 60, most=100)
    assert "\n" not in str(caught.value)


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="'no-such-program' cannot be started: No such file or directory"):
        program_output(["no-such-program"], b"", 1)

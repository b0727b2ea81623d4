"""The suite's file format: what is read, and one sentence with file and line for what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.suites import SuiteCases, read_header, read_suite
from eval_pipeline.tracks.sdmx.catalogue.term_lists import write_terms
from eval_pipeline.tracks.sdmx.track import TRACK
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, raw_case, retriever, sample_cases

GOOD = """\
id: good
name: good one
conversation:
- role: user
  content: How many people live in Mexico?
  target:
    indicator_selection:
    - dataset_id: D:ONE
      dimensions:
      - dimension_name: COUNTRY
        values:
        - {id: MEX, name: Mexico}
"""


def suite(folder: Path, **files: str) -> SuiteCases:
    made = folder / "small"
    (made / "cases").mkdir(parents=True)
    (made / "structures").mkdir()
    (made / "suite.yaml").write_text("name: small\nversion: '1'\ntrack: sdmx\ncases: cases/*.yaml\n")
    write_terms(made / "structures" / "terms.csv", LISTED)
    for name, text in {"good": GOOD, **files}.items():
        (made / "cases" / f"{name}.yaml").write_text(text)
    return read_suite(read_header(made))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("D:ONE", "D:THREE", "small/cases/bad.yaml:8: {}0.dataset_id: the catalogue has no data set 'D:THREE'; it has"),
        ("COUNTRY", "AREA", "bad.yaml:10: {}0.dimensions.0.dimension_name: data set 'D:ONE' has no dimension 'AREA'"),
        (
            "id: MEX",
            "id: MXE",
            "bad.yaml:12: {}0.dimensions.0.values.0.id: dimension 'COUNTRY' of data set 'D:ONE' has",
        ),
        ("name: Mexico", "name: Mejico", "bad.yaml:12: {}0.dimensions.0.values.0.name: the catalogue calls 'MEX' of"),
        ("role: user", "role: system", "bad.yaml:4: conversation.0.role: expected 'user', found 'system'"),
        ("  content: How many people live in Mexico?\n", "", "bad.yaml:4: conversation.0.content: is missing"),
        ("name: good one", "nane: good one", "bad.yaml:2: nane: unknown field; allowed: "),
        ("indicator_selection:", "indicator_selection: [", "small/cases/bad.yaml:8: does not parse"),
        ("conversation:\n", "conversation: []\nrest:\n", "bad.yaml:3: conversation: expected at least 1 user turn"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line_and_the_other_cases_are_read(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    text = GOOD.replace("id: good", "id: bad")
    assert old in text
    found = suite(tmp_path, bad=text.replace(old, new))
    assert [case.id for case in found.cases] == ["good"]
    told = [str(problem) for problem in found.problems]
    assert any(expected.format("conversation.0.target.indicator_selection.") in sentence for sentence in told), told


def test_an_id_used_twice_leaves_the_second_case_out(tmp_path: Path) -> None:
    found = suite(tmp_path, zweite=GOOD)
    assert len(found.cases) == 1
    (problem,) = found.problems
    assert str(problem) == "small/cases/zweite.yaml:1: id: duplicate id 'good', first used at small/cases/good.yaml:1"


def test_a_suite_without_any_good_case_fails_with_everything_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no data set 'D:THREE'"):
        suite(tmp_path, good=GOOD.replace("D:ONE", "D:THREE"))


def test_the_extra_fields_are_kept() -> None:
    raw = raw_case(
        ("who?", {"D:ONE COUNTRY": ["MEX"], "D:TWO COUNTRY": ["ARG"]}),
        ("and?", {}),
        tags=["a", "b"],
        comments="none",
        source="a paper",
        rejected_datasets=["D:FOUR", "D:FIVE"],
    )
    case = TRACK.read_case(raw, "suite", "f.yaml", 3, retriever())
    assert case.tags == ("a", "b")
    assert case.features == {
        "has_several_data_sets": True,
        "has_empty_target": True,
        "num_dialogue_turns": 2,
        "rejected_data_sets": "D:FOUR, D:FIVE",
    }
    assert [turn.id for turn in case.turns] == ["suite/c1#0", "suite/c1#1"]
    assert [TRACK.gold_is_empty(turn) for turn in case.turns] == [False, True]
    assert TRACK.expected_text(case.turns[0]) == "D:ONE COUNTRY: MEX (Mexico)\nD:TWO COUNTRY: ARG (Argentina)"
    assert TRACK.gold_json(case.turns[1]) == {"indicator_selection": []}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"response": "text"}, "text"),
        ({"response": {"indicator_selection": []}}, '{"indicator_selection":[]}'),
    ],
)
def test_recorded_selections_are_taken_as_text_or_json(row: dict[str, Any], expected: str) -> None:
    assert TRACK.from_recorded(row) == expected


@pytest.mark.parametrize("row", [{"answer": "MEX"}, {"response": {"plan": []}}, {}])
def test_other_predictions_are_refused_in_a_sentence(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a prediction of track sdmx needs 'response' with 'indicator_selection'"):
        TRACK.from_recorded(row)


def test_the_shipped_suite_has_what_the_spec_asks_for() -> None:
    cases = sample_cases()
    assert len(cases) >= 60
    turns = [turn for case in cases for turn in case.turns]
    assert any(TRACK.gold_is_empty(turn) for turn in turns)
    assert max(TRACK.gold_complexity(turn) for turn in turns) >= 10
    assert sum(case.features["has_several_data_sets"] is True for case in cases) >= 5
    assert sum(len(case.turns) > 1 for case in cases) >= 5
    assert len({case.id for case in cases}) == len(cases)
    assert sum("group" in case.tags for case in cases) >= 10

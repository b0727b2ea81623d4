"""The suite's file format, cards of a turn, the ends of the scale, and responses damaged in a known way."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Case, Turn
from eval_pipeline.stages.checks.ends import check_ends
from eval_pipeline.suites.cases import SuiteCases, read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import TableCard
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import write_terms
from eval_pipeline_plugins.tracks.sdmx.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.sdmx.helpers import (
    LISTED,
    attempt_at,
    case_of,
    evidence_of,
    measured,
    raw_case,
    response,
    retriever,
    sample_cases,
    scores,
)

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


GOLDEN = {case["name"]: case for case in golden("sdmx_cards.yaml")}


def seen_turn(target: dict, text: str) -> Seen:
    case = case_of(("what?", target))
    turn = case.turns[0]
    tried = attempt_at(case, turn, text)
    return Seen(case, turn, [tried], evidence_of(case, turn, tried))


@pytest.mark.parametrize("name", GOLDEN)
def test_cards_of_a_turn(name: str) -> None:
    told = GOLDEN[name]
    found = card_lines(TRACK.cards(seen_turn(told["target"], response(told["selected"]))))
    assert {title: found.get(title) for title in told["cards"]} == told["cards"]
    assert not found.keys() & set(told.get("absent", ()))
    # dicts know their order: what is wrong comes first
    assert [title for title in found if title in told["cards"]] == list(told["cards"])


def test_a_response_that_cannot_be_read_says_why() -> None:
    found = card_lines(TRACK.cards(seen_turn({"D:ONE COUNTRY": ["EST"]}, "no idea")))
    (line,) = found["Why there is no selection"]
    assert line.startswith("error: the response holds no JSON")
    assert line.endswith("{wrong}")
    assert "What was to be selected" in found


def test_without_an_attempt_there_is_the_target() -> None:
    case = case_of(("what?", {"D:ONE COUNTRY": ["EST"]}))
    found = card_lines(TRACK.cards(Seen(case, case.turns[0], (), ())))
    assert found["What was to be selected"][1:] == ["D:ONE | COUNTRY | EST | Estonia"]


def test_a_long_selection_is_cut_with_what_is_wrong_in_it() -> None:
    many = [{"id": f"X{n}", "name": "x"} for n in range(500)]
    cards = TRACK.cards(seen_turn({"D:ONE COUNTRY": ["EST"]}, response({"D:ONE COUNTRY": ["EST", *many]})))
    (table,) = [card for card in cards if card.title == "The selection, which did not run"]
    assert isinstance(table, TableCard)
    assert (len(table.rows), table.left_out) == (30, 471)
    assert table.remark.endswith("500 of 501 codes.")


def test_what_a_model_writes_stays_text() -> None:
    hostile = "<script>alert(1)</script>"
    text = response({f"{hostile} {hostile}": [{"id": hostile, "name": hostile}]})
    found = card_lines(TRACK.cards(seen_turn({"D:ONE COUNTRY": ["EST"]}, text)))
    assert f"{hostile}: not in the catalogue{{extra}}" in found["Data sets"]


COUNTS = {
    "swapped_terms": (1, 1),
    "missing_terms": (0, 1),
    "extra_dimension": (1, 0),
    "extra_terms": (1, 0),
}
"""False positives and false negatives that a damage makes; everything else of the target stays right."""


@pytest.fixture(scope="module")
def turns() -> list[tuple[Case, Turn]]:
    """Of the shipped suite."""
    return [(case, turn) for case in sample_cases() for turn in case.turns]


def test_gold_scores_1_and_nothing_0_on_the_shipped_suite_and_the_oracle_survives_the_record(
    turns: list[tuple[Case, Turn]],
) -> None:
    verdict = check_ends(TRACK, sample_cases())
    assert verdict.passed, verdict.facts
    assert verdict.facts["turns"] == len(turns) >= 80
    for case, turn in turns:
        attempt = attempt_at(case, turn, TRACK.oracle(turn))
        assert TRACK.artefact_from_json(TRACK.artefact_json(attempt.artefact)) == attempt.artefact
        found = measured(case, turn, attempt)
        assert (found["macro_f1"], TRACK.score(found)) == (1.0, 1.0)


@pytest.mark.parametrize("mode", sorted(set(TRACK.failure_modes) - {"no_data"}))
def test_simulated_selections_are_found_as_they_were_made(turns: list[tuple[Case, Turn]], mode: str) -> None:
    """With just the counts they were made with, where the mode has any."""
    made = 0
    for case, turn in turns:
        text = TRACK.damage(case, turn, mode, Random(f"{turn.id} {mode}"))
        if text is None:
            continue
        made += 1
        found = scores(case, turn, text)
        assert found["failure_mode"] == mode
        if mode in COUNTS:
            extra, missing = COUNTS[mode]
            counts = (found["true_positives"], found["false_positives"], found["false_negatives"])
            assert counts == (TRACK.gold_complexity(turn) - missing, extra, missing), (turn.id, text)
            assert not found["exact_selection"]
    assert made >= 70


def test_a_swapped_term_is_called_nearly_the_same() -> None:
    case = case_of(("GDP?", {"D:ONE INDICATOR": ["GDP"]}))
    drawn = {TRACK.damage(case, case.turns[0], "swapped_terms", Random(seed)) for seed in range(20)}
    assert drawn
    assert all(text is not None and ("GDP_CONST" in text or "GDPPC" in text) for text in drawn)


def test_one_country_is_missing_where_several_were_asked_for() -> None:
    case = case_of(("The Baltics", {"D:ONE COUNTRY": ["EST", "LVA", "LTU"], "D:ONE INDICATOR": ["POP"]}))
    for seed in range(10):
        text = TRACK.damage(case, case.turns[0], "missing_terms", Random(seed))
        assert text is not None
        (places,) = json.loads(text)["indicator_selection"]
        kept = {found["dimension_name"]: len(found["values"]) for found in places["dimensions"]}
        assert kept == {"COUNTRY": 2, "INDICATOR": 1}


def test_damage_repeats_with_its_seed() -> None:
    case = case_of(("GDP?", {"D:ONE INDICATOR": ["GDP", "POP"], "D:ONE COUNTRY": ["MEX"]}))
    turn = case.turns[0]
    for mode in TRACK.failure_modes:
        assert TRACK.damage(case, turn, mode, Random(3)) == TRACK.damage(case, turn, mode, Random(3))


@pytest.mark.parametrize("mode", ["swapped_terms", "missing_terms", "extra_dimension", "extra_terms", "other"])
def test_what_an_empty_target_cannot_show_is_none(mode: str) -> None:
    found = case_of(("hello", {}))
    assert TRACK.damage(found, found.turns[0], mode, Random(1)) is None


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown failure mode 'sign_error'"):
        TRACK.damage(found := case_of(("hello", {})), found.turns[0], "sign_error", Random(1))

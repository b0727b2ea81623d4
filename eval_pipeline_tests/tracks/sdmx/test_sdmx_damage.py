"""The ends of the scale, and responses damaged in a known way: the metrics count just what was done."""

import json
from random import Random

import pytest

from eval_pipeline.core.model import Case, Turn
from eval_pipeline.stages.checks.verdicts import check_ends
from eval_pipeline.tracks.sdmx.track import TRACK
from eval_pipeline_tests.tracks.sdmx.helpers import attempt_at, case_of, measured, sample_cases, scores

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

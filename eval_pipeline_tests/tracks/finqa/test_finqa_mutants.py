"""Mutants of gold programs, and the share of them that the answers of a suite tell from the gold."""

from typing import Any

import pytest

from eval_pipeline.operations.mutation import suite_mutants
from eval_pipeline.tracks.finqa.mutants import program_mutants
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline.variants.score import mutation_score
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.finqa.helpers import gold_turn, raw_case, sample_cases

TABLE = [["", "2021", "2020"], ["Sales", "120", "80"], ["Costs", "90", "(60)"]]


@pytest.mark.parametrize("entry", golden("finqa_mutants.yaml"), ids=lambda entry: entry["program"])
def test_mutants_by_golden_cases(entry: dict[str, Any]) -> None:
    raw = raw_case(gold_turn(entry["program"], entry["answer"]))
    raw["document"] = {**raw["document"], "table": TABLE}
    (turn,) = (case := TRACK.read_case(raw, "s", "f", 1)).turns
    assert [words for words, _ in program_mutants(turn.gold.program, turn.gold.table)] == entry["mutants"]
    found = TRACK.turn_mutants(case, turn)
    assert found is not None
    assert found.mutants == len(entry["mutants"])
    assert [one.words for one in found.survivors] == entry["same"]


def test_a_program_that_does_not_give_its_answer_has_no_score() -> None:
    case = TRACK.read_case(raw_case(gold_turn("add(1, 2)", 4.0)), "s", "f", 1)
    assert TRACK.turn_mutants(case, case.turns[0]) is None


def test_the_sample_tells_nearly_all_mutants_of_numbers_from_its_gold() -> None:
    """A yes or no is also reached by many a wrong calculation; numbers are not."""
    cases = sample_cases()
    texts = {turn.id for case in cases for turn in case.turns if isinstance(turn.gold.expected, str)}
    turns = [*suite_mutants(TRACK, cases)]
    numbers = mutation_score([one for one in turns if one.turn_id not in texts], {})
    assert numbers.mutants > 1000
    assert numbers.share is not None
    assert numbers.share >= 0.97

"""The gold as a response, and responses that go wrong as drawn."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline_plugins.tracks.finqa.track import TRACK

from .helpers import attempt_at, case_of, gold_turn, measured, sample_cases, validation_of

PERFECT = ("logic_recall", "logic_precision", "logic_f1", "operation_order", "operand_recall", "program_match")
FURTHER = (
    *(
        "exp(1.5, const_2)",
        "greater(412.5, 371)",
        "multiply(12.5%, 412.5)",
        "table_max(net sales, none), subtract(#0, 188)",
    ),
    *("table_sum(2018)", "subtract(-30.25, 7), divide(#0, -30.25), multiply(#1, const_100)", "table_min(costs, none)"),
    *("table_average(net sales, none), divide(#0, const_3), add(#1, #0)", "divide(5.5, 7), exp(#0, const_2)"),
)
"""Gold programs that the sample suite has few of."""


def test_the_oracle_is_right_in_every_respect() -> None:
    further = case_of(*(gold_turn(program) for program in FURTHER))
    turns = [(case, turn) for case in (*sample_cases(), further) for turn in case.turns]
    assert len(turns) > 100
    for case, turn in turns:
        response = TRACK.oracle(turn)
        attempt = attempt_at(case, turn, response)
        found = measured(case, turn, attempt)
        assert found["numerical_match"] is True, turn
        assert {name: found[name] for name in PERFECT} == dict.fromkeys(PERFECT, 1), turn
        assert found["partial_credit"] == 1.0
        assert validation_of(case, response).verdict != "invalid"
        assert TRACK.artefact_from_json(TRACK.artefact_json(attempt.artefact)) == attempt.artefact


def _drawn_and_found(cases: Sequence[Case], seed: int) -> Counter[tuple[str, str | None]]:
    found: Counter[tuple[str, str | None]] = Counter()
    for case in cases:
        for turn in case.turns:
            for mode in TRACK.failure_modes:
                response = TRACK.damage(case, turn, mode, Random(f"{seed} {turn.id} {mode}"))
                if response is not None:
                    shown = measured(case, turn, attempt_at(case, turn, response))["failure_mode"]
                    found[mode, shown] += 1
    return found


RARE = {"inherited_error": 0.0, "other": 0.0, "swapped_operands": 0.25, "wrong_year": 0.0, "wrong_row": 0.0}
"""Modes that most golds cannot show: that inherit, or that need two operands in an order, or a number of the table."""


def test_what_is_drawn_is_what_is_found_in_the_sample_suite() -> None:
    assert [TRACK.check_gold(case) for case in sample_cases()] == [[]] * len(sample_cases())
    turns, found = sum(len(case.turns) for case in sample_cases()), _drawn_and_found(sample_cases(), 2)
    astray = {pair: count for pair, count in found.items() if pair[0] != pair[1]}
    assert sum(astray.values()) <= 0.03 * found.total(), astray
    for mode in TRACK.failure_modes:
        assert found[mode, mode] >= RARE.get(mode, 0.9) * turns, (mode, found)
    assert found["wrong_row", "wrong_row"] > 0.8 * turns
    assert found["wrong_year", "wrong_year"] > 0.7 * turns  # some tables name no periods


def test_damage_repeats_with_its_seed_and_varies_without() -> None:
    case = case_of(gold_turn("subtract(412.5, 371.0), divide(#0, 371.0)"))
    turn = case.turns[0]
    for mode in TRACK.failure_modes:
        assert TRACK.damage(case, turn, mode, Random(3)) == TRACK.damage(case, turn, mode, Random(3))
    broken = [TRACK.damage(case, turn, "execution_error", Random(seed)) or "" for seed in range(40)]
    case = case_of(gold_turn("412.5"))
    outcomes = [attempt_at(case, case.turns[0], text).outcome for text in broken]
    assert len({str(outcome) for outcome in outcomes}) > 8
    assert {getattr(outcome, "error_class", None) for outcome in outcomes} == {"syntax_error", "value_error"}


@pytest.mark.parametrize(
    ("turn", "mode"),
    [
        (gold_turn("greater(2, 1)"), "sign_error"),
        (gold_turn("greater(2, 1)"), "scale_error"),
        (gold_turn("greater(2, 1)"), "rounding"),
        (gold_turn("412.5"), "rounding"),
        (gold_turn("subtract(5.5, 5.5)", 0), "sign_error"),
        (gold_turn("multiply(const_2, const_3)", 6), "wrong_operands"),
    ],
)
def test_what_a_gold_cannot_show_is_none(turn: dict[str, Any], mode: str) -> None:
    found = case_of(turn)
    assert TRACK.damage(found, found.turns[0], mode, Random(1)) is None


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown failure mode 'hallucination'"):
        TRACK.damage(found := case_of(gold_turn("5.5")), found.turns[0], "hallucination", Random(1))

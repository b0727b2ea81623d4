"""The gold as a response, and responses that go wrong as drawn."""

from collections import Counter
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eval_pipeline.core.model import Case
from eval_pipeline.core.numbers import number_text
from eval_pipeline.tracks.finqa.track import TRACK

from .helpers import ROOT, TABLE, attempt_at, case_of, gold_turn, measured, validation_of

SAMPLE = ROOT / "data" / "suites" / "finqa_sample" / "cases"
OPERATIONS = ("add", "subtract", "multiply", "divide", "exp", "greater")
PERFECT = ("logic_recall", "logic_precision", "logic_f1", "operation_order", "operand_recall", "program_match")


def random_program(rng: Random) -> str:
    """A gold program: mostly of one to four steps, sometimes a number or a table operation."""
    if rng.random() < 0.25:
        return _operand(rng)
    steps = []
    for index in range(rng.choice((1, 1, 2, 2, 3, 4))):
        name = rng.choices(OPERATIONS, (3, 5, 2, 5, 0.2, 0.3))[0]
        first = f"#{rng.randrange(index)}" if index and rng.random() < 0.8 else _operand(rng)
        second = rng.choice(("const_100", "const_2", "const_3")) if rng.random() < 0.2 else _operand(rng)
        second = "const_2" if name == "exp" else second
        steps.append(f"{name}({first}, {second})" if rng.random() < 0.9 else "table_average(net sales, none)")
    return ", ".join(steps)


def _operand(rng: Random) -> str:
    value = rng.choice((rng.uniform(0.1, 9), rng.uniform(10, 900), rng.uniform(1e3, 1e6), -rng.uniform(1, 50)))
    return f"{value:.{rng.choice((0, 1, 2))}f}" if rng.random() < 0.93 else f"{rng.uniform(1, 90):.1f}%"


def random_turn(rng: Random) -> dict[str, Any] | None:
    turn = gold_turn(random_program(rng))
    answer = turn["answer"]
    if TRACK.check_gold(case_of(turn)) or (isinstance(answer, float) and not 1e-9 < abs(answer) < 1e12):
        return None
    if not isinstance(answer, float):
        return {**turn, "printed": answer}
    percent = abs(answer) < 2 and rng.random() < 0.7
    decimals = rng.choice((0, 1, 2))
    printed = f"{100 * answer:.{decimals}f}%" if percent else f"{answer:.{decimals}f}"
    return {**turn, "answer": float(number_text(round(answer, 5) or answer)), "printed": printed}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_the_oracle_is_right_in_every_respect(seed: int) -> None:
    turn = random_turn(Random(seed))
    assume(turn is not None)
    assert turn is not None
    case = case_of(turn)
    response = TRACK.oracle(case.turns[0])
    found = measured(case, case.turns[0], attempt_at(case, case.turns[0], response))
    assert found["numerical_match"] is True
    assert {name: found[name] for name in PERFECT} == dict.fromkeys(PERFECT, 1)
    assert found["partial_credit"] == 1.0
    assert validation_of(case, response).verdict != "invalid"


def _drawn_and_found(cases: list[Case], seed: int) -> Counter[tuple[str, str | None]]:
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


def _check(found: Counter[tuple[str, str | None]], turns: int, possible: float) -> None:
    astray = {pair: count for pair, count in found.items() if pair[0] != pair[1]}
    assert sum(astray.values()) <= 0.03 * found.total(), astray
    for mode in TRACK.failure_modes:
        assert found[mode, mode] >= RARE.get(mode, possible) * turns, (mode, found)


def test_what_is_drawn_is_what_is_found_in_random_programs() -> None:
    rng = Random(7)
    drawn = (random_turn(rng) for _ in range(200))
    turns = [{**turn, "question": f"question {index}"} for index, turn in enumerate(drawn) if turn is not None]
    assert len(turns) > 100
    found = _drawn_and_found([case_of(*turns)], 1)
    _check(found, len(turns), 0.8)  # some random programs have no literal that matters


def test_what_is_drawn_is_what_is_found_in_the_sample_suite() -> None:
    if not SAMPLE.exists():
        pytest.skip("the suite data/suites/finqa_sample is absent")
    files = sorted(SAMPLE.glob("*.yaml"))
    cases = [
        TRACK.read_case(yaml.safe_load(file.read_text(encoding="utf-8")), "finqa_sample", file.name, 1)
        for file in files
    ]
    assert [TRACK.check_gold(case) for case in cases] == [[]] * len(cases)
    turns, found = sum(len(case.turns) for case in cases), _drawn_and_found(cases, 2)
    _check(found, turns, 0.9)
    assert min(found[mode, mode] for mode in ("wrong_year", "wrong_row")) > 0.8 * turns


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


def test_oracle_reads_percent_literals_and_rows() -> None:
    case = case_of(
        gold_turn("multiply(12.5%, 412.5)"),
        gold_turn("table_max(net sales, none), subtract(#0, 188)"),
        gold_turn("table_sum(2018)"),
    )
    assert TABLE[1][0] == "net sales"
    for turn in case.turns:
        attempt = attempt_at(case, turn, TRACK.oracle(turn))
        assert TRACK.artefact_from_json(TRACK.artefact_json(attempt.artefact)) == attempt.artefact
        found = measured(case, turn, attempt)
        assert (found["numerical_match"], found["program_match"]) == (True, True)

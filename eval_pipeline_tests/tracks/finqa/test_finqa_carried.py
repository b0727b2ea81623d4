"""Carried values written out: on conversations made here, on the public runs, and on answers wrong on purpose."""

from random import Random

import pytest
import yaml

from eval_pipeline.core.model import Case
from eval_pipeline.tracks.finqa.carried import program_text
from eval_pipeline.tracks.finqa.metrics.failure_mode import FAILURE_MODES
from eval_pipeline.tracks.finqa.program import parse_program
from eval_pipeline.tracks.finqa.track import TRACK

from .helpers import ROOT, answered, attempt_at, case_of, gold_turn, measured_conversation
from .shared_sample import cases, scored

NET_CASH = case_of(
    gold_turn("404436"),
    gold_turn("subtract(404436, 476915)"),
    gold_turn("subtract(404436, 476915), divide(#0, 476915)"),
)


def calculation(text: str) -> str:
    return f'{{"calculation": "{text}"}}'


def test_a_carried_value_is_the_calculation_that_gave_it() -> None:
    *_, last = answered(NET_CASH, calculation("404436"), calculation("404436 - 476915"), calculation("-72479 / 476915"))
    assert last["program_match"] is True
    assert last["program_match_as_written"] is False
    assert (last["logic_recall"], last["logic_recall_as_written"]) == (1.0, 0.5)
    assert (last["logic_precision"], last["operation_order"]) == (1.0, 1.0)
    assert (last["operand_recall"], last["operand_recall_as_written"]) == (1.0, 0.5)
    assert last["resolved_plan_text"] == "subtract(404436, 476915), divide(#0, 476915)"
    assert last["resolved_program_text"] is None


@pytest.mark.parametrize("history", ["gold", "own"])
@pytest.mark.parametrize(
    "carried", ["-72479", "-72479.0", "72479 * const_m1"], ids=["just so", "digits", "turned round"]
)
def test_signs_and_digits_do_not_matter(carried: str, history: str) -> None:
    texts = ["404436", "404436 - 476915", f"({carried}) / 476915"]
    *_, last = answered(NET_CASH, *map(calculation, texts), history=history)
    assert last["program_match"] is True


def test_rounded_as_written_and_in_percent() -> None:
    case = case_of(gold_turn("divide(188, 412.5)", printed="45.6%"), gold_turn("divide(188, 412.5), multiply(#0, 371)"))
    for share in ("0.4558", "45.58%", "0.456"):
        assert answered(case, calculation("188 / 412.5"), calculation(f"{share} * 371"))[1]["program_match"] is True
    for other in ("0.4562", "0.45", "0.5"):
        assert answered(case, calculation("188 / 412.5"), calculation(f"{other} * 371"))[1]["program_match"] is False
    shown = answered(case, calculation("188 / 412.5"), calculation("45.58 * 371 / 100"))[1]
    assert shown["program_match"] is True


def test_a_number_of_the_page_is_no_rounded_answer() -> None:
    case = case_of(gold_turn("divide(826, 2)"), gold_turn("subtract(412.5, 371)"))
    *_, last = answered(case, calculation("826 / 2"), calculation("412.5 - 371"))
    assert last["program_match"] is True
    assert last["resolved_plan_text"] is None


def test_a_wrong_answer_stands_for_what_the_model_did() -> None:
    texts = ["404436", "404436 - 371", "404065 / 476915"]
    *_, last = answered(NET_CASH, *map(calculation, texts), history="own")
    assert last["program_match"] is False
    assert last["resolved_plan_text"] == "subtract(404436, 371), divide(#0, 476915)"


def test_whose_program_a_number_stands_for_follows_the_history() -> None:
    texts = ["404436", "-2 * 36239.5", "-72479 / 476915"]
    by_history = {
        history: answered(NET_CASH, *map(calculation, texts), history=history)[2] for history in ("gold", "own")
    }
    assert by_history["gold"]["program_match"] is True
    assert by_history["own"]["program_match"] is False


def test_chains_are_written_out_to_the_end() -> None:
    case = case_of(
        gold_turn("add(5829, 148527)"),
        gold_turn("add(5829, 148527), subtract(#0, 412.5)"),
        gold_turn("add(5829, 148527), subtract(#0, 412.5), divide(#1, 371)"),
    )
    texts = ["5829 + 148527", "154356 - 412.5", "153943.5 / 371"]
    *_, last = answered(case, *map(calculation, texts))
    assert (last["program_match"], last["logic_recall"]) == (True, 1.0)


def test_the_gold_may_carry_what_the_plan_writes_out() -> None:
    case = case_of(gold_turn("subtract(412.5, 188)"), gold_turn("divide(224.5, 188)"))
    *_, last = answered(case, calculation("412.5 - 188"), calculation("(412.5 - 188) / 188"))
    assert (last["program_match"], last["program_match_as_written"]) == (True, False)
    assert last["resolved_program_text"] == "subtract(412.5, 188), divide(#0, 188)"


def test_a_turn_that_was_not_asked_still_has_a_gold_answer() -> None:
    said = NET_CASH.turns[2]
    (last,) = measured_conversation(NET_CASH, [(said, [attempt_at(NET_CASH, said, calculation("-72479 / 476915"))])])
    assert last["program_match"] is True
    assert last["right_after_right"] is None


def _reasoned(run: str, history: str) -> tuple[int, int, int]:
    """Right turns of two or more gold operations with a plan, and those whose plan matches: as written, resolved."""
    turns = [
        found
        for found in scored(run, history).values()
        if found["numerical_match"] and found["gold_operations"] >= 2 and found["plan_program"] is not None
    ]
    return (
        len(turns),
        sum(bool(found["program_match_as_written"]) for found in turns),
        sum(bool(found["program_match"]) for found in turns),
    )


@pytest.mark.parametrize("history", ["gold", "own"])
def test_most_right_turns_of_the_public_runs_reason_as_the_gold(history: str) -> None:
    turns, written, resolved = _reasoned("a", history)
    assert turns == 114
    assert written == 22
    assert resolved / turns >= 0.85
    assert resolved == {"gold": 112, "own": 111}[history]


def test_of_wrong_turns_of_the_public_runs_no_more_match() -> None:
    risen = {
        (run, *place)
        for run in "ab"
        for place, found in scored(run).items()
        if not found["numerical_match"] and found["program_match"] and not found["program_match_as_written"]
    }
    assert risen == set()


def _damaged_matches(found: list[Case], history: str) -> tuple[int, int, int]:
    """Wrong answers on purpose, each after right ones; those that match as written, and resolved."""
    wrong = written = resolved = 0
    for case in found:
        for turn in case.turns[1:]:
            for mode in FAILURE_MODES[:-1]:
                text = TRACK.damage(case, turn, mode, Random(f"{turn.id} {mode}"))
                if text is None:
                    continue
                before = [TRACK.oracle(earlier) for earlier in case.turns[: turn.index]]
                last = answered(case, *before, text, history=history)[-1]
                wrong += 1
                written += bool(last["program_match_as_written"])
                resolved += bool(last["program_match"])
    return wrong, written, resolved


@pytest.mark.parametrize("history", ["gold", "own"])
def test_answers_wrong_on_purpose_do_not_match_more(history: str) -> None:
    sample = sorted((ROOT / "data" / "suites" / "finqa_sample" / "cases").glob("*.yaml"))
    found = [
        TRACK.read_case(yaml.safe_load(file.read_text(encoding="utf-8")), "finqa_sample", file.name, 1)
        for file in sample
    ]
    wrong, written, resolved = _damaged_matches(found[:40], history)
    assert wrong > 300
    assert resolved <= written


def test_public_answers_wrong_on_purpose_do_not_match_more() -> None:
    wrong, written, resolved = _damaged_matches(cases()[:40], "own")
    assert wrong > 300
    assert resolved <= written


def test_program_text_is_read_back() -> None:
    for text in (
        "subtract(404436, 476915), divide(#0, 476915)",
        "412.5",
        "table_sum(net sales)",
        "add(12.5%, const_1)",
    ):
        assert program_text(parse_program(text)) == text

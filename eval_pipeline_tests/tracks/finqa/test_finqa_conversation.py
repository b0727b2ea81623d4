"""What a turn makes of the turns before it: inherited errors, accuracy after right and wrong turns, carried values.

On conversations made here, on the public runs, and on answers wrong on purpose.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.core.provenance import history_shown
from eval_pipeline.tracks.abilities import conversations_of
from eval_pipeline_plugins.tracks.finqa import FAILURE_MODES
from eval_pipeline_plugins.tracks.finqa.mistakes.carried import program_text
from eval_pipeline_plugins.tracks.finqa.programs.program import parse_program
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.goldens import golden

from .helpers import (
    answered,
    attempt_at,
    calculation,
    case_of,
    cases,
    gold_turn,
    measured,
    measured_conversation,
    raw_case,
    sample_cases,
    scored,
)

SALES = case_of(
    gold_turn("412.5"),
    gold_turn("subtract(412.5, 188)"),
    gold_turn("subtract(412.5, 188), divide(#0, 188)"),
    gold_turn("greater(412.5, 371)", "yes"),
)


def modes(case: Case, *calculations: str, history: str = "own") -> list[str | None]:
    return [found["failure_mode"] for found in answered(case, *map(calculation, calculations), history=history)]


@pytest.mark.parametrize(
    ("calculations", "expected"),
    [
        (("412.5", "412.5 - 188", "224.5 / 188"), [None, None, None]),
        (("371", "371 - 188", "183 / 188"), ["wrong_year", "inherited_error", "inherited_error"]),
        (("371", "412.5 - 188", "224.5 / 188"), ["wrong_year", None, None]),
        # computed again, not written as a number
        (("412.5", "412.5 + 188", "(412.5 + 188) / 188"), [None, "wrong_operations", "inherited_error"]),
        # a fault of its own besides
        (("371", "371 + 188"), ["wrong_year", "wrong_operations"]),
        (("412.5", "412.5 - 188", "224.5 / 412.5"), [None, None, "swapped_operands"]),
        (("412500", "412500 - 188"), ["scale_error", "inherited_error"]),
        (("41250%", "41250% - 188"), [None, None]),
        (("412.5", "188 - 412.5", "-224.5 / 188"), [None, "sign_error", "inherited_error"]),
    ],
)
def test_errors_are_inherited_where_the_right_value_would_have_been_right(
    calculations: tuple[str, ...], expected: list[str | None]
) -> None:
    assert modes(SALES, *calculations) == expected


@pytest.mark.parametrize("power", [-9, -6, -4, -3, -2, -1, 1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("sign", [1, -1])
def test_any_power_of_ten_is_a_matter_of_scale(power: int, sign: int) -> None:
    (mode,) = modes(case_of(gold_turn("412.5")), f"{sign * 412.5 * 10.0**power:.15f}")
    assert mode == "scale_error"


def test_a_wrong_number_near_a_power_of_ten_by_chance_is_none() -> None:
    assert modes(SALES, "41.6") == ["scale_error"]
    assert modes(SALES, "412.5 - 371") == ["wrong_operations"]


def test_rows_and_years_by_the_table_both_ways_round() -> None:
    table = [["", "2020", "2019"], ["net sales", 412.5, 188.0], ["costs", 20.5, 30.25]]
    turned = [["", "net sales", "costs"], ["2020", 412.5, 20.5], ["2019", 188.0, 30.25]]
    for rows in (table, turned):
        document = {"pre_text": "", "table": rows, "post_text": ""}
        turn = gold_turn("divide(20.5, 412.5)")
        case = TRACK.read_case(raw_case(turn, document=document), "suite", "file", 1)
        assert modes(case, "30.25 / 412.5") == ["wrong_year"]
        assert modes(case, "20.5 / 188") == ["wrong_year"]
        assert modes(case, "30.25 / 188") == ["wrong_year"]
        assert modes(case, "188 / 412.5") == ["wrong_operands"]  # row and year
        assert modes(case, "20.5 / 20.5") == ["wrong_row"]
        assert modes(case, "20.5 / 77") == ["wrong_operands"]
        assert modes(case, "412.5 / 20.5") == ["swapped_operands"]


def test_the_day_of_a_date_is_no_line_item() -> None:
    document = {
        "pre_text": "on june 29 , 2012 , 962 sites were bought for 171.5 .",
        "table": [["", ""]],
        "post_text": "",
    }
    case = TRACK.read_case(raw_case(gold_turn("divide(171.5, 962)"), document=document), "suite", "file", 1)
    assert modes(case, "171.5 / 29") == ["wrong_operands"]


@pytest.mark.parametrize("row", golden("finqa_places.yaml"), ids=lambda row: row["name"])
def test_periods_and_items_by_what_labels_say(row: dict[str, Any]) -> None:
    document = {"pre_text": "", "table": row["table"], "post_text": ""}
    case = TRACK.read_case(raw_case(gold_turn(str(row["gold"]), row["gold"]), document=document), "suite", "file", 1)
    assert {number: modes(case, str(number))[0] for number in row["modes"]} == row["modes"]


@pytest.mark.parametrize("row", golden("finqa_guesses.yaml"), ids=lambda row: row["answer"])
def test_a_number_is_a_program_unless_chance_would_find_one(row: dict[str, Any]) -> None:
    case = case_of(gold_turn("divide(20, 30)"))
    found = _numbers_said(case, row["answer"])[0]
    assert found["guessed_plan_text"] == row["plan"]
    assert (found["logic_recall"] is None) is (row["plan"] is None)
    assert found["plan_steps"] is found["operations_per_turn"] is None


def test_a_number_may_use_those_of_earlier_turns() -> None:
    case = case_of(gold_turn("412.5"), gold_turn("371"), gold_turn("subtract(412.5, 371), divide(#0, 371)"))
    found = _numbers_said(case, "412.5", "371", "11.2%")
    assert found[-1]["guessed_plan_text"] == "subtract(412.5, 371), divide(#0, 371)"
    assert found[-1]["program_match"] is True


@pytest.mark.parametrize(
    ("cells", "answer", "guessed"),
    [
        ([12.25, 25.5, 61.0], "13.25", "subtract(25.5, 12.25)"),
        ([12.25, 25.5, 38.75], "13.25", None),  # so is 38.75 - 25.5
        ([1.5 + 0.37 * n for n in range(30)], "1.76", None),  # of 30 numbers some pair has such a ratio
    ],
)
def test_a_guess_is_the_only_one_and_not_by_chance(cells: list[float], answer: str, guessed: str | None) -> None:
    document = {"pre_text": "", "table": [["", *map(str, range(len(cells)))], ["sales", *cells]], "post_text": ""}
    case = TRACK.read_case(raw_case(gold_turn("7"), document=document), "suite", "file", 1)
    assert _numbers_said(case, answer)[0]["guessed_plan_text"] == guessed


def test_another_operation_explains_a_number_before_another_number_does() -> None:
    document = {"pre_text": "", "table": [["", "2020", "2019"], ["sales", 30, 20], ["costs", 70, 5]], "post_text": ""}
    case = TRACK.read_case(raw_case(gold_turn("subtract(30, 20)", 10), document=document), "suite", "file", 1)
    assert _numbers_said(case, "50")[0]["failure_mode"] == "wrong_operations"


@pytest.mark.parametrize(
    ("program", "answers", "mode"),
    [
        (("subtract(412.5, 188)",), ("600.5",), "wrong_operations"),
        (("subtract(412.5, 188)",), ("412.5",), "wrong_operations"),
        (("subtract(412.5, 188), divide(#0, 188)",), ("224.5",), "wrong_operations"),
        (("divide(412.5, 20)",), ("9.4",), "wrong_year"),
        (("divide(412.5, 20)",), ("13.75",), "wrong_year"),
        (("subtract(412.5, 30)",), ("382.9",), None),
        (("divide(412.5, 188)",), ("0.455757",), "swapped_operands"),
        (("multiply(412.5, const_3)",), ("412500.7",), "other"),
        # A looked-up number that the page lacks was computed, but for a misspelt one.
        (("412.5",), ("119.4%",), "wrong_operations"),
        (("412.5",), ("7654321",), "wrong_operations"),
        (("412.5",), ("421.5",), "wrong_operands"),
        # a right calculation rounded too far; a further step; all numbers of another period or row
        (("divide(188, 412.5)",), ("0.5",), "other"),
        (("divide(371, 412.5)",), ("10.06%",), "wrong_operations"),
        (("add(412.5, 371)",), ("391.75",), "wrong_operations"),
        (("subtract(412.5, 20)",), ("158",), "wrong_year"),
        (("subtract(412.5, 188), divide(#0, 188)",), ("-33.3333%",), "wrong_row"),
        (("add(412.5, 188), multiply(#0, const_3)",), ("150",), "wrong_row"),
        # a slip told in percent, or with the other sign; a number in another magnitude; the base 100 of an index
        (("divide(188, 412.5)",), ("50.6739",), "wrong_year"),
        (("divide(412.5, 20)",), ("-13.75",), "wrong_year"),
        (("subtract(412.5, 188)",), ("412312",), "wrong_operands"),
        (("subtract(412.5, const_100), divide(#0, const_100)",), ("0.7576",), "swapped_operands"),
        (("412.5", "subtract(412.5, const_100), divide(#0, const_100)"), ("188", "0.88"), "inherited_error"),
        # 412.5 is no answer carried over, though one is near; what is not carried over is not inherited
        (("subtract(600, 188)", "subtract(600, 188), divide(#0, 412.5)"), ("301", "0.729697"), "inherited_error"),
        (("412.5", "188"), ("4.125", "1.88"), "scale_error"),
        (("412.5", "subtract(412.5, 188), divide(#0, 188)"), ("20", "-0.89361702"), "inherited_error"),
        (("412.5", "subtract(412.5, 188), divide(#0, 188)"), ("20", "-1.10638298"), "inherited_error"),
    ],
)
def test_what_is_wrong_with_a_number_alone(
    program: tuple[str, ...], answers: tuple[str, ...], mode: str | None
) -> None:
    found = _numbers_said(case_of(*map(gold_turn, program)), *answers)[-1]
    assert found["failure_mode"] == mode


def _numbers_said(case: Case, *answers: str) -> list[dict[str, Any]]:
    texts = [TRACK.from_recorded({"answer": answer}) for answer in answers]
    said = [(t, [attempt_at(case, t, text, recorded=True)]) for t, text in zip(case.turns, texts, strict=False)]
    return measured_conversation(case, said, "own")


def test_an_earlier_answer_with_the_other_sign_is_inherited() -> None:
    assert modes(SALES, "412.5", "412.5 - 20", "392.5 / 188")[1:] == ["wrong_operands", "inherited_error"]
    assert modes(SALES, "412.5", "412.5 - 20", "-392.5 / 188")[1:] == ["wrong_operands", "inherited_error"]
    assert modes(SALES, "412.5", "412.5 - 20", "(20 - 412.5) / 188")[1:] == ["wrong_operands", "inherited_error"]
    assert modes(SALES, "412.5", "412.5 - 188", "-224.5 / 188")[1:] == [None, "sign_error"]


@pytest.mark.parametrize(
    "text",
    [
        "The page does not say.",
        "I cannot determine this from the document.",
        "The filing doesn't disclose the amount.",
        "N/A",
        "not available",
        "There is insufficient information to answer.",
        "insufficient data",
        "cannot be determined",
        "Answer: N/A",
        "The answer is **n.a.**",
        "—",
        "<UNKNOWN>",
        "I don't know",
        '{"answer": "N/A"}',
        '{"calculation": "not available"}',
        '{"plan": [{"tool": "extract", "value": "N/A", "source": "table"}]}',
        '{"program": null}',
        TRACK.from_recorded({"answer": "N/A", "calculation": "N/A"}),
    ],
)
def test_refusals(text: str) -> None:
    case = case_of(gold_turn("412.5"))
    found = measured(case, case.turns[0], attempt_at(case, case.turns[0], text, recorded="recorded" in text))
    assert found["failure_mode"] == "refusal"


@pytest.mark.parametrize(
    "text",
    ["The answer follows from the page: {", "net sales were high", '{"plan": [', '{"calculation": "nascent + 1"}'],
)
def test_what_only_fails_is_no_refusal(text: str) -> None:
    assert answered(case_of(gold_turn("412.5")), text)[0]["failure_mode"] == "execution_error"


@pytest.mark.parametrize("said", ["It fell by 412.5 to 371.", "$ 371 + $ 41.5 = $ 412.5", "412.5 or 371"])
def test_a_recorded_answer_that_cannot_be_read_is_no_refusal(said: str) -> None:
    case = case_of(gold_turn("412.5"))
    attempt = attempt_at(case, case.turns[0], TRACK.from_recorded({"answer": said}), recorded=True)
    assert measured(case, case.turns[0], attempt)["failure_mode"] == "execution_error"


def _columns(name: str, *calculations: str) -> list[Any]:
    return [found[name] for found in answered(SALES, *map(calculation, calculations), history="own")]


def test_columns_of_the_conversation() -> None:
    told = ("412.5", "371 - 188", "183 / 188", "412.5 > 371")
    assert _columns("numerical_match", *told) == [True, False, False, True]
    assert _columns("right_after_right", *told) == [None, False, None, None]
    assert _columns("right_after_wrong", *told) == [None, None, False, True]
    assert _columns("inherited_error", *told) == [None, False, True, None]
    assert _columns("error_propagation", *told) == [None, None, True, False]
    assert _columns("first_wrong_turn", *told) == [None, 1, None, None]


@pytest.mark.parametrize("history", ["gold", "none"])
@pytest.mark.parametrize(
    ("calculations", "own"),
    [
        (("371", "371 - 188"), "wrong_year"),  # the same cell misread again, and not taken over
        (("412500", "412500 - 188"), "wrong_operands"),
        (("412.5", "188 - 412.5", "-224.5 / 188"), "sign_error"),
        (("412.5", "412.5 + 188", "(412.5 + 188) / 188"), "wrong_operations"),
    ],
)
def test_no_error_is_inherited_from_answers_that_the_model_has_not_seen(
    history: str, calculations: tuple[str, ...], own: str
) -> None:
    found = answered(SALES, *map(calculation, calculations), history=history)
    assert found[-1]["failure_mode"] == own
    assert {turn[name] for turn in found for name in ("inherited_error", "error_propagation")} == {None}
    assert [turn["first_wrong_turn"] for turn in found if turn["first_wrong_turn"] is not None] != []
    for other in ("own", "unknown", "the assistant's turns so far"):
        assert answered(SALES, *map(calculation, calculations), history=other)[-1]["failure_mode"] == "inherited_error"


@pytest.mark.parametrize(
    ("settings", "recorded", "history"),
    [
        ({}, False, "gold"),
        ({"history": "own"}, False, "own"),
        ({"history": "gold"}, True, "unknown"),  # of an import of version 0.1.0, whose entry had what was never asked
        ({"provenance": {"s": {"history": "none"}}}, True, "none"),
        ({"provenance": {"s": {"history": None}, "other": {"history": "gold"}}}, True, "unknown"),
    ],
)
def test_the_history_that_a_model_was_shown(settings: dict[str, Any], recorded: bool, history: str) -> None:
    assert history_shown(settings, "s", recorded=recorded) == history


def test_a_gap_before_a_turn_is_no_turn_before() -> None:
    first, _, third, _ = SALES.turns
    said = [
        (turn, [attempt_at(SALES, turn, calculation(text))]) for turn, text in ((first, "371"), (third, "224.5 / 188"))
    ]
    *_, last = measured_conversation(SALES, said, "own")
    assert (last["right_after_right"], last["right_after_wrong"]) == (None, None)
    assert last["error_propagation"] is False


def test_samples_are_conversations_of_their_own() -> None:
    first, second, *_ = SALES.turns
    texts = {0: ("371", "371 - 188"), 1: ("412.5", "412.5 - 188")}
    asked = [
        (turn, sample, [attempt_at(SALES, turn, calculation(texts[sample][turn.index]))])
        for turn in (first, second)
        for sample in (0, 1)
    ]
    told = conversations_of(TRACK, SALES, asked, lambda: "gold")
    assert [told[second.id, sample]["turn_before"] for sample in (0, 1)] == [False, True]


def test_accuracy_of_the_public_run_after_right_and_wrong_turns() -> None:
    found = scored("a").values()
    for name, right in (("right_after_right", True), ("right_after_wrong", False)):
        said = [values[name] for values in found if values[name] is not None]
        assert (sum(said) / len(said) > 0.8) is right
    wrong = [values for values in found if not values["numerical_match"]]
    assert sum(values["inherited_error"] for values in wrong) > 0.25 * len(wrong)


NET_CASH = case_of(
    gold_turn("404436"),
    gold_turn("subtract(404436, 476915)"),
    gold_turn("subtract(404436, 476915), divide(#0, 476915)"),
)


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


def _damaged_matches(found: Sequence[Case], history: str) -> tuple[int, int, int]:
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


MORE = pytest.param(40, marks=pytest.mark.soak)


@pytest.mark.parametrize("count", [14, MORE])
@pytest.mark.parametrize("history", ["gold", "own"])
def test_answers_wrong_on_purpose_do_not_match_more(history: str, count: int) -> None:
    wrong, written, resolved = _damaged_matches(sample_cases()[history == "own" : count : 2], history)
    assert wrong > 3.5 * count
    assert resolved <= written


@pytest.mark.parametrize("count", [12, MORE])
def test_public_answers_wrong_on_purpose_do_not_match_more(count: int) -> None:
    wrong, written, resolved = _damaged_matches(cases()[:count], "own")
    assert wrong > 7 * count
    assert resolved <= written


def test_program_text_is_read_back() -> None:
    for text in (
        "subtract(404436, 476915), divide(#0, 476915)",
        "412.5",
        "table_sum(net sales)",
        "add(12.5%, const_1)",
    ):
        assert program_text(parse_program(text)) == text

"""What a turn makes of the turns before it: inherited errors, and accuracy after right and wrong turns."""

from typing import Any

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.core.provenance import history_shown
from eval_pipeline.tracks.finqa.track import TRACK

from .helpers import answered, attempt_at, case_of, gold_turn, measured_conversation, raw_case
from .shared_sample import scored


def calculation(text: str) -> str:
    return f'{{"calculation": "{text}"}}'


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


@pytest.mark.parametrize(
    "text",
    [
        "The page does not say.",
        "I cannot determine this from the document.",
        "The filing doesn't disclose the amount.",
        "N/A",
        "not available",
        "There is insufficient information to answer.",
    ],
)
def test_refusals(text: str) -> None:
    case = case_of(gold_turn("412.5"))
    assert answered(case, text)[0]["failure_mode"] == "refusal"


@pytest.mark.parametrize("text", ["The answer follows from the page: {", "net sales were high", '{"plan": ['])
def test_what_only_fails_is_no_refusal(text: str) -> None:
    assert answered(case_of(gold_turn("412.5")), text)[0]["failure_mode"] == "execution_error"


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
    from eval_pipeline.tracks.abilities import conversations_of

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

"""What a conversation says of an answer on which models agree against its gold."""

from typing import Any

import pytest

from eval_pipeline_plugins.tracks.finqa.cases.witnesses import weights
from eval_pipeline_tests.tracks.finqa.helpers import case_of, gold_turn

DIFFERENCE = gold_turn("subtract(412.5, 188)")
GROWTH = gold_turn("subtract(412.5, 188), divide(#0, 188)")
SLIP = "the gold with one number or operation exchanged gives it"


def asked(program: str, question: str) -> dict[str, Any]:
    return gold_turn(program) | {"question": question}


@pytest.mark.parametrize(
    ("turns", "answer", "heavier", "told"),
    [
        ([gold_turn("subtract(412.5, 188)", 224.5, "188")], 188.0, True, "the printed answer is 188, too"),
        ([gold_turn("188"), gold_turn("divide(412.5, 30)")], 412.5, True, "the golds of other turns calculate with it"),
        ([gold_turn("divide(188, 412.5)")], 45.5758, False, "only percent and fraction differ"),
        ([DIFFERENCE], -224.5, False, f"{SLIP}, but the question rather asks for the gold"),
        ([gold_turn("subtract(188, 412.5)")], 224.5, True, f"{SLIP}, which the question rather asks for"),
        ([gold_turn("412.5")], -412.5, True, "only the sign differs"),
        ([DIFFERENCE], 2245.0, False, "only a power of ten differs"),
        ([DIFFERENCE], 600.5, True, SLIP),
        ([DIFFERENCE | {"question": "what is the sum?"}], 600.5, True, f"{SLIP}, which the question rather asks for"),
        ([DIFFERENCE, GROWTH], 600.5, False, "the golds of other turns use this one"),
        ([DIFFERENCE, DIFFERENCE, GROWTH], 600.5, True, SLIP),  # which is the gold of another turn
        ([asked("412.5", "net sales in 2019?")], 188.0, True, f"{SLIP}, which the question rather asks for"),
        ([asked("412.5", "net sales in 2020?")], 188.0, False, f"{SLIP}, but the question rather asks for the gold"),
        ([asked("20", "what were net sales?")], 412.5, True, f"{SLIP}, which the question rather asks for"),
        ([asked("divide(188, 412.5)", "2019 relative to 2020?")], 2.194149, True, f"{SLIP}, which"),
        ([gold_turn("77")], 188.0, True, "the gold calculates with 77, which is nowhere on the page"),
        (
            [asked("subtract(412.5, 188), multiply(#0, const_1000)", "what?")],
            224.5,
            True,
            "the gold is multiplied or divided by a power",
        ),
        (
            [asked("subtract(412.5, 188), multiply(#0, const_1000)", "in thousands?")],
            224.5,
            False,
            "only a power of ten differs",
        ),
        ([DIFFERENCE], 7.0, False, ""),
    ],
)
def test_what_the_case_says_weighs(turns: list[dict[str, Any]], answer: float, heavier: bool, told: str) -> None:
    case = case_of(*turns)
    weight = weights(case, {case.turns[0].id: {"value": answer}})[case.turns[0].id]
    assert (weight.factor > 1, weight.words.startswith(told)) == (heavier, True), weight
    assert weight.of_printing == ("percent" in told)

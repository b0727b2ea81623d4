"""What a conversation says of an answer on which models agree against its gold."""

from typing import Any

import pytest

from eval_pipeline.tracks.finqa.witnesses import weights
from eval_pipeline_tests.tracks.finqa.helpers import case_of, gold_turn

DIFFERENCE = gold_turn("subtract(412.5, 188)")


@pytest.mark.parametrize(
    ("turns", "answer", "heavier", "told"),
    [
        ([gold_turn("subtract(412.5, 188)", 224.5, "188")], 188.0, True, "the printed answer is 188, too"),
        ([gold_turn("188"), gold_turn("divide(412.5, 30)")], 412.5, True, "the golds of other turns calculate with it"),
        ([gold_turn("divide(188, 412.5)")], 45.5758, False, "only percent and fraction differ"),
        ([DIFFERENCE], -224.5, True, "only the sign differs"),
        ([DIFFERENCE], 2245.0, False, "only a power of ten differs"),
        ([DIFFERENCE], 600.5, True, "the gold with one number or operation exchanged gives it"),
        ([DIFFERENCE], 7.0, False, ""),
    ],
)
def test_what_the_case_says_weighs(turns: list[dict[str, Any]], answer: float, heavier: bool, told: str) -> None:
    case = case_of(*turns)
    weight = weights(case, {case.turns[0].id: {"value": answer}})[case.turns[0].id]
    assert (weight.factor > 1, weight.words.startswith(told)) == (heavier, True), weight
    assert weight.of_printing == ("percent" in told)

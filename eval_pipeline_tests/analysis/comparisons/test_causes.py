"""In what two evaluations were made differently, and how their prompts differ."""

from dataclasses import replace
from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.chosen.causes import causes_of, prompt_difference
from eval_pipeline.analysis.comparisons.chosen.sides import Side
from eval_pipeline.analysis.comparisons.served import NOT_TOLD, Served
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.workspace.evaluations import EvaluationRun
from eval_pipeline_tests.analysis.comparisons.held import side

BEFORE = side("a")


def other(name: str = "a", served: Served = NOT_TOLD, **told: Any) -> Side:
    found = side(name)
    changed = replace(found.told, **told) if told else found.told
    return replace(found, told=changed, evaluated=replace(found.evaluated, served=served))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (other(), []),
        (other(prompt="plan-2"), ["prompt changed"]),
        (other(prompt_text='{"instructions": "x"}'), ["prompt changed"]),
        (other(epoch="night"), ["asked anew"]),
        (other(data_hash="other", epoch="night"), ["cases changed", "asked anew"]),
        (other(served=Served(("new",))), ["another model answered: old → new"]),
        (other("b", served=Served(("new",)), epoch="night", prompt="plan-2"), ["prompt changed"]),
        (other("b", epoch="night"), []),
    ],
)
def test_causes_are_named(after: Side, expected: list[str]) -> None:
    before = replace(BEFORE, evaluated=replace(BEFORE.evaluated, served=Served(("old",))))
    assert causes_of(before.told, after.told, after.served_change(before)) == expected


def of_prompt(version: str, words: Any) -> EvaluationRun:
    return replace(BEFORE.told, prompt=version, prompt_text=canonical_json(words))


LONG = "You are an analyst. Answer with a number. Do not explain."


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (of_prompt("v1", {}), of_prompt("v1", {}), []),
        (of_prompt("v1", {}), of_prompt("v2", {}), ["-version: v1", "+version: v2"]),
        (
            of_prompt("v1", {"instructions": LONG}),
            of_prompt("v1", {"instructions": LONG.replace("Do not", "Never")}),
            ["-  Do not explain.", "+  Never explain."],
        ),
        (
            of_prompt("v1", {"examples": [{"question": "a?", "answer": "1"}]}),
            of_prompt("v1", {"examples": [{"question": "a?", "answer": "2"}]}),
            ["-      1", "+      2"],
        ),
        (of_prompt("v1", {}), of_prompt("v1", {"after": "Be terse."}), ["+after:", "+  Be terse."]),
    ],
)
def test_prompts_differ_by_sentences(before: EvaluationRun, after: EvaluationRun, expected: list[str]) -> None:
    assert [line for line in prompt_difference(before, after) if line[0] in "+-"] == expected

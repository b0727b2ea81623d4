"""Answers in words, FinQA's program language and workflow plans: what is read of them, and what stays unread."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import Failed, Ran
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline.tracks.finqa.dsl import find_program, parse_dsl, program_of_tokens
from eval_pipeline.tracks.finqa.program import parse_program
from eval_pipeline.tracks.finqa.prose import Quantity, read_answer
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline_tests.goldens import golden

from .helpers import attempt_at, gold_turn, measured, raw_case

QUESTION = gold_turn("412.5")


@pytest.mark.parametrize("form", ["answer", "response"])
@pytest.mark.parametrize("row", golden("finqa_answers.yaml"), ids=lambda row: row["text"])
def test_golden_answers(row: dict[str, Any], form: str) -> None:
    page = {"pre_text": row.get("page", ""), "table": [["", "2020"], ["sales", "412.5"]], "post_text": ""}
    case = TRACK.read_case({**raw_case(QUESTION), "document": page}, "suite", "file.jsonl", 1)
    attempt = attempt_at(case, case.turns[0], TRACK.from_recorded({form: row["text"]}), recorded=True)
    if "unread" in row:
        assert isinstance(attempt.outcome, Failed)
        assert row["unread"] in attempt.outcome.message
        return
    if form == "response" and row.get("answer", "yes") not in ("yes", "no"):
        assert isinstance(attempt.outcome, Failed)  # a whole response that says nothing is no answer
        return
    assert isinstance(attempt.outcome, Ran)
    if "answer" in row:
        assert attempt.outcome.value == {"text": row["answer"]}
    else:
        value = pytest.approx(row["value"], rel=1e-9)
        assert attempt.outcome.value == {"value": value, "percent": row.get("percent", False)}
    kept = json.loads(json.dumps(TRACK.artefact_json(attempt.artefact)))
    assert TRACK.artefact_from_json(kept) == attempt.artefact


def test_models_that_are_asked_must_give_a_plan() -> None:
    case = TRACK.read_case(raw_case(QUESTION), "suite", "file.jsonl", 1)
    attempt = attempt_at(case, case.turns[0], "The answer is 412.5.")
    assert isinstance(attempt.outcome, Failed)
    assert "no JSON" in attempt.outcome.message


def test_a_calculation_in_percent_has_the_operations_that_were_written() -> None:
    case = TRACK.read_case(raw_case(gold_turn("divide(3, 12)", printed="25%")), "suite", "file.jsonl", 1)
    counts = {}
    for calculation in ("3 / 12", "3 / 12 * 100", "divide(3, 12)"):
        row = {"answer": "25", "unit": "percent", "calculation": calculation}
        attempt = attempt_at(case, case.turns[0], TRACK.from_recorded(row), recorded=True)
        found = measured(case, case.turns[0], attempt)
        assert found["program_match"] is True, calculation
        counts[calculation] = (found["operations_per_turn"], found["plan_steps"], found["logic_precision"])
    assert counts == {"3 / 12": (1, 1, 1.0), "3 / 12 * 100": (2, 2, 0.5), "divide(3, 12)": (1, 1, 1.0)}


def test_no_calculation_never_scores_above_one_that_is_half_right() -> None:
    case = TRACK.read_case(raw_case(gold_turn("subtract(412.5, 371), divide(#0, 371)")), "suite", "file.jsonl", 1)
    scores = []
    for calculation in (None, "412.5 - 188", "412.5 - 371", "(412.5 - 371) / 371"):
        answer = TRACK.from_recorded({"answer": "0.11186", "calculation": calculation})
        attempt = attempt_at(case, case.turns[0], answer, recorded=True)
        scores.append(TRACK.score(measured(case, case.turns[0], attempt)))
    assert scores == sorted(scores)
    assert scores[0] == pytest.approx(1 / 3)
    assert scores[-1] == 1


def test_looked_up_numbers_count_as_operands() -> None:
    case = TRACK.read_case(raw_case(gold_turn("subtract(412.5, 188)")), "suite", "file.jsonl", 1)
    steps = [
        {"step_id": 1, "tool": "extract_value", "table_params": {"row_query": "sales", "col_query": "2020"}},
        {"step_id": 2, "tool": "extract_value", "table_params": {"row_query": "2019", "col_query": "net sales"}},
        {"step_id": 3, "tool": "compute", "operation": "subtract", "operands": [{"step_ref": 1}, {"step_ref": 2}]},
    ]
    found = measured(case, case.turns[0], attempt_at(case, case.turns[0], json.dumps({"steps": steps})))
    assert (found["numerical_match"], found["operand_recall"], found["program_match"]) == (True, 1.0, True)
    assert (found["operations_per_turn"], found["plan_steps"]) == (1, 3)


NUMBERS = st.decimals(-10_000, 10_000, places=2, allow_nan=False).map(str)
OPERATIONS = st.sampled_from(["add", "subtract", "multiply", "divide", "exp", "greater"])
STEPS = st.lists(st.tuples(OPERATIONS, NUMBERS, NUMBERS), min_size=1, max_size=5)


@given(STEPS, st.sampled_from(["{}", "It is {}", "```\n{}\n```", "Draft: add(1, 2). No: {}."]))
def test_programs_in_any_surroundings_are_read_as_the_gold_is(steps: list[tuple[str, str, str]], around: str) -> None:
    written = ", ".join(f"{name}({a}, {b if index == 0 else '#0'})" for index, (name, a, b) in enumerate(steps))
    found = find_program(around.format(written))
    assert found == written
    assert parse_dsl(found) == parse_program(written)
    tokens = written.replace("(", "( ").replace(")", " )").replace(",", "").split()
    assert parse_dsl(program_of_tokens([*tokens, "EOF"])) == parse_program(written)


@given(st.text(alphabet="adds(ubtract)#0123456789.,-$%() \n", max_size=300))
def test_no_text_breaks_the_readers(text: str) -> None:
    assert isinstance(find_program(text), str | None)
    with suppress(ArtefactError):
        TRACK.parse(text, recorded=True)
    with suppress(ValueError):
        assert isinstance(read_answer(text), Quantity | str)

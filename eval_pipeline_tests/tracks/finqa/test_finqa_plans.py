"""Plans, calculations, answers in words and FinQA's program language: what is read of them, and what is not."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.model import ErrorClass, Failed, Ran
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.finqa.programs.execute import run_program
from eval_pipeline_plugins.tracks.finqa.programs.program import StepReference, parse_program
from eval_pipeline_plugins.tracks.finqa.responses.calculation import CalculationError, parse_calculation
from eval_pipeline_plugins.tracks.finqa.responses.dsl import find_program, parse_dsl, program_of_tokens
from eval_pipeline_plugins.tracks.finqa.responses.prose import Quantity, read_answer
from eval_pipeline_plugins.tracks.finqa.track import TRACK, run_plan
from eval_pipeline_tests.goldens import golden

from .helpers import TABLE, attempt_at, case_of, failure, gold_turn, measured, raw_case

CASE = case_of(gold_turn("412.5"))
EXTRACT = {"tool": "extract", "value": 5}


@pytest.mark.parametrize("row", golden("finqa_plans.yaml"), ids=lambda row: row["response"][:70])
def test_golden_plans(row: dict[str, Any]) -> None:
    attempt = attempt_at(CASE, CASE.turns[0], row["response"])
    if "error" in row:
        assert isinstance(attempt.outcome, Failed)
        assert attempt.outcome.error_class == row["error"]
        assert row["says"] in attempt.outcome.message
        assert (attempt.artefact is None) == (row["stage"] == "parse")
    elif "text" in row:
        assert attempt.outcome == Ran({"text": row["text"]})
    else:
        assert isinstance(attempt.outcome, Ran)
        value = pytest.approx(row["value"], rel=1e-6)
        assert attempt.outcome.value == {"value": value, "percent": row.get("percent", False)}


@pytest.mark.parametrize("row", golden("finqa_calculations.yaml"), ids=lambda row: row["text"])
def test_golden_calculations(row: dict[str, Any]) -> None:
    if "error" in row:
        with pytest.raises(CalculationError) as raised:
            parse_calculation(row["text"])
        assert row["error"] in str(raised.value)
        return
    program = parse_calculation(row["text"])
    assert program == parse_program(row["program"])
    outcome = run_program(program, ())
    if "fails" in row:
        assert isinstance(outcome, Failed)
        assert row["fails"] in outcome.message
    else:
        assert isinstance(outcome, Ran)
        value = outcome.value.get("text", outcome.value.get("value"))
        assert (
            value == row["value"] if isinstance(row["value"], str) else value == pytest.approx(row["value"], rel=1e-6)
        )


def _steps(count: int) -> str:
    return json.dumps({"plan": [EXTRACT] * count})


HOSTILE = {
    "nested arrays": "[" * 100_000,
    "nested objects": '{"plan":' * 20_000,
    "balanced nesting": "[" * 5_000 + "]" * 5_000,
    "nested within limits": "x" + "[1," * 40_000,
    "a hundred thousand steps": _steps(100_000),
    "too many steps": _steps(201),
    "many brackets in prose": "a { b [ c " * 19_000,
    "many values that are no plan": "[1] {} " * 25_000,
    "giant integer": '{"plan": [{"tool": "extract", "value": ' + "9" * 5_000 + "}]}",
    "large integer": '{"plan": [{"tool": "extract", "value": ' + "9" * 400 + "}]}",
    "giant integer as text": json.dumps({"plan": [{"tool": "extract", "value": "9" * 200}]}),
    "long argument": json.dumps({"plan": [{"tool": "extract", "value": "9" * 100_000}]}),
    "many arguments": json.dumps({"plan": [{"tool": "compute", "operation": "sum", "args": [1] * 20_000}]}),
    "many arguments over steps": json.dumps(
        {"plan": [{"tool": "compute", "operation": "sum", "args": [1] * 900}] * 20}
    ),
    "far reference": json.dumps({"plan": [{"tool": "compute", "operation": "sum", "args": ["#99999999999999999"]}]}),
    "power tower": '{"calculation": "9**9**9**9**9"}',
    "giant power": '{"calculation": "10**100000000"}',
    "long calculation": json.dumps({"calculation": "1+" * 5_000 + "1"}),
    "deep brackets": json.dumps({"calculation": "(" * 900 + "1" + ")" * 900}),
    "many minus signs": json.dumps({"calculation": "-" * 1_900 + "1"}),
    "many operations": json.dumps({"calculation": "+".join("1" * 500)}),
    "infinite recursion of powers": json.dumps({"calculation": "**".join("2" * 500)}),
    "null bytes": "\0" * 1_000,
    "lone surrogate": '{"plan": [{"tool": "compute", "operation": "table_sum", "args": ["\\ud800"]}]}',
    "huge text": "a" * 1_000_000,
    "operation of a megabyte": json.dumps({"plan": [{"tool": "compute", "operation": "o" * 150_000, "args": []}]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_responses_fail_in_time_and_in_kind(name: str) -> None:
    attempt = attempt_at(CASE, CASE.turns[0], HOSTILE[name])
    assert isinstance(attempt.outcome, Failed)
    assert attempt.outcome.error_class in (ErrorClass.SYNTAX, ErrorClass.VALUE)
    assert len(attempt.outcome.message) < 1_000
    measured(CASE, CASE.turns[0], attempt)


def test_long_plans_within_the_limits_run() -> None:
    steps = [EXTRACT] + [{"tool": "compute", "operation": "sum", "args": [f"#{i}", 1, 1, 1]} for i in range(199)]
    assert run_plan(TRACK.parse(json.dumps(steps), recorded=False), CASE.context) == Ran(
        {"value": 5.0 + 199 * 3, "percent": False}
    )


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["plan", "steps", "calculation", "tool", "value", "operation", "args", "recorded_answer",
                             "answer", "unit"]),
            inner | st.sampled_from(["extract", "compute", "add", "greater", "#0", "percent", "5 / 0"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), JSON_VALUES.map(json.dumps), JSON_VALUES.map(lambda value: f"so: {json.dumps(value)} ok")),
       st.booleans())  # fmt: skip
def test_parsing_raises_nothing_but_artefact_errors(text: str, recorded: bool) -> None:
    if (found := failure(text, recorded=recorded)) is not None:
        assert found[1]
        assert TRACK.validate(None, ArtefactError(*found), CASE).verdict == "invalid"
        return
    plan = TRACK.parse(text, recorded=recorded)
    row = TRACK.validate(plan, None, CASE)
    outcome = run_plan(plan, CASE.context)
    assert isinstance(outcome, Failed) or row.verdict != "invalid"
    assert TRACK.artefact_from_json(json.loads(json.dumps(TRACK.artefact_json(plan)))) == plan
    measured(CASE, CASE.turns[0], attempt_at(CASE, CASE.turns[0], text, recorded=recorded))


@settings(max_examples=300)
@given(st.text(alphabet="0123456789.,+-*/^()<>=%$ xconst_e", max_size=40))
def test_calculations_raise_nothing_but_calculation_errors(text: str) -> None:
    try:
        program = parse_calculation(text)
    except CalculationError:
        return
    for index, step in enumerate(program.steps):
        assert all(a.step < index for a in step.arguments if isinstance(a, StepReference))
    run_program(program, TABLE)


NUMBER = st.integers(0, 99).map(str) | st.floats(0.01, 99).map(lambda value: f"{value:.3f}")
EXPRESSIONS = st.recursive(
    NUMBER,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda parts: " ".join(parts)),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(EXPRESSIONS)
def test_calculations_are_read_as_python_reads_them(text: str) -> None:
    outcome = run_program(parse_calculation(text), ())
    try:
        expected = eval(text)  # made of numbers and operators only, a few lines above
    except ZeroDivisionError:
        assert isinstance(outcome, Failed)
        return
    assert isinstance(outcome, Ran)
    assert outcome.value["value"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_messages_tell_what_to_mend() -> None:
    found = failure('{"plan": [{"tool": "compute", "operation": "add"}]}')
    assert found == (ErrorClass.VALUE, "step 0: compute needs 'args', a list")


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

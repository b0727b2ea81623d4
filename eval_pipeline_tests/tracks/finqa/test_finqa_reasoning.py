"""Logic metrics, program_match and failure modes against worked examples; sympy is the reference of the algebra."""

from typing import Any

import pytest
import sympy  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.numbers import normalised_text
from eval_pipeline_plugins.tracks.finqa.metrics.logic import partial_credit
from eval_pipeline_plugins.tracks.finqa.programs.algebra import same_expression
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    OPERATIONS,
    Argument,
    Constant,
    Label,
    Literal,
    Program,
    ProgramStep,
    StepReference,
    expanded_operations,
    literal_values,
    operations,
    parse_program,
)
from eval_pipeline_tests.goldens import golden

from .helpers import gold_turn, measured_response, read_plan


@pytest.mark.parametrize("row", golden("finqa_logic.yaml"), ids=lambda row: f"{row['plan']} ~ {row['gold']}")
def test_logic_golden(row: dict[str, Any]) -> None:
    from eval_pipeline_plugins.tracks.finqa.metrics.logic import (
        logic_f1,
        logic_precision,
        logic_recall,
        operand_recall,
        operation_order,
    )

    plan, gold = read_plan(row["plan"]), parse_program(row["gold"])
    ours, theirs = expanded_operations(plan), expanded_operations(gold)
    recall, precision = logic_recall(ours, theirs), logic_precision(ours, theirs)
    found = {
        "recall": recall,
        "precision": precision,
        "f1": logic_f1(recall, precision),
        "order": operation_order(ours, theirs),
        "operands": operand_recall(literal_values(plan), literal_values(gold)),
    }
    assert found == pytest.approx({name: row[name] for name in found}, abs=1e-5)


@pytest.mark.parametrize("row", golden("finqa_failures.yaml"), ids=lambda row: f"{row['mode']}: {row['response']}")
def test_failures_labelled_by_hand(row: dict[str, Any]) -> None:
    found = measured_response(gold_turn(row["program"], row["answer"], row.get("printed")), row["response"])
    assert found["failure_mode"] == row["mode"]


@pytest.mark.parametrize(
    ("f1", "operands", "matched", "credit"), [(1.0, 1.0, True, 1.0), (0.5, 1.0, False, 0.5), (None, None, True, None)]
)
def test_partial_credit(f1: float | None, operands: float | None, matched: bool, credit: float | None) -> None:
    assert partial_credit(f1, operands, matched) == credit


def test_counts_of_steps_and_operations() -> None:
    turn = gold_turn("subtract(412.5, 371), divide(#0, 371)")
    found = measured_response(turn, '{"plan": [{"tool": "extract", "value": 371}, {"tool": "compute", '
                              '"operation": "average", "args": ["#0", 5, 6]}]}')  # fmt: skip
    assert (found["operations_per_turn"], found["gold_operations"], found["plan_steps"]) == (1, 2, 2)


def test_a_plan_that_fails_still_has_its_reasoning_columns() -> None:
    found = measured_response(gold_turn("divide(5, 3)"), '{"calculation": "5 / (3 - 3)"}')
    assert found["failure_mode"] == "execution_error"
    assert (found["logic_recall"], found["logic_precision"], found["operand_recall"]) == (1.0, 0.5, 1.0)
    assert found["numerical_match"] is False


def test_without_a_plan_the_reasoning_columns_are_null_and_the_matches_false() -> None:
    found = measured_response(gold_turn("divide(5, 3)", printed="1.67"), "no idea")
    null = ("logic_recall", "logic_precision", "logic_f1", "operation_order", "operand_recall", "program_match")
    assert [found[name] for name in (*null, "partial_credit", "operations_per_turn", "plan_steps")] == [None] * 9
    matches = ("numerical_match", "soft_match", "unit_agnostic_match", "sign_agnostic_match", "general_match")
    assert [found[name] for name in (*matches, "exact_match")] == [False] * 6


@pytest.mark.parametrize("row", golden("finqa_program_match.yaml"), ids=lambda row: f"{row['plan']} ~ {row['gold']}")
def test_program_match_golden(row: dict[str, Any]) -> None:
    plan, gold = read_plan(row["plan"]), parse_program(row["gold"])
    assert same_expression(plan, gold) is row["same"]
    if _is_rational(plan) and _is_rational(gold):
        assert _sympy_same(plan, gold) is row["same"]


LITERALS = st.sampled_from([3.0, 5.0, 7.5, -3.0, 2.0, 100.0])
CONSTANTS = st.sampled_from([Constant("const_2", 2.0), Constant("const_100", 100.0), Constant("const_m1", -1.0)])
RATIONAL = sorted({"add", "subtract", "multiply", "divide", "average", "sum", "product", "percentage_change", "ratio"})


@st.composite
def programs(draw: st.DrawFn, names: list[str] = RATIONAL) -> Program:
    steps: list[ProgramStep] = []
    for index in range(draw(st.integers(1, 4))):
        earlier = [st.integers(0, index - 1).map(StepReference)] if index else []
        argument: st.SearchStrategy[Argument] = st.one_of(LITERALS.map(Literal), CONSTANTS, *earlier)
        steps.append(ProgramStep(draw(st.sampled_from(names)), (draw(argument), draw(argument))))
    return Program(tuple(steps))


def _is_rational(program: Program) -> bool:
    names = set(operations(program))
    return names <= OPERATIONS and not any(name in ("exp", "greater") or name.startswith("table_") for name in names)


def _expression(program: Program, constants: set[float]) -> Any:
    found: list[Any] = []
    for step in program.steps:
        a, *rest = [_operand(argument, found, constants) for argument in step.arguments]
        name = step.operation
        if name == EXTRACT:
            found.append(a)
        elif name in ("add", "sum", "average"):
            total = sum(rest, a)
            found.append(total / (len(rest) + 1) if name == "average" else total)
        elif name in ("multiply", "product"):
            found.append(sympy.prod([a, *rest]))
        elif name in ("divide", "ratio", "percentage"):
            found.append(a / rest[0])
        else:
            found.append((a - rest[0]) / rest[0] if name == "percentage_change" else a - rest[0])
    return found[-1]


def _operand(argument: Argument, found: list[Any], constants: set[float]) -> Any:
    if isinstance(argument, StepReference):
        return found[argument.step]
    if isinstance(argument, Label):
        return sympy.Symbol(normalised_text(argument.text))
    if isinstance(argument, Constant) or abs(argument.value) in constants:
        return sympy.Rational(argument.value)
    symbol = sympy.Symbol(f"x{abs(argument.value):.12g}")
    return -symbol if argument.value < 0 else symbol


def _constants(*programs: Program) -> set[float]:
    steps = [step for program in programs for step in program.steps]
    return {abs(a.value) for step in steps for a in step.arguments if isinstance(a, Constant)}


def _sympy_same(plan: Program, gold: Program) -> bool | None:
    """None where an expression divides by zero and means nothing."""
    constants = _constants(plan, gold)
    first, second = sympy.cancel(_expression(plan, constants)), sympy.cancel(_expression(gold, constants))
    if any(bad in value.atoms(sympy.Number) for value in (first, second) for bad in (sympy.zoo, sympy.nan)):
        return plan == gold
    if first.has(sympy.zoo, sympy.nan) or second.has(sympy.zoo, sympy.nan):
        return plan == gold
    return bool(sympy.cancel(first - second) == 0)


def _divides_by_zero(program: Program, constants: set[float]) -> bool:
    for index, step in enumerate(program.steps):
        if step.operation in ("divide", "ratio", "percentage_change"):
            before = Program((*program.steps[:index], ProgramStep(EXTRACT, (step.arguments[1],))))
            if sympy.cancel(_expression(before, constants)) in (0, sympy.zoo, sympy.nan):
                return True
    return False


@settings(max_examples=150, deadline=None)
@given(programs(), programs())
def test_program_match_agrees_with_sympy(plan: Program, gold: Program) -> None:
    constants = _constants(plan, gold)
    if _divides_by_zero(plan, constants) or _divides_by_zero(gold, constants):
        return
    assert same_expression(plan, gold) is _sympy_same(plan, gold)


@settings(max_examples=80, deadline=None)
@given(programs())
def test_program_match_knows_rewritten_programs(program: Program) -> None:
    constants = _constants(program)
    if _divides_by_zero(program, constants):
        return
    steps = tuple(
        ProgramStep(step.operation, step.arguments[::-1]) if step.operation in ("add", "multiply", "sum") else step
        for step in program.steps
    )
    last = StepReference(len(steps) - 1)
    longer = Program(
        (
            *steps,
            ProgramStep("subtract", (last, Literal(9.25))),
            ProgramStep("add", (Literal(9.25), StepReference(len(steps)))),
        )
    )
    assert same_expression(Program(steps), program)
    assert same_expression(longer, program)


@given(programs(sorted(OPERATIONS - {"table_sum", "table_average", "table_max", "table_min"})))
def test_program_match_is_reflexive(program: Program) -> None:
    assert same_expression(program, program)


def test_doubling_two_hundred_times_is_compared_quickly() -> None:
    steps = [ProgramStep("add", (Literal(3.5), Literal(4.5)))]
    steps += [ProgramStep("add", (StepReference(i), StepReference(i))) for i in range(199)]
    other = [ProgramStep("sum", step.arguments) for step in steps]
    assert same_expression(Program(tuple(steps)), Program(tuple(other)))

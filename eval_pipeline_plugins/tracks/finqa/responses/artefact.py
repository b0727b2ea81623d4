"""Parses a response into a plan."""

from collections.abc import Callable
from math import isfinite
from typing import Any

from eval_pipeline.answers import json_text
from eval_pipeline.answers.json_text import MAX_CHARS
from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    MAX_ARGUMENTS,
    MAX_STEPS,
    READING,
    TABLE_OPERATIONS,
    Argument,
    Label,
    Literal,
    Program,
    ProgramStep,
    StepReference,
    literal,
    read_argument,
)
from eval_pipeline_plugins.tracks.finqa.responses.calculation import CalculationError
from eval_pipeline_plugins.tracks.finqa.responses.dsl import (
    find_program,
    parse_dsl,
    program_of_tokens,
    read_calculation,
)
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan
from eval_pipeline_plugins.tracks.finqa.responses.recorded import RECORDED, read_recorded, said_answer
from eval_pipeline_plugins.tracks.finqa.responses.workflow import is_workflow, read_workflow

FORMS = '{"plan": [...]} or {"calculation": "..."}'


def find_json(text: str, wanted: Callable[[Json], bool]) -> Json:
    """Returns the JSON value of a plan in a text. Raises ArtefactError; see `json_text.find_json`."""
    return json_text.find_json(text, wanted, "a plan", FORMS)


_MAX_TEXT = 300


_KEYS = frozenset({"plan", "steps", "calculation", "program"})


def parse_plan(text: str, recorded: bool) -> FinqaPlan:
    """Finds the plan in a response: JSON alone, in a fence, or surrounded by prose.

    Args:
        text: the response, unchanged.
        recorded: also accept the form made by `recorded_response`.

    Raises:
        ArtefactError: with its error class.
    """
    try:
        value = find_json(text, lambda found: _is_plan(found, recorded))
    except ArtefactError:
        if (program := find_program(text[:MAX_CHARS])) is not None:
            return FinqaPlan("program", _read(parse_dsl, program))
        if recorded and 0 < len(text.strip()) <= _MAX_TEXT and not text.strip().startswith(("{", "[")):
            return said_answer(text)
        raise
    if isinstance(value, list):
        return FinqaPlan("program", _tokens(value)) if _is_tokens(value) else FinqaPlan("plan", _program(value))
    if recorded and RECORDED in value:
        return read_recorded(value[RECORDED])
    for key in ("plan", "steps"):
        if key in value:
            return FinqaPlan("plan", _program(value[key]))
    if "program" in value:
        return FinqaPlan("program", _tokens(value["program"]))
    return FinqaPlan("calculation", _calculation(value["calculation"]))  # the only form left


def _is_plan(value: Json, recorded: bool) -> bool:
    if isinstance(value, dict):
        return not _KEYS.isdisjoint(value) or (recorded and RECORDED in value)
    return isinstance(value, list) and bool(value) and (_is_tokens(value) or _is_step(value[0]))


def _is_step(value: Json) -> bool:
    return isinstance(value, dict) and "tool" in value


def _is_tokens(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(token, str) for token in value) and value[0].endswith("(")


def _tokens(raw: Json) -> Program:
    """Parses a program given as a text, or as the tokens that FinQA's models write."""
    if isinstance(raw, list) and raw and _is_tokens(raw):
        raw = program_of_tokens(raw)
    if not isinstance(raw, str) or not raw.strip():
        raise _invalid("the program must be a text that is not empty")
    number = printed_number(raw)
    if number is not None:
        return Program((ProgramStep(EXTRACT, (literal(number),)),))
    return _read(parse_dsl, find_program(raw) or raw)


def _invalid(message: str) -> ArtefactError:
    return ArtefactError(ErrorClass.VALUE, message)


def _program(steps: Json) -> Program:
    if not isinstance(steps, list) or not steps:
        raise _invalid("the plan is empty" if steps == [] else "the plan must be a list of steps")
    if len(steps) > MAX_STEPS:
        raise _invalid(f"the plan has {len(steps)} steps, at most {MAX_STEPS} are run")
    if is_workflow(steps):
        program = _read(read_workflow, steps)
    else:
        program = Program(tuple([_step(step, index) for index, step in enumerate(steps)]))
    if sum(len(step.arguments) for step in program.steps) > MAX_ARGUMENTS:
        raise _invalid(f"the plan has more than {MAX_ARGUMENTS} arguments")
    return program


def _step(raw: Json, index: int) -> ProgramStep:
    if not isinstance(raw, dict):
        raise _invalid(f"step {index} must be an object with 'tool'")
    tool = raw.get("tool")
    if tool == "extract":
        return _extract_step(raw, index)
    if tool == "compute":
        return _compute_step(raw, index)
    raise _invalid(f"step {index}: 'tool' must be 'extract' or 'compute', found {str(tool)[:40]!r}")


def _extract_step(raw: dict[str, Json], index: int) -> ProgramStep:
    if "value" not in raw:
        raise _invalid(f"step {index}: extract needs 'value'")
    argument = _argument(raw["value"], index)
    if isinstance(argument, StepReference):
        raise _invalid(f"step {index}: extract needs a number of the document, not the reference #{argument.step}")
    source = raw.get("source", "")
    return ProgramStep(EXTRACT, (argument,), source[:_MAX_TEXT] if isinstance(source, str) else "")


def _compute_step(raw: dict[str, Json], index: int) -> ProgramStep:
    name, arguments = raw.get("operation"), raw.get("args")
    if not isinstance(name, str) or not name.strip():
        raise _invalid(f"step {index}: compute needs 'operation'")
    if not isinstance(arguments, list):
        raise _invalid(f"step {index}: compute needs 'args', a list")
    if len(arguments) > MAX_ARGUMENTS:
        raise _invalid(f"step {index} has {len(arguments)} arguments, at most {MAX_ARGUMENTS} are read")
    operation = name.strip().lower()[:_MAX_TEXT]
    if operation in READING:
        raise _invalid(f"step {index}: {operation} is a tool, not an operation")
    read = tuple([_argument(argument, index) for argument in arguments])
    if operation in TABLE_OPERATIONS:
        read = tuple(
            [Label(raw.strip()) if isinstance(raw, str) else a for raw, a in zip(arguments, read, strict=True)]
        )
        if len(read) == 2 and read[1] == Label("none"):
            read = read[:1]  # FinQA writes table_max(row, none)
    return ProgramStep(operation, read)


def _argument(raw: Json, index: int) -> Argument:
    if isinstance(raw, str):
        if len(raw) > _MAX_TEXT:
            raise _invalid(f"step {index}: an argument has {len(raw)} characters, at most {_MAX_TEXT} are read")
        return read_argument(raw)
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise _invalid(f"step {index}: a value must be a number or a text, found {_json_name(raw)}")
    try:
        value = float(raw)
    except OverflowError:
        value = float("inf")
    if not isfinite(value):
        raise _invalid(f"step {index}: a value is not a finite number")
    return Literal(value)


def _json_name(raw: Json) -> str:
    if raw is None or isinstance(raw, bool):
        return {None: "null", True: "true", False: "false"}[raw]
    return "an object" if isinstance(raw, dict) else "a list"


def _calculation(raw: Json) -> Program:
    if not isinstance(raw, str) or not raw.strip():
        raise _invalid("the calculation must be a text that is not empty")
    return _read(read_calculation, raw)


def _read(read: Callable[[Any], Program], raw: Json) -> Program:
    try:
        return read(raw)
    except CalculationError as error:
        raise _invalid(str(error)) from None

"""Parses plans of workflow planners: steps with ids that extract by row and column, or compute from operands.

Examples are `{"step_id": 1, "tool": "extract_value", "source": "table", "table_params": {"row_query": "revenue",
"col_query": "2020"}}` and `{"step_id": 3, "tool": "compute", "operation": "subtract", "operands": [{"type":
"reference", "step_ref": 1}, …]}`. Public agents for ConvFinQA on GitHub use this form. Their `percentage_change` takes
the old value first, ours the new one.
"""

import re
from collections.abc import Mapping, Sequence
from math import isfinite

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    LOOKUP,
    OPERATIONS,
    TABLE_OPERATIONS,
    Argument,
    Label,
    Literal,
    Program,
    ProgramStep,
    StepReference,
    read_argument,
)
from eval_pipeline_plugins.tracks.finqa.responses.calculation import CalculationError

_EXTRACTING = frozenset({"extract_value", "extract_number", "get_value", "lookup", "table_lookup", "read_table"})
_COMPUTING = frozenset({"compute", "calculate", "calc", "math"})
_PARAMETERS = ("table_params", "text_params", "params", "parameters", "args", "arguments", "operands", "inputs")
_ROWS = ("row_query", "row", "row_label", "row_name")
_COLUMNS = ("col_query", "column_query", "col", "column", "column_label", "column_name", "year")
_REFERENCE = re.compile(r"(?:#|\$?step[_ ]?)(-?\d{1,4})", re.IGNORECASE)
_MAX_TEXT = 300


def is_workflow(steps: Sequence[Json]) -> bool:
    """Whether steps are in this form rather than in that of our own prompt."""
    return any(isinstance(step, dict) and ("operands" in step or _tool(step) in _EXTRACTING) for step in steps)


def read_workflow(steps: Sequence[Json]) -> Program:
    """Parses the steps as a program; numbers given by row and column are looked up when it runs.

    Raises:
        CalculationError: with one sentence; also if a reference is ambiguous.
    """
    places = _places(steps)
    return Program(tuple([_step(raw, index, places) for index, raw in enumerate(steps)]))


def _tool(step: Mapping[str, Json]) -> str:
    return str(step.get("tool") or step.get("type") or "").strip().lower()


def _places(steps: Sequence[Json]) -> dict[int, int]:
    """Returns step id → position; empty if steps have no ids."""
    ids = [step.get("step_id", step.get("id")) for step in steps if isinstance(step, dict)]
    numbers = [number for number in ids if isinstance(number, int) and not isinstance(number, bool)]
    return {number: place for place, number in enumerate(numbers)} if len(numbers) == len(steps) else {}


def _step(raw: Json, index: int, places: Mapping[int, int]) -> ProgramStep:
    if not isinstance(raw, dict):
        raise CalculationError(f"step {index} must be an object with 'tool'")
    tool = _tool(raw)
    if tool in _EXTRACTING or tool == EXTRACT:
        return _extraction(raw, index)
    name = tool if tool in OPERATIONS else str(raw.get("operation") or raw.get("op") or "").strip().lower()
    if tool not in _COMPUTING and tool not in OPERATIONS:
        raise CalculationError(f"step {index}: 'tool' must extract or compute, found {tool[:40]!r}")
    operands = next((raw[key] for key in ("operands", "args", "arguments", "inputs") if key in raw), None)
    if not isinstance(operands, list):
        raise CalculationError(f"step {index}: compute needs 'operands', a list")
    if name in TABLE_OPERATIONS:
        return ProgramStep(name, tuple([Label(str(operand)[:_MAX_TEXT]) for operand in operands[:1]]))
    arguments = [_operand(operand, index, places) for operand in operands]
    # In this form, the old value comes first.
    return ProgramStep(name[:_MAX_TEXT], tuple(reversed(arguments) if name == "percentage_change" else arguments))


def _extraction(raw: Mapping[str, Json], index: int) -> ProgramStep:
    given = next((raw[key] for key in _PARAMETERS if key in raw), raw)
    fields: Mapping[str, Json] = {**raw, **given} if isinstance(given, dict) else raw
    source = str(fields.get("value_context") or fields.get("source") or "")[:_MAX_TEXT]
    if fields.get("value") is not None:
        return ProgramStep(EXTRACT, (_number(fields["value"], index),), source)
    row, column = (next((fields[key] for key in keys if fields.get(key)), None) for keys in (_ROWS, _COLUMNS))
    if isinstance(given, list):
        if len(given) == 1:
            return ProgramStep(EXTRACT, (_number(given[0], index),), source)
        if len(given) == 2 and all(isinstance(part, str) for part in given):
            row, column = given
    if row is None or column is None:
        raise CalculationError(f"step {index}: extract_value names neither a value nor a row and a column of the table")
    return ProgramStep(LOOKUP, (Label(str(row)[:_MAX_TEXT]), Label(str(column)[:_MAX_TEXT])), source)


def _number(raw: Json, index: int) -> Argument:
    if isinstance(raw, dict):
        raw = raw.get("value")
    argument = read_argument(raw) if isinstance(raw, str) and len(raw) <= _MAX_TEXT else _literal(raw, index)
    if isinstance(argument, StepReference):
        raise CalculationError(f"step {index}: extract_value needs a number of the document, not a reference")
    return argument


def _literal(raw: Json, index: int) -> Literal:
    # An integer above 1e308 cannot be converted to a float.
    if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not abs(raw) < 1e300 or not isfinite(raw):
        raise CalculationError(f"step {index}: a value must be a finite number")
    return Literal(float(raw))


def _operand(raw: Json, index: int, places: Mapping[int, int]) -> Argument:
    if isinstance(raw, dict):
        step = next((raw[key] for key in ("step_ref", "step_id", "step", "ref") if raw.get(key) is not None), None)
        return _number(raw, index) if step is None else _reference(str(step), index, places)
    if not isinstance(raw, str):
        return _literal(raw, index)
    match = _REFERENCE.fullmatch(raw.strip())
    return _number(raw, index) if match is None else _reference(match[1], index, places)


def _reference(text: str, index: int, places: Mapping[int, int]) -> StepReference:
    try:
        number = int(_REFERENCE.sub(r"\1", text.strip())[:9])
    except ValueError:
        raise CalculationError(f"step {index}: '{text[:40]}' is no reference to a step") from None
    if number < 0:
        raise CalculationError(
            f"step {index} refers to an earlier turn ({number}); only steps of this plan can be read"
        )
    if not places:
        raise CalculationError(
            f"step {index} refers to step {number}, but steps have no 'step_id': it may mean two steps"
        )
    if number not in places:
        raise CalculationError(f"step {index} refers to step {number}, which the plan does not have")
    return StepReference(places[number])

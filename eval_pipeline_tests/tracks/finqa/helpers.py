"""Running a response through the whole track, as the stages do; the public conversations and recorded runs."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from unittest.mock import patch

from eval_pipeline.core.model import (
    Attempt,
    CallErrorKind,
    CallFailure,
    Case,
    ErrorClass,
    Failed,
    Outcome,
    Response,
    Turn,
)
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.base import ArtefactError, ValidationRow
from eval_pipeline_plugins.data_sets.convfinqa import read_convfinqa
from eval_pipeline_plugins.tracks.finqa.programs.program import Program
from eval_pipeline_plugins.tracks.finqa.responses.artefact import parse_plan
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan
from eval_pipeline_plugins.tracks.finqa.track import TRACK, run_plan
from eval_pipeline_tests.outside import FINQA, given
from eval_pipeline_tests.support import SHIPPED

TABLE: list[list[str | float]] = [
    ["(in millions)", "2020", "2019"],
    ["net sales", "412.5", 188],
    ["costs", "(20)", "$ (30)"],
    ["notes", "see page 4", ""],
    ["2018", 30, "12%"],
]


def raw_case(*turns: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A case in the suite's file format."""
    document = {"pre_text": "sales were 412.5, up from 371.", "table": TABLE, "post_text": "the rate was 12.5%."}
    return {"id": "acme", "document": document, "turns": list(turns), **changes}


def case_of(*turns: Mapping[str, Any]) -> Case:
    return TRACK.read_case(raw_case(*turns), "suite", "file.jsonl", 1)


def gold_turn(program: str, answer: Any = None, printed: str | None = None) -> dict[str, Any]:
    """A turn; where no answer is given, the one the program gives."""
    turn: dict[str, Any] = {"question": "what?", "program": program, "answer": 0 if answer is None else answer}
    if printed is not None:
        turn["printed"] = printed
    if answer is None:
        outcome = run_plan(FinqaPlan("plan", case_of(turn).turns[0].gold.program), case_of(turn).context)
        turn["answer"] = getattr(outcome, "value", {}).get("text", getattr(outcome, "value", {}).get("value", 0))
    return turn


def calculation(text: str) -> str:
    """A response that calculates."""
    return json.dumps({"calculation": text})


@cache
def sample_cases() -> tuple[Case, ...]:
    """The cases of the shipped suite."""
    with patch("eval_pipeline.suites.cases.rehearse"):
        return read_suite(read_header(SHIPPED / "suites" / "finqa_sample")).cases


def read_plan(text: str) -> Program:
    """A program written like a gold one, but with any operation, through the parser of plans."""
    steps: list[dict[str, Any]] = []
    for call in text.split("), "):
        name, bracket, inside = call.rstrip(")").partition("(")
        if not bracket:
            steps.append({"tool": "extract", "value": name})
        elif name.startswith("table_"):
            steps.append({"tool": "compute", "operation": name, "args": [inside]})
        else:
            steps.append({"tool": "compute", "operation": name, "args": inside.split(", ")})
    program = parse_plan(json.dumps(steps), recorded=False).program
    assert program is not None
    return program


def attempt_at(case: Case, turn: Turn, text: str, *, recorded: bool = False, number: int = 0) -> Attempt:
    """What the generate stage makes of a response."""
    plan: FinqaPlan | None = None
    outcome: Outcome
    try:
        plan = TRACK.parse(text, recorded=recorded)
        outcome = run_plan(plan, case.context)
    except ArtefactError as error:
        outcome = Failed(error.error_class, error.message)
    return Attempt(turn.id, 0, number, "", Response(text), None, plan, outcome)


def failed_call(turn: Turn, number: int = 0) -> Attempt:
    failure = CallFailure(CallErrorKind.TIMEOUT, "no response within 60 s")
    return Attempt(turn.id, 0, number, "", None, failure, None, None)


def validation_of(case: Case, text: str) -> ValidationRow:
    try:
        return TRACK.validate(TRACK.parse(text, recorded=False), None, case)
    except ArtefactError as error:
        return TRACK.validate(None, error, case)


def measured(case: Case, turn: Turn, *attempts: Attempt) -> dict[str, Any]:
    """Every metric of a turn, run in order as the score stage does."""
    return _measured(TRACK.values(case, turn, attempts, ()))


def measured_conversation(
    case: Case, said: Sequence[tuple[Turn, Sequence[Attempt]]], history: str = "gold"
) -> list[dict[str, Any]]:
    """Values and metrics of each turn of a conversation."""
    found = []
    for (turn, attempts), told in zip(said, TRACK.conversation_values(case, said, history), strict=True):
        values = TRACK.values(case, turn, attempts, ()) | told
        found.append(values | _measured(values))
    return found


def answered(case: Case, *texts: str, history: str = "gold") -> list[dict[str, Any]]:
    """Values and metrics of the first turns of a case, with these responses."""
    said = [(turn, [attempt_at(case, turn, text)]) for turn, text in zip(case.turns, texts, strict=False)]
    return measured_conversation(case, said, history)


def _measured(values: Mapping[str, Any]) -> dict[str, Any]:
    known, results = dict(values), dict[str, Any]()
    for metric in TRACK.metrics:
        results[metric.name] = known[metric.name] = metric.function(*[known[name] for name in metric.inputs()])
    return results


def measured_response(turn: Mapping[str, Any], text: str) -> dict[str, Any]:
    case = case_of(turn)
    return measured(case, case.turns[0], attempt_at(case, case.turns[0], text))


def failure(text: str, *, recorded: bool = False) -> tuple[ErrorClass, str] | None:
    """Error class and message of parsing, or None."""
    try:
        TRACK.parse(text, recorded=recorded)
    except ArtefactError as error:
        return error.error_class, error.message
    return None


Place = tuple[str, int]


@cache
def cases() -> list[Case]:
    source = given(FINQA / "convfinqa_dev_sample.json")
    return [TRACK.read_case(raw, "convfinqa", source.name, 1) for raw in read_convfinqa(source, None)]


@cache
def scored(run: str, history: str = "unknown", bare: bool = False) -> dict[Place, dict[str, Any]]:
    """Values and metrics of every turn that a run answered, by case and turn; `bare`: without its calculations."""
    path = given(FINQA / f"predictions_claude-sonnet-4-6_run_{run}.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    dropped = {"calculation"} if bare else set[str]()
    answers = {
        (row["case_id"], row["turn_index"]): TRACK.from_recorded({k: row[k] for k in row if k not in dropped})
        for row in rows
    }
    found: dict[Place, dict[str, Any]] = {}
    for case in cases():
        said = [
            (turn, [attempt_at(case, turn, answers[case.id, turn.index], recorded=True)])
            for turn in case.turns
            if (case.id, turn.index) in answers
        ]
        measured = measured_conversation(case, said, history)
        found |= {(case.id, turn.index): values for (turn, _), values in zip(said, measured, strict=True)}
    return found

"""Wrong answers made from the public conversations by a slip in the gold program."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from eval_pipeline.core.model import Case, Failed, Turn
from eval_pipeline.core.numbers import number_text
from eval_pipeline_plugins.tracks.finqa.mutants import _text, program_mutants
from eval_pipeline_plugins.tracks.finqa.programs.execute import run_program
from eval_pipeline_plugins.tracks.finqa.programs.matching import Answer, answers_match
from eval_pipeline_plugins.tracks.finqa.programs.program import Literal, Program
from eval_pipeline_plugins.tracks.finqa.track import TRACK

from .helpers import attempt_at, cases, measured_conversation

REFUSALS = ("N/A", "not available", "Insufficient data.", "It cannot be determined from the page.")


def seeded(*names: object) -> Random:
    return Random(hashlib.sha256(repr(names).encode()).hexdigest())


def value_of(case: Case, program: Program) -> Answer:
    outcome = run_program(program, case.context.table)
    return None if isinstance(outcome, Failed) else outcome.value.get("text", outcome.value.get("value"))


def slips(case: Case, turn: Turn) -> Iterator[Program]:
    """Mutants of the gold program that give another answer."""
    for _, mutant in program_mutants(turn.gold.program, case.context.table):
        answer = value_of(case, mutant)
        if answer is not None and not answers_match(answer, turn.gold.expected):
            yield mutant


def _written(case: Case, program: Program, bare: bool) -> str:
    if bare:
        answer = value_of(case, program)
        return answer if isinstance(answer, str) else number_text(answer or 0.0)
    return json.dumps({"program": ", ".join(map(_text, program.steps))})


def _taken_over(program: Program, was: float, now: float) -> Program:
    """The program with one number in the place of another."""
    steps = [
        replace(step, arguments=tuple(Literal(now) if a == Literal(was) else a for a in step.arguments))
        for step in program.steps
    ]
    return Program(tuple(steps))


def planted_conversation(case: Case) -> list[str]:
    """Gold programs as responses, then one with a slip, then perhaps one that takes its answer over."""
    rng = seeded("failure", case.id)
    turns = [turn for turn in case.turns if any(True for _ in slips(case, turn))]
    turn = rng.choice(turns)
    bare = rng.random() < 0.4
    said = [_written(case, one.gold.program, False) for one in case.turns[: turn.index]]
    if rng.random() < 0.08:
        return [*said, rng.choice(REFUSALS)]
    slip = rng.choice(list(slips(case, turn)))
    said.append(_written(case, slip, bare))
    wrong, right = value_of(case, slip), turn.gold.expected
    after = case.turns[turn.index + 1] if turn.index + 1 < len(case.turns) else None
    if after is not None and isinstance(wrong, float) and rng.random() < 0.8:
        for now in (wrong, -wrong)[:: rng.choice((1, -1))]:
            taken = _taken_over(after.gold.program, right, now)
            if taken != after.gold.program and not answers_match(value_of(case, taken), after.gold.expected):
                return [*said, _written(case, taken, rng.random() < 0.3)]
    return said


def mode_of_slip(name: str, said: dict[int, dict[str, str]]) -> str:
    """The failure mode of the last of some answers (turn → recorded answer); turns between are answered right."""
    case = next(case for case in cases() if case.id == name)
    given = []
    for turn in case.turns[: max(said) + 1]:
        right = _written(case, turn.gold.program, False)
        text = TRACK.from_recorded(said[turn.index]) if turn.index in said else right
        given.append((turn, [attempt_at(case, turn, text, recorded=True)]))
    mode: str = measured_conversation(case, given, "own")[-1]["failure_mode"]
    return mode


@cache
def planted_failures() -> dict[str, tuple[list[str], dict[str, Any]]]:
    """Case → its responses, and values and metrics of the last of them."""
    found = {}
    for case in cases():
        texts = planted_conversation(case)
        said = [(t, [attempt_at(case, t, text, recorded=True)]) for t, text in zip(case.turns, texts, strict=False)]
        found[case.id] = (texts, measured_conversation(case, said, "own")[-1])
    return found

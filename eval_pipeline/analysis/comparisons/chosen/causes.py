"""In what two evaluations were made differently, and how their prompts differ."""

import re
from collections.abc import Iterator
from difflib import unified_diff

from eval_pipeline.analysis.comparisons.chosen.sides import SUITE_PROMPT
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.workspace.evaluations import EvaluationRun, causes

_SENTENCE_ENDS = re.compile(r"(?<=[.!?:;]) +")
_INDENT = "  "


def causes_of(first: EvaluationRun, second: EvaluationRun, served: str | None = None) -> list[str]:
    """Returns what may have caused a difference, in words: `prompt changed`, `options changed: temperature`, …

    Of two model versions it is not told that each was asked for itself, or that they were served differently.

    Args:
        first: an evaluation.
        second: another one of the suite.
        served: how the models differ that answered (`Served.change`).
    """
    found = causes(first, second)
    if first.partition.model_version != second.partition.model_version:
        return [cause for cause in found if cause != "asked anew"]
    return [*found, *([f"another model answered: {served}"] if served else [])]


def prompt_difference(first: EvaluationRun, second: EvaluationRun) -> list[str]:
    """Returns how the definitions of two prompts differ, as a unified diff of their sentences; empty if they do not."""
    before, after = ([*_heads(one), *_lines(one.prompt_text)] for one in (first, second))
    return list(unified_diff(before, after, "before", "after", lineterm=""))[2:]


def _heads(found: EvaluationRun) -> Iterator[str]:
    yield f"version: {found.prompt.split(' ')[0]}"
    if name := found.settings.get(SUITE_PROMPT):
        yield f"prompt of the suite: {name}"


def _lines(definition: str) -> list[str]:
    return list(_lines_of(parse_json(definition))) if definition else []


def _lines_of(value: Json, indent: str = "") -> Iterator[str]:
    """Yields a definition as text, a sentence a line, so that a changed one stands alone."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield f"{indent}{name}:"
            yield from _lines_of(part, indent + _INDENT)
    elif isinstance(value, list):
        for part in value:
            first, *others = list(_lines_of(part)) or [""]
            yield f"{indent}- {first}"
            yield from (f"{indent}{_INDENT}{line}" for line in others)
    elif isinstance(value, str):
        lines = ("".join(c if c.isprintable() else " " for c in line) for line in value.splitlines())
        yield from (f"{indent}{part}" for line in lines for part in _SENTENCE_ENDS.split(line))
    elif value is not None:
        yield f"{indent}{value}"

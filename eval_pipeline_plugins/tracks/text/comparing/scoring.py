"""Reads and scores a response outside of a run, to check gold and to make wrong responses."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from eval_pipeline.core.model import Evidence, MetricResult, Outcome, Ran
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.texts.reasoning import apart
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, TextTurn
from eval_pipeline_plugins.tracks.text.comparing.judging import judgement_of
from eval_pipeline_plugins.tracks.text.comparing.reading import read_answer, sources_of
from eval_pipeline_plugins.tracks.text.metrics import METRICS, failure_mode, verdict


def read_of(text: str, case: TextCase) -> Outcome:
    """Returns the outcome of a response to the case's question; what was thought before it is no part of the answer."""
    context = case.context
    return read_answer(apart(text).answer, context.options.answer, _asked(case), context.fields)


def _asked(case: TextCase) -> str:
    return "\n\n".join(turn.question for turn in case.turns)


def told_of(
    case: TextCase,
    turn: TextTurn,
    text: str,
    outcome: Outcome | None,
    evidence: Sequence[Evidence] = (),
    *,
    no_answer: bool,
) -> dict[str, Any]:
    """Returns the inputs of the metrics for a turn, the text of its response (which may be empty) and its outcome."""
    context = case.context
    return {
        "response_text": text,
        "said": outcome.value if isinstance(outcome, Ran) else None,
        "error_class": None if outcome is None or isinstance(outcome, Ran) else str(outcome.error_class),
        "no_answer": no_answer,
        "expected": turn.gold.accepted,
        "options": context.options,
        "judgement": judgement_of(outcome, turn, evidence),
        "sources": sources_of(context.options.answer, turn.question, context.fields),
    }


def metrics_of(text: str, case: TextCase, turn: TextTurn, last: str = failure_mode.METRIC.name) -> Mapping[str, Any]:
    """Returns the metrics of a response by name, up to one of them; by default without those of recovery."""
    told = told_of(case, turn, text, read_of(text, case) if text.strip() else None, no_answer=not text.strip())
    for metric, names in _up_to(last):
        found = metric.function(**{name: told[name] for name in names})
        told[metric.name] = found.value if isinstance(found, MetricResult) else found
    return told


@cache
def _up_to(last: str) -> Sequence[tuple[Metric, tuple[str, ...]]]:
    """Returns the metrics up to the last, each with its inputs, whose names take as long to find as most metrics."""
    count = [metric.name for metric in METRICS].index(last) + 1
    return [(metric, metric.inputs()) for metric in METRICS[:count]]


def mode_of(text: str, case: TextCase, turn: TextTurn) -> str | None:
    """Returns the failure mode of a response; None for a correct one."""
    found: str | None = metrics_of(text, case, turn)[failure_mode.METRIC.name]
    return found


def is_correct(text: str, case: TextCase, turn: TextTurn) -> bool | None:
    """Returns whether a response is correct."""
    found: bool | None = metrics_of(text, case, turn, verdict.CORRECT.name)[verdict.CORRECT.name]
    return found

"""Reads and scores a response outside of a run, to check gold and to make wrong responses."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Evidence, MetricResult, Outcome, Ran
from eval_pipeline.tracks.capabilities import ToJudge
from eval_pipeline.tracks.metric import Plain
from eval_pipeline.tracks.texts.reasoning import apart
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, TextTurn
from eval_pipeline_plugins.tracks.text.cases.settings import Exact
from eval_pipeline_plugins.tracks.text.comparing.matching import answer_shown, same_text
from eval_pipeline_plugins.tracks.text.comparing.reading import read_answer, sources_of
from eval_pipeline_plugins.tracks.text.metrics import METRICS
from eval_pipeline_plugins.tracks.text.prompt import answer_response

JUDGEMENT = "judgement"
NO_ANSWER = "there is no answer to grade"
IDENTICAL = "the answer is a right answer, word by word"
_LITERALLY = Exact(ignore_case=False, ignore_punctuation=False)


def to_judge(case: TextCase, turn: TextTurn, final: Attempt[str]) -> ToJudge:
    """Returns the question with its fields, the right answers, and the part of the response that gives the answer."""
    outcome = final.outcome
    said = shown_to_judge(outcome, turn) if isinstance(outcome, Ran) else ""
    right = "\n\nor:\n".join(map(answer_shown, turn.gold.accepted))
    fields = dict(case.context.fields)
    asked = f"{json_text(fields)}\n\n{turn.question}" if fields else turn.question
    return ToJudge(said, right, asked, settled=settled_grade(outcome, turn))


def shown_to_judge(outcome: Ran, turn: TextTurn) -> str:
    """Returns the part of an answer that the judge sees: the answer section of a text, else the parsed answer."""
    value: Any = outcome.value
    return str(value["section"]) if turn.gold.form.form == "text" else answer_shown(value["answer"])


def settled_grade(outcome: Outcome | None, turn: TextTurn) -> tuple[float, str] | None:
    """Returns grade and reason if no judge is needed: for a missing answer, and for one that equals a right one."""
    if not isinstance(outcome, Ran):
        return 0.0, NO_ANSWER
    gold, said = turn.gold, shown_to_judge(outcome, turn)
    if not said.strip():
        return 0.0, NO_ANSWER
    literal = [text for right in gold.accepted for text in (answer_shown(right), answer_response(right, gold.form))]
    if any(same_text(said, right, _LITERALLY) for right in (*literal, gold.response or "")):
        return 1.0, IDENTICAL
    return None


def judgement_of(outcome: Outcome | None, turn: TextTurn, evidence: Sequence[Evidence]) -> Mapping[str, Any]:
    """Returns the recorded judgement, else the grade that needs no judge; empty if there is neither."""
    recorded = next((found.details for found in evidence if found.kind == JUDGEMENT), None)
    if recorded is not None:
        return recorded
    settled = settled_grade(outcome, turn)
    return {} if settled is None else {"value": settled[0], "reason": settled[1]}


def read_of(text: str, case: TextCase) -> Outcome:
    """Returns the outcome of a response to the case's question; what was thought before it is no part of the answer."""
    context = case.context
    return read_answer(
        apart(text).answer, context.options.answer, "\n\n".join(turn.question for turn in case.turns), context.fields
    )


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
        "judgement": judgement_of(outcome, turn, evidence) if "judge" in context.options.asked else {},
        "sources": sources_of(context.options.answer, turn.question, context.fields),
    }


def metrics_of(text: str, case: TextCase, turn: TextTurn, last: str = "failure_mode") -> Mapping[str, Any]:
    """Returns the metrics of a response by name, up to one of them; by default without those of recovery."""
    told = told_of(case, turn, text, read_of(text, case) if text.strip() else None, no_answer=not text.strip())
    for metric, function, names in _up_to(last):
        found = function(*[told[name] for name in names])
        told[metric] = found.value if isinstance(found, MetricResult) else found
    return told


@cache
def _up_to(last: str) -> Sequence[tuple[str, Callable[..., Plain], tuple[str, ...]]]:
    """Returns the metrics up to the last: name, function and inputs; to find these takes as long as most metrics."""
    count = [metric.name for metric in METRICS].index(last) + 1
    return [(metric.name, metric.loaded(), metric.inputs()) for metric in METRICS[:count]]


def mode_of(text: str, case: TextCase, turn: TextTurn) -> str | None:
    """Returns the failure mode of a response; None for a correct one."""
    found: str | None = metrics_of(text, case, turn)["failure_mode"]
    return found


def is_correct(text: str, case: TextCase, turn: TextTurn) -> bool | None:
    """Returns whether a response is correct."""
    found: bool | None = metrics_of(text, case, turn, "answer_correct")["answer_correct"]
    return found

"""Decides what the judge is asked about a turn, and which grades are known without asking."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Evidence, Outcome, Ran
from eval_pipeline.tracks.capabilities import ToJudge
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, TextTurn
from eval_pipeline_plugins.tracks.text.cases.settings import Exact
from eval_pipeline_plugins.tracks.text.comparing.matching import answer_shown, same_text
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

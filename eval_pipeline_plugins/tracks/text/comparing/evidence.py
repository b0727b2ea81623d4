"""Gathers evidence by comparing an answer with the expected one: JSON field by field, other answers as a whole."""

import re
from collections.abc import Mapping

from eval_pipeline.core.model import Attempt, Evidence, Failed, Json, Ran
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, TextTurn
from eval_pipeline_plugins.tracks.text.cases.settings import JsonField, JsonFields
from eval_pipeline_plugins.tracks.text.comparing.matching import compared_fields, fields_of

ANSWER, FIELD = "answer", "field"
_MOST_FIELDS = 200
_NAMED = 10
_INDEX = re.compile(r"\[\d+\]")


def evidence_of(case: TextCase, turn: TextTurn, final: Attempt[str]) -> tuple[Evidence, ...]:
    """Returns a row of the kind `answer`, and for JSON answers a row of the kind `field` per field."""
    if not turn.gold.accepted:
        return ()
    expected, outcome = turn.gold.accepted[0], final.outcome
    if not isinstance(outcome, Ran):
        why = outcome.message if isinstance(outcome, Failed) else "the call gave no response"
        return (_row(turn, final, ANSWER, "unreadable", None, {"expected": expected, "why": why}),)
    said = outcome.value["answer"]
    told = {"expected": expected, "answer": said, "section": outcome.value["section"]}
    whole = _row(turn, final, ANSWER, "equal" if said in turn.gold.accepted else "different", None, told)
    return (whole, *_fields(case, turn, final, said)) if turn.gold.form.form == "json" else (whole,)


def difference_of(case: TextCase, turn: TextTurn, value: Json) -> str | None:
    """Returns the fields in which a JSON answer differs, e.g. `extra fields: lines[2].amount`; None for other forms.

    Items of lists are named without their index, so that equal mistakes have equal texts.
    """
    if turn.gold.form.form != "json" or not isinstance(value, Mapping) or not turn.gold.accepted:
        return None
    _, verdicts = _nearest(turn, value["answer"], _rules(case))
    named = {
        verdict: dict.fromkeys(
            _INDEX.sub("[]", path) or "the whole" for path, found in verdicts.items() if found == verdict
        )
        for verdict in ("missing", "extra", "different")
    }
    texts = [f"{verdict} fields: {', '.join([*paths][:_NAMED])}" for verdict, paths in named.items() if paths]
    return "; ".join(texts) or None


def _rules(case: TextCase) -> Mapping[str, JsonField]:
    return (case.context.options.parameters("json_fields") or JsonFields()).fields


def _nearest(turn: TextTurn, said: Json, rules: Mapping[str, JsonField]) -> tuple[Json, dict[str, str]]:
    """Returns the right answer with the most equal fields, and the verdict on each field."""
    compared = [(right, compared_fields(said, right, rules)) for right in turn.gold.accepted]
    return max(compared, key=lambda found: sum(verdict == "equal" for verdict in found[1].values()))


def _fields(case: TextCase, turn: TextTurn, final: Attempt[str], said: Json) -> list[Evidence]:
    rules = _rules(case)
    right, verdicts = _nearest(turn, said, rules)
    ours, theirs = fields_of(right, rules), fields_of(said, rules)
    return [
        _row(
            turn,
            final,
            FIELD,
            verdict,
            float(verdict == "equal"),
            {"field": path, "expected": ours.get(path), "answer": theirs.get(path)},
        )
        for path, verdict in list(verdicts.items())[:_MOST_FIELDS]
    ]


def _row(
    turn: TextTurn, final: Attempt[str], kind: str, verdict: str, value: float | None, details: dict[str, Json]
) -> Evidence:
    return Evidence(turn.id, final.sample, kind, verdict, value, details)

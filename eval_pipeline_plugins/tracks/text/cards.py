"""Makes the cards that show a turn: given and expected answer, the matched part, and fields of JSON."""

from collections.abc import Iterator

from eval_pipeline.core.model import Failed, Json, Ran
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import Card, CardCell, DifferenceCard, FactsCard, Mark, TableCard, Text, TextCard
from eval_pipeline_plugins.tracks.text.cases.case_file import TextContext, TextGold
from eval_pipeline_plugins.tracks.text.comparing.evidence import FIELD, evidence_of
from eval_pipeline_plugins.tracks.text.comparing.matching import answer_shown

TextSeen = Seen[TextContext, TextGold, str]
_MARKS = {"equal": Mark.RIGHT, "different": Mark.WRONG, "missing": Mark.MISSING, "extra": Mark.EXTRA}
_MOST_ROWS, _MOST_TEXT = 60, 4_000


def turn_cards(seen: TextSeen) -> list[Card]:
    """Returns the cards of a turn; if there is no attempt, only the right answers."""
    return [*_cards(seen)]


def _cards(seen: TextSeen) -> Iterator[Card]:
    final = seen.attempts[-1] if seen.attempts else None
    outcome = None if final is None else final.outcome
    yield FactsCard("Answer", [*_facts(seen)], remark=_remark(seen))
    if final is None or not isinstance(outcome, Ran):
        return
    form, section = seen.turn.gold.form.form, str(outcome.value["section"])
    if form == "json":
        rows = [found for found in evidence_of(seen.case, seen.turn, final) if found.kind == FIELD]
        yield TableCard(
            "Fields",
            ("field", "expected", "answer"),
            [
                (
                    str(row.details["field"]),
                    "" if row.verdict == "extra" else _shown(row.details["expected"]),
                    CardCell("" if row.verdict == "missing" else _shown(row.details["answer"]), _MARKS[row.verdict]),
                )
                for row in rows[:_MOST_ROWS]
            ],
            row_headers=True,
            left_out=max(len(rows) - _MOST_ROWS, 0),
        )
        return
    yield TextCard("What was matched", [section[:_MOST_TEXT]])
    if form == "text" and seen.turn.gold.accepted and seen.metrics.get("answer_correct") is not True:
        said = str(outcome.value["answer"])[:_MOST_TEXT]
        yield DifferenceCard("Difference", "expected", answer_shown(seen.turn.gold.accepted[0]), "answer", said)


def _facts(seen: TextSeen) -> Iterator[tuple[str, Text]]:
    gold = seen.turn.gold
    right = " or ".join(map(answer_shown, gold.accepted)) or "not known"
    outcome = seen.attempts[-1].outcome if seen.attempts else None
    has_table = gold.form.form == "json" and isinstance(outcome, Ran) and len(gold.accepted) == 1
    if not has_table:
        yield "expected", CardCell(right[:_MOST_TEXT], Mark.GOLD)
    if isinstance(outcome, Ran) and not has_table:
        is_right = seen.metrics.get("answer_correct")
        mark = None if is_right is None else Mark.RIGHT if is_right else Mark.WRONG
        yield "answer", CardCell(answer_shown(outcome.value["answer"])[:_MOST_TEXT], mark)
    elif isinstance(outcome, Failed):
        yield "no answer, since", CardCell(outcome.message, Mark.WRONG)
    if mode := seen.metrics.get("failure_mode"):
        yield "failure mode", CardCell(str(mode).replace("_", " "), Mark.WRONG)
    options = seen.case.context.options
    for name in options.asked:
        given = options.parameters(name).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        told = ", ".join(_parameter(key, value) for key, value in given.items()) or "as usual"
        yield f"metric {name}", CardCell(told[:_MOST_TEXT], note="decides" if name == options.deciding else "")


def _parameter(name: str, value: Json) -> str:
    """Returns a parameter as in `suite.yaml`; those of fields by path, such as `total: absolute 0.005`."""
    if name == "fields" and isinstance(value, dict):
        each = ((path, rules) for path, rules in value.items() if isinstance(rules, dict))
        return "; ".join(f"{path}: {', '.join(_rule(*rule) for rule in rules.items())}" for path, rules in each)
    return _rule(name, value) if isinstance(value, bool) else f"{name}: {answer_shown(value)}"


def _rule(name: str, value: Json) -> str:
    if isinstance(value, bool):
        return name.replace("_", " ") if value else f"not {name.replace('_', ' ')}"
    return f"{name} {answer_shown(value)}"


def _remark(seen: TextSeen) -> str:
    labels = seen.turn.gold.form.labels
    return f"Allowed are {', '.join(labels)}." if labels else ""


def _shown(value: object) -> str:
    return "null" if value is None else answer_shown(value)[:_MOST_TEXT]

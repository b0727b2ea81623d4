"""What was done in an attempt as a timeline: calls, what they gave and had taken, and where it went wrong."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.core.ids import json_text
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import TimelineCard, TimelineStep
from eval_pipeline_plugins.tracks.agent.checking.foreign import CONTENTS, rows_of
from eval_pipeline_plugins.tracks.agent.trajectory import ActStep, Trajectory

_MOST_STEPS, _MOST_TEXT, _MOST_ROWS, _MOST_MADE = 200, 4000, 50, 8
_LAST = {*CONTENTS, "query", "code", "command"}
"""Arguments that are shown last."""
_COUNTED = ("usd", "tokens", "seconds")


def timeline(seen: Seen[Any, Any, Trajectory]) -> Iterator[TimelineCard]:
    """Yields the timeline of the last attempt; nothing if there is none."""
    artefact = seen.attempts[-1].artefact if seen.attempts else None
    if artefact is None:
        return
    wrong = next((one.details for one in seen.evidence if one.kind == "way"), {})
    spent = list(accumulate(map(_taken, artefact.steps), _sum))
    steps = [
        _step(
            place, step, _spent_text(spent[place]), str(wrong.get("words") or "") if place == wrong.get("step") else ""
        )
        for place, step in enumerate(artefact.steps[:_MOST_STEPS])
    ]
    yield TimelineCard("What it did", steps, left_out=max(len(artefact.steps) - _MOST_STEPS, 0))


def answer_shown(answer: object) -> str:
    """Returns an answer for display."""
    return answer if isinstance(answer, str) else json_text(answer)


def call_shown(name: str, arguments: object) -> str:
    """Returns a call for display: its arguments, without a name if there is only one."""
    told = arguments_shown(arguments)
    return f"{name}: {told}" if told else name


def arguments_shown(arguments: object) -> str:
    """Returns the arguments of a call for display: texts as they are, last what is written, else the longest."""
    given = dict(arguments) if isinstance(arguments, Mapping) else {}
    if len(given) <= 1:
        return "".join(map(answer_shown, given.values()))
    *short, (_, longest) = sorted(given.items(), key=lambda one: (one[0] in _LAST, len(answer_shown(one[1]))))
    return "\n".join([*(f"{name}: {answer_shown(told)}" for name, told in short), answer_shown(longest)])


def _step(place: int, step: ActStep, spent: str, remark: str) -> TimelineStep:
    if step.kind == "model":
        told = step.measured
        tokens = [told.get(name) for name in ("input_tokens", "output_tokens")]
        facts = [f"{shown.count(tokens[0])} + {shown.count(tokens[1])} tokens"] if None not in tokens else []
        facts += ["from the journal"] if told.get("from_journal") else []
        return TimelineStep(place, "model", step.text[:_MOST_TEXT], facts=facts, spent=spent, remark=remark)
    call = step.calls[0]
    rows = rows_of(step)
    facts = [] if rows is None else [shown.counted(rows, "row", "rows")]
    facts += [] if step.size is None else [shown.size(step.size)]
    facts += ["the model was told a part"] if step.cut else []
    facts += [f"made: {made}"] if (made := ", ".join(map(_made, step.made[:_MOST_MADE]))) else []
    given = arguments_shown(call.arguments)[:_MOST_TEXT]
    return TimelineStep(place, call.name, given, _result(step), step.error_class or "", facts, spent, remark)


def _made(variable: Mapping[str, Any]) -> str:
    """Returns a variable as its name with its size, or with its value."""
    rows, columns = variable["rows"], len(variable["columns"])
    cells = [cell for column in variable.get("values", ()) for cell in column]
    told = f" {rows:,}×{columns}" if rows is not None else f" = {(cells or ['?'])[0]}"
    return f"{variable['name']}{told}"


def _result(step: ActStep) -> str | Sequence[Sequence[str]]:
    """Returns what a tool gave, as rows if it is the table that a query gives and no cell has its separators."""
    lines = step.text.split("\n")
    if step.calls[0].name == "sql" and step.rows and step.error_class is None and not step.cut:
        rows = [line.split(" | ") for line in lines]
        if len(rows) == step.rows + 1 and len({len(row) for row in rows}) == 1:
            return rows[: _MOST_ROWS + 1]
    return step.text[:_MOST_TEXT]


def _taken(step: ActStep) -> dict[str, float | None]:
    told = step.measured
    known = [told.get(name) for name in ("input_tokens", "output_tokens")]
    tokens = None if step.kind == "model" and None in known else sum(one or 0 for one in known)
    seconds = told.get("seconds") if step.kind == "tool" else (told.get("latency_ms") or 0.0) / 1000
    return {"usd": told.get("usd") if step.kind == "model" else 0.0, "tokens": tokens, "seconds": seconds}


def _sum(before: Mapping[str, float | None], now: Mapping[str, float | None]) -> dict[str, float | None]:
    """Returns what both took together; what is unknown of one is unknown of both."""
    return {name: _both(before[name], now[name]) for name in _COUNTED}


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _spent_text(spent: Mapping[str, float | None]) -> str:
    usd, tokens, seconds = (spent[name] for name in _COUNTED)
    told = [] if usd is None else [shown.dollars(usd)]
    told += [] if tokens is None else [f"{shown.count(tokens)} tokens"]
    told += [] if seconds is None else [shown.duration(seconds)]
    return " · ".join(told)

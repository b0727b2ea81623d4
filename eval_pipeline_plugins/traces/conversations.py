"""Makes conversations of spans: a trace is a turn, and traces with the same conversation or session belong together.

Spans of one conversation may lie anywhere in the files, so they wait on disk and not in memory.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import ROUTE_TAG, Entry, LoggedTask
from eval_pipeline.operations.recorded.mapping import NO_ANSWER
from eval_pipeline_plugins.logs.texts import day_of, prompt_text, question_text, told_only, verdict_of
from eval_pipeline_plugins.traces.attempts import attempt_of
from eval_pipeline_plugins.traces.calls import (
    CACHE_READ,
    CACHE_WRITE,
    CONVERSATION,
    INPUT_TOKENS,
    MODEL,
    OUTPUT_TOKENS,
    RESPONSE_ID,
    ROUTE,
    SAMPLING,
    TOOL,
    USD,
    CallSpan,
    call_of,
    first,
    scores_of,
    tokens,
    user_texts,
)
from eval_pipeline_plugins.traces.otlp import Event, Span, read_spans

TOOL_TAG = "tool:"
_TRACE_ID, _SPAN_ID = 32, 16
_SILENT = (
    "no call in it has message content; instrumentations write it when told to, e.g. by "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
)
_TABLES = """
CREATE TABLE spans (trace TEXT, start INTEGER, body TEXT);
CREATE TABLE traces (trace TEXT PRIMARY KEY, start INTEGER, conversation TEXT);
"""
_ORDERED = """
CREATE INDEX by_trace ON spans (trace);
CREATE INDEX by_conversation ON traces (conversation, start);
"""


def read_otlp(source: Path) -> Iterator[Entry]:
    """Yields the turns of each conversation, one conversation after the other, by their beginning.

    Conversations without message content have turns without a question.

    Raises:
        InputError: a file cannot be read or is no OTLP; there is no call to a model, or none has content.
    """
    calls = told = 0
    with TemporaryDirectory() as folder:
        spans = sqlite3.connect(Path(folder) / "spans.sqlite")
        try:
            _spill(spans, read_spans(source))
            for name, traces in _conversations(spans):
                for entry in turns_of(name, traces):
                    calls += 1
                    told += bool(entry.task and entry.task.question)
                    yield entry
        finally:
            spans.close()
    if not told:
        raise InputError([Problem(str(source), None, "", _SILENT if calls else "no span in it is a call to a model")])


def _spill(spans: sqlite3.Connection, read: Iterator[Span]) -> None:
    spans.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLES}")
    for span in read:
        spans.execute("INSERT INTO spans VALUES (?, ?, ?)", (span.trace, _whole(span.start), json_text(asdict(span))))
        told = first(span.attributes, CONVERSATION)
        spans.execute(
            "INSERT INTO traces VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET "
            "start = iif(?2 > 0 AND (start = 0 OR ?2 < start), ?2, start), conversation = coalesce(conversation, ?3)",
            (span.trace, _whole(span.start), None if told is None else str(told)),
        )
    spans.executescript(_ORDERED)


def _whole(nanoseconds: int) -> int:
    return min(nanoseconds, (1 << 63) - 1)


def _conversations(spans: sqlite3.Connection) -> Iterator[tuple[str, list[list[Span]]]]:
    """Yields the id of each conversation with the spans of its traces, in order."""
    names = "SELECT coalesce(conversation, trace) AS name, min(start) AS start FROM traces GROUP BY name ORDER BY 2, 1"
    for name, _ in spans.execute(names):
        traces = spans.execute(
            "SELECT trace FROM traces WHERE conversation = ?1 OR (conversation IS NULL AND trace = ?1) "
            "ORDER BY start, trace",
            (name,),
        ).fetchall()
        yield name, [_trace(spans, trace) for (trace,) in traces]


def _trace(spans: sqlite3.Connection, trace: str) -> list[Span]:
    """Returns the spans of a trace in order; what log records tell of a span is among its events."""
    found: dict[str, Span] = {}
    for (body,) in spans.execute("SELECT body FROM spans WHERE trace = ? ORDER BY start = 0, start, rowid", (trace,)):
        read = json.loads(body)
        one = Span(**{**read, "events": tuple(Event(**event) for event in read["events"])})
        if (there := found.get(one.id)) is None:
            found[one.id] = one
        elif not one.start:
            found[one.id] = replace(there, events=(*there.events, *one.events))
    return list(found.values())


def turns_of(conversation: str, traces: Sequence[Sequence[Span]]) -> Iterator[Entry]:
    """Yields the turns of a conversation, given the spans of its traces in order."""
    number, shown = 0, list[str]()
    for spans in traces:
        parts = list(_by_turn(_calls(spans)))
        for own in parts:
            around = spans if len(parts) == 1 else [one.span for one in own]
            yield _turn(conversation, number, own, around, shown)
            number += 1


def _calls(spans: Sequence[Span]) -> list[CallSpan]:
    """Returns the calls to models in order, each once.

    A span around others that are calls (an agent, a chain) is no further call; neither is a second span of the same
    answer, as two layers of an instrumentation write. They may have the content that the calls lack.
    """
    made = [CallSpan(span, call) for span in spans if (call := call_of(span)) is not None]
    parents = {span.id: span.parent for span in spans}
    around: set[str] = set()
    for one in made:
        place, seen = one.span.parent, {one.span.id}
        while place and place not in seen:
            seen.add(place)
            place = parents.get(place, "")
        if not place:  # in a ring, nothing is around the other
            around |= seen - {one.span.id}
    calls = [one for one in made if one.span.id not in around]
    outer = [one for one in made if one.span.id in around]
    kept: list[CallSpan] = []
    for one in calls:
        told = one.span.attributes.get(RESPONSE_ID)
        same = next((at for at, two in enumerate(kept) if told and two.span.attributes.get(RESPONSE_ID) == told), None)
        if same is None:
            kept.append(one)
        else:
            kept[same] = _together(kept[same], one)
    if kept and not any(one.call.asked for one in kept) and (whole := [one for one in outer if one.call.asked]):
        kept[-1] = replace(kept[-1], call=replace(whole[0].call, tools=kept[-1].call.tools))
    return kept


def _together(one: CallSpan, two: CallSpan) -> CallSpan:
    """Returns one call of two spans about it: the one with content, with what only the other tells."""
    has, other = (one, two) if one.call.asked or not two.call.asked else (two, one)
    attributes = {**other.span.attributes, **has.span.attributes}
    return CallSpan(
        replace(has.span, attributes=attributes), replace(has.call, scores={**other.call.scores, **has.call.scores})
    )


def _by_turn(calls: Sequence[CallSpan]) -> Iterator[list[CallSpan]]:
    """Yields the calls of each turn in a trace: one begins where the user said more than before.

    A call that was asked something else altogether, as a part of an agent is, belongs to the turn in which it was.
    """
    own: list[CallSpan] = []
    said: list[str] = []
    for one in calls:
        texts = user_texts(one.call.asked)
        if own and said and len(texts) > len(said) and texts[: len(said)] == said:
            yield own
            own, said = [], texts
        own.append(one)
        said = said or texts
    if own:
        yield own


def _turn(conversation: str, number: int, calls: Sequence[CallSpan], spans: Sequence[Span], shown: list[str]) -> Entry:
    """Returns a turn, and adds what the user said to what the conversation has shown.

    Args:
        conversation: its id.
        number: number of the turn, from 0.
        calls: the calls that were made for it.
        spans: all spans that are about it.
        shown: what the user said in earlier turns.
    """
    main = next((one for one in calls if user_texts(one.call.asked)), calls[0])
    said = user_texts(main.call.asked)
    answers = [one for one in calls if one.call.said]
    own = [one for one in answers if user_texts(one.call.asked) == said]
    last = (own or answers or calls)[-1]
    root = next((span for span in spans if not span.parent), spans[0])
    question = said[-1] if said else ""
    if said[:-1] != shown[len(shown) - len(said) + 1 :]:  # earlier turns that no span tells
        question = question_text([dict(message) for message in main.call.asked])
    shown.append(question)
    error = next((one.span.error for one in reversed(calls) if one.span.error is not None), NO_ANSWER) or "failed"
    scores = {name: value for span in spans for name, value in scores_of(span).items()}
    model = first(last.span.attributes, MODEL)
    prompt = prompt_text([dict(one) for one in main.call.asked if one["role"] in {"system", "developer"}])
    sampling = {ours: last.span.attributes.get(name) for ours, name in SAMPLING.items()}
    given = {
        "trajectory": attempt_of(calls, spans),
        "response": last.call.said or None,
        "error": None if last.call.said else error,
        "model": None if model is None else str(model),
        "prompt": prompt or None,
        "sampling": told_only(sampling),
        "asked_on": day_of(calls[0].span.start),
        "tool": str(root.resource.get("service.name") or "") or None,
        "latency_ms": _latency(calls, root),
        "source_scores": scores,
        "source_correct": verdict_of(scores),
        "trace_id": last.span.trace if len(last.span.trace) == _TRACE_ID else None,
        "span_id": last.span.id if len(last.span.id) == _SPAN_ID else None,
        **_spent(calls),
    }
    tools = [*(name for one in calls for name in one.call.tools), *(first(span.attributes, TOOL) for span in spans)]
    route = first(root.attributes, ROUTE) or root.name
    tags = (f"{ROUTE_TAG}{route}", *(f"{TOOL_TAG}{name}" for name in tools if name))
    task = LoggedTask(conversation, question, (), tuple(dict.fromkeys(tags)), turn=number)
    place = f"conversation {conversation}, turn {number + 1}"
    return Entry(None, place, told_only(given), _attributes(calls, spans, root), task=task)


def _attributes(calls: Sequence[CallSpan], spans: Sequence[Span], root: Span) -> Mapping[str, Json]:
    """Returns the attributes of a turn, which `--map` searches; those of its root come first, then those of calls."""
    found: dict[str, Json] = dict(root.resource)
    for span in (*spans, *(one.span for one in calls), root):
        found |= span.attributes
    return found


def _latency(calls: Sequence[CallSpan], root: Span) -> float | None:
    """Returns the milliseconds of the root, if it is that of the turn alone; else from its first call to its last."""
    spans = [root] if not root.parent else [one.span for one in calls]
    spans = [span for span in spans if span.start and span.end >= span.start]
    if not spans:
        return None
    return (max(span.end for span in spans) - min(span.start for span in spans)) / 1e6


def _spent(calls: Sequence[CallSpan]) -> dict[str, Json]:
    """Returns tokens and dollars of all calls of a turn; None where one does not tell them."""
    answered = [one.span.attributes for one in calls if one.span.error is None]
    found: dict[str, Any] = {}
    for ours, names in (("input_tokens", INPUT_TOKENS), ("output_tokens", OUTPUT_TOKENS)):
        counts = [tokens(told, names) for told in answered]
        known = [count for count in counts if count is not None]
        found[ours] = sum(known) if known and len(known) == len(counts) else None
    for ours, kinds in (("cache_read_tokens", CACHE_READ), ("cache_write_tokens", CACHE_WRITE)):
        known = [count for told in answered if (count := tokens(told, kinds)) is not None]
        found[ours] = sum(known) if known and found["input_tokens"] is not None else None
    parts = sum(found[name] or 0 for name in ("cache_read_tokens", "cache_write_tokens"))
    if found["input_tokens"] is not None and parts > found["input_tokens"]:  # Anthropic counts them apart
        found["input_tokens"] += parts
    dollars = [usd for told in answered if isinstance(usd := first(told, USD), int | float) and usd >= 0]
    found["usd"] = float(sum(dollars)) if dollars and len(dollars) == len(answered) else None
    return found

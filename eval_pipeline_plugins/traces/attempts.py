"""What an agent did in a turn, by spans: its calls of models and tools, as an attempt of the track `agent`.

Conventions: OpenTelemetry's for agents (spans `invoke_agent`, `chat`, `execute_tool` with `gen_ai.tool.call.*`), and
OpenInference's (kinds AGENT, LLM and TOOL). What a tool gave is told by its span, or else by the messages to the model.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.error_classes import told_failure
from eval_pipeline_plugins.logs.texts import opened, said_text
from eval_pipeline_plugins.traces.calls import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    TOOL,
    USD,
    CalledTool,
    CallSpan,
    calls_in,
    first,
    results_in,
    tokens,
    words_of,
)
from eval_pipeline_plugins.traces.otlp import Span
from eval_pipeline_plugins.trajectories import attempt, call_told, model_step, tool_step

_AGENTS, _TOOLS = {"invoke_agent", "AGENT"}, {"execute_tool", "TOOL"}
_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool.parameters", "input.value")
_RESULT = ("gen_ai.tool.call.result", "output.value")


def attempt_of(calls: Sequence[CallSpan], spans: Sequence[Span]) -> dict[str, Json] | None:
    """Returns what an agent did; None if no agent was at work: nothing called a tool.

    Args:
        calls: the calls of models in a turn, in order.
        spans: all spans that are about it, in order.
    """
    tools = [span for span in spans if _kind(span) in _TOOLS]
    called = any(calls_in(one.call.answer) for one in calls)
    if not tools and not called and not any(_kind(span) in _AGENTS for span in spans):
        return None
    error = calls[-1].span.error if calls else None
    stopped = None if error is None else ("gave_up", error or "its last call of the model failed")
    return attempt(list(_steps(calls, tools)), None, stopped)


def _kind(span: Span) -> Json:
    return first(span.attributes, ("gen_ai.operation.name", "openinference.span.kind"))


def _steps(calls: Sequence[CallSpan], tools: list[Span]) -> Iterator[dict[str, Json]]:
    """Yields each call of a model with the calls of tools that it led to; tools nobody asked for come by their time."""
    told = dict(result for one in calls for message in one.call.messages for result in results_in(message))
    for place, one in enumerate(calls):
        yield from (_of_span(span) for span in _taken(tools, lambda span, at=one.span.start: span.start < at))
        wanted = calls_in(one.call.answer)
        yield model_step(words_of(one.call.answer), [call_told(call.name, call.arguments) for call in wanted], _of(one))
        until = calls[place + 1].span.start if place + 1 < len(calls) else None
        for call in wanted:
            span = _span_of(call, tools, until)
            if span is not None:
                yield _of_span(span, call, told.get(call.id))
            elif call.id in told:
                failed = {"error_class": told_failure(told[call.id])}
                yield tool_step(call_told(call.name, call.arguments), told[call.id], failed)
    yield from map(_of_span, tools)


def _taken(tools: list[Span], chosen: Any) -> list[Span]:
    found = [span for span in tools if chosen(span)]
    tools[:] = [span for span in tools if span not in found]
    return found


def _span_of(call: CalledTool, tools: list[Span], until: int | None) -> Span | None:
    """Takes the span of a call: the one with its id, else the first of its name before the model was called again."""
    for span in tools:
        known = first(span.attributes, _CALL_ID)
        named = first(span.attributes, TOOL) or span.name
        is_next = known is None and named == call.name and (until is None or span.start <= until)
        if (call.id and known == call.id) or is_next:
            tools.remove(span)
            return span
    return None


def _of_span(span: Span, call: CalledTool | None = None, said: str | None = None) -> dict[str, Json]:
    told = span.attributes
    name, arguments = first(told, TOOL) or span.name, opened(first(told, _ARGUMENTS))
    made = call_told(name, arguments) if call is None else call_told(call.name, call.arguments)
    result = first(told, _RESULT)
    text = said_text(result) if result is not None else said or span.error or ""
    kind = told_failure(text, failed=span.error is not None)
    return tool_step(made, text, {"error_class": kind, "seconds": _seconds(span)})


def _seconds(span: Span) -> float | None:
    return (span.end - span.start) / 1e9 if span.start and span.end >= span.start else None


def _of(one: CallSpan) -> Mapping[str, Any]:
    told, seconds = one.span.attributes, _seconds(one.span)
    usd = first(told, USD)
    return {
        "input_tokens": tokens(told, INPUT_TOKENS),
        "output_tokens": tokens(told, OUTPUT_TOKENS),
        "usd": usd if isinstance(usd, int | float) and usd >= 0 else None,
        "latency_ms": None if seconds is None else seconds * 1000,
    }

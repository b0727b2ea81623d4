"""Events of an agent's attempt for a log of Inspect, whose viewer shows them as the transcript of the sample.

Source: inspect_ai.event of the installed version, https://inspect.aisi.org.uk/eval-logs.html
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from eval_pipeline_plugins.logs.inspect import NO_MODEL
from eval_pipeline_plugins.trajectories import OURS

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent, ToolEvent
    from inspect_ai.model import ChatMessage


def events_of(
    messages: Sequence["ChatMessage"], model: str, place: str, day: date
) -> Iterator["ModelEvent | ToolEvent"]:
    """Yields a call of the model for each of its messages, and a call of a tool for each result.

    What a model is given are all messages before; writing a log keeps each of them once.

    Args:
        messages: those of a sample.
        model: name of the model.
        place: what the ids of the events begin with.
        day: of the evaluation; the record has no time of a call, only how long it took.
    """
    from inspect_ai.event import ModelEvent, ToolEvent
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, GenerateConfig, ModelOutput

    calls: dict[str, Any] = {}
    start = 0.0
    for number, message in enumerate(messages):
        own: dict[str, Any] = (message.metadata or {}).get(OURS) or {}
        milliseconds = own.get("latency_ms")
        took = own.get("seconds") if milliseconds is None else milliseconds / 1000
        common: dict[str, Any] = {
            "uuid": f"{place}-{number}",
            "timestamp": datetime(day.year, day.month, day.day, tzinfo=UTC),
            "working_start": start,
            "working_time": took,
        }
        start += took or 0.0
        if isinstance(message, ChatMessageAssistant):
            calls |= {call.id: call for call in message.tool_calls or ()}
            if not own.get(NO_MODEL):
                output = ModelOutput.from_message(message, "tool_calls" if message.tool_calls else "stop")
                output.model = model
                given: Any = {"input": list(messages[:number]), "tools": [], "tool_choice": "auto"}
                yield ModelEvent(model=model, config=GenerateConfig(), output=output, **given, **common)
        elif isinstance(message, ChatMessageTool) and message.tool_call_id in calls:
            call = calls[message.tool_call_id]
            told: Any = {"id": call.id, "function": call.function, "arguments": call.arguments}
            yield ToolEvent(result=message.text, error=message.error, **told, **common)

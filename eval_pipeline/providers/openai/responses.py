"""Requests and answers of OpenAI's Responses API as plain values, for models that are served by it alone.

This module neither connects nor imports the SDK.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eval_pipeline.core.model import Json, Message, Prompt
from eval_pipeline.providers.openai.wire import (
    ChatAnswer,
    RequestForm,
    arguments_of,
    function_of,
    messages_of,
    named_schema,
    text_in,
    usage_of,
    value_in,
)

SAMPLING = frozenset({"temperature", "top_p", "reasoning_effort", "verbosity"})
"""Settings of sampling that the API knows."""
OWN_FIELDS = frozenset({"input", "instructions", "max_output_tokens", "model", "reasoning", "store", "stream", "text"})
"""Fields of a request that are determined by the model version and the prompt."""
_ENDS = {"response.completed", "response.incomplete", "response.failed"}
_STOPS = {"max_output_tokens": "length", "content_filter": "content_filter"}


def responses_request(
    model: str, prompt: Prompt, max_tokens: int, sampling: Mapping[str, Json], form: RequestForm
) -> dict[str, Json]:
    """Returns the body of a request, without fields that concern only its transport; nothing is stored there."""
    body: dict[str, Json] = {
        "model": model,
        "input": [item for message in messages_of(prompt, form) for item in _items(message)],
        "max_output_tokens": max_tokens,
        "store": False,
        **{name: sampling[name] for name in ("temperature", "top_p") if name in sampling},
    }
    if prompt.tools:
        body["tools"] = [{"type": "function", **function_of(tool)} for tool in prompt.tools]
        body["include"] = ["reasoning.encrypted_content"]  # nothing is stored there, so thoughts are sent back
    if "reasoning_effort" in sampling:
        body["reasoning"] = {"effort": sampling["reasoning_effort"]}
    text: dict[str, Json] = {"verbosity": sampling["verbosity"]} if "verbosity" in sampling else {}
    if prompt.answer_schema is not None:
        match form.structured:
            case "json_schema":
                text["format"] = {"type": "json_schema", **named_schema(prompt, form)}
            case "json_object":
                text["format"] = {"type": "json_object"}
    return {**body, "text": text} if text else body


def _items(message: Message) -> list[Json]:
    """Returns a message as items of the input."""
    if message.own is not None:
        return list(message.own)
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.text}]
    said: list[Json] = [{"role": message.role, "content": message.text}] if message.text or not message.calls else []
    called = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_of(call)}
        for call in message.calls
    ]
    return [*said, *called]


@dataclass(slots=True)
class ResponsesAnswer(ChatAnswer):
    """An answer of the Responses API, from its events or one complete body."""

    def add(self, part: Json) -> bool:
        """Adds an event or a complete body; returns whether it contained text."""
        self.heard = True
        kind = text_in(part, "type")
        if kind == "error":
            self.error = value_in(part, "error") or part
        if kind in _ENDS or text_in(part, "object") == "response":
            self._end(value_in(part, "response") if kind in _ENDS else part)
        return kind == "response.output_text.delta" and bool(text_in(part, "delta"))

    def _end(self, told: Json) -> None:
        """Reads the whole response, which the last event of a stream repeats."""
        self.request_id = text_in(told, "id") or None
        self.model = text_in(told, "model") or None
        usage, output = value_in(told, "usage"), value_in(told, "output")
        if isinstance(usage, Mapping):
            names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
            details = {"prompt_tokens_details": value_in(usage, "input_tokens_details")}
            self.usage = usage_of({ours: value_in(usage, theirs) for ours, theirs in names.items()} | details)
        self.error = value_in(told, "error")
        self.begun = isinstance(output, list)
        for item in output if isinstance(output, list) else ():
            self._add_item(item)
        if self.calls and any(text_in(item, "type") == "reasoning" for item in output):
            self.own = output
        why = text_in(value_in(told, "incomplete_details"), "reason")
        self.stop_reason = _STOPS.get(why, why) or ("stop" if text_in(told, "status") == "completed" else None)

    def _add_item(self, item: Json) -> None:
        match text_in(item, "type"):
            case "message":
                for part in value_in(item, "content") or ():
                    self.text += text_in(part, "text")
                    self.refusal += text_in(part, "refusal")
            case "reasoning":
                parts = [*(value_in(item, "summary") or ()), *(value_in(item, "content") or ())]
                self.reasoning += "".join(text_in(part, "text") for part in parts)
            case "function_call":
                self.calls[len(self.calls)] = [text_in(item, name) for name in ("name", "arguments", "call_id")]
            case "custom_tool_call":  # its input is any text
                self.calls[len(self.calls)] = [text_in(item, name) for name in ("name", "input", "call_id")]

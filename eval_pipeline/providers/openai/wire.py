"""Requests and answers of OpenAI-compatible chat completions as plain values.

This module neither connects nor imports the SDK.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import MOST_TOKENS, CallErrorKind, Json, Message, Prompt, Tool, ToolCall, Usage

Structured = Literal["json_schema", "json_object", "none"]
LimitField = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class RequestForm:
    """The ways in which requests differ between endpoints.

    Attributes:
        structured: how the prompt's answer schema is passed on: as a schema, as "any JSON", or not at all.
        limit_field: the field that limits the answer's tokens.
        join_messages: merge consecutive messages of the same role.
        text_lengths: keep length limits of texts in the schema; OpenAI rejects them.
        system: send system messages; otherwise the first message of the user begins with their text.
    """

    structured: Structured = "json_schema"
    limit_field: LimitField = "max_tokens"
    join_messages: bool = False
    text_lengths: bool = True
    system: bool = True


OWN_FIELDS = frozenset({"messages", "model", "n", "response_format", "stream", "stream_options"}) | {
    "max_tokens",
    "max_completion_tokens",
}
"""Fields of a request that are determined by the model version and the prompt."""

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def chat_request(
    model: str,
    prompt: Prompt,
    max_tokens: int,
    sampling: Mapping[str, Json],
    form: RequestForm = RequestForm(),
) -> dict[str, Json]:
    """Returns the body of a request, without fields that concern only its transport."""
    body: dict[str, Json] = {
        "model": model,
        "messages": messages_sent(prompt, form),
        form.limit_field: max_tokens,
        **sampling,
    }
    if prompt.tools:
        body["tools"] = [{"type": "function", "function": function_of(tool)} for tool in prompt.tools]
    if prompt.answer_schema is not None:
        match form.structured:
            case "json_schema":
                body["response_format"] = {"type": "json_schema", "json_schema": named_schema(prompt, form)}
            case "json_object":
                body["response_format"] = {"type": "json_object"}
    return body


def messages_sent(prompt: Prompt, form: RequestForm) -> list[Json]:
    """Returns the messages of a request, joined and without system messages where the endpoint wants that."""
    return [_sent(message) for message in messages_of(prompt, form)]


def messages_of(prompt: Prompt, form: RequestForm) -> Sequence[Message]:
    """Returns the messages of a prompt in the roles that the endpoint knows."""
    messages: Sequence[Message] = prompt.messages
    if not form.system:
        messages = [replace(one, role="user") if one.role == "system" else one for one in messages]
    return _joined(messages) if form.join_messages or not form.system else messages


def _sent(message: Message) -> dict[str, Json]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}}
        for call in message.calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}


def arguments_of(call: ToolCall) -> str:
    """Returns the arguments of a call as the model wrote them, or would have."""
    return call.malformed or json_text(dict(call.arguments))


def function_of(tool: Tool) -> dict[str, Json]:
    """Returns a tool in the form in which it is offered."""
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def named_schema(prompt: Prompt, form: RequestForm) -> dict[str, Json]:
    """Returns the prompt's answer schema as strict endpoints want it, with a name."""
    schema = strict_schema(prompt.answer_schema or {}, text_lengths=form.text_lengths)
    return {"name": "answer", "schema": schema, "strict": True}


def strict_schema(schema: Mapping[str, Json], *, text_lengths: bool = True) -> dict[str, Json]:
    """Returns the schema in the form that strict endpoints require: with a `type` beside each `const` and `enum`.

    Args:
        schema: schema of an answer.
        text_lengths: keep `minLength` and `maxLength`.
    """
    strict: dict[str, Json] = {}
    for name, inner in schema.items():
        match name:
            case "minLength" | "maxLength" if not text_lengths:
                continue
            case "properties" | "$defs":
                strict[name] = {key: strict_schema(below, text_lengths=text_lengths) for key, below in inner.items()}
            case "items":
                strict[name] = strict_schema(inner, text_lengths=text_lengths)
            case "anyOf":
                strict[name] = [strict_schema(below, text_lengths=text_lengths) for below in inner]
            case _:
                strict[name] = inner
    allowed = [strict["const"]] if "const" in strict else strict.get("enum")
    if allowed and "type" not in strict:
        types = list(dict.fromkeys(_TYPES[type(value)] for value in allowed))
        strict["type"] = types[0] if len(types) == 1 else types
    return strict


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Joins consecutive messages of a role; calls of tools and their results stay as they are."""
    groups = groupby(messages, key=lambda message: (message.role, bool(message.calls) or message.role == "tool"))
    joined: list[Message] = []
    for (role, acts), group in groups:
        joined += group if acts else [Message(role, "\n\n".join(message.text for message in group))]
    return joined


@dataclass(slots=True)
class ChatAnswer:
    """An answer assembled from what the endpoint sends: the chunks of a stream, or one complete body.

    Attributes:
        stop_reason: None until the endpoint reports it; a stream that ends without it was cut off.
        reasoning: the model's reasoning, if the endpoint separates it: `reasoning_content` (DeepSeek, SGLang,
            llama.cpp), `reasoning` (OpenRouter, Ollama, vLLM), or parts of the content (Mistral).
        refusal: the model's text in place of an answer, if the endpoint separates it.
        begun: whether any choice was received.
        model: the name that the endpoint gives for the answering model.
        fingerprint: the endpoint's identifier of the serving system (llama.cpp: its build, Ollama: a constant).
        heard: whether anything was received.
        error: what the endpoint says of a failure that came within the answer.
        calls: functions that the model called in place of an answer, by their place: name, arguments and id.
        own: the answer in the API's form, if text and calls are not all of it.
    """

    text: str = ""
    stop_reason: str | None = None
    refusal: str = ""
    reasoning: str = ""
    begun: bool = False
    request_id: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    heard: bool = field(default=False, compare=False)
    fingerprint: str | None = None
    error: Json = None
    calls: dict[int, list[str]] = field(default_factory=dict)
    own: Json = None

    def add(self, part: Json) -> bool:
        """Adds a chunk or a complete body, as decoded JSON of any form; returns whether it contained text."""
        self.heard = True
        self.request_id = self.request_id or text_in(part, "id") or None
        self.model = self.model or text_in(part, "model") or None
        self.fingerprint = self.fingerprint or text_in(part, "system_fingerprint") or None
        told = value_in(part, "usage")
        if isinstance(told, Mapping):
            self.usage = usage_of(told)
        choices = value_in(part, "choices")
        # Only one choice is requested; any others are ignored, also where each chunk of a stream has one of them.
        several = [one for one in choices if isinstance(one, Mapping)] if isinstance(choices, list) else []
        choice = next((one for one in several if not one.get("index")), None)
        if choice is None:
            return False
        self.begun = True
        self.error = self.error or value_in(choice, "error")
        message = value_in(choice, "delta") or value_in(choice, "message")
        self._add_calls(message)
        self.refusal += text_in(message, "refusal")
        self.reasoning += _thought(message)
        text = _content(value_in(message, "content"))
        self.text += text
        self.stop_reason = text_in(choice, "finish_reason") or self.stop_reason
        return bool(text)

    def _add_calls(self, message: Json) -> None:
        told = value_in(message, "tool_calls")
        calls = [one for one in told if isinstance(one, Mapping)] if isinstance(told, list) else []
        named = [(number, value_in(one, "function"), one) for number, one in enumerate(calls)]
        named += [(0, value_in(message, "function_call"), {})] if value_in(message, "function_call") else []
        for number, function, one in named:
            index = one.get("index")
            place = index if isinstance(index, int) else number
            known = self.calls.setdefault(place, ["", "", ""])
            known[2] = known[2] or text_in(one, "id")
            known[0] += text_in(function, "name")
            given = value_in(function, "arguments")
            known[1] += json_text(given) if isinstance(given, Mapping) else given if isinstance(given, str) else ""

    @property
    def answer(self) -> str:
        """The answer: the text, or what stands in its place.

        Some gateways have a model fill in a schema by calling a function with it, so the arguments of a single call
        are an answer. Several calls are shown as they are.
        """
        if self.text.strip() or self.refusal or not self.calls:
            return self.text or self.refusal
        calls = [{"name": name, "arguments": arguments} for name, arguments, _ in self.calls.values()]
        return calls[0]["arguments"] if len(calls) == 1 else json_text(calls)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools that were offered, in order."""
        return tuple(
            _tool_call(name, arguments, id_ or f"call_{place}")
            for place, (name, arguments, id_) in sorted(self.calls.items())
        )

    @property
    def answered_in(self) -> str | None:
        """Where the answer was, if not in the content; `reasoning`: there is none beside the model's thoughts."""
        if self.text.strip() or self.refusal or self.call_error:
            return None
        return "tool_calls" if self.calls else "reasoning" if self.reasoning.strip() else None

    @property
    def call_error(self) -> CallErrorKind | None:
        """Why the text is not an answer; None if it is one."""
        if self.refusal or self.stop_reason == "content_filter":
            return CallErrorKind.REFUSED
        return CallErrorKind.MAX_TOKENS if self.stop_reason == "length" else None


def _tool_call(name: str, arguments: str, id_: str) -> ToolCall:
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        given = None
    return ToolCall(id_, name, given) if isinstance(given, dict) else ToolCall(id_, name, malformed=arguments)


def usage_of(told: Mapping[str, Json]) -> Usage:
    """Converts an endpoint's token counts; `prompt_tokens` includes cached ones.

    Zero of both means that nobody counted: no call takes nothing.
    """
    prompt_tokens, output_tokens = _count_at(told, "prompt_tokens"), _count_at(told, "completion_tokens")
    if not prompt_tokens and not output_tokens:
        return Usage()
    details = value_in(told, "prompt_tokens_details")
    # Some gateways report cached tokens that are not part of prompt_tokens, but pricing needs parts within the total.
    read = min(_count_at(details, "cached_tokens") or 0, prompt_tokens or 0)
    write = min(_count_at(details, "cache_write_tokens") or 0, (prompt_tokens or 0) - read)
    return Usage(prompt_tokens, output_tokens, read, write)


def _content(content: Json) -> str:
    """Returns the text of a message, which some endpoints send as a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(text_in(part, "text") for part in parts)


def _thought(message: Json) -> str:
    told = text_in(message, "reasoning_content") or text_in(message, "reasoning")
    content = value_in(message, "content")
    parts = content if isinstance(content, list) else ()
    return told + "".join(_content(value_in(part, "thinking")) for part in parts)


def value_in(value: Json, name: str) -> Json:
    """Returns a field of an object; None if it is absent, or if the value is no object."""
    return value.get(name) if isinstance(value, Mapping) else None


def text_in(value: Json, name: str) -> str:
    """Returns a text field of an object; empty if there is no such text."""
    found = value_in(value, name)
    return found if isinstance(found, str) else ""


def _count_at(value: Json, name: str) -> int | None:
    found = value_in(value, name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MOST_TOKENS else None

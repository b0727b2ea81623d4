"""Requests and answers of OpenAI-compatible chat completions as plain values.

This module neither connects nor imports the SDK.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from eval_pipeline.core.model import MOST_TOKENS, CallErrorKind, Json, Message, Prompt, Usage

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
    """

    structured: Structured = "json_schema"
    limit_field: LimitField = "max_tokens"
    join_messages: bool = False
    text_lengths: bool = True


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
    messages = _joined(prompt.messages) if form.join_messages else prompt.messages
    body: dict[str, Json] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.text} for message in messages],
        form.limit_field: max_tokens,
        **sampling,
    }
    if prompt.answer_schema is not None:
        match form.structured:
            case "json_schema":
                schema = strict_schema(prompt.answer_schema, text_lengths=form.text_lengths)
                named = {"name": "answer", "schema": schema, "strict": True}
                body["response_format"] = {"type": "json_schema", "json_schema": named}
            case "json_object":
                body["response_format"] = {"type": "json_object"}
    return body


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
    groups = groupby(messages, key=lambda message: message.role)
    return [Message(role, "\n\n".join(message.text for message in group)) for role, group in groups]


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

    def add(self, part: Json) -> bool:
        """Adds a chunk or a complete body, as decoded JSON of any form; returns whether it contained text."""
        self.heard = True
        self.request_id = self.request_id or _text_at(part, "id") or None
        self.model = self.model or _text_at(part, "model") or None
        self.fingerprint = self.fingerprint or _text_at(part, "system_fingerprint") or None
        told = _at(part, "usage")
        if isinstance(told, Mapping):
            self.usage = usage_of(told)
        choices = _at(part, "choices")
        # Only one choice is requested; any others are ignored.
        choice = choices[0] if isinstance(choices, Sequence) and choices else None
        if not isinstance(choice, Mapping):
            return False
        self.begun = True
        message = _at(choice, "delta") or _at(choice, "message")
        self.refusal += _text_at(message, "refusal")
        self.reasoning += _thought(message)
        text = _content(_at(message, "content"))
        self.text += text
        self.stop_reason = _text_at(choice, "finish_reason") or self.stop_reason
        return bool(text)

    @property
    def call_error(self) -> CallErrorKind | None:
        """Why the text is not an answer; None if it is one."""
        if self.refusal or self.stop_reason == "content_filter":
            return CallErrorKind.REFUSED
        return CallErrorKind.MAX_TOKENS if self.stop_reason == "length" else None


def usage_of(told: Mapping[str, Json]) -> Usage:
    """Converts an endpoint's token counts; `prompt_tokens` includes cached ones."""
    prompt_tokens = _count_at(told, "prompt_tokens")
    details = _at(told, "prompt_tokens_details")
    # Some gateways report cached tokens that are not part of prompt_tokens, but pricing needs parts within the total.
    read = min(_count_at(details, "cached_tokens") or 0, prompt_tokens or 0)
    write = min(_count_at(details, "cache_write_tokens") or 0, (prompt_tokens or 0) - read)
    return Usage(prompt_tokens, _count_at(told, "completion_tokens"), read, write)


def _content(content: Json) -> str:
    """Returns the text of a message, which some endpoints send as a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(_text_at(part, "text") for part in parts)


def _thought(message: Json) -> str:
    told = _text_at(message, "reasoning_content") or _text_at(message, "reasoning")
    content = _at(message, "content")
    parts = content if isinstance(content, list) else ()
    return told + "".join(_content(_at(part, "thinking")) for part in parts)


def _at(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, Mapping) else None


def _text_at(value: Json, name: str) -> str:
    found = _at(value, name)
    return found if isinstance(found, str) else ""


def _count_at(value: Json, name: str) -> int | None:
    found = _at(value, name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MOST_TOKENS else None

"""The chat completions of OpenAI-compatible endpoints: requests and answers, as plain values.

Nothing here connects or imports the SDK.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from eval_pipeline.core.model import CallErrorKind, Json, Message, Prompt, Usage

Structured = Literal["json_schema", "json_object", "none"]
LimitField = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class RequestForm:
    """In what endpoints differ.

    Attributes:
        structured: how the prompt's answer schema is asked for: with the schema, as any JSON, or not at all.
        limit_field: the field that bounds the answer's tokens.
        join_messages: messages of one role that follow each other are sent as one.
        text_lengths: the schema may say how long texts are; OpenAI refuses one that does.
    """

    structured: Structured = "json_schema"
    limit_field: LimitField = "max_tokens"
    join_messages: bool = False
    text_lengths: bool = True


OWN_FIELDS = frozenset({"messages", "model", "n", "response_format", "stream", "stream_options"}) | {
    "max_tokens",
    "max_completion_tokens",
}
"""Fields of a request that follow from the model version and the prompt."""

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def chat_request(
    model: str,
    prompt: Prompt,
    max_tokens: int,
    sampling: Mapping[str, Json],
    form: RequestForm = RequestForm(),
) -> dict[str, Json]:
    """The body of a request, without what concerns its transport only."""
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
    """The schema as strict endpoints take it: with a `type` beside each `const` and `enum`.

    Args:
        schema: of an answer.
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
    """An answer that is put together from what the endpoint sends: the chunks of a stream, or the whole at once.

    Attributes:
        stop_reason: None while it has not been told: a stream that ends so was cut off.
        reasoning: what the model thought, where the endpoint tells it apart: `reasoning_content` (DeepSeek, SGLang,
            llama.cpp), `reasoning` (OpenRouter, Ollama, vLLM), or parts of the content (Mistral).
        refusal: what the model said in place of an answer, where the endpoint tells them apart.
        begun: there was a choice at all.
        model: which model answered, by the endpoint's own name.
        fingerprint: what the endpoint says of the system that ran it (llama.cpp names its build, Ollama a constant).
        heard: anything was taken in.
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
        """Takes in a chunk or a whole completion, as decoded JSON of any form; whether it brought text."""
        self.heard = True
        self.request_id = self.request_id or _text_at(part, "id") or None
        self.model = self.model or _text_at(part, "model") or None
        self.fingerprint = self.fingerprint or _text_at(part, "system_fingerprint") or None
        told = _at(part, "usage")
        if isinstance(told, Mapping):
            self.usage = usage_of(told)
        choices = _at(part, "choices")
        # One choice is asked for; should there be others, they are not part of the answer.
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
        """Why the text is no answer, or None where it is one."""
        if self.refusal or self.stop_reason == "content_filter":
            return CallErrorKind.REFUSED
        return CallErrorKind.MAX_TOKENS if self.stop_reason == "length" else None


def usage_of(told: Mapping[str, Json]) -> Usage:
    """Tokens as an endpoint tells them; `prompt_tokens` counts cached ones too."""
    prompt_tokens = _count_at(told, "prompt_tokens")
    details = _at(told, "prompt_tokens_details")
    # Some gateways count cached tokens that are not in prompt_tokens; a price needs parts that fit in the whole.
    read = min(_count_at(details, "cached_tokens") or 0, prompt_tokens or 0)
    write = min(_count_at(details, "cache_write_tokens") or 0, (prompt_tokens or 0) - read)
    return Usage(prompt_tokens, _count_at(told, "completion_tokens"), read, write)


def _content(content: Json) -> str:
    """The text of a message, which some endpoints send as a list of parts."""
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
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None

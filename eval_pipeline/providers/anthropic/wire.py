"""The requests, answers and errors of the Anthropic API as plain values.

This module neither connects nor imports the SDK.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from eval_pipeline.core.model import SERVED_MODEL, CallErrorKind, Json, Message, Prompt, Response, ToolCall, Usage
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.http.errors import redirected, retry_after

_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_SPENT = {"enforced_spend_limit_reached", "contract_spend_limit_reached"}
_CLOSED = {"organization_on_hold", "cmek_key_disabled"}
_NO_CREDIT = "the account has no credit or has reached its limit"
_FATAL = {
    401: "the API refuses the key in {key_name}",
    402: _NO_CREDIT,
    403: "the key in {key_name} may not do this",
    404: "the model '{model}' or the address is not known to the API",
}
_TRANSIENT = {
    408: CallErrorKind.TIMEOUT,
    409: CallErrorKind.OVERLOADED,
    429: CallErrorKind.RATE_LIMITED,
    504: CallErrorKind.TIMEOUT,
}
_STOPS = {
    "refusal": CallErrorKind.REFUSED,
    "max_tokens": CallErrorKind.MAX_TOKENS,
    "model_context_window_exceeded": CallErrorKind.MAX_TOKENS,
}
_TEXTS = ("text", "thinking")
_BLOCKS = (*_TEXTS, "tool_use", "redacted_thinking")
_SAID = {"text", "tool_use"}
"""Kinds of blocks that a conversation can repeat from the text and the calls alone."""
_COUNTED = ("model", "system", "messages", "thinking", "output_config", "tools")


def message_request(
    model: str, prompt: Prompt, max_tokens: int, sampling: Mapping[str, Json], *, cached: bool = False
) -> dict[str, Json]:
    """Returns the body of a request, without fields that concern only its transport.

    System messages go to `system`. Consecutive messages of one role become blocks of one message; results of tools are
    blocks of the user's. Empty texts, which the API rejects, are left out.

    Args:
        model: the API's name of the model.
        prompt: the prompt.
        max_tokens: limit for the answer.
        sampling: in the form of the body.
        cached: mark the last shared block, so that the API caches everything up to it; with tools, also the last of
            all, as the next call of an agent continues from there.
    """
    system, messages, shared = _ordered(prompt)
    if cached and shared is not None:
        shared["cache_control"] = {"type": "ephemeral"}
    if cached and prompt.tools and messages:
        messages[-1]["content"][-1] = {**messages[-1]["content"][-1], "cache_control": {"type": "ephemeral"}}
    body: dict[str, Json] = {"model": model, "max_tokens": max_tokens, "messages": messages, **sampling}
    if prompt.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in prompt.tools
        ]
    if system:
        body["system"] = system
    if prompt.answer_schema is not None:
        answer_format = {"type": "json_schema", "schema": dict(prompt.answer_schema)}
        body["output_config"] = {**body.get("output_config", {}), "format": answer_format}
    return body


def _ordered(prompt: Prompt) -> tuple[list[Json], list[Json], dict[str, Json] | None]:
    """Returns the blocks of `system`, the messages, and the last block that is shared, in the order of the cache."""
    system: list[Json] = []
    messages: list[Json] = []
    shared: dict[str, Json] | None = None
    for place, message in enumerate(prompt.messages):
        blocks = _blocks(message)
        if not blocks:
            continue
        role = "user" if message.role == "tool" else message.role
        if role == "system":
            system += blocks
        elif messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
        if place < prompt.shared and (role != "system" or not messages):
            shared = blocks[-1]  # `system` comes first in the order of the cache
    return system, messages, shared


def _blocks(message: Message) -> list[dict[str, Json]]:
    """Returns the content of a message; none if there is nothing in it."""
    if message.own is not None:
        return list(message.own)
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}]
    texts: list[dict[str, Json]] = [{"type": "text", "text": message.text}] if message.text.strip() else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)} for call in message.calls
    ]
    return [*texts, *calls]


def count_request(body: Mapping[str, Json]) -> dict[str, Json]:
    """Returns the body of a request that counts the tokens of another request."""
    return {name: body[name] for name in _COUNTED if name in body}


def shared_text(prompt: Prompt) -> str:
    """Returns the part of a prompt that it shares with other prompts of its case."""
    return "\0".join(message.text for message in prompt.messages[: prompt.shared])


def response_of(message: Any, **known: Any) -> Response:
    """Converts a message of the API to a response.

    Args:
        message: as decoded from JSON.
        known: further fields of `Response`, including `metadata`.

    Raises:
        CallError: it is not a message.
    """
    try:
        text = "".join(block["text"] for block in message["content"] if block["type"] == "text")
        thought = "\n\n".join(block["thinking"] for block in message["content"] if block["type"] == "thinking")
        calls = tuple(_call(block) for block in message["content"] if block["type"] == "tool_use")
        own = message["content"] if calls and any(one["type"] not in _SAID for one in message["content"]) else None
        stop_reason = str(message["stop_reason"] or "")
        usage = usage_of(message["usage"])
        metadata = {
            **known.pop("metadata", {}),
            "message_id": message.get("id"),
            SERVED_MODEL: message.get("model"),
            "service_tier": message["usage"].get("service_tier"),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise CallError(
            CallErrorKind.BAD_RESPONSE, f"the API sent no message ({type(error).__name__}: {error})", retryable=True
        ) from None
    if not stop_reason:
        raise CallError(CallErrorKind.BAD_RESPONSE, "the API sent a message that has not ended", retryable=True)
    if message.get("stop_details"):
        metadata["stop_details"] = message["stop_details"]
    return Response(
        text,
        stop_reason=stop_reason,
        usage=usage,
        call_error=_STOPS.get(stop_reason),
        reasoning=thought,
        metadata={name: value for name, value in metadata.items() if value is not None},
        calls=calls,
        own=own,
        **known,
    )


def _call(block: Mapping[str, Any]) -> ToolCall:
    given = block["input"]
    if isinstance(given, Mapping):
        return ToolCall(block["id"], block["name"], given)
    return ToolCall(block["id"], block["name"], malformed=str(given))


def usage_of(told: Mapping[str, Any]) -> Usage:
    """Converts the API's token counts; its `input_tokens` exclude those read from or written to the cache."""
    read = told.get("cache_read_input_tokens") or 0
    write = told.get("cache_creation_input_tokens") or 0
    uncached = told.get("input_tokens")
    return Usage(None if uncached is None else uncached + read + write, told.get("output_tokens"), read, write)


@dataclass(slots=True)
class StreamedMessage:
    """A message assembled from the events of a stream.

    Attributes:
        message: the message so far, in the form of a complete one.
        complete: whether the stream said that the message is complete; otherwise it was cut off.
    """

    message: dict[str, Any] = field(default_factory=dict)
    complete: bool = False
    _blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    _inputs: dict[int, str] = field(default_factory=dict)

    def add(self, event: Mapping[str, Any]) -> bool:
        """Adds an event; returns whether it contained text. Unknown kinds of events are ignored.

        Raises:
            CallError: the event does not have the form of its kind.
        """
        try:
            return self._add(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"the API sent an event of no known form ({type(error).__name__}: {error})"
            raise CallError(CallErrorKind.BAD_RESPONSE, what, retryable=True) from None

    def _add(self, event: Mapping[str, Any]) -> bool:
        match event["type"]:
            case "message_start":
                self.message = {**event["message"]}
            case "content_block_start" if (kind := event["content_block"]["type"]) in _BLOCKS:
                block = self._blocks[event["index"]] = {**event["content_block"]}
                if kind in _TEXTS:
                    block[kind] = block.get(kind) or ""
            case "content_block_delta":
                return self._add_to_block(event["index"], event["delta"])
            case "message_delta":
                self.message |= event["delta"]
                told = {name: count for name, count in (event.get("usage") or {}).items() if count is not None}
                # The counts are totals so far; the output count at the start of the stream is a placeholder.
                self.message["usage"] = {**self.message["usage"], "output_tokens": None, **told}
            case "message_stop":
                for place, text in self._inputs.items():
                    self._blocks[place]["input"] = _object_or_text(text)
                self.message["content"] = [self._blocks[index] for index in sorted(self._blocks)]
                self.complete = True
        return False

    def _add_to_block(self, place: int, delta: Mapping[str, Any]) -> bool:
        """Adds to a block; returns whether that was text."""
        match delta["type"]:
            case "text_delta" | "thinking_delta" as kind:
                name = kind.removesuffix("_delta")
                self._blocks[place][name] += delta[name]
                return bool(name == "text" and delta[name])
            case "signature_delta" if place in self._blocks:
                self._blocks[place]["signature"] = delta["signature"]
            case "input_json_delta" if place in self._blocks:
                self._inputs[place] = self._inputs.get(place, "") + delta["partial_json"]
        return False


def _object_or_text(text: str) -> Json:
    """Returns the arguments of a call, as text if they are no JSON object."""
    try:
        told = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return told if isinstance(told, dict) else text


def error_of(
    status: int, body: Any, headers: Mapping[str, str], *, model: str, key_name: str
) -> CallError | FatalCallError:
    """Converts an error of the API to a call error.

    Args:
        status: the HTTP status; an error type in the body takes precedence, because streams fail with status 200.
        body: the decoded body, if any.
        headers: with lower-case names.
        model: the model that was asked.
        key_name: name of the environment variable with the key.
    """
    error = body.get("error") if isinstance(body, Mapping) else None
    told: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    kind = str(told.get("type") or "")
    said = ": ".join(part for part in (kind, str(told.get("message") or "")[:500]) if part)
    text = f"HTTP {status}{', ' if said else ''}{said}"
    details = told.get("details")
    code = details.get("error_code") if isinstance(details, Mapping) else None
    if code in _SPENT or "credit balance" in said:  # the API has no error type for an account without credit
        return FatalCallError(f"{_NO_CREDIT} ({text})")
    if code in _CLOSED:
        return FatalCallError(f"the account is closed to calls ({text})")
    if 300 <= status < 400 and "location" in headers:
        return redirected(status, headers["location"])
    status = _STATUS_OF.get(kind, status if status >= 400 else 500)
    if status in _FATAL:
        return FatalCallError(f"{_FATAL[status].format(model=model, key_name=key_name)} ({text})")
    if status in _TRANSIENT or status >= 500:
        wait = retry_after(headers, datetime.now(UTC))
        return CallError(_TRANSIENT.get(status, CallErrorKind.OVERLOADED), text, retryable=True, retry_after=wait)
    return CallError(CallErrorKind.BAD_REQUEST, text)


def batch_error(result: Mapping[str, Any], *, model: str, key_name: str) -> CallError:
    """Returns why a request of a batch has no message. Fatal errors (e.g. a wrong key) show when it is asked singly."""
    match result.get("type"):
        case "errored":
            error = error_of(500, result.get("error"), {}, model=model, key_name=key_name)
            if isinstance(error, CallError):
                return CallError(error.kind, f"in the batch: {error.message}", retryable=error.retryable)
            return CallError(CallErrorKind.BAD_REQUEST, f"in the batch: {error}", retryable=True)
        case "expired":
            kind, what = CallErrorKind.TIMEOUT, "the batch expired before it came to this request"
        case "canceled":
            kind, what = CallErrorKind.CONNECTION, "the batch was cancelled before it came to this request"
        case other:
            kind, what = CallErrorKind.BAD_RESPONSE, f"the batch has a result of an unknown type ({other!r})"
    return CallError(kind, what, retryable=True)

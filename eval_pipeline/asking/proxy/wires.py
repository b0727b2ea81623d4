"""The three forms in which agents ask models: how an answer is read, what ends a stream, how an error is told."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from eval_pipeline.asking.proxy.events import data_of, is_done
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import CallErrorKind, Json, Response
from eval_pipeline.core.values import value
from eval_pipeline.providers.anthropic.wire import StreamedMessage, error_of, response_of
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.http.errors import error_in_answer, status_error
from eval_pipeline.providers.openai.responses import ResponsesAnswer
from eval_pipeline.providers.openai.wire import ChatAnswer, text_in

ANTHROPIC, OPENAI = "anthropic", "openai"
KEYS = {ANTHROPIC: "ANTHROPIC_API_KEY", OPENAI: "OPENAI_API_KEY"}
"""Upstream → environment variable of its key."""


class Heard(Protocol):
    """An answer, as far as it has been heard."""

    def add(self, event: bytes) -> bool:
        """Adds an event of a stream; returns whether the answer ends with it. Raises CallError or FatalCallError."""

    def whole(self, body: Json) -> None:
        """Takes an answer that came as a whole. Raises CallError or FatalCallError."""

    def response(self) -> Response:
        """Returns the answer. Raises CallError if it is none, or not whole."""


@value
class Wire:
    """A form of requests and answers.

    Attributes:
        name: `anthropic`, `chat` or `responses`.
        upstream: who has it.
        items: the field of a request with the conversation.
        most: fields that limit the tokens of an answer.
        counts: whether it only counts tokens, which is free, and is no call of the model.
    """

    name: str
    upstream: str
    items: str
    most: tuple[str, ...]
    counts: bool = False

    def heard(self) -> Heard:
        """Returns an answer of which nothing has been heard."""
        if self.counts:
            return _HeardCount()
        return _HeardMessage() if self.upstream == ANTHROPIC else _HeardCompletion(self.name)

    def error(self, status: int, message: str, kind: str = "") -> bytes:
        """Returns the body of an error as this API writes it."""
        if self.upstream == ANTHROPIC:
            kind = kind or ("invalid_request_error" if status < 500 else "api_error")
            return json_text({"type": "error", "error": {"type": kind, "message": message}}).encode()
        kind = kind or ("invalid_request_error" if status < 500 else "server_error")
        return json_text({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()

    def error_event(self, message: str) -> bytes:
        """Returns the event with which a stream breaks off."""
        told = json.loads(self.error(502, message)) | {"type": "error"}
        return b"event: error\ndata: " + json_text(told).encode() + b"\n\n"

    def meaning(self, status: int, body: Json, headers: Mapping[str, str], model: str) -> CallError | FatalCallError:
        """Returns what an error status of the upstream means for the run.

        The agent names the model, so that one which is unknown, or not for this key, is a wrong request of its own.
        """
        if status in (403, 404):
            return CallError(CallErrorKind.BAD_REQUEST, f"HTTP {status} for the model '{model}'")
        if self.upstream == ANTHROPIC:
            return error_of(status, body, headers, model=model, key_name=KEYS[ANTHROPIC])
        return status_error(status, body, headers)


WIRES: Mapping[str, Wire] = {
    "/v1/messages": Wire("anthropic", ANTHROPIC, "messages", ("max_tokens",)),
    "/v1/messages/count_tokens": Wire("anthropic", ANTHROPIC, "messages", (), counts=True),
    "/v1/chat/completions": Wire("chat", OPENAI, "messages", ("max_completion_tokens", "max_tokens")),
    "/v1/responses": Wire("responses", OPENAI, "input", ("max_output_tokens",)),
}
"""Path → form."""


class _HeardMessage:
    """A message of Anthropic's."""

    def __init__(self) -> None:
        self._streamed = StreamedMessage()

    def add(self, event: bytes) -> bool:
        told = decoded(event)
        if told is None:
            return False
        if text_in(told, "type") == "error":
            raise error_of(200, told, {}, model="", key_name=KEYS[ANTHROPIC])
        self._streamed.add(told)
        return self._streamed.complete

    def whole(self, body: Json) -> None:
        if text_in(body, "type") == "error":
            raise error_of(200, body, {}, model="", key_name=KEYS[ANTHROPIC])
        self._streamed.message, self._streamed.complete = body, True

    def response(self) -> Response:
        if not self._streamed.complete:
            raise CallError(CallErrorKind.CONNECTION, "the API cut its answer off", retryable=True)
        # What the model thought is in the bytes that are kept, and agents send it back from there.
        return replace(response_of(self._streamed.message), own=None, reasoning="")


class _HeardCompletion:
    """An answer of one of OpenAI's APIs."""

    def __init__(self, name: str) -> None:
        self._answer = ResponsesAnswer() if name == "responses" else ChatAnswer()
        self._in_events = False

    def add(self, event: bytes) -> bool:
        self._in_events = True
        told = decoded(event)
        if told is None:
            return is_done(event)
        self._take(told)
        return isinstance(self._answer, ResponsesAnswer) and self._answer.stop_reason is not None

    def whole(self, body: Json) -> None:
        self._take(body)

    def _take(self, told: Json) -> None:
        if isinstance(told, Mapping) and told.get("error"):
            raise error_in_answer(told["error"])
        self._answer.add(told)
        if self._answer.error:
            raise error_in_answer(self._answer.error)

    def response(self) -> Response:
        answer = self._answer
        if self._in_events and answer.stop_reason is None:
            raise CallError(CallErrorKind.CONNECTION, "the endpoint cut its answer off", retryable=True)
        if not answer.begun:
            raise CallError(CallErrorKind.BAD_RESPONSE, "the endpoint sent no answer", retryable=True)
        told = {"request_id": answer.request_id, "model": answer.model, "system_fingerprint": answer.fingerprint}
        return Response(
            answer.text or answer.refusal,
            stop_reason=answer.stop_reason or "stop",
            usage=answer.usage,
            call_error=answer.call_error,
            metadata={name: known for name, known in told.items() if known},
            calls=answer.tool_calls,
        )


class _HeardCount:
    """A number of tokens, which costs nothing."""

    def __init__(self) -> None:
        self._heard = False

    def add(self, event: bytes) -> bool:
        return False

    def whole(self, body: Json) -> None:
        self._heard = isinstance(body, Mapping) and isinstance(body.get("input_tokens"), int)

    def response(self) -> Response:
        if not self._heard:
            raise CallError(CallErrorKind.BAD_RESPONSE, "the API sent no number of tokens", retryable=True)
        return Response("", usd=0.0)


def decoded(event: bytes) -> Any:
    """Returns the data of an event. Raises CallError if it is no JSON."""
    try:
        return data_of(event)
    except (ValueError, RecursionError):
        told = "the endpoint sent an event that is no JSON"
        raise CallError(CallErrorKind.BAD_RESPONSE, told, retryable=True) from None

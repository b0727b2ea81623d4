from datetime import UTC, datetime
from typing import Any

import pytest

from eval_pipeline.core.model import CallErrorKind, Message, Prompt, Usage
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.openai_wire import StreamedAnswer, chat_request, retry_after, status_error, usage_of

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PROMPT = Prompt((Message("system", "Answer."), Message("user", "How much?")))


def test_a_request() -> None:
    assert chat_request("m", PROMPT, 100, {"temperature": 0.0}) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Answer."}, {"role": "user", "content": "How much?"}],
        "max_tokens": 100,
        "temperature": 0.0,
    }
    schema = {"type": "object"}
    asked = chat_request("m", Prompt(PROMPT.messages, answer_schema=schema), 100, {})
    assert asked["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }


def test_an_answer_in_chunks() -> None:
    chunks: list[dict[str, Any]] = [
        {"id": "c1", "model": "m", "choices": [{"delta": {"role": "assistant"}}]},
        {"id": "c1", "choices": [{"delta": {"content": "for"}}]},
        {"id": "c1", "choices": [{"delta": {"content": "ty"}, "finish_reason": None}]},
        {"id": "c1", "choices": [{"delta": {}, "finish_reason": "length"}], "usage": None},
        {"id": "c1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    ]
    answer = StreamedAnswer()
    assert [answer.add(chunk) for chunk in chunks] == [False, True, True, False, False]
    assert answer == StreamedAnswer("forty", "length", "", "c1", "m", Usage(9, 2))


def test_a_stream_that_breaks_off_has_no_stop_reason() -> None:
    answer = StreamedAnswer()
    answer.add({"id": "c1", "choices": [{"delta": {"content": "for"}}]})
    assert answer.stop_reason is None


@pytest.mark.parametrize(
    ("told", "details", "usage"),
    [
        ({}, None, Usage(None, None)),
        ({"prompt_tokens": 9, "completion_tokens": 2}, None, Usage(9, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2}, {"cached_tokens": 4}, Usage(9, 2, 4)),
        ({"prompt_tokens": 9}, {"cached_tokens": 4, "cache_write_tokens": 3}, Usage(9, None, 4, 3)),
        ({"prompt_tokens": 9}, {"cached_tokens": 12, "cache_write_tokens": 3}, Usage(9, None, 9, 0)),
    ],
)
def test_usage(told: dict[str, Any], details: dict[str, Any] | None, usage: Usage) -> None:
    assert usage_of({**told, "prompt_tokens_details": details}) == usage


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, {"code": 400, "message": "request (9 tokens) exceeds the available context size"}, "bad_request", False),
        (413, None, "bad_request", False),
        (422, "not JSON", "bad_request", False),
        (408, None, "timeout", True),
        (409, None, "overloaded", True),
        (429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, "rate_limited", True),
        (500, {"error": "oops"}, "overloaded", True),
        (503, None, "overloaded", True),
        (529, None, "overloaded", True),
    ],
)
def test_statuses(status: int, body: Any, kind: str, retryable: bool) -> None:
    error = status_error(status, body, {"retry-after": "3"})
    assert isinstance(error, CallError)
    assert (error.kind, error.retryable) == (CallErrorKind(kind), retryable)
    assert error.retry_after == (3.0 if retryable else None)
    assert error.message.startswith(f"HTTP {status}")


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, {"error": {"message": "Incorrect API key"}}, "refuses the key (HTTP 401: Incorrect API key)"),
        (403, None, "refuses the key (HTTP 403)"),
        (404, {"message": "model 'x' not found"}, "does not exist (HTTP 404: model 'x' not found)"),
        (429, {"error": {"code": "insufficient_quota", "message": "pay"}}, "no credit left (HTTP 429: pay)"),
    ],
)
def test_statuses_that_no_call_outlives(status: int, body: Any, told: str) -> None:
    error = status_error(status, body, {})
    assert isinstance(error, FatalCallError)
    assert told in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-2"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds

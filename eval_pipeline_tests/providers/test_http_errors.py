from datetime import UTC, datetime
from typing import Any

import pytest

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.http.errors import error_in_answer, retry_after, status_error

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


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
        (400, {"error": {"code": "content_filter", "message": "filtered"}}, "refused", False),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "bad_request", False),
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


@pytest.mark.parametrize(
    ("body", "kind", "retryable"),
    [
        ({"message": "overloaded", "code": 503}, "overloaded", True),
        ({"message": "slow down", "type": "rate_limit_error"}, "rate_limited", True),
        ({"message": "too long", "type": "BadRequestError", "code": 400}, "bad_request", False),
        ({"message": "too long", "code": "context_length_exceeded"}, "bad_request", False),
        ({"message": "no idea", "code": "never_heard_of", "type": "invalid_request_error"}, "bad_request", False),
        ({"message": "no idea", "code": 200}, "overloaded", True),
        ("it broke", "overloaded", True),
        (None, "overloaded", True),
    ],
)
def test_errors_under_status_200(body: Any, kind: str, retryable: bool) -> None:
    error = error_in_answer(body)
    assert isinstance(error, CallError)
    assert (error.kind, error.retryable) == (CallErrorKind(kind), retryable)
    told = body.get("message") if isinstance(body, dict) else body
    assert error.message == f"an error in place of an answer: {told or 'without a message'}"


def test_a_refused_key_under_status_200_ends_the_run() -> None:
    assert isinstance(error_in_answer({"message": "no", "code": "invalid_api_key"}), FatalCallError)


def test_404_ends_the_run_only_where_it_is_about_the_address() -> None:
    error = status_error(404, {"detail": "no such company"}, {}, not_found_is_fatal=False)
    assert isinstance(error, CallError)
    assert (error.kind, error.message) == (CallErrorKind.BAD_REQUEST, "HTTP 404: no such company")


def test_a_page_of_html_is_cut_to_a_line() -> None:
    error = status_error(502, "<html>\n" + "<p>Bad gateway</p>\n" * 100, {})
    assert len(str(error)) < 600
    assert "\n" not in str(error)

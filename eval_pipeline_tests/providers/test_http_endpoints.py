from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.http.endpoints import (
    BaseUrl,
    EnvironmentName,
    Secrets,
    client_arguments,
    headers_of_streams,
    is_loopback,
    read_secret,
)
from eval_pipeline.providers.http.errors import error_in_answer, retry_after, status_error
from eval_pipeline.providers.validation import Settings, SettingsError, read_settings

VERSION = ModelVersion(name="v", provider="http")


class Reached(Settings):
    base_url: BaseUrl
    key_env: EnvironmentName = "KEY"


def reached(**options: str) -> Reached:
    return read_settings(Reached, VERSION.model_copy(update={"options": options}))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://host/v1", "https://host/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_addresses(written: str, read: str) -> None:
    assert reached(base_url=written).base_url == read


@pytest.mark.parametrize("wrong", ["", "host/v1", "ftp://host", "http://", "http://host:port", "http://host:99999"])
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(SettingsError, match=r"model version 'v': options.base_url: "):
        reached(base_url=wrong)


@pytest.mark.parametrize("wrong", ["http://user:hunter2hunter2@host/v1", "http://host/v1?key=hunter2hunter2"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(wrong: str) -> None:
    with pytest.raises(SettingsError) as refused:
        reached(base_url=wrong)
    assert "keys come from the environment" in str(refused.value)
    assert "hunter2" not in f"{refused.value} {refused.value.__cause__}"


def test_a_key_in_place_of_its_variable_is_refused_without_repeating_it() -> None:
    with pytest.raises(SettingsError, match=r"options\.key_env: expected the name of an environ") as refused:
        reached(base_url="http://host", key_env="sk-hunter2hunter2")
    assert "hunter2" not in f"{refused.value} {refused.value.__cause__}"


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:8000/v1", True),
        ("http://app.localhost", True),
        ("http://127.0.0.1", True),
        ("http://127.3.2.1", True),
        ("http://[::1]:80/", True),
        ("http://10.0.0.1", False),
        ("https://localhost.example.com", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_what_is_different_on_this_machine(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback
    assert client_arguments(url, VERSION)["trust_env"] is not loopback  # proxies are for other machines
    assert headers_of_streams(url) == ({"Connection": "close"} if loopback else {})


def test_idle_connections_are_given_up_before_servers_close_them() -> None:
    limits = client_arguments("https://api.openai.com/v1", VERSION)["limits"]
    assert 0 < limits.keepalive_expiry < 5  # uvicorn's and llama.cpp's time
    assert limits.max_keepalive_connections == VERSION.concurrency


def test_secrets_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "  sk-123\n")  # as `export KEY="$(cat file)"` and editors leave it
    assert read_secret("KEY", VERSION) == "sk-123"
    monkeypatch.setenv("KEY", " ")
    with pytest.raises(FatalCallError, match="model version 'v': the environment variable KEY is not set"):
        read_secret("KEY", VERSION)
    monkeypatch.setenv("KEY", "sk-\n123")
    with pytest.raises(FatalCallError, match="no HTTP header can carry") as refused:
        read_secret("KEY", VERSION)
    assert "123" not in str(refused.value)


def test_the_words_of_a_secret_are_secret_too_but_no_placeholders() -> None:
    secrets = Secrets(["Bearer sk-0123456789", "EMPTY"])
    assert secrets.redact("no: Bearer sk-0123456789") == "no: [redacted]"
    assert secrets.redact("no: sk-0123456789, EMPTY") == "no: [redacted], EMPTY"


def test_errors_are_told_without_secrets() -> None:
    secrets = Secrets(["sk-0123456789"])
    limited = CallError(CallErrorKind.RATE_LIMITED, "sk-0123456789 is slow", retryable=True, retry_after=3.0)
    told = secrets.redact_error(limited)
    assert (told.kind, told.message) == (CallErrorKind.RATE_LIMITED, "[redacted] is slow")
    assert (told.retryable, told.retry_after) == (True, 3.0)
    fatal = secrets.redact_error(FatalCallError("wrong: sk-0123456789"))
    assert isinstance(fatal, FatalCallError)
    assert str(fatal) == "wrong: [redacted]"


_SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=20)


@given(st.lists(_SECRET, min_size=1, max_size=3), st.lists(st.text(max_size=10) | st.integers(0, 2)))
def test_no_secret_is_left_in_any_text(values: list[str], pieces: list[str | int]) -> None:
    text = "".join(values[piece % len(values)] if isinstance(piece, int) else piece for piece in pieces)
    shown = Secrets(values).redact(text)
    # What is between two secrets may look like one only by the marks that took their place.
    assert not any(value in shown.replace("[redacted]", "\0") for value in values)


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
        ({"retry-after": "1e12"}, 365 * 86400.0),
        ({"retry-after-ms": "inf"}, 365 * 86400.0),
        ({"retry-after": "nan"}, 0.0),
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
    assert (error.kind, error.retryable) == (CallErrorKind(kind), retryable)
    told = body.get("message") if isinstance(body, dict) else body
    assert error.message == f"an error in place of an answer: {told or 'without a message'}"


def test_a_refused_key_under_status_200_ends_the_run() -> None:
    assert isinstance(error_in_answer({"message": "no", "code": "invalid_api_key"}), FatalCallError)


def test_404_ends_the_run_only_where_it_is_about_the_address() -> None:
    error = status_error(404, {"detail": "no such company"}, {}, not_found_is_fatal=False)
    assert (error.kind, error.message) == (CallErrorKind.BAD_REQUEST, "HTTP 404: no such company")


def test_a_page_of_html_is_cut_to_a_line() -> None:
    error = status_error(502, "<html>\n" + "<p>Bad gateway</p>\n" * 100, {})
    assert len(str(error)) < 600
    assert "\n" not in str(error)

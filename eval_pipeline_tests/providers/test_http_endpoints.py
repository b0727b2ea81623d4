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
    assert isinstance(told, CallError)
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

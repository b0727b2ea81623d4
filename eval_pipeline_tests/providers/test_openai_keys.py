"""What the provider `openai` sends of keys and headers, and to whom: on a real socket, through the real SDK."""

import pytest

from eval_pipeline.providers.base import FatalCallError
from eval_pipeline_tests.fakes.openai_lab import ask, failure, make_provider
from eval_pipeline_tests.fakes.openai_server import KEY, OpenAIServer, Status

WHOLE, STREAMED = False, True


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize("stream", [WHOLE, STREAMED])
def test_a_redirect_is_not_followed_which_would_hand_the_keys_on(stream: bool) -> None:
    with OpenAIServer() as other:
        elsewhere = f"{other.url}/v1/chat/completions"
        error = failure(Status(307, headers={"location": f"{elsewhere}?token=abc"}), stream)
    assert isinstance(error, FatalCallError)
    assert str(error) == f"the endpoint redirects to {elsewhere} (HTTP 307); write that as its address"
    assert other.asked == []


def test_without_a_key_the_run_ends_with_the_name_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(FatalCallError, match="'v': the environment variable OPENAI_API_KEY is not set"):
        ask(make_provider())


def test_an_endpoint_without_a_key_is_not_sent_the_one_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "gateway-0123456789")
    options = {"api_key_env": None, "headers_env": {"X-Gateway-Key": "GATEWAY_TOKEN"}}
    with OpenAIServer() as server:
        ask(make_provider(server.url, options))
        ask(make_provider(server.url, {**options, "stream": False}))
    for asked in server.asked:
        assert "authorization" not in asked.headers
        assert asked.headers["x-gateway-key"] == "gateway-0123456789"


def test_headers_of_the_environment_that_the_sdk_would_add_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-another-endpoint\nX-Other: secret-0123456789")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-another")
    with OpenAIServer() as server:
        ask(make_provider(server.url))
        ask(make_provider(server.url, {"api_key_env": None, "stream": False}))
    assert [asked.headers.get("authorization") for asked in server.asked] == [f"Bearer {KEY}", None]
    for asked in server.asked:
        assert not {"x-other", "openai-organization", "openai-project"} & asked.headers.keys()


@pytest.mark.parametrize("api_key_env", [None, "OPENAI_API_KEY"])
def test_an_endpoint_may_be_asked_with_a_header_of_ones_own(
    api_key_env: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "Basic gateway-0123456789")
    options = {"api_key_env": api_key_env, "headers_env": {"authorization": "GATEWAY_TOKEN"}}
    with OpenAIServer() as server:
        ask(make_provider(server.url, options))
    assert server.asked[0].headers["authorization"] == "Basic gateway-0123456789"

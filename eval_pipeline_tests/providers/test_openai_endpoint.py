"""The provider `openai` against a fake endpoint on a real socket, through the real SDK."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.answers import Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model import CallErrorKind, Json, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, CallError, Environment, FatalCallError, TokenCounter
from eval_pipeline.providers.openai.provider import OpenAIProvider
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_tests.fakes.openai_lab import ask, failure, make_provider, make_version
from eval_pipeline_tests.fakes.openai_server import (
    KEY,
    USAGE,
    CutOff,
    ErrorInAnswer,
    Hang,
    OpenAIServer,
    Raw,
    Reset,
    Says,
    Status,
    Step,
)
from eval_pipeline_tests.fakes.scripted import make_call

SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
WHOLE, STREAMED = False, True


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # proxies are not for this machine


@pytest.mark.parametrize("stream", [WHOLE, STREAMED])
def test_an_answer_with_everything_that_is_told_of_it(stream: bool) -> None:
    with OpenAIServer([Says("the answer is 42")]) as server:
        [response] = ask(make_provider(server.url, {"stream": stream}), make_call(schema=SCHEMA))
    assert (response.text, response.stop_reason, response.call_error) == ("the answer is 42", "stop", None)
    assert response.usage == Usage(30, 7, cache_read_tokens=20)
    assert response.latency_ms is not None
    assert (response.first_byte_ms is not None) is stream
    assert (response.first_byte_ms or 0) <= response.latency_ms
    assert response.metadata["request_id"] == "chatcmpl-1"
    assert response.metadata["model"] == "fake-2026"
    assert response.metadata["sdk"].startswith("openai ")

    [body] = server.bodies
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (body["model"], body["max_tokens"], body.get("stream", False)) == ("m", 1024, stream)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_what_is_sent_is_what_the_journal_knows_the_call_by() -> None:
    options = {"stream": False, "body": {"user": "evaluation"}, "limit_field": "max_completion_tokens"}
    with OpenAIServer() as server:
        provider = make_provider(server.url, options, sampling={"temperature": 0.2, "top_k": 5, "seed": 10})
        calls = [make_call(schema=SCHEMA), make_call(sample=2)]
        ask(provider, *calls)
        requests: list[Any] = [provider.request(call) for call in calls]
    assert [request["body"] for request in requests] == server.bodies
    assert {request["endpoint"] for request in requests} == {f"{server.url}/v1"}
    assert [body["seed"] for body in server.bodies] == [10, 12]
    assert [server.bodies[0][name] for name in ("temperature", "top_k", "user")] == [0.2, 5, "evaluation"]
    assert (server.bodies[0]["max_completion_tokens"], "max_tokens" in server.bodies[0]) == (1024, False)
    assert KEY not in json.dumps(requests)


def test_openai_itself_gets_the_limit_by_its_new_name_nothing_that_is_not_set_and_no_bounds_on_texts() -> None:
    openai = OpenAIProvider(ModelVersion(name="v", provider="openai", model="gpt-5"), Environment())
    request: Any = openai.request(make_call())
    assert request["endpoint"] == "https://api.openai.com/v1"
    assert request["body"].keys() == {"model", "messages", "max_completion_tokens"}
    schema = {"type": "object", "properties": {"answer": {"type": "string", "maxLength": 9}}}
    for provider, kept in ((openai, False), (make_provider(), True)):
        asked: Any = provider.request(make_call(schema=schema))
        sent = asked["body"]["response_format"]["json_schema"]["schema"]
        assert ("maxLength" in sent["properties"]["answer"]) is kept


@pytest.mark.parametrize("stream", [WHOLE, STREAMED])
@pytest.mark.parametrize(
    ("step", "text", "kind"),
    [
        (Says("half an", finish="length"), "half an", CallErrorKind.MAX_TOKENS),
        (Says("", finish="content_filter"), "", CallErrorKind.REFUSED),
        (Says("", refusal="I cannot help with that."), "I cannot help with that.", CallErrorKind.REFUSED),
    ],
)
def test_what_is_paid_for_and_no_answer_is_kept(stream: bool, step: Says, text: str, kind: CallErrorKind) -> None:
    with OpenAIServer([step]) as server:
        [response] = ask(make_provider(server.url, {"stream": stream}))
    assert (response.text, response.call_error) == (text, kind)
    assert response.usage.output_tokens == USAGE["completion_tokens"]


@pytest.mark.parametrize("stream", [WHOLE, STREAMED])
@pytest.mark.parametrize(
    ("step", "kind", "retryable"),
    [
        (Status(429, headers={"retry-after": "7"}), CallErrorKind.RATE_LIMITED, True),
        (Status(503), CallErrorKind.OVERLOADED, True),
        (Status(400, "bad {key}"), CallErrorKind.BAD_REQUEST, False),
        (Status(400, "filtered", "content_filter"), CallErrorKind.REFUSED, False),
        (CutOff(), CallErrorKind.CONNECTION, True),
        (Reset(), CallErrorKind.CONNECTION, True),
        (ErrorInAnswer({"code": 502, "message": "upstream"}), CallErrorKind.OVERLOADED, True),
        (ErrorInAnswer({"type": "rate_limit_error", "message": "slow"}), CallErrorKind.RATE_LIMITED, True),
        (Hang(), CallErrorKind.TIMEOUT, True),
    ],
)
def test_failures(stream: bool, step: Step, kind: CallErrorKind, retryable: bool) -> None:
    error = failure(step, stream, deadline_s=0.2 if isinstance(step, Hang) else 10)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert error.retry_after == (7.0 if isinstance(step, Status) and step.headers else None)


@pytest.mark.parametrize("stream", [WHOLE, STREAMED])
@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Status(401, "Incorrect API key: {key}"), "refuses the key (HTTP 401: Incorrect API key: Bearer [redacted])"),
        (Status(404, "no model m"), "the endpoint or the model does not exist (HTTP 404: no model m)"),
        (Status(429, "pay", "insufficient_quota"), "the account has no credit left (HTTP 429: pay)"),
    ],
)
def test_failures_that_end_the_run(stream: bool, step: Step, told: str) -> None:
    error = failure(step, stream)
    assert isinstance(error, FatalCallError)
    assert told in str(error)


WHOLE_ANSWER = b'{"id": "c1", "choices": [{"message": {"content": "42"}, "finish_reason": "stop"}]}'


@pytest.mark.parametrize(
    ("label", "stream"),
    [
        ("application/json", STREAMED),
        ("application/json; charset=utf-8", STREAMED),
        ("text/html", STREAMED),
        ("text/plain", WHOLE),
    ],
)
def test_an_endpoint_that_answers_at_once_is_understood_whatever_the_label(label: str, stream: bool) -> None:
    with OpenAIServer([Raw(WHOLE_ANSWER, label)]) as server:
        [response] = ask(make_provider(server.url, {"stream": stream}))
    assert server.bodies[0].get("stream", False) is stream
    assert (response.text, response.stop_reason, response.first_byte_ms) == ("42", "stop", None)


@pytest.mark.parametrize(
    ("step", "stream", "kind", "retryable", "said"),
    [
        (Raw(b'{"choices": [{"mess'), WHOLE, CallErrorKind.BAD_RESPONSE, True, ""),
        (Raw(b"data: {broken\n\n", "text/event-stream"), STREAMED, CallErrorKind.BAD_RESPONSE, True, ""),
        (Raw(b"<html>welcome</html>", "text/html"), WHOLE, CallErrorKind.BAD_RESPONSE, False, ""),
        (Raw(b'{"object": "nothing"}'), WHOLE, CallErrorKind.BAD_RESPONSE, False, ""),
        (Raw(b"[]"), WHOLE, CallErrorKind.BAD_RESPONSE, False, ""),
        (Raw(b"nonsense", encoding="gzip"), WHOLE, CallErrorKind.BAD_RESPONSE, None, "cannot be decompressed"),
        (Raw(WHOLE_ANSWER, "text/plain"), STREAMED, CallErrorKind.BAD_RESPONSE, None, "options: {stream: false}"),
        (Raw(b"", "text/event-stream"), STREAMED, CallErrorKind.BAD_RESPONSE, None, "options: {stream: false}"),
        (Raw(b"", "application/json"), STREAMED, CallErrorKind.BAD_RESPONSE, None, "an empty body"),
        (Raw(b"<!DOCTYPE html><title>Sign in</title>", "text/html"), STREAMED, CallErrorKind.BAD_RESPONSE, None,
         "a web page ('Sign in')"),
        (Says("half an", finish=None), STREAMED, CallErrorKind.CONNECTION, True, ""),  # ends without saying why
    ],
)  # fmt: skip
def test_what_is_no_completion_is_told(
    step: Step, stream: bool, kind: CallErrorKind, retryable: bool | None, said: str
) -> None:
    error = failure(step, stream)
    assert error.kind is kind
    assert retryable in (None, error.retryable)
    assert said in error.message


def test_nobody_listening_is_a_connection_that_failed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        with pytest.raises(CallError) as raised:
            ask(make_provider(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert (raised.value.kind, raised.value.retryable) == (CallErrorKind.CONNECTION, True)


def test_a_journalled_answer_needs_no_key_and_no_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(provider: OpenAIProvider, version: ModelVersion, journal: SqliteJournal) -> Any:
        async with provider:
            caller = Caller(provider, journal, version, retries=RetryPolicy(first_pause_s=0.01))
            return await caller.ask(make_call())

    with OpenAIServer([Status(500), Says("42")]) as server, SqliteJournal(tmp_path / "j.sqlite") as journal:
        version = make_version(server.url)
        first = asyncio.run(answer(OpenAIProvider(version, Environment()), version, journal))
        assert (first.response.text, first.response.retries, first.from_journal) == ("42", 1, False)
        monkeypatch.delenv("OPENAI_API_KEY")
        server.stop()
        again = asyncio.run(answer(OpenAIProvider(version, Environment()), version, journal))
    assert again == Answered(first.response, from_journal=True)
    assert len(server.asked) == 2
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"chatcmpl-1" in kept
    assert KEY.encode() not in kept


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_tokens_are_counted_where_the_endpoint_can(kind: str) -> None:
    async def count(provider: OpenAIProvider) -> int:
        async with provider:
            return await provider.count_tokens(make_call())

    with OpenAIServer(tokens=123) as server:
        assert asyncio.run(count(make_provider(server.url, {"count_tokens": kind}))) == 123
        assert server.asked == []
        with pytest.raises(FatalCallError, match="the endpoint does not count tokens at "):
            asyncio.run(count(make_provider(f"{server.url}/elsewhere", {"count_tokens": kind})))
    assert not isinstance(make_provider(), TokenCounter)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"model": ""}, "model: is missing: the endpoint's name of the model"),
        ({"options": {"base_uri": "x"}}, "options.base_uri: unknown field; allowed: base_url, api_key_env, headers"),
        ({"options": {"api_key_env": "sk-abc"}}, "options.api_key_env: expected the name of an environment variable"),
        ({"options": {"structured_output": "yes"}}, "options.structured_output: expected 'json_schema', 'json_o"),
        ({"options": {"body": {"n": 2}}}, "options.body.n: is set by the model version's own fields and the prompt"),
        ({"options": {"body": {"temperature": 2}}}, "options.body.temperature: is set by the model version's own"),
        ({"options": {"headers_env": {"a b": "X"}}}, "options.headers_env.a b.* expected the name of an HTTP header"),
        ({"sampling": {"temprature": 1}}, "sampling.temprature: unknown field; allowed: temperature, top_p, top_k"),
        ({"sampling": {"temperature": -1}}, "sampling.temperature: expected a number of at least 0"),
        ({"batch": True}, "batch: means nothing to the provider 'openai'"),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=f"model version 'v': {told}"):
        OpenAIProvider(ModelVersion(name="v", provider="openai", **{"model": "m", **fields}), Environment())


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


class _Derived(OpenAIProvider):
    key_variable = "DERIVED_KEY"

    def body(self, call: Call) -> dict[str, Json]:
        return {**super().body(call), "tenant": "t"}


def test_a_provider_that_derives_from_it_sends_its_own_key_and_body(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        provider = _Derived(make_version(server.url), Environment())
        with pytest.raises(FatalCallError, match="DERIVED_KEY is not set"):
            ask(provider)
        monkeypatch.setenv("DERIVED_KEY", "derived-0123456789")
        ask(provider, make_call())
    [asked], [body], request = server.asked, server.bodies, provider.request(make_call())
    assert (asked.headers["authorization"], body["tenant"]) == ("Bearer derived-0123456789", "t")
    assert request["body"]["tenant"] == "t"


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

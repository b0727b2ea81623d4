"""Whatever may go wrong at the Anthropic API, on a real socket with the real SDK, and what the caller makes of it."""

import asyncio
import io
import logging
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.answers import Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline_tests.fakes.anthropic_faults import (
    OVERLOADED,
    RATE_LIMITED,
    BrokenStream,
    ErrorEvent,
    Fault,
    Hang,
    LostReply,
    Malformed,
    RandomFaults,
    Reset,
    Status,
)
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for, with_provider
from eval_pipeline_tests.fakes.anthropic_messages import question
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer

AT_ONCE = RetryPolicy(first_pause_s=0.01, longest_pause_s=0.02)
TRANSIENT: Sequence[tuple[str, Fault, str]] = (
    ("429", RATE_LIMITED, "rate_limited"),
    ("529", OVERLOADED, "overloaded"),
    ("500", Status(500), "overloaded"),
    ("502 without a type", Status(502, ""), "overloaded"),
    ("429 of a ramp limit", Status(429, "rate_limit_error", error_code="ramp_limit_exceeded"), "rate_limited"),
    ("504", Status(504, "timeout_error"), "timeout"),
    ("408", Status(408, ""), "timeout"),
    ("409", Status(409, "conflict_error"), "overloaded"),
    ("a reset", Reset(), "connection"),
    ("a reply that is lost", LostReply(), "connection"),
    ("a hang", Hang(), "timeout"),
    ("a stream that breaks off", BrokenStream(), "connection"),
    ("a stream that breaks off at once", BrokenStream(0), "connection"),
    ("a stream that ends too early", BrokenStream(in_order=True), "connection"),
    ("malformed JSON", Malformed(), "bad_response"),
    ("200 and overloaded_error", ErrorEvent("overloaded_error"), "overloaded"),
    ("200 and rate_limit_error", ErrorEvent("rate_limit_error"), "rate_limited"),
    ("200 and api_error", ErrorEvent("api_error"), "overloaded"),
    ("200 and an unknown error", ErrorEvent("brand_new_error"), "overloaded"),
)
LASTING: Sequence[tuple[str, Fault, str]] = (
    ("400", Status(400, "invalid_request_error", "prompt is too long"), "bad_request"),
    ("413", Status(413, "request_too_large"), "bad_request"),
    ("422 without a type", Status(422, ""), "bad_request"),
    ("200 and invalid_request_error", ErrorEvent("invalid_request_error"), "bad_request"),
)
FATAL: Sequence[tuple[str, Fault, str]] = (
    ("401", Status(401, "authentication_error"), "the API refuses the key in ANTHROPIC_API_KEY"),
    ("403", Status(403, "permission_error"), "the key in ANTHROPIC_API_KEY may not do this"),
    ("404", Status(404, "not_found_error", "model: x"), "the model 'claude-fake-1' or the address is not known"),
    ("404 of a wrong address", Status(404, ""), "the model 'claude-fake-1' or the address is not known"),
    ("402", Status(402, "billing_error"), "no credit"),
    ("no credit", Status(400, "invalid_request_error", "Your credit balance is too low to access"), "no credit"),
    ("spent", Status(429, "rate_limit_error", error_code="enforced_spend_limit_reached"), "has reached its limit"),
    ("closed", Status(400, "invalid_request_error", error_code="organization_on_hold"), "closed to calls"),
    ("200 and authentication_error", ErrorEvent("authentication_error"), "the API refuses the key"),
)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def ask_once(server: AnthropicServer, **options: Any) -> Response:
    return with_provider(version_for(server, options=options), lambda provider: provider.generate(case_call()))


def ask_with_retries(server: AnthropicServer, folder: Path, **options: Any) -> Answered | CallFailure:
    version = version_for(server, options=options)

    async def work(provider: AnthropicProvider) -> Answered | CallFailure:
        with SqliteJournal(folder / "journal.sqlite") as journal:
            return await Caller(provider, journal, version, retries=AT_ONCE).ask(case_call())

    return with_provider(version, work)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("fault", "kind"), [pytest.param(*row[1:], id=row[0]) for row in TRANSIENT])
def test_what_passes_is_typed_and_asked_again(fault: Fault, kind: str, stream: bool, tmp_path: Path) -> None:
    options = {"stream": stream, **({"timeout_s": 1.0} if isinstance(fault, Hang) else {})}
    with AnthropicServer(faults=[fault] * 2) as server:
        with pytest.raises(CallError) as told:
            ask_once(server, **options)
        assert (told.value.kind, told.value.retryable) == (CallErrorKind(kind), True)
        assert len(server.log) == 1  # the SDK itself asks once: the caller counts and journals what is asked
        answer = ask_with_retries(server, tmp_path, **options)
    assert (answer.response.text, answer.response.retries) == ("answer", 1)
    assert len(server.log) == 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("fault", "kind"), [pytest.param(*row[1:], id=row[0]) for row in LASTING])
def test_what_stays_is_typed_and_not_asked_again(fault: Fault, kind: str, stream: bool, tmp_path: Path) -> None:
    with AnthropicServer(faults=[fault] * 9) as server:
        answer = ask_with_retries(server, tmp_path, stream=stream)
    assert isinstance(answer, CallFailure)
    assert (answer.kind, answer.retries, len(server.log)) == (CallErrorKind(kind), 0, 1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("fault", "sentence"), [pytest.param(*row[1:], id=row[0]) for row in FATAL])
def test_what_no_call_outlives_ends_the_run(fault: Fault, sentence: str, stream: bool, tmp_path: Path) -> None:
    with AnthropicServer(faults=[fault] * 9) as server, pytest.raises(FatalCallError, match=sentence):
        ask_with_retries(server, tmp_path, stream=stream)
    assert len(server.log) == 1


def test_nobody_listens() -> None:
    with AnthropicServer() as server:
        pass
    with pytest.raises(CallError, match="connection to the API failed") as told:
        ask_once(server)
    assert (told.value.kind, told.value.retryable) == (CallErrorKind.CONNECTION, True)


@pytest.mark.parametrize(("told", "seconds"), [(None, None), ("7", 7.0), ("0.5", 0.5), ("soon", None)])
def test_how_long_the_api_asks_to_wait(told: str | None, seconds: float | None) -> None:
    fault = Status(429, "rate_limit_error", retry_after=told)
    with AnthropicServer(faults=[fault]) as server, pytest.raises(CallError) as error:
        ask_once(server)
    assert error.value.retry_after == seconds


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "fault",
    [Status(500, echo_key=True), Status(401, "authentication_error", echo_key=True), ErrorEvent(message=f"for {KEY}")],
    ids=["500", "401", "200"],
)
def test_the_key_is_in_no_error_and_no_log(
    fault: Fault, stream: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ANTHROPIC_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    with AnthropicServer(faults=[fault]) as server, pytest.raises((CallError, FatalCallError)) as told:
        ask_once(server, stream=stream)
    shown = io.StringIO()
    traceback.print_exception(told.value, file=shown)  # with causes and contexts, as Dagster keeps them
    assert "[redacted]" in str(told.value)
    assert KEY not in shown.getvalue() + caplog.text


def test_headers_of_the_environment_are_secrets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gateway: gateway-secret-77\nX-Team: analysts-of-rates")
    fault = Status(500, message="gateway-secret-77 of analysts-of-rates")
    with AnthropicServer(lambda body: "gateway-secret-77", faults=[fault]) as server:
        with pytest.raises(CallError) as told:
            ask_once(server)
        answer = ask_once(server)
        assert server.log[0].headers["x-gateway"] == "gateway-secret-77"
    assert "[redacted] of [redacted]" in told.value.message
    assert answer.text == "[redacted]"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_redirects_are_not_followed_since_the_key_would_be(stream: bool) -> None:
    with AnthropicServer() as elsewhere:
        moved = Status(307, location=f"{elsewhere.url}/v1/messages?a=b")
        with AnthropicServer(faults=[moved]) as server, pytest.raises(FatalCallError) as told:
            ask_once(server, stream=stream)
        assert not elsewhere.log
    assert str(told.value) == (
        f"the endpoint redirects to {elsewhere.url}/v1/messages (HTTP 307); write that as its address"
    )


@pytest.mark.parametrize("how", ["whole", "streamed", "batch"])
def test_a_key_that_the_model_repeats_is_not_kept(how: str) -> None:
    async def work(provider: AnthropicProvider) -> Response | CallError:
        if how != "batch":
            return await provider.generate(case_call())
        batch = await provider.submit_batch({"a": case_call()})
        (outcome,) = [outcome async for _, outcome in provider.batch_results(batch.id)]
        return outcome

    with AnthropicServer(lambda body: f"It is {KEY}.", batch_polls=0) as server:
        response = with_provider(version_for(server, options={"stream": how == "streamed"}), work)
    assert isinstance(response, Response)
    assert response.text == "It is [redacted]."


def test_a_third_of_the_calls_fails_and_every_question_is_answered_once(tmp_path: Path) -> None:
    rates: dict[Fault, float] = {RATE_LIMITED: 0.1, OVERLOADED: 0.1, Reset(): 0.05, ErrorEvent(): 0.05}
    with AnthropicServer(question, faults=RandomFaults(rates, seed=3)) as server:
        version = version_for(server)

        async def work(provider: AnthropicProvider) -> list[Answered | CallFailure]:
            with SqliteJournal(tmp_path / "journal.sqlite") as journal:
                caller = Caller(provider, journal, version, retries=RetryPolicy(20, 0.01, 0.02))
                calls = [case_call(f"Question {number}?", uses=60) for number in range(60)]
                return await asyncio.gather(*map(caller.ask, calls))

        answers = with_provider(version, work)
    texts = [answer.response.text for answer in answers if isinstance(answer, Answered)]
    assert texts == [f"Question {number}?" for number in range(60)]
    assert set(server.model.charged.values()) == {1}
    assert len(server.log) > 70  # some had to be asked again

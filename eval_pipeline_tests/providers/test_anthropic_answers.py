"""Answers of the Anthropic API, through the real SDK from the fake server: text, stops, usage, streams, cache, key."""

import asyncio
from typing import Any

import pytest

from eval_pipeline.core.model import CallErrorKind, Response, Usage
from eval_pipeline.providers.anthropic.provider import STREAMED_FROM, AnthropicProvider
from eval_pipeline.providers.anthropic.wire import StreamedMessage, response_of
from eval_pipeline.providers.base import Call, CallError, FatalCallError
from eval_pipeline_tests.fakes.anthropic_faults import OVERLOADED, Slow
from eval_pipeline_tests.fakes.anthropic_lab import DOCUMENT, MODEL, case_call, version_for, with_provider
from eval_pipeline_tests.fakes.anthropic_messages import Answer
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer

TOKENS = 1329  # of `case_call`, as the fake counts: 1320 of the document, 2 + 1 + 3 of the other texts, 3 the message


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")  # proxies are not for this machine


def ask(server: AnthropicServer, *calls: Call, **fields: Any) -> list[Response]:
    """Answers to calls that are asked one after the other."""

    async def work(provider: AnthropicProvider) -> list[Response]:
        return [await provider.generate(call) for call in calls]

    return with_provider(version_for(server, **fields), work)


def ask_together(server: AnthropicServer, *calls: Call, **fields: Any) -> list[Response | BaseException]:
    async def work(provider: AnthropicProvider) -> list[Response | BaseException]:
        return await asyncio.gather(*map(provider.generate, calls), return_exceptions=True)

    return with_provider(version_for(server, **fields), work)


def streamed(*events: dict[str, Any]) -> StreamedMessage:
    """What is made of a stream that begins as all do."""
    message = StreamedMessage()
    begins = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 30, "output_tokens": 1}}}
    for event in (begins, *events, {"type": "message_stop"}):
        message.add(event)
    return message


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"usage": {"output_tokens": 7}}, Usage(30, 7)),
        ({"usage": {"input_tokens": 40, "output_tokens": 7, "cache_read_input_tokens": None}}, Usage(40, 7)),
        ({"usage": None}, Usage(30, None)),
        ({}, Usage(30, None)),
    ],
    ids=str,
)
def test_a_stream_whose_end_tells_no_tokens_is_an_answer_all_the_same(told: dict[str, Any], usage: Usage) -> None:
    """Some gateways leave them out; asking again would pay again. The count that a stream begins with is none."""
    found = streamed(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "42"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **told},
    )
    assert found.complete
    assert response_of(found.message).usage == usage


def test_thinking_blocks_are_kept_apart_streamed_or_whole() -> None:
    found = streamed(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "3 and "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "4"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "7"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    )
    whole = {
        "content": [{"type": "thinking", "thinking": "3 and 4", "signature": "x"}, {"type": "text", "text": "7"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 30, "output_tokens": 1},
    }
    for message in (found.message, whole):
        response = response_of(message)
        assert (response.text, response.reasoning) == ("7", "3 and 4")


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer(stream: bool) -> None:
    with AnthropicServer({"How much?": "8181 thousand dollars"}) as server:
        (response,) = ask(server, case_call(), options={"stream": stream})
    assert response.text == "8181 thousand dollars"
    assert response.stop_reason == "end_turn"
    assert response.call_error is None
    assert response.usage == Usage(TOKENS, 6, 0, 0)
    assert response.metadata == {
        "request_id": "req_000000",
        "message_id": "msg_000001",
        "model": MODEL,
        "service_tier": "standard",
        "sdk": "anthropic 2.12.0",
    }
    assert response.latency_ms is not None
    assert response.latency_ms > 0
    assert (response.first_byte_ms is not None) == stream
    assert server.log[0].stream == stream


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("stop_reason", "kind"),
    [
        ("refusal", CallErrorKind.REFUSED),
        ("max_tokens", CallErrorKind.MAX_TOKENS),
        ("model_context_window_exceeded", CallErrorKind.MAX_TOKENS),
        ("stop_sequence", None),
    ],
)
def test_stops_before_the_end_are_kept_with_what_they_cost(
    stop_reason: str, kind: CallErrorKind | None, stream: bool
) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "no"} if stop_reason == "refusal" else None
    with AnthropicServer(lambda body: Answer("half an ans", stop_reason, 7, details)) as server:
        (response,) = ask(server, case_call(), options={"stream": stream})
    assert (response.text, response.stop_reason, response.call_error) == ("half an ans", stop_reason, kind)
    assert response.usage == Usage(TOKENS, 7, 0, 0)
    assert response.metadata.get("stop_details") == details


@pytest.mark.parametrize(("max_tokens", "stream"), [(STREAMED_FROM, False), (STREAMED_FROM + 1, True), (64_000, True)])
def test_answers_that_may_be_long_are_streamed(max_tokens: int, stream: bool) -> None:
    with AnthropicServer() as server:
        ask(server, case_call(), max_tokens=max_tokens)
    assert server.log[0].stream == stream


def test_the_second_call_with_a_prefix_reads_it_from_the_cache() -> None:
    with AnthropicServer() as server:
        first, second = ask(server, case_call("First?", uses=2), case_call("Second?", uses=2))
    assert first.usage == Usage(TOKENS - 1, 2, 0, 1322)  # "First?" has two tokens, "How much?" three
    assert second.usage == Usage(TOKENS - 1, 2, 1322, 0)
    assert [entry.stream for entry in server.log] == [True, False]  # the one that others may wait for is streamed


@pytest.mark.parametrize("stream", [False, True])
def test_calls_with_one_prefix_at_once_pay_for_it_once(stream: bool) -> None:
    with AnthropicServer(latency_s=0.8, first_byte_s=0.1) as server:
        questions = [case_call(f"Question {number}?", uses=8) for number in range(8)]
        responses = ask_together(server, *questions, options={"stream": stream})
    usages = [response.usage for response in responses if isinstance(response, Response)]
    assert [usage.cache_write_tokens for usage in usages] == [1322] + [0] * 7
    assert [usage.cache_read_tokens for usage in usages] == [0] + [1322] * 7
    # The others go when the first answer begins, all at once; not when it has ended.
    ended = server.log[0].at + server.log[0].took
    assert all(server.log[0].at < entry.at < ended for entry in server.log[1:])
    assert max(entry.in_flight for entry in server.log) == 8


def test_the_next_call_goes_when_the_first_one_of_a_prefix_fails() -> None:
    with AnthropicServer(faults=[OVERLOADED]) as server:
        calls = [case_call(f"Question {number}?", uses=3) for number in range(3)]
        failed, *others = ask_together(server, *calls)
    assert isinstance(failed, Exception)
    usages = [response.usage for response in others if isinstance(response, Response)]
    assert [(usage.cache_write_tokens, usage.cache_read_tokens) for usage in usages] == [(1322, 0), (0, 1322)]


def test_calls_with_a_prefix_of_their_own_do_not_wait() -> None:
    with AnthropicServer(latency_s=0.5) as server:
        ask_together(server, *[case_call(f"Question {number}?") for number in range(4)])
        alone = list(server.log)
        ask_together(server, *[case_call(document=f"{number} {DOCUMENT}", uses=2) for number in range(4)])
    assert [entry.in_flight for entry in alone] == [1, 2, 3, 4]
    assert [entry.in_flight for entry in server.log[4:]] == [1, 2, 3, 4]


def test_prefixes_too_short_to_be_cached_are_not_waited_for_once_that_is_known() -> None:
    with AnthropicServer(latency_s=0.4, cache_minimum=4096) as server:

        async def work(provider: AnthropicProvider) -> None:
            await provider.generate(case_call(document=f"1 {DOCUMENT}", uses=9))
            others = [case_call(f"{number}?", document=f"2 {DOCUMENT}", uses=9) for number in range(3)]
            await asyncio.gather(*map(provider.generate, others))

        with_provider(version_for(server), work)
    assert [entry.in_flight for entry in server.log] == [1, 1, 2, 3]


def test_a_first_call_that_hangs_does_not_hold_up_the_others_for_long() -> None:
    with AnthropicServer(faults=[Slow(3.0)]) as server:
        calls = [case_call(f"Question {number}?", uses=2) for number in range(2)]
        responses = ask_together(server, *calls, deadline_s=4.0)
    assert all(isinstance(response, Response) for response in responses)
    assert 0.5 < server.log[1].at - server.log[0].at < 2.8  # a quarter of the deadline, on a busy host less


def test_tokens_are_counted_without_asking() -> None:
    async def count(provider: AnthropicProvider) -> tuple[int, int]:
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        return await provider.count_tokens(case_call()), await provider.count_tokens(case_call(schema=schema))

    with AnthropicServer() as server:
        sampling = {"effort": "low", "stop_sequences": ["x"], "service_tier": "auto"}
        plain, with_schema = with_provider(version_for(server, sampling=sampling), count)
    assert plain < with_schema
    assert [entry.operation for entry in server.log] == ["count_tokens"] * 2
    assert set(server.log[0].body) == {"model", "system", "messages", "output_config"}


def test_the_key_may_come_from_another_variable_and_end_with_a_newline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with AnthropicServer() as server:
        with pytest.raises(FatalCallError, match="variable MY_KEY is not set"):
            ask(server, case_call(), options={"api_key_env": "MY_KEY"})
        monkeypatch.setenv("MY_KEY", f"{KEY}\n")
        (response,) = ask(server, case_call(), options={"api_key_env": "MY_KEY"})
    assert response.text == "answer"


class Plain(SocketServer):
    """A gateway that answers at once, whatever it is asked for."""

    def __init__(self, body: bytes, label: str = "application/json") -> None:
        super().__init__()
        self._body, self._label = body, label

    async def handle(self, request: Request, connection: Connection) -> None:
        await connection.reply(200, self._body, {"content-type": self._label})


def ask_plain(body: bytes, label: str = "application/json", **fields: Any) -> Response:
    async def work(provider: AnthropicProvider) -> Response:
        return await provider.generate(case_call("How much?"))

    with Plain(body, label) as server:
        return with_provider(version_for(server, **fields), work)


MESSAGE = (
    b'{"id": "m", "type": "message", "role": "assistant", "model": "claude-fake-1", "stop_reason": "end_turn", '
    b'"content": [{"type": "text", "text": "42"}], "usage": {"input_tokens": 3, "output_tokens": 1}}'
)


@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_message_is_understood_where_a_stream_was_asked_for(stream: bool) -> None:
    assert ask_plain(MESSAGE, options={"stream": stream}).text == "42"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "said"), [(b"<html><title>Sign in</title></html>", "a web page ('Sign in')"), (b"", "an empty body")]
)
def test_what_is_no_message_is_told_as_what_it_is(body: bytes, said: str, stream: bool) -> None:
    with pytest.raises(CallError) as raised:
        ask_plain(body, "text/html", options={"stream": stream})
    assert raised.value.kind is CallErrorKind.BAD_RESPONSE
    assert said in raised.value.message

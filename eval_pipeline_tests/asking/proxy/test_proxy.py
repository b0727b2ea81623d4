"""The proxy of an agent: the SDKs hear what endpoints say, each call is kept and paid once, limits and keys hold."""

import asyncio
import json
import threading
from typing import Any

import anthropic
import openai
import pytest

from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.proxy import relay, serving
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.tracks.capabilities import ActLimits
from eval_pipeline_tests.asking.proxy.proxied import (
    ANSWERS,
    DUMMY,
    KEY,
    MESSAGE,
    Opened,
    message,
    proxied,
    sent_of,
    until,
)
from eval_pipeline_tests.fakes.wire_server import Sent, WireServer

HI: Any = [{"role": "user", "content": "Hi"}]
STREAMED = {entry["path"]: entry["events"].encode() for entry in ANSWERS if "events" in entry}


async def _asked(proxy: Opened, path: str, *, streamed: bool) -> list[Any]:
    """What the SDK of a path gives: all events, or the answer."""
    match path, streamed:
        case "/v1/messages", False:
            return [await proxy.anthropic().messages.create(model="m", max_tokens=50, messages=HI)]
        case "/v1/messages", True:
            events = await proxy.anthropic().messages.create(model="m", max_tokens=50, messages=HI, stream=True)
            return [event async for event in events]
        case "/v1/chat/completions", False:
            return [await proxy.openai().chat.completions.create(model="m", messages=HI)]
        case "/v1/chat/completions", True:
            chunks = await proxy.openai().chat.completions.create(model="m", messages=HI, stream=True)
            return [chunk async for chunk in chunks]
        case "/v1/responses", False:
            return [await proxy.openai().responses.create(model="m", input="Hi")]
    parts = await proxy.openai().responses.create(model="m", input="Hi", stream=True)
    return [part async for part in parts]


@pytest.mark.parametrize("entry", ANSWERS, ids=lambda entry: entry["name"])
async def test_an_sdk_hears_what_the_endpoint_says_and_again_what_is_kept(entry: Any, journal: Journal) -> None:
    streamed = "events" in entry
    heard = []
    with WireServer([sent_of(entry, pieces=11)]) as server:
        for again in (False, True):
            async with proxied(server.url, journal) as proxy:
                heard.append([one.model_dump() for one in await _asked(proxy, entry["path"], streamed=streamed)])
            (call,) = proxy.calls
            assert (call.from_journal, proxy.changed) == (again, not again)
            response = call.response
            assert response.text == entry["text"]
            assert [[one.id, one.name, dict(one.arguments)] for one in response.calls] == entry["calls"]
            assert [response.usage.input_tokens, response.usage.output_tokens] == entry["usage"]
            assert proxy.failure is None
    assert heard[0] == heard[1] != []
    (asked,) = server.asked
    assert asked.path == entry["path"]
    told = asked.headers.get("x-api-key") or asked.headers["authorization"].removeprefix("Bearer ")
    assert told == KEY and DUMMY not in str(asked.headers)


async def test_equal_requests_are_calls_of_their_own_and_replayed_in_order(journal: Journal) -> None:
    with WireServer([Sent(message(text)) for text in ("one", "two", "three")]) as server:
        for _ in range(2):
            async with proxied(server.url, journal) as proxy:
                assert [(await proxy.post()).json()["content"][0]["text"] for _ in range(2)] == ["one", "two"]
        async with proxied(server.url, journal) as proxy:
            assert (await proxy.post(metadata={"user_id": "another"})).json()["content"][0]["text"] == "one"
            changed = await proxy.post(messages=[{"role": "user", "content": "Ho"}])
            assert changed.json()["content"][0]["text"] == "three" and proxy.changed == 1
        assert len(server.asked) == 3
    for turn in (0, 1):  # what stands elsewhere answers itself, and another attempt has calls of its own
        async with proxied("http://127.0.0.1:9", journal, turn=turn) as proxy:
            assert (await proxy.post()).status_code == 502


async def test_what_a_program_asks_otherwise_when_it_is_run_again_is_told(journal: Journal) -> None:
    """Each run is one more of the same attempt; requests that are the same are paid for once, and only then."""
    runs = [
        (["a", "b", "b"], 0),
        (["b", "a"], 0),
        (["a", "b", "b", "c"], 0),
        (["a", "d", "b", "b"], 1),
        (["e", "f"], 2),
    ]
    with WireServer([Sent(message()) for _ in range(7)]) as server:
        for texts, changed in runs:
            async with proxied(server.url, journal) as proxy:
                for text in texts:
                    assert (await proxy.post(system=text)).status_code == 200
            assert proxy.paid.changed == changed, texts
        assert len(server.asked) == 7


@pytest.mark.always
async def test_the_budget_of_the_run_holds_for_calls_at_once(journal: Journal) -> None:
    replies = [Sent(message(tokens=(100, 10))) for _ in range(16)]
    with WireServer(replies) as server:
        async with proxied(server.url, journal, max_tokens_total=950) as proxy:  # one may take 670
            answers = await asyncio.gather(
                *(proxy.post(messages=[{"role": "user", "content": str(n)}]) for n in range(16))
            )
    done = [answer for answer in answers if answer.status_code == 200]
    assert len(done) == len(server.asked) == len(proxy.calls) == 3
    assert proxy.failure is not None and proxy.failure.kind is CallErrorKind.BUDGET
    (told,) = {(answer.status_code, answer.json()["error"]["message"]) for answer in answers if answer not in done}
    assert told == (400, "not asked: the budget of the run was reached")


@pytest.mark.parametrize(
    ("limits", "ended", "done"),
    [
        (ActLimits(model_calls=3), "model_calls", 3),
        (ActLimits(tokens=300), "tokens", 3),
        (ActLimits(usd=0.0003), "usd", 3),
    ],
)
async def test_the_limits_of_a_case_hold_for_calls_at_once(
    limits: ActLimits, ended: str, done: int, journal: Journal
) -> None:
    with WireServer([Sent(message(tokens=(100, 10))) for _ in range(16)]) as server:
        async with proxied(server.url, journal, limits) as proxy:
            answers = await asyncio.gather(*(proxy.post() for _ in range(16)))
            with pytest.raises(anthropic.BadRequestError, match="no further call is allowed"):
                await proxy.anthropic(max_retries=2).messages.create(model="m", max_tokens=50, messages=HI)
            with pytest.raises(openai.BadRequestError, match="no further call is allowed"):
                await proxy.openai(max_retries=2).chat.completions.create(model="m", messages=HI)
    assert [answer.status_code for answer in answers].count(200) == len(server.asked) == done
    assert proxy.ended is not None and proxy.ended[0] == ended
    assert proxy.failure is None  # it is a result


async def test_what_cannot_be_priced_is_not_asked_where_dollars_are_limited(journal: Journal) -> None:
    with WireServer() as server:
        async with proxied(server.url, journal, ActLimits(usd=1.0), price=None) as proxy:
            assert (await proxy.post()).status_code == 400
    assert not server.asked and proxy.fatal is not None and "price" in str(proxy.fatal)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
async def test_failures_pass_through_and_are_not_kept(path: str, journal: Journal) -> None:
    busy = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": f"slow down {KEY}"}}).encode()
    good = next(sent_of(entry) for entry in ANSWERS if entry["path"] == path and "body" in entry)
    with WireServer([Sent(busy, 429, headers={"retry-after": "7"}), good]) as server:
        async with proxied(server.url, journal) as proxy:
            with pytest.raises((anthropic.RateLimitError, openai.RateLimitError)) as raised:
                await _asked(proxy, path, streamed=False)
            assert raised.value.response.headers["retry-after"] == "7"
            assert "slow down" in str(raised.value) and KEY not in raised.value.response.text
            assert proxy.failure is not None and proxy.failure.kind is CallErrorKind.RATE_LIMITED
            await _asked(proxy, path, streamed=False)
            assert (proxy.failure, proxy.errors, len(proxy.calls)) == (None, 1, 1)
        async with proxied(server.url, journal) as proxy:  # the one that was answered is found at once
            await _asked(proxy, path, streamed=False)
    assert len(server.asked) == 2


@pytest.mark.parametrize("path", STREAMED)
@pytest.mark.parametrize("end", ["cut", "error"])
async def test_a_stream_that_breaks_off_is_an_error_to_the_sdk(path: str, end: str, journal: Journal) -> None:
    whole = STREAMED[path]
    first = whole.index(b"\n\n") + 2
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"too busy"}}\n\n'
    broken = Sent(whole, events=True, cut_at=first + 20) if end == "cut" else Sent(whole[:first] + error, events=True)
    with WireServer([broken]) as server:
        async with proxied(server.url, journal) as proxy:
            with pytest.raises((anthropic.APIError, openai.APIError)):
                await _asked(proxy, path, streamed=True)
    assert not proxy.calls and proxy.failure is not None


async def test_an_upstream_that_has_told_its_failure_has_the_last_word(journal: Journal) -> None:
    whole = STREAMED["/v1/messages"]
    told = whole[: whole.index(b"\n\n") + 2]
    told += b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"too busy"}}\n\n'
    with WireServer([Sent(told, events=True)]) as server:
        async with proxied(server.url, journal) as proxy:
            assert (await proxy.post(stream=True)).content == told


async def test_a_wrong_key_is_fatal_and_an_unknown_model_is_not(journal: Journal) -> None:
    told = [Sent(b'{"type":"error","error":{"type":"not_found_error","message":"model"}}', 404)]
    told += [Sent(b'{"type":"error","error":{"type":"authentication_error","message":"key"}}', 401)]
    with WireServer(told) as server:
        async with proxied(server.url, journal) as proxy:
            assert (await proxy.post()).status_code == 404
            assert proxy.fatal is None and proxy.failure is None
            assert (await proxy.post()).status_code == 401
    assert "ANTHROPIC_API_KEY" in str(proxy.fatal)


async def test_who_has_heard_all_hangs_up_at_once_and_has_made_a_call_of_its_own(
    journal: Journal, monkeypatch: Any
) -> None:
    """Nothing is done between the last byte of an answer and its end: else the next equal call would be the same."""
    body = json.dumps(MESSAGE).encode()
    request = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    append = type(journal).append

    async def slowly(self: Journal, key: str, body: bytes) -> bool:
        await asyncio.sleep(0.01)
        return await append(self, key, body)

    monkeypatch.setattr(type(journal), "append", slowly)
    with WireServer([Sent(message("one")), Sent(message("two"))]) as server:
        async with proxied(server.url, journal) as proxy:
            for text in (b"one", b"two"):
                reader, writer = await asyncio.open_unix_connection(proxy.path)
                writer.write(request)
                assert text in await reader.readuntil(b'"output_tokens": 3}}')
                writer.close()
                await writer.wait_closed()
            assert len(server.asked) == 2


async def test_who_hangs_up_has_paid_and_hears_the_answer_when_asking_again(journal: Journal) -> None:
    held = threading.Event()
    whole = STREAMED["/v1/messages"]
    reply = Sent(whole, events=True, held=held, hold_at=whole.index(b"\n\n") + 2)
    with WireServer([reply]) as server:
        async with proxied(server.url, journal) as proxy:
            async with proxy.streaming() as one:
                async for _ in one.aiter_bytes():
                    break
            again = asyncio.ensure_future(proxy.post(stream=True))
            await until(lambda: len(proxy._tasks) == 2)
            held.set()
            assert (await again).content == whole
            assert (await proxy.post(stream=True)).status_code == 500  # a third one is a call of its own
    assert [call.from_journal for call in proxy.calls] == [False, True]
    assert len(server.asked) == 2


async def test_the_end_of_an_answer_is_passed_on_when_it_is_kept(journal: Journal, monkeypatch: Any) -> None:
    passed, before, whole = list[bytes](), list[bytes](), STREAMED["/v1/messages"]
    add, append = relay.Outgoing.add, type(journal).append

    def noted(self: relay.Outgoing, part: bytes) -> None:
        passed.append(part)
        add(self, part)

    async def keeping(self: Journal, key: str, body: bytes) -> bool:
        before.extend([] if before else passed)  # what is noted afterwards is no answer
        return await append(self, key, body)

    monkeypatch.setattr(relay.Outgoing, "add", noted)
    monkeypatch.setattr(type(journal), "append", keeping)
    with WireServer([Sent(whole, events=True, pieces=100)]) as server:
        async with proxied(server.url, journal) as proxy:
            assert (await proxy.post(stream=True)).content == whole
    assert b"".join(before) + passed[-1] == b"".join(passed) == whole
    assert passed[-1].startswith(b"event: message_stop") and len(before) > 5


async def test_who_reads_slowly_holds_nothing_up(journal: Journal) -> None:
    whole = STREAMED["/v1/messages"]
    filling = b'event: ping\ndata: {"type": "ping", "x": "%s"}\n\n' % (b"x" * 1000)
    whole = whole.replace(b"event: ping", filling * 2000 + b"event: ping")
    with WireServer([Sent(whole, events=True, pieces=100_000), Sent(message())]) as server:
        async with proxied(server.url, journal) as proxy, proxy.streaming() as one:
            await until(lambda: len(proxy.calls) == 1)
            assert (await proxy.post()).status_code == 200
            assert await one.aread() == whole


PICTURE = {"type": "image", "source": {"type": "url", "url": "https://x"}}
UNSUITABLE = {
    "no JSON": b'{"model": ',
    "no object": b"[1]",
    "deep": b'{"model": "m", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no model": b'{"messages": []}',
    "search": json.dumps(MESSAGE | {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}).encode(),
    "connector": json.dumps(MESSAGE | {"mcp_servers": [{"type": "url", "url": "https://x"}]}).encode(),
    "picture": json.dumps(MESSAGE | {"messages": [{"role": "user", "content": [PICTURE]}]}).encode(),
}  # fmt: skip


@pytest.mark.parametrize("body", UNSUITABLE.values(), ids=UNSUITABLE)
async def test_a_request_that_is_none_or_reaches_elsewhere_is_refused(body: bytes, journal: Journal) -> None:
    with WireServer() as server:
        async with proxied(server.url, journal) as proxy, proxy.http() as client:
            told = await client.post("/v1/messages", content=body)
            assert told.status_code == 400 and told.json()["error"]["type"] == "invalid_request_error"
    assert not server.asked and proxy.failure is None


async def test_other_paths_are_not_served_and_models_are_told_without_asking(journal: Journal) -> None:
    with WireServer() as server:
        async with proxied(server.url, journal) as proxy, proxy.http() as client:
            for method, path in (("POST", "/v1/files"), ("GET", "/v1/messages"), ("POST", "/v1/messages/batches")):
                assert (await client.request(method, path)).status_code == 404
            assert [one.id for one in (await proxy.openai().models.list()).data] == ["m"]
            assert [one.id async for one in proxy.anthropic().models.list()] == ["m"]
            assert (await proxy.openai().models.retrieve("x/y")).id == "x/y"
    assert not server.asked


async def test_tokens_are_counted_for_nothing_and_kept(journal: Journal) -> None:
    with WireServer([Sent(b'{"input_tokens": 7}')]) as server:
        for _ in range(2):
            async with proxied(server.url, journal, ActLimits(model_calls=0), max_tokens_total=1) as proxy:
                counted = await proxy.anthropic().messages.count_tokens(model="m", messages=HI)
                assert counted.input_tokens == 7 and not proxy.calls
    assert len(server.asked) == 1


async def _answer_on_a_new_connection(proxy: Opened) -> bytes:
    reader, writer = await asyncio.open_unix_connection(proxy.path)
    try:
        writer.write(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_sizes_and_numbers_are_bounded(journal: Journal, monkeypatch: Any) -> None:
    monkeypatch.setattr(serving, "MOST_SENT", 2000)
    monkeypatch.setattr(relay, "MOST_BYTES", 5000)
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(serving, "MOST_REQUESTS", 4)
    with WireServer([Sent(message("x" * 6000)), Sent(message("x" * 100))]) as server:
        async with proxied(server.url, journal) as proxy:
            assert (await proxy.post(system="x" * 3000)).status_code == 413
            assert (await proxy.post()).status_code == 502
            assert (await proxy.post()).status_code == 200
            idle = [await asyncio.open_unix_connection(proxy.path) for _ in range(5)]
            assert await _answer_on_a_new_connection(proxy) == b""
            for _, writer in idle:
                writer.close()
            await until(lambda: not proxy._host._state.connections)
            assert (await proxy.post()).status_code == 500
            assert (await proxy.post()).status_code == 429
            assert await _answer_on_a_new_connection(proxy) == b""
    assert len(server.asked) == 3


async def test_no_key_is_in_what_the_agent_sees_or_the_journal_keeps(journal: Journal) -> None:
    streamed = STREAMED["/v1/chat/completions"].replace(b"Four", KEY.encode())
    with WireServer([Sent(message(KEY), headers={"x-key": KEY}), Sent(streamed, events=True, pieces=5)]) as server:
        async with proxied(server.url, journal) as proxy:
            one, two = await proxy.post(), await proxy.post("/v1/chat/completions", stream=True)
    for seen in (one, two):
        assert seen.status_code == 200 and KEY not in f"{seen.text}{seen.headers}" and "[redacted]" in seen.text
    assert KEY not in str([call.response for call in proxy.calls])
    async with proxied(server.url, journal) as proxy:
        again = await proxy.post(), await proxy.post("/v1/chat/completions", stream=True)
    assert [one.content, two.content] == [seen.content for seen in again] and len(server.asked) == 2

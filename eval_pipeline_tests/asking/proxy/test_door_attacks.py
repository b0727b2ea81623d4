"""What programs try at the door to their models: other places, other keys, others' answers, more than allowed."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.asking.proxy import serving
from eval_pipeline.tracks.capabilities import ActLimits
from eval_pipeline_tests.asking.proxy.proxied import DUMMY, KEY, MESSAGE, Opened, message, proxied
from eval_pipeline_tests.fakes.wire_server import Sent, WireServer

BODY = json.dumps(MESSAGE).encode()
PLAIN = b"host: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(BODY)
POST = b"POST /v1/messages HTTP/1.1\r\n"
INNER = b"POST /admin HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
CHUNKED = b"host: x\r\ntransfer-encoding: chunked\r\n"
RAW = {
    "two lengths": POST + PLAIN + b"content-length: 5\r\n\r\n" + BODY,
    "a length and chunks": POST + PLAIN + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "odd chunks": POST + CHUNKED + b"transfer-encoding: identity\r\n\r\n-1\r\n" + INNER,
    "a request in a header": POST + b"x: y\r\n\r\n" + INNER,
    "a folded header": POST + PLAIN + b"anthropic-beta: a\r\n b\r\n\r\n" + BODY,
    "a bare line break": POST + PLAIN + b"anthropic-beta: a\nx-api-key: mine\r\n\r\n" + BODY,
    "a zero in a header": POST + PLAIN + b"anthropic-beta: a\0b\r\n\r\n" + BODY,
    "another host": b"POST http://elsewhere/v1/messages HTTP/1.1\r\n" + PLAIN + b"\r\n" + BODY,
    "a way upwards": b"POST /v1/messages/../../admin HTTP/1.1\r\n" + PLAIN + b"\r\n" + BODY,
    "a hidden way upwards": b"POST /v1/%2e%2e/admin HTTP/1.1\r\n" + PLAIN + b"\r\n" + BODY,
    "a break in the address": b"POST /v1/messages?a=%0d%0ax-api-key:mine HTTP/1.1\r\n" + PLAIN + b"\r\n" + BODY,
    "a tunnel": b"CONNECT elsewhere:443 HTTP/1.1\r\nhost: elsewhere\r\n\r\n",
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + POST + PLAIN + b"\r\n" + BODY,
    "a web socket": b"GET /v1/responses HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    "no end of headers": POST + b"x: " + b"y" * 200_000,
}  # fmt: skip
OURS = {"host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length", "x-api-key"}
FORGED = {
    "x-api-key": DUMMY,
    "authorization": "Bearer mine",
    "proxy-authorization": "Basic mine",
    "cookie": "session=mine",
    "host": "elsewhere",
    "x-forwarded-host": "elsewhere",
    "openai-organization": "mine",
    "anthropic-dangerous-direct-browser-access": "true",
}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """One in a file, as what is tried here does not depend on it."""
    with SqliteJournal(tmp_path / "j.sqlite") as opened:
        yield opened


async def sent(proxy: Opened, raw: bytes) -> bytes:
    """What is answered to bytes on a connection of their own."""
    reader, writer = await asyncio.open_unix_connection(proxy.path)
    with suppress(ConnectionError):
        writer.write(raw)
        writer.write_eof()
        return await reader.read()
    return b""


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
async def test_no_form_of_a_request_reaches_another_place(raw: bytes, journal: Journal) -> None:
    with WireServer(lambda request: Sent(message())) as server:
        async with proxied(server.url, journal) as proxy:
            said = await sent(proxy, raw)
            assert (await proxy.post(system="afterwards")).status_code == 200
        assert KEY.encode() not in said
        for one in server.asked:
            assert one.path == "/v1/messages" and set(one.headers) <= OURS | {"anthropic-beta", "anthropic-version"}
            assert one.headers["x-api-key"] == KEY and one.headers["host"] in server.url
            assert "mine" not in str(one.headers)


async def test_forged_headers_change_nothing_and_are_not_passed_on(journal: Journal) -> None:
    with WireServer([Sent(message())] * 2) as server:
        async with proxied(server.url, journal) as proxy, proxy.http() as client:
            for headers in (FORGED, {}):  # the second is another equal request, which is asked as well
                assert (await client.post("/v1/messages", json=MESSAGE, headers=headers)).is_success
        first, second = server.asked
        assert first.headers == second.headers and set(first.headers) <= OURS and first.headers["x-api-key"] == KEY


async def test_an_upstream_that_repeats_the_key_in_an_error_tells_it_nobody(journal: Journal) -> None:
    told = json.dumps({"error": {"type": "x", "message": f"wrong: {KEY}"}}).encode()
    more = {"retry-after": KEY, "x-request-id": KEY, "location": f"/{KEY}", "x-own": KEY}
    replies = [Sent(told, status, headers=more) for status in (400, 429, 500, 302)]
    with WireServer(replies) as server:
        async with proxied(server.url, journal) as proxy:
            for number in range(4):
                said = await proxy.post(system=str(number))
                assert not said.is_success and KEY not in f"{said.text}{said.headers}"
        assert len(server.asked) == 4 and proxy.failure is not None and KEY not in proxy.failure.message


async def test_what_another_attempt_was_told_is_nobodys_else(journal: Journal) -> None:
    with WireServer([Sent(message("first")), Sent(message("second"))]) as server:
        said = []
        for turn in (0, 1, 0, 1):
            async with proxied(server.url, journal, turn=turn) as proxy:
                said.append((await proxy.post()).json()["content"][0]["text"])
        assert said == ["first", "second"] * 2 and len(server.asked) == 2


@pytest.mark.parametrize("limits", [ActLimits(model_calls=3), ActLimits(usd=0.0003), ActLimits(tokens=300)])
async def test_calls_at_once_in_several_forms_share_one_limit(limits: ActLimits, journal: Journal) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    chat = {"model": "m", "choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}], "usage": usage}

    def reply(request: Any) -> Sent:
        is_message = request.path.endswith("messages")
        return Sent(message(tokens=(100, 10)) if is_message else json.dumps(chat).encode())

    with WireServer(reply) as server:
        async with proxied(server.url, journal, limits) as proxy:
            paths = ["/v1/messages", "/v1/chat/completions"] * 8
            said = await asyncio.gather(*(proxy.post(path) for path in paths))
        assert [one.status_code for one in said].count(200) == len(server.asked) == 3


async def test_half_a_request_holds_up_nobody_else(journal: Journal, monkeypatch: Any) -> None:
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 4)
    with WireServer([Sent(message())]) as server:
        async with proxied(server.url, journal) as slow, proxied(server.url, journal, turn=1) as other:
            halves = [await asyncio.open_unix_connection(slow.path) for _ in range(4)]
            for _, writer in halves:
                writer.write(POST + b"host: x\r\nconte")
            assert (await other.post()).status_code == 200
        # The end of the attempt waits for none of them.
        assert [await reader.read() for reader, _ in halves] == [b""] * 4


async def test_an_endless_request_is_ended(journal: Journal, monkeypatch: Any) -> None:
    monkeypatch.setattr(serving, "MOST_SENT", 50_000)
    with WireServer([Sent(message())]) as server:
        async with proxied(server.url, journal) as proxy:
            reader, writer = await asyncio.open_unix_connection(proxy.path)
            writer.write(POST + CHUNKED + b"\r\n")
            heard, pieces = asyncio.ensure_future(reader.read()), 0
            with suppress(ConnectionError):
                while not heard.done():
                    writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
                    await writer.drain()
                    pieces += 1
                    await asyncio.sleep(0)
            await asyncio.wait([heard])
            assert pieces < 500, "four megabytes of what may have 50 KB, with all that waits on the way"
            assert heard.exception() is not None or heard.result().startswith(b"HTTP/1.1 413 ")
            assert not server.asked and (await proxy.post()).status_code == 200

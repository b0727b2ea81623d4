"""The process that serves the proxy is killed again and again: what was kept is never asked again."""

import json
import os
import signal
import sqlite3
from pathlib import Path
from random import Random

import psutil
import pytest

from eval_pipeline_tests.asking.proxy.agent_run import ROUNDS, TOGETHER
from eval_pipeline_tests.asking.proxy.proxied import message
from eval_pipeline_tests.fakes.http_socket import Request
from eval_pipeline_tests.fakes.wire_server import Sent, WireServer
from eval_pipeline_tests.forked import forked


def _question(request: Request) -> str:
    body = json.loads(request.body)
    return f"{body['messages'][-1]['content']} of {body['system']}."


def _stream(text: str) -> bytes:
    whole = json.loads(message(""))
    events = [{"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}]
    events += [{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}]
    events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}]
    events += [{"type": "message_stop"}]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


def _kept(journal: Path) -> set[str]:
    if not journal.exists():
        return set()
    with sqlite3.connect(journal) as connection:
        found = {json.loads(body)["text"] for (body,) in connection.execute("SELECT body FROM responses")}
        return found - {""}  # notes of what was paid


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.soak)])
def test_what_was_kept_is_asked_no_more(kills: int, tmp_path: Path) -> None:
    random, journal, asked = Random(kills), tmp_path / "j.sqlite", list[str]()
    at_request, pid = 0, 0

    def reply(request: Request) -> Sent:
        nonlocal at_request
        asked.append(_question(request))
        at_request -= 1
        if at_request == 0:  # it has been sent, and is paid for
            os.kill(pid, signal.SIGKILL)
        text = asked[-1]
        return (
            Sent(_stream(text), events=True, pieces=50) if json.loads(request.body)["stream"] else Sent(message(text))
        )

    lost = 0
    with WireServer(reply) as server:
        for kill in range(kills + 1):
            kept, asked[:] = _kept(journal), []
            when = random.choice((0, 1, 2, 3)) if kill < kills else 0
            at_kept = 0 if when or kill == kills else random.choice((1, 2, 3))
            arguments = [server.url, str(journal), str(at_kept)]
            child = forked("eval_pipeline_tests.asking.proxy.agent_run:main", arguments, {}, tmp_path / "log")
            pid, at_request = child.pid, when
            try:
                code = child.wait(120)
            finally:
                child.send_signal(signal.SIGKILL)
            assert code in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
            assert not kept & set(asked), "what was kept is paid for again"
            assert len(set(asked)) == len(asked)
            lost += len(set(asked) - _kept(journal))
            assert not psutil.pid_exists(pid)
    assert code == 0 and len(_kept(journal)) == ROUNDS * TOGETHER
    assert lost <= kills * TOGETHER  # only what was in flight

"""The guard before the UI: what may pass, whoever asks in whatever way."""

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.web.asgi import Application, Guarded, Message, Receive, Scope, Send
from eval_pipeline.web.guard import Door, GuardedRequest, decide, token_of
from eval_pipeline_tests.goldens import golden

DOOR = Door(3000, "secret")
ROWS = golden("guard.yaml")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_requests(row: dict[str, Any]) -> None:
    answer = decide(DOOR, GuardedRequest(row["method"], row["path"], row.get("query", ""), row["headers"]))
    assert (answer.status or 0) == row["status"]
    if "location" in row:
        assert answer.headers["Location"] == row["location"]
        assert answer.headers["Set-Cookie"] == "eval_pipeline_3000=secret; Path=/; HttpOnly; SameSite=Strict"


def test_links_from_mails_lead_to_pages_of_forms_and_keep_what_is_empty() -> None:
    headers = {
        "host": "127.0.0.1:3000",
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    asked = GuardedRequest("GET", "/turns", "is=empty&value=&token=secret", headers)
    answer = decide(Door(3000, "secret", forms=True), asked)
    assert answer.headers["Location"] == "/turns?is=empty&value="
    assert answer.headers["Set-Cookie"].endswith("; HttpOnly; SameSite=Lax")


def test_without_a_token_names_and_pages_are_looked_at_all_the_same() -> None:
    door = Door(3000, None)
    for row in ROWS:
        shown = {name: text for name, text in row["headers"].items() if name not in {"cookie", "authorization"}}
        answer = decide(door, GuardedRequest(row["method"], row["path"], "", shown))
        foreign = (
            "evil" in shown.get("host", "") or shown.get("origin", "http://127.0.0.1:3000") != "http://127.0.0.1:3000"
        )
        assert not foreign or answer.status == 403, row["name"]
    assert decide(door, GuardedRequest("GET", "/", "", {"host": "127.0.0.1:3000"})).status is None


FORM = "application/x-www-form-urlencoded; charset=utf-8"


@pytest.mark.parametrize(
    ("origin", "site", "status"),
    [
        ("http://127.0.0.1:3000", "same-origin", None),
        ("http://localhost:3000", None, None),
        (None, None, 403),
        (None, "same-origin", 403),
        ("null", None, 403),
        ("http://127.0.0.1:3001", "same-site", 403),
        ("http://evil.example", None, 403),
    ],
)
def test_forms_are_let_in_from_pages_of_ours_alone(origin: str | None, site: str | None, status: int | None) -> None:
    headers = {"host": "127.0.0.1:3000", "cookie": "eval_pipeline_3000=secret", "content-type": FORM}
    headers |= {"origin": origin} if origin else {}
    headers |= {"sec-fetch-site": site} if site else {}
    assert decide(Door(3000, "secret", forms=True), GuardedRequest("POST", "/x", "", headers)).status == status
    assert decide(Door(3000, "secret"), GuardedRequest("POST", "/x", "", headers)).status in {403, 415}
    other = headers | {"content-type": "multipart/form-data"}
    assert decide(Door(3000, "secret", forms=True), GuardedRequest("POST", "/x", "", other)).status in {403, 415}


@pytest.mark.parametrize(
    ("further", "authority", "known"),
    [
        ("eval.example.com", "eval.example.com", True),
        ("eval.example.com", "eval.example.com:443", True),
        ("eval.example.com", "eval.example.com:3000", True),
        ("eval.example.com", "eval.example.com:8443", False),
        ("eval.example.com:8443", "eval.example.com:8443", True),
        ("eval.example.com:8443", "eval.example.com", False),
        ("eval.example.com", "evil.example.com", False),
        ("eval.example.com", "127.0.0.1", False),
        ("eval.example.com", "127.0.0.1:443", False),
    ],
)
def test_a_proxys_name_is_known_at_its_ports(further: str, authority: str, known: bool) -> None:
    door = Door(3000, None, further=frozenset({further}))
    for headers in ({"host": authority}, {"host": "127.0.0.1:3000", "origin": f"https://{authority}"}):
        assert (decide(door, GuardedRequest("GET", "/", "", headers)).status is None) == known


NAMES = st.sampled_from(["host", "origin", "cookie", "content-type", "sec-fetch-site", "x"])


@given(st.sampled_from(["GET", "POST", "WEBSOCKET", "PUT"]), st.text(), st.text(), st.dictionaries(NAMES, st.text()))
def test_whatever_is_asked_without_the_token_does_not_pass(
    method: str, path: str, query: str, headers: dict[str, str]
) -> None:
    answer = decide(DOOR, GuardedRequest(method, path, query, headers))
    assert answer.status is not None
    assert answer.status != 303 or "secret" in query


@given(st.text(alphabet="ab.:[]1270@/\\#?", max_size=30))
def test_no_name_but_ours_is_known(name: str) -> None:
    known = (
        decide(DOOR, GuardedRequest("GET", "/", "", {"host": name, "cookie": "eval_pipeline_3000=secret"})).status
        is None
    )
    assert known == (name in {"127.0.0.1:3000", "localhost:3000", "[::1]:3000"})


def served(scope: Scope) -> list[Message]:
    """What is sent for a request; the application says `hello` and lets itself be framed."""

    async def application(_: Scope, __: Receive, send: Send) -> None:
        headers = [(b"x-frame-options", b"ALLOWALL"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"hello"})

    return sent(application, scope)


def sent(application: Application, scope: Scope) -> list[Message]:
    found: list[Message] = []

    async def receive() -> Message:
        return {"type": f"{scope['type']}.connect"}

    async def send(message: Message) -> None:
        found.append(message)

    asyncio.run(Guarded(application, DOOR)(scope, receive, send))
    return found


def scope_of(kind: str = "http", **headers: str) -> Scope:
    raw = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return {"type": kind, "method": "GET", "path": "/", "query_string": b"", "headers": raw}


def test_an_answer_may_not_be_framed() -> None:
    start, body = served(scope_of(host="127.0.0.1:3000", authorization="Bearer secret"))
    assert (start["status"], body["body"]) == (200, b"hello")
    assert [value for name, value in start["headers"] if name == b"x-frame-options"] == [b"SAMEORIGIN"]
    assert (b"content-security-policy", b"frame-ancestors 'self'") in start["headers"]


def test_who_may_not_pass_is_told_in_a_sentence() -> None:
    start, body = served(scope_of(host="127.0.0.1:3000"))
    assert start["status"] == 403
    assert body["body"] == b"403 Forbidden: open the address that `eval-pipeline dev` has printed, token included\n"


def test_a_websocket_that_may_not_pass_is_closed_before_it_is_open() -> None:
    (closed,) = served(scope_of("websocket", host="127.0.0.1:3000"))
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


def test_headers_that_come_twice_are_both_looked_at() -> None:
    scope = scope_of(host="127.0.0.1:3000", authorization="Bearer secret")
    scope["headers"].append((b"host", b"evil.example"))
    assert served(scope)[0]["status"] == 403


def test_the_token_is_made_once_and_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "ui.token"
    token = token_of(path)
    assert len(token) >= 43
    assert token_of(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("")
    assert len(token_of(path)) >= 43, "a token of nothing opens nothing"

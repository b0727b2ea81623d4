"""Puts the guard in front of an ASGI application inside its own process, so that nothing can bypass it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from eval_pipeline.web.guard import Door, GuardDecision, GuardedRequest, decide

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY: Headers = [
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
]
"""Security headers of every answer; among others they stop other sites from framing the page for clickjacking."""
FRAMES = "frame-ancestors 'self'"
"""Default content security policy for applications without their own."""
_CLOSED_BY_POLICY = 1008


class Guarded:
    """An ASGI application behind a guard.

    Args:
        content_policy: the application's content security policy; it must set `frame-ancestors`.
    """

    def __init__(self, application: Application, door: Door, content_policy: str = FRAMES) -> None:
        self._application = application
        self._door = door
        self._headers = [*_POLICY, (b"content-security-policy", content_policy.encode())]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers requests that may not pass, and forwards the others."""
        if scope["type"] not in {"http", "websocket"}:
            await self._application(scope, receive, send)
            return
        answer = decide(self._door, _asked(scope))
        if answer.status is None:
            await self._application(scope, receive, _with_headers(send, self._headers))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _CLOSED_BY_POLICY, "reason": answer.text})
        else:
            await _tell(send, answer, self._headers)


def _asked(scope: Scope) -> GuardedRequest:
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]},{text}" if name in headers else text
    method = "WEBSOCKET" if scope["type"] == "websocket" else scope["method"]
    return GuardedRequest(method, scope["path"], scope["query_string"].decode("latin-1"), headers)


def _with_headers(send: Send, ours: Headers) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in ours}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in own]
            message["headers"] = [*kept, *ours]
        await send(message)

    return sending


async def _tell(send: Send, answer: GuardDecision, ours: Headers) -> None:
    assert answer.status is not None
    body = f"{answer.status.value} {answer.status.phrase}: {answer.text}\n".encode()
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    headers += [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": answer.status.value, "headers": [*headers, *ours]})
    await send({"type": "http.response.body", "body": body})

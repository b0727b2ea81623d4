"""The guard: decides whether an HTTP request may pass, since any web page open in a browser can send requests here.

Sources: OWASP, "Cross-Site Request Forgery Prevention" and "DNS rebinding". The token is handled as in Jupyter.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from eval_pipeline.core.system.private import file_mode

HOSTS = "EVAL_UI_HOSTS"
"""Environment variable: additional host names of the servers, separated by commas."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_READING = frozenset({"GET", "HEAD"})
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_USUAL = frozenset({"80", "443"})
_BEARER = "bearer "
_OTHER_PAGE = frozenset({"cross-site", "same-site"})


@dataclass(frozen=True, slots=True)
class Door:
    """The rules by which the guard lets requests in.

    Attributes:
        port: port of the server.
        token: the secret that every request must carry; None if access is controlled elsewhere.
        hosts: names of the server as they appear in the header `Host`, without the port.
        further: names under which a proxy serves it: with a port for that port only, without one for any usual port.
        forms: whether plain HTML forms are accepted. As any page can send a form, the browser must confirm that it came
            from a page of this server.
        command: the command that prints the address with the token.
    """

    port: int
    token: str | None
    hosts: frozenset[str] = LOOPBACK
    further: frozenset[str] = frozenset()
    forms: bool = False
    command: str = "dev"

    @property
    def cookie(self) -> str:
        """Name of the cookie; it includes the port because browsers share cookies between the ports of a host."""
        return f"eval_pipeline_{self.port}"

    def knows(self, authority: str) -> bool:
        """Whether `host` or `host:port` is an address of this server."""
        name, _, port = authority.lower().rpartition(":") if _has_port(authority) else (authority.lower(), "", "")
        if f"{name}:{port or 80}" in self.further:
            return True
        if name in self.further:
            return port in {"", *_USUAL, str(self.port)}
        return name in self.hosts and (port or "80") == str(self.port)


def further_names() -> frozenset[str]:
    """Returns the host names under which a proxy serves this machine's servers."""
    return frozenset(name.strip().lower() for name in os.environ.get(HOSTS, "").split(",") if name.strip())


def _has_port(authority: str) -> bool:
    return authority.rpartition(":")[2].isdigit() and not authority.endswith("]")


@dataclass(frozen=True, slots=True)
class GuardedRequest:
    """The parts of a request that the guard looks at.

    Attributes:
        method: HTTP method; `WEBSOCKET` for opening a WebSocket.
        path: without the query.
        query: unparsed.
        headers: by lower-case name; repeated headers are joined with commas.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """The guard's decision: the request passes if `status` is None.

    Attributes:
        status: HTTP status if the guard answers the request itself.
        text: an explanation for the sender.
        headers: HTTP headers of the answer.
    """

    status: HTTPStatus | None = None
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


PASSED = GuardDecision()


def decide(door: Door, asked: GuardedRequest) -> GuardDecision:
    """Decides whether a request may pass the guard."""
    headers = asked.headers
    if not door.knows(headers.get("host", "")):
        return _refused("this server is not known under that name")
    origin = headers.get("origin")
    if origin is not None and not _is_own(door, origin):
        return _refused("a page of another address asked")
    if headers.get("sec-fetch-site") in _OTHER_PAGE and not _is_link(asked):
        return _refused("a page of another address asked")
    shown, place = _token_of(door, asked)
    if door.token is not None and not secrets.compare_digest(shown.encode(), door.token.encode()):
        return _refused(f"open the address that `eval-pipeline {door.command}` has printed, token included")
    if place == "query" and asked.method in _READING:
        return _with_cookie(door, asked)
    return _may_change(door, asked)


def _may_change(door: Door, asked: GuardedRequest) -> GuardDecision:
    """Lets a request change data only if a page of another origin could not send it without a CORS preflight."""
    if asked.method == "WEBSOCKET":
        return PASSED
    if asked.method in _READING:
        if asked.path.rstrip("/").endswith("/graphql") and "query" in parse_qs(asked.query, keep_blank_values=True):
            return GuardDecision(HTTPStatus.METHOD_NOT_ALLOWED, "GraphQL is asked by POST", {"Allow": "POST"})
        return PASSED
    kind = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
    if door.forms and kind == _FORM:
        # The origin was checked above. Every current browser sends it with forms, so a form without one is refused.
        return PASSED if asked.headers.get("origin") is not None else _refused("a form has to come from a page of ours")
    if kind != _JSON:
        return GuardDecision(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"what changes something is sent as {_JSON}")
    return PASSED


def _is_own(door: Door, origin: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and door.knows(parts.netloc)


def _is_link(asked: GuardedRequest) -> bool:
    """Whether the request follows a link or a typed address, rather than loading a resource of another page."""
    modes = (asked.headers.get("sec-fetch-mode"), asked.headers.get("sec-fetch-dest"))
    return asked.method == "GET" and modes == ("navigate", "document")


def _token_of(door: Door, asked: GuardedRequest) -> tuple[str, str]:
    """Returns the token of the request and where it was found: `header`, `query` or `cookie`."""
    said = asked.headers.get("authorization", "")
    if said.lower().startswith(_BEARER):
        return said[len(_BEARER) :].strip(), "header"
    if given := parse_qs(asked.query).get("token"):
        return given[0], "query"
    # `http.cookies` is not used because it stops at the first malformed cookie, and all ports of localhost share
    # cookies.
    for part in asked.headers.get("cookie", "").split(";"):
        name, _, said = part.strip().partition("=")
        if name == door.cookie:
            return said.strip('"'), "cookie"
    return "", ""


def _with_cookie(door: Door, asked: GuardedRequest) -> GuardDecision:
    """Redirects a request with the token in its address to the same address without it: no history keeps the token."""
    left = {name: values for name, values in parse_qs(asked.query, keep_blank_values=True).items() if name != "token"}
    # A single leading slash: with two, the browser would read the path as another host.
    target = "/" + quote(asked.path.lstrip("/\\")) + (f"?{urlencode(left, doseq=True)}" if left else "")
    # Links in mails and messages may lead to pages with forms. With Lax, the browser sends the cookie when such a link
    # is followed, but with no other cross-site request, and a GET changes nothing.
    same = "Lax" if door.forms else "Strict"
    cookie = f"{door.cookie}={door.token}; Path=/; HttpOnly; SameSite={same}" if door.token else ""
    headers = {"Location": target} | ({"Set-Cookie": cookie} if cookie else {})
    return GuardDecision(HTTPStatus.SEE_OTHER, "", headers)


def _refused(why: str) -> GuardDecision:
    return GuardDecision(HTTPStatus.FORBIDDEN, why)


NO_TOKEN = "EVAL_UI_NO_TOKEN"  # noqa: S105, a name
"""Environment variable: `1` if a proxy controls access instead of the token."""
_BYTES = 32


def token_of(path: Path) -> str:
    """Returns the token in a file, creating it if needed; only people who share the home can read the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, file_mode())
    except FileExistsError:
        token = path.read_text().strip()
        if token:
            return token
        handle = os.open(path, os.O_WRONLY)  # a process was killed between creating and writing the file
    token = secrets.token_urlsafe(_BYTES)
    with os.fdopen(handle, "w") as file:
        file.write(token)
    return token

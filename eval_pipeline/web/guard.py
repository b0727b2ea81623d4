"""The guard: decides on every request whether it may pass. Any page that a browser has open can send requests here.

Sources: OWASP, "Cross-Site Request Forgery Prevention" and "DNS rebinding"; the token is handled as Jupyter's.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, quote, urlencode, urlsplit

HOSTS = "EVAL_UI_HOSTS"
"""Environment variable: further names of the servers, with commas."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_READING = frozenset({"GET", "HEAD"})
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_USUAL = frozenset({"80", "443"})
_BEARER = "bearer "
_OTHER_PAGE = frozenset({"cross-site", "same-site"})


@dataclass(frozen=True, slots=True)
class Door:
    """What the guard lets in.

    Attributes:
        port: that is served.
        token: what everybody has to show; None where somebody else sees to that.
        hosts: names under which the server is known, as they stand in `Host`, without the port.
        further: names under which a proxy makes it known; with a port, at that one, else at any usual one.
        forms: whether forms of its own pages are let in, which need no script; any page can send a form, so that the
            browser has to say that one of ours did.
        command: that prints the address with the token.
    """

    port: int
    token: str | None
    hosts: frozenset[str] = LOOPBACK
    further: frozenset[str] = frozenset()
    forms: bool = False
    command: str = "dev"

    @property
    def cookie(self) -> str:
        """Name of the cookie: cookies do not know ports, so two servers must not share one."""
        return f"eval_pipeline_{self.port}"

    def knows(self, authority: str) -> bool:
        """Whether `host` or `host:port` is an address of the server."""
        name, _, port = authority.lower().rpartition(":") if _has_port(authority) else (authority.lower(), "", "")
        if f"{name}:{port or 80}" in self.further:
            return True
        if name in self.further:
            return port in {"", *_USUAL, str(self.port)}
        return name in self.hosts and (port or "80") == str(self.port)


def further_names() -> frozenset[str]:
    """Names under which a proxy makes the servers of this machine known."""
    return frozenset(name.strip().lower() for name in os.environ.get(HOSTS, "").split(",") if name.strip())


def _has_port(authority: str) -> bool:
    return authority.rpartition(":")[2].isdigit() and not authority.endswith("]")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the guard sees it.

    Attributes:
        method: of HTTP; `WEBSOCKET` for the opening of one.
        path: without the query.
        query: as it came.
        headers: by name in lower case; of several alike, all of them with commas.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a request: it passes where there is no status.

    Attributes:
        status: of the answer, where the guard gives it.
        text: a sentence for whoever asked.
        headers: of the answer.
    """

    status: HTTPStatus | None = None
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


PASSED = Answer()


def decide(door: Door, asked: Asked) -> Answer:
    """What becomes of a request."""
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


def _may_change(door: Door, asked: Asked) -> Answer:
    """Only what a page of another address cannot send without asking first may change anything."""
    if asked.method == "WEBSOCKET":
        return PASSED
    if asked.method in _READING:
        if asked.path.rstrip("/").endswith("/graphql") and "query" in parse_qs(asked.query, keep_blank_values=True):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, "GraphQL is asked by POST", {"Allow": "POST"})
        return PASSED
    kind = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
    if door.forms and kind == _FORM:
        # An own origin was let in above, and browsers send it with every form. Without one it is no browser of today.
        return PASSED if asked.headers.get("origin") is not None else _refused("a form has to come from a page of ours")
    if kind != _JSON:
        return Answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"what changes something is sent as {_JSON}")
    return PASSED


def _is_own(door: Door, origin: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and door.knows(parts.netloc)


def _is_link(asked: Asked) -> bool:
    """Whether somebody follows a link or types an address, rather than a page's loading something."""
    modes = (asked.headers.get("sec-fetch-mode"), asked.headers.get("sec-fetch-dest"))
    return asked.method == "GET" and modes == ("navigate", "document")


def _token_of(door: Door, asked: Asked) -> tuple[str, str]:
    """The token that was shown, and where."""
    said = asked.headers.get("authorization", "")
    if said.lower().startswith(_BEARER):
        return said[len(_BEARER) :].strip(), "header"
    if given := parse_qs(asked.query).get("token"):
        return given[0], "query"
    # Not by http.cookies, which gives up at the first one that it does not understand: loopback ports share cookies.
    for part in asked.headers.get("cookie", "").split(";"):
        name, _, said = part.strip().partition("=")
        if name == door.cookie:
            return said.strip('"'), "cookie"
    return "", ""


def _with_cookie(door: Door, asked: Asked) -> Answer:
    """Sends whoever came with the token to the same page without it, so that it stays in no history."""
    left = {name: values for name, values in parse_qs(asked.query, keep_blank_values=True).items() if name != "token"}
    # One slash: a path of two would be an address of somebody else's.
    target = "/" + quote(asked.path.lstrip("/\\")) + (f"?{urlencode(left, doseq=True)}" if left else "")
    # Links in mails and messages lead to pages of forms; with Lax the cookie comes along where such a link is followed,
    # and with nothing else of another site. There is nothing that a GET changes.
    same = "Lax" if door.forms else "Strict"
    cookie = f"{door.cookie}={door.token}; Path=/; HttpOnly; SameSite={same}" if door.token else ""
    headers = {"Location": target} | ({"Set-Cookie": cookie} if cookie else {})
    return Answer(HTTPStatus.SEE_OTHER, "", headers)


def _refused(why: str) -> Answer:
    return Answer(HTTPStatus.FORBIDDEN, why)

"""Converts errors reported by HTTP endpoints, by status or in the body, to call errors; nothing here connects."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from eval_pipeline.core.model import CallErrorKind, Json
from eval_pipeline.providers.base import CallError, FatalCallError

_PAGE = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.DOTALL)
_MOST = 120
_HEAD = 20_000
"""The title of a page is searched within this many characters."""


def is_web_page(text: str) -> bool:
    """Whether a text is HTML: the page of a gateway, a proxy or a login."""
    return bool(_PAGE.match(text))


def body_shown(text: str) -> str:
    """Describes a body briefly: empty, a web page with its title, or the beginning of a text."""
    if not text.strip():
        return "an empty body"
    if is_web_page(text):
        title = _TITLE.search(text[:_HEAD])
        named = " ".join(html.unescape(title[1]).split()) if title else ""
        return f"a web page ({named[:_MOST]!r})" if named else "a web page"
    return short(text)


def may_be_events(headers: Mapping[str, str]) -> bool:
    """Whether the content type allows a stream of events; many servers label streams wrongly or not at all."""
    label = headers.get("content-type", "").partition(";")[0].strip().lower()
    return not (label.endswith(("/json", "+json")) or label in {"text/html", "application/xhtml+xml"})


def short(text: str) -> str:
    """Returns the beginning of a text, in one line."""
    text = " ".join(text.split())
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


_NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_FILTERED = "content_filter"
_STATUS_OF = {
    "authentication_error": 401,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
}
_LONGEST_MESSAGE = 500
_A_YEAR_S = 365 * 86400.0


def status_error(
    status: int, body: Json, headers: Mapping[str, str], *, not_found_is_fatal: bool = True
) -> CallError | FatalCallError:
    """Converts an answer with an error status to a call error.

    Args:
        status: the HTTP status.
        body: the decoded body or the `error` object in it, if any.
        headers: with lower-case names.
        not_found_is_fatal: whether a 404 means that the address or the model is wrong, so that every call would fail.
    """
    if 300 <= status < 400 and "location" in headers:
        return redirected(status, headers["location"])
    told = _told(body)
    text = f"HTTP {status}: {told.message}" if told.message else f"HTTP {status}"
    if status == 404 and not not_found_is_fatal:
        return CallError(CallErrorKind.BAD_REQUEST, text)
    return _meaning(status, told, text, retry_after(headers, datetime.now(UTC)))


def redirected(status: int, location: str) -> FatalCallError:
    """Returns the error for a redirect. Redirects are not followed: keys are meant for the configured address only."""
    place = urlsplit(location)._replace(query="", fragment="").geturl()
    return FatalCallError(f"the endpoint redirects to {place} (HTTP {status}); write that as its address")


def error_in_answer(body: Json) -> CallError | FatalCallError:
    """Converts an error that arrives with status 200, in a stream or from a gateway, to a call error.

    Args:
        body: the `error` object. If its `code` or `type` is not a status or a known word, the endpoint is at fault.
    """
    told = _told(body)
    numbers = (int(code) for code in told.codes if code.isdecimal() and len(code) == 3)
    known = (_STATUS_OF[code] for code in told.codes if code in _STATUS_OF)
    status = next((number for number in numbers if number >= 400), None) or next(known, 500)
    return _meaning(status, told, f"an error in place of an answer: {told.message or 'without a message'}", None)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Returns the seconds to wait according to `retry-after-ms` or `retry-after` (seconds or a date), or None.

    They are at most a year: with more, no date could be reckoned.
    """
    try:
        if "retry-after-ms" in headers:
            return _bounded(float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        told = headers["retry-after"]
        try:
            return _bounded(float(told))
        except ValueError:
            return _bounded((parsedate_to_datetime(told) - now).total_seconds())
    except (ValueError, TypeError):  # neither a number nor a date: ignore the header
        return None


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), _A_YEAR_S)


@dataclass(frozen=True, slots=True)
class _Told:
    """The contents of an error body; `codes` are its `code`, its `type` and its `status`."""

    message: str
    codes: tuple[str, ...] = ()


def _meaning(status: int, told: _Told, text: str, wait: float | None) -> CallError | FatalCallError:
    if status < 500 and _FILTERED in told.codes:
        return CallError(CallErrorKind.REFUSED, text)
    if status == 402 or (status == 429 and _NO_CREDIT.intersection(told.codes)):
        return FatalCallError(f"the account has no credit left ({text})")
    match status:
        case 401 | 403:
            return FatalCallError(f"the endpoint refuses the key ({text})")
        case 404:
            return FatalCallError(f"the endpoint or the model does not exist ({text})")
        case 429:
            return CallError(CallErrorKind.RATE_LIMITED, text, retryable=True, retry_after=wait)
        case 408:
            return CallError(CallErrorKind.TIMEOUT, text, retryable=True, retry_after=wait)
        case 409:
            return CallError(CallErrorKind.OVERLOADED, text, retryable=True, retry_after=wait)
        case _ if status >= 500:
            return CallError(CallErrorKind.OVERLOADED, text, retryable=True, retry_after=wait)
    return CallError(CallErrorKind.BAD_REQUEST, text)


def _told(body: Json) -> _Told:
    if isinstance(body, list) and body:  # Gemini's errors come in a list
        body = body[0]
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return _Told(body_shown(inner) if isinstance(inner, str) and is_web_page(inner) else _short(inner))
    codes = tuple(str(inner[name]) for name in ("code", "type", "status") if inner.get(name))
    return _Told(_short(inner.get("message") or inner.get("detail")), codes)


def _short(message: Json) -> str:
    return " ".join(str(message or "").split())[:_LONGEST_MESSAGE]

"""Describes response bodies that are not answers, so that the user sees what responds at the endpoint."""

import html
import re
from collections.abc import Mapping

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

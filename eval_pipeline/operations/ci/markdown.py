"""GitHub flavoured Markdown, escaped so that no text (our own or foreign) can be read as markup."""

import re
from collections.abc import Sequence

from eval_pipeline.core.shown import UNSEEN

MOST = 1_000
"""Characters of a text; the rest is cut off."""
_UNSEEN = re.compile(f"[{UNSEEN}\t\n\ud800-\udfff]+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#!|~&$]|:(?=/))")
_BLOCK = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")
_MOST_LINES = 60
"""Lines of a block."""
_JOINER = "\u200c"
"""Unseen, and harmless on a terminal; parts `@name` and `#12`, which GitHub would take for people and issues."""


def code(text: str) -> str:
    """Returns a name or foreign text as a code span; `|` becomes `¦`, because table cells cannot hold it safely."""
    clean = _one_line(text).replace("|", "¦") or " "
    longest = max(map(len, re.findall("`+", clean)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or clean[0] == " " or clean[-1] == " " else ""
    return f"{fence}{space}{clean}{space}{fence}"


def words(text: str) -> str:
    """Returns a sentence with all markup characters escaped: it cannot create markup, a link or a mention."""
    escaped = _SPECIAL.sub(r"\\\1", _one_line(text).strip())
    escaped = _BLOCK.sub(lambda found: f"{_JOINER}{found[0]}", escaped)
    escaped = re.sub(r"(?i)\b(www)\.", r"\1\\.", escaped)
    escaped = re.sub(r"(?<=\w)\.(?=[^\W\d])", r"\\.", escaped)  # else names of domains become links
    return re.sub("([@#])", rf"\1{_JOINER}", escaped)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table; the cells are already Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def bullets(items: Sequence[str], most: int = 20) -> list[str]:
    """Returns the first `most` items as the lines of a list."""
    more = [f"- and {len(items) - most:,} more"] if len(items) > most else []
    return [*(f"- {item}" for item in items[:most]), *more]


def block(text: str, language: str = "") -> list[str]:
    """Returns the lines of foreign text as a fenced block, which nothing in the text can end; the rest is cut off."""
    flat = [_UNSEEN.sub(" ", line) for line in text.splitlines()]
    shown = [*flat[:_MOST_LINES], *(["…"] if len(flat) > _MOST_LINES else [])]
    fence = "`" * (max([2, *map(len, re.findall("`+", text))]) + 1)
    return [f"{fence}{language}", *(line[:MOST] for line in shown), fence]


def _one_line(text: str) -> str:
    flat = _UNSEEN.sub(" ", text)
    return flat if len(flat) <= MOST else f"{flat[:MOST]}…"

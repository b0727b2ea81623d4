"""Renders templates and differences of texts. Jinja2 escapes every text; control characters are made visible."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from markupsafe import Markup

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import Coverage, implausible_text
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.shown import UNKNOWN, visible_text
from eval_pipeline.reports.charts.svg.drawing import stylesheet
from eval_pipeline.reports.contents.facts import scope_text
from eval_pipeline.reports.places.links import suite_path
from eval_pipeline.reports.shown import short, spent
from eval_pipeline.tracks.shown.cards import (
    MEANINGS,
    Card,
    CardCell,
    CodeCard,
    FactsCard,
    Mark,
    TableCard,
    TextCard,
    TimelineStep,
)
from eval_pipeline.view.addresses import address, review_address, turn_address, turns_address
from eval_pipeline.workspace.watching.status import left_text, place_text, progress_text

if TYPE_CHECKING:
    from jinja2 import Environment


_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+(?:[eE][+-]?\d+)?)(?!\w)"
_WORDS = re.compile(rf"{_NUMBER}|\w+|\s+|[^\w\s]")
_MOST_WORDS = 4_000
"""The matcher's time grows with the square of this; longer texts are compared by line, very long ones not at all."""
_MOST_LINES = 4_000

Kind = Literal["same", "removed", "added"]


class Piece(NamedTuple):
    """A piece of text that is in both texts, only in the first, or only in the second."""

    kind: Kind
    text: str


def differences(before: str, after: str, most_words: int = _MOST_WORDS) -> list[Piece]:
    """Returns pieces in order: all but the added ones make up the first text, all but the removed ones the second.

    Args:
        before: the first text.
        after: the second text.
        most_words: the most words, in both together, to compare one by one; pages with many texts use fewer.
    """
    for split, most in ((_words, most_words), (_lines, min(_MOST_LINES, most_words))):
        old, new = split(before), split(after)
        if len(old) + len(new) <= most:
            return list(_pieces(old, new))
    return [Piece("removed", before), Piece("added", after)]


class Passage(NamedTuple):
    """The part of two texts in which they differ, with a line before and after it that they share.

    Attributes:
        pieces: the pieces of the part.
        before, after: whether the texts have more that is equal before and after it.
    """

    pieces: list[Piece]
    before: bool
    after: bool


def passage(before: str, after: str, most_words: int = _MOST_WORDS) -> Passage | None:
    """Returns the part in which two texts differ, or None if they are equal; for long texts that mostly agree.

    Args:
        before: the first text.
        after: the second text.
        most_words: as for `differences`.
    """
    if before == after:
        return None
    old, new = _lines(before), _lines(after)
    shorter = min(len(old), len(new))
    start = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    left = shorter - start
    end = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
    first, last = max(start - 1, 0), max(end - 1, 0)
    kept, changed = ("".join(lines[first : len(lines) - last]) for lines in (old, new))
    return Passage(differences(kept, changed, most_words), first > 0, last > 0)


def _words(text: str) -> list[str]:
    return _WORDS.findall(text)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(old[a:b]))
            continue
        if a < b:
            yield Piece("removed", "".join(old[a:b]))
        if c < d:
            yield Piece("added", "".join(new[c:d]))


_PACKAGE = "eval_pipeline.view"
MOST_TEXT = 20_000
"""The most characters of a text that a page shows."""


def render(template: str, **values: Any) -> str:
    """Renders a page or a part of one."""
    return _environment().get_template(template).render(**values)


@cache
def static_file(name: str) -> bytes:
    """Returns a file of `static/`, or the style of charts."""
    if name == "chart.css":
        return stylesheet().encode()
    return files(_PACKAGE).joinpath("static", name).read_bytes()


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, StrictUndefined

    from eval_pipeline.core.hashing.templates import KeptLoader

    found = Environment(
        loader=KeptLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=-1,
        auto_reload=False,
    )
    found.filters |= {
        "rate": shown.rate,
        "interval_or_counts": shown.interval_or_counts,
        "points": shown.points,
        "open_loss": shown.open_loss,
        "count": shown.count,
        "signed": shown.signed,
        "size": shown.size,
        "turns": shown.turns,
        "dollars": shown.dollars,
        "time": shown.milliseconds,
        "p": shown.p_value,
        "shown": shown_value,
        "short": short,
        "duration": shown.duration,
        "cut": cut,
        "cell": cell,
        "json": parse_json,
        "pretty": pretty,
        "implausible": implausible_text,
        "scope": scope_text,
        "coverage": covered,
    }
    found.globals |= {
        "layout": "base.html.j2",
        "UNKNOWN": UNKNOWN,
        "MEANINGS": MEANINGS,
        "MOST_TEXT": MOST_TEXT,
        "figure": shown.figure,
        "interval": shown.interval,
        "address": address,
        "review_address": review_address,
        "turn_address": turn_address,
        "turns_address": turns_address,
        "suite_path": suite_path,
        "differences": differences,
        "spent": spent,
        "marks_of": marks_of,
        "steps_by": steps_by,
        "place_text": place_text,
        "progress_text": progress_text,
        "left_text": left_text,
    }
    return found


def _finalized(value: Any) -> Any:
    """Returns a value for a page; terminal escapes and characters that change writing direction become visible."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible_text(value.replace("\r\n", "\n"))
    return value


def shown_value(value: Any, kind: str = "") -> str:
    """Formats a column's value for a page.

    Args:
        value: the value in the store.
        kind: the column's DuckDB type.
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return shown.count(value)
    if isinstance(value, float):
        return shown.number(value)
    if isinstance(value, datetime):
        return value.isoformat(" ", timespec="seconds")
    if isinstance(value, date):
        return value.isoformat()
    if kind == "JSON" and isinstance(listed := parse_json(value), list):
        return ", ".join(map(str, listed)) or UNKNOWN
    return str(value)


def covered(row: Mapping[str, Any]) -> str:
    """Describes how far the turns of a row got: `all 243`, or only the stages that not all reached."""
    found = Coverage.from_row(row)
    if not found.is_known or found.scored is None:
        return found.text()
    reached = {name: count for name, count in found.columns().items() if count is not None}
    most = max(reached.values())
    short_of = [f"{count:,} of {most:,} {name}" for name, count in reached.items() if count < most]
    return ", ".join(short_of) or f"all {most:,}"


def cut(text: str, most: int = MOST_TEXT) -> str:
    """Returns the beginning of a text that may be very long."""
    return text if len(text) <= most else text[:most]


def cell(text: str | CardCell) -> CardCell:
    """Converts a card's text to a cell, so that templates handle only one type."""
    return CardCell(text) if isinstance(text, str) else text


def pretty(value: Any) -> str:
    """Formats JSON for people."""
    import json

    found = parse_json(value) if isinstance(value, str) else value
    return json.dumps(found, ensure_ascii=False, indent=2)


def steps_by(steps: Sequence[TimelineStep]) -> Mapping[str, int]:
    """Counts the steps of each maker, in the order in which they appear."""
    return Counter(step.by for step in steps)


def marks_of(card: Card) -> list[Mark]:
    """Returns the marks that a card uses, for its legend."""
    texts: list[str | CardCell] = []
    match card:
        case TableCard():
            texts = [*card.columns, *(text for row in card.rows for text in row)]
        case TextCard():
            texts = list(card.pieces)
        case FactsCard():
            texts = [text for _, text in card.facts]
        case CodeCard():
            return sorted(set((card.marked or {}).values()))
    return sorted({text.mark for text in texts if isinstance(text, CardCell) and text.mark})

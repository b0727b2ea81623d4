"""Renders templates. Jinja2 escapes every text, and control characters are made visible."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import Coverage, implausible_text
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.shown import UNKNOWN, visible_text
from eval_pipeline.reports.charts.svg.drawing import stylesheet
from eval_pipeline.reports.contents.facts import scope_text
from eval_pipeline.reports.places.links import suite_path
from eval_pipeline.reports.shown import short
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
from eval_pipeline.view.drawing.differences import differences
from eval_pipeline.workspace.watching.status import left_text, place_text, progress_text

if TYPE_CHECKING:
    from jinja2 import Environment

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

"""Renders templates to pages. jinja2 escapes all foreign text, and the page's security policy blocks other scripts."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.shown import visible_text
from eval_pipeline.reports.charts.canvas import Chart
from eval_pipeline.reports.charts.svg.drawing import stylesheet
from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable, cell_text
from eval_pipeline.reports.places.links import view_url

if TYPE_CHECKING:
    from jinja2 import Environment

DATA_FILES = ("templates",)
_PACKAGE = "eval_pipeline.reports.html"
_SCRIPT = "filter.js"
_TEXTS = frozenset({"text", "note", "long", "words", "place"})


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of a page.

    Attributes:
        caption: what the table shows; screen readers read it first.
        headers: headers of the columns; the first column names the rows.
        texts: positions of further columns that hold text and are left-aligned.
        sql: the queries that return the table's figures.
        links: for each row, the workbench's path of the turns behind it; empty without.
    """

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: frozenset[int] = frozenset()
    sql: Sequence[str] = ()
    links: Sequence[str] = ()


def sheet_of(found: FigureTable, more: str = "", links: Sequence[str] = ()) -> Sheet:
    """Returns a table as a page shows it; `more` is added to its caption."""
    columns = [column for column in found.columns if column.header or column is found.columns[0]]
    texts = frozenset(place for place, column in enumerate(columns) if place and _is_text(found, column))
    rows = [[cell_text(row, column) for column in columns] for row in found.rows]
    return Sheet(found.caption + more, [column.header for column in columns], rows, texts, found.sql, links)


def _is_text(found: FigureTable, column: FigureColumn) -> bool:
    told = column.kind == "plain" and any(isinstance(row[column.name], str) for row in found.rows)
    return told or column.kind in _TEXTS


def render(template: str, title: str, charts: Sequence[Chart], **values: Any) -> str:
    """Renders a page.

    Args:
        template: name of the file in `templates/`.
        title: title of the page.
        charts: the charts to show.
        values: further values for the template.
    """
    from markupsafe import Markup

    style, script = _text("style.css") + stylesheet(), _text(_SCRIPT)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            title=title,
            view_url=view_url(),
            style=Markup(style),  # noqa: S704, our own file
            script=Markup(script),  # noqa: S704, our own file
            script_hash=f"sha256-{allowed}",
            charts=[(one, Markup(one.svg)) for one in charts],  # noqa: S704, drawing escapes the texts in it
            **values,
        )
    )


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, StrictUndefined

    from eval_pipeline.core.hashing.templates import KeptLoader

    return Environment(
        loader=KeptLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalized(value: Any) -> Any:
    from markupsafe import Markup

    return visible_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _text(name: str) -> str:
    return files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")

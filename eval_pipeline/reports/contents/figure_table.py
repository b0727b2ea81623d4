"""A table of figures as page and workbook show it: its rows are what the queries printed beside it return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from eval_pipeline.core import shown
from eval_pipeline.core.shown import UNKNOWN, Unit
from eval_pipeline.reports.shown import place, short

Kind = Unit | Literal["text", "note", "long", "words", "told", "place", "verdict", "number", "plain", "interval"]
"""A unit; text; a remark; text of several lines; text that is never cut; a figure in words; a turn's id; right or not;
a number that names a row; a value of any type; or a 95% interval, which only pages show."""
VERDICTS = {True: "yes", False: "no", None: "not scored"}
_LONGEST = 200
"""Characters of a text on a page."""
_UNITS = frozenset(get_args(Unit))


class FigureColumn(NamedTuple):
    """A column.

    Attributes:
        header: empty for one that only keeps a workbook's columns in their places.
        name: the column of the query; of an interval it is empty.
        ends: the columns with the ends of the interval, by which a figure has its digits.
        unit: unit of an interval.
        signed: whether it is a difference, which has a sign.
    """

    header: str
    name: str
    kind: Kind = "text"
    ends: tuple[str, str] | tuple[()] = ()
    unit: Unit = "rate"
    signed: bool = False


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table.

    Attributes:
        columns: the first one names the rows.
        rows: the rows of the query, or of several that were joined.
        sql: the queries.
    """

    caption: str
    columns: Sequence[FigureColumn]
    rows: Sequence[Mapping[str, Any]]
    sql: Sequence[str]


def cell_text(row: Mapping[str, Any], column: FigureColumn) -> str:
    """Returns what a page shows in a cell."""
    low, high = (row[name] for name in column.ends) if column.ends else (None, None)
    if column.kind == "interval":
        return shown.interval(low, high, column.unit)
    value = row[column.name]
    if column.kind in _UNITS:
        return (shown.signed if column.signed else shown.figure)(value, column.kind, low, high)  # type: ignore[arg-type]
    if column.kind == "verdict":
        return VERDICTS[value]
    if value is None:
        return UNKNOWN
    if column.kind == "plain":
        return plain(value)
    if column.kind in ("words", "told"):
        return str(value)
    return short(place(value) if column.kind == "place" else str(value), _LONGEST)


def plain(value: Any) -> str:
    """Returns the text of a value of unknown unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shown.number(value) if isinstance(value, float) else str(value)

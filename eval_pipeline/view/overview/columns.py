"""The columns of the home page's tables; `home.html.j2` has their cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LineColumn:
    """A column of the tables of model versions.

    Attributes:
        header: its header.
        kind: classes of its cells; empty for numbers.
    """

    header: str
    kind: str = ""


COLUMNS: Mapping[str, LineColumn] = {
    "accuracy": LineColumn("Accuracy, 95% interval", "main"),
    "change": LineColumn("Points against the date before"),
    "right_turn": LineColumn("A right answer costs"),
    "look": LineColumn("To look at", "text"),
    "evaluated": LineColumn("Evaluated", "text"),
    "coverage": LineColumn("Coverage", "text"),
    "cases": LineColumn("Cases"),
    "dates": LineColumn("Dates"),
    "dollars": LineColumn("Dollars"),
    "tokens": LineColumn("Tokens"),
}
"""All columns in their order, by the names that addresses and the file of views have for them."""
_DEFAULT = ("accuracy", "change", "right_turn", "look", "evaluated")


def chosen(asked: Sequence[str], kept: Sequence[str]) -> dict[str, LineColumn]:
    """Returns the columns to show: those asked for, otherwise those kept, otherwise the default ones."""
    wanted = next((names for names in (asked, kept) if any(name in COLUMNS for name in names)), _DEFAULT)
    return {name: column for name, column in COLUMNS.items() if name in wanted}

"""Makes cases of the rows of users' tables: which column is which field, and what the text of a cell stands for.

A field's column has its name, or is named in `columns` of `suite.yaml`. Fields within fields have dotted names, such as
`turns.0.question`. Which type a field has, only the track knows: a cell is tried as what it looks like, and where the
track refuses that, as what else it can be read as.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.model import Case, Json
from eval_pipeline.core.reading.entries import FileEntry
from eval_pipeline.core.reading.json_reading import JsonError, parsed_json
from eval_pipeline.core.reading.users_tables import Unreadable, cell_text
from eval_pipeline.tracks.base import CaseError

Place = tuple[str | int, ...]
_ID: Place = ("id",)
_TYPED = "[{-0123456789"
"""How a text begins that may stand for a list, an object or a number."""


class ColumnsError(ValueError):
    """A table does not have the columns that it should; `field` is that of `columns` in `suite.yaml`, if any."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class ReadRow:
    """What became of a row: a case with its content in the suite's file format, or what is wrong, by field."""

    case: Case | None
    raw: Json
    wrong: Sequence[tuple[Place, str]] = ()


@dataclass(frozen=True, slots=True)
class CaseTable:
    """How the rows of a table become cases.

    Attributes:
        columns: its columns, in order.
        by_place: the column of each field.
        mapped: whether `suite.yaml` names the columns.
    """

    columns: tuple[str, ...]
    by_place: Mapping[Place, str]
    mapped: bool

    @classmethod
    def of(cls, columns: tuple[str, ...], named: Mapping[str, str]) -> "CaseTable":
        """Creates it from a table's columns and those that `suite.yaml` names by field; none if it names none.

        Raises:
            ColumnsError: a named column is not there, or of two fields one is within the other.
        """
        for field, column in named.items():
            if column not in columns:
                raise ColumnsError(f"has no column '{column}'; it has {', '.join(columns)}", field)
        by_place = {
            _place(field): column for field, column in (named or {column: column for column in columns}).items()
        }
        for place in by_place:
            around = next((place[:end] for end in range(1, len(place)) if place[:end] in by_place), None)
            if around is not None:
                both = f"'{by_place[around]}' and '{by_place[place]}'"
                raise ColumnsError(
                    f"has the columns {both}, of which one is a field of the other; expected one of them"
                )
        return cls(columns, by_place, bool(named))

    def notes(self) -> Iterator[str]:
        """Yields what a user may not expect: columns that are not read, and that rows have no id."""
        unread = [column for column in self.columns if column not in self.by_place.values()]
        if unread:
            yield f"not read: {', '.join(unread)}"
        if _ID not in self.by_place:
            yield "no column is the 'id': cases are named by their row, and get other names when rows move"

    def read(self, entry: FileEntry, read_case: Callable[[Json], Case]) -> ReadRow:
        """Reads the case of a row. Raises ValueError as `read_case` does if a case is wrong as a whole."""
        cells = {place: entry.raw[column] for place, column in self.by_place.items() if column in entry.raw}
        if wrong := [(place, cell.why) for place, cell in cells.items() if isinstance(cell, Unreadable)]:
            return ReadRow(None, {}, self._told(wrong))
        if _ID not in self.by_place:
            cells = {_ID: f"row-{entry.line}", **cells}
        chosen = {place: _looks_like(cell) for place, cell in cells.items()}
        others: dict[Place, list[Json]] = {}
        first: dict[Place, tuple[Place, str]] = {}
        while True:
            raw: Json = dict(entry.raw)
            try:
                raw = _nested(chosen)
                return ReadRow(read_case(raw), raw)
            except CaseError as error:
                complaints = {
                    next((place for place in cells if where[: len(place)] == place), where): (where, message)
                    for where, message in reversed(error.problems)
                }
            tried = False
            for place, (where, message) in complaints.items():
                first.setdefault(place, (where, message))
                if place not in cells:
                    continue
                left = others.setdefault(place, list(_readings(cells[place], chosen[place], message)))
                if left:
                    chosen[place], tried = left.pop(0), True
            if not tried:
                return ReadRow(None, raw, self._told([first[place] for place in reversed(complaints)]))

    def _told(self, wrong: Sequence[tuple[Place, str]]) -> list[tuple[Place, str]]:
        """Returns complaints that name the column of the field, and say where columns are named."""
        found = []
        for place, message in wrong:
            around = (place[:end] for end in range(len(place), 0, -1))
            column = next((self.by_place[part] for part in around if part in self.by_place), None)
            if message == "is missing" and column is not None:
                message = f"is missing: the cell of column '{column}' is empty"
            elif message == "is missing":
                has = f"the table has {', '.join(self.columns)}"
                message = f"is missing; {has}; `columns` in suite.yaml names the column of a field"
            elif column is not None and not self.mapped and message.startswith("unknown field"):
                message += "; `columns` in suite.yaml names those that are read"
            elif column is not None and column != ".".join(map(str, place)):
                message += f" (column '{column}')"
            found.append((place, message))
        return found


def _place(field: str) -> Place:
    return tuple(int(part) if part.isdecimal() else part for part in field.split("."))


def _looks_like(cell: Json) -> Json:
    """Returns what a cell most likely stands for: the text of a number, a list or an object stands for that.

    A number has to be written in the one way in which its text comes back, so that nothing of `007` or `1.50` is lost.
    """
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if not isinstance(cell, str) or cell[0] not in _TYPED:
        return cell
    found = _json(cell)
    if isinstance(found, list | dict) or (not isinstance(found, bool) and str(found) == cell):
        return found
    return cell


def _readings(cell: Json, chosen: Json, complaint: str) -> Iterator[Json]:
    """Yields what else a cell may stand for, the likeliest first."""
    text = cell_text(cell)
    if chosen != text or isinstance(chosen, bool):
        yield text
    if isinstance(cell, str) and (found := _json(cell)) is not None and found != chosen:
        yield found
    if isinstance(text, str) and complaint.startswith("expected a list"):
        yield [part.strip() for part in text.split(",") if part.strip()]


def _json(text: str) -> Json:
    try:
        return parsed_json(text)
    except JsonError:
        return None


def _nested(cells: Mapping[Place, Json]) -> Json:
    """Returns a case from its fields: names make mappings, numbers lists. Raises CaseError if an item is left out."""
    made: dict[str | int, Any] = {}
    for place, cell in cells.items():
        inner = made
        for part in place[:-1]:
            inner = inner.setdefault(part, {})
        inner[place[-1]] = cell
    return _with_lists(made, ())


def _with_lists(made: Any, place: Place) -> Json:
    if not isinstance(made, dict) or not made:
        return made
    inner = {part: _with_lists(value, (*place, part)) for part, value in made.items()}
    if not all(isinstance(part, int) for part in inner):
        return {str(part): value for part, value in inner.items()}
    lacking = next((index for index in range(max(inner) + 1) if index not in inner), None)
    if lacking is not None:
        raise CaseError([((*place, lacking), "is missing")])
    return [inner[index] for index in range(len(inner))]

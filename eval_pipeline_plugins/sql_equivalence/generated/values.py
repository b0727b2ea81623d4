"""Chooses values to try: those that a literal suggests for a column of some type, and values close to them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal

from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlColumn

Family = Literal[
    "int", "float", "text", "date", "timestamp", "datetext", "time", "bool", "blob", "uuid", "json", "other"
]

_FAMILIES: tuple[tuple[tuple[str, ...], Family], ...] = (
    (("TIMESTAMP", "DATETIME"), "timestamp"),
    (("DATE",), "date"),
    (("TIME",), "time"),
    (("INTERVAL",), "other"),
    (("BOOL", "LOGICAL"), "bool"),
    (("INT", "SERIAL", "LONG"), "int"),
    (("DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC"), "float"),
    (("VARCHAR", "TEXT", "CHAR", "STRING", "ENUM"), "text"),
    (("UUID",), "uuid"),
    (("JSON",), "json"),
    (("BLOB", "BYTEA", "BINARY", "BIT"), "blob"),
)
_SOME_DAY = date(2021, 3, 15)
_RANGES = {
    "TINYINT": (-128, 127),
    "SMALLINT": (-32768, 32767),
    "UTINYINT": (0, 255),
    "USMALLINT": (0, 65535),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**63 - 1),
}
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONGEST_TEXT, _LARGEST_PART = 60, 100
_LETTERS = "abcdefghij klmnopqrs" * 4
_INT_RANGE, _BIG_RANGE = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)

_WEEK = tuple(_SOME_DAY + timedelta(days=number) for number in range(7))
_MOMENTS = (
    *(datetime(2021, 3, 15), datetime(2021, 3, 15, 12, 30), datetime(2020, 2, 29), datetime(2022, 12, 31)),
    *(datetime(2021, 3, 31, 23, 59, 59), datetime(2021, 1, 31, 18, 0, 1), datetime(2021, 3, 16, 0, 0, 1)),
)


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


GENERIC: dict[Family, tuple[Any, ...]] = {
    "int": (0, 1, 2, 3, -1),
    "float": (0.0, 1.0, 2.5, 10.0, -1.0),
    "text": ("a", "b", "A", "c d", ""),
    "date": (_SOME_DAY, date(2021, 3, 16), date(2020, 2, 29), date(2022, 12, 31)),
    "timestamp": (datetime(2021, 3, 15), datetime(2021, 3, 15, 12, 30), datetime(2020, 2, 29), datetime(2022, 12, 31)),
    "datetext": ("2021-03-15", "2021-03-15 12:30:00", "2020-02-29", "2022-12-31"),
    "time": ("00:00:00", "12:30:00", "23:59:59"),
    "bool": (True, False),
    "blob": (b"a", b"b"),
    "uuid": tuple(map(_uuid, range(3))),
    "json": ("{}", '{"a": 1}', '{"a": "b"}', "[]"),
    "other": (None,),
}
RICH: dict[Family, tuple[Any, ...]] = GENERIC | {
    "int": (*GENERIC["int"], 7, -8, 10, 99, 1000, 123_456, 2_000_000_001),
    "float": (*GENERIC["float"], 2.345, -2.5, 0.125, 7.999, 1234.5678, 99_999.995, 3e9),
    "text": (*GENERIC["text"], " padded ", "a  ", "Abcdefgh Ijklmnop", "aB-c_d", "10", "9", "2.50", "z" * 24, "é"),
    "date": (*GENERIC["date"], *_WEEK, date(2021, 1, 31), date(2021, 12, 31), date(2022, 1, 1)),
    "timestamp": (*_MOMENTS, *(datetime(day.year, day.month, day.day, 9) for day in _WEEK)),
    "datetext": (*GENERIC["datetext"], *(day.isoformat() for day in _WEEK), "2021-03-31 23:59:59", "2021-01-31"),
    "time": (*GENERIC["time"], "00:00:01", "17:59:59", "18:00:00"),
}
"""More of each family: fractions, long and padded texts, every weekday, ends of days and months, large numbers."""


def family_of(column: SqlColumn) -> Family:
    """Returns the family of values that a column holds."""
    kind = column.type.upper()
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "LIST", "UNION")):
        return "other"
    return next((family for words, family in _FAMILIES if any(word in kind for word in words)), "other")


@dataclass(slots=True)
class CandidateValues:
    """Values for a column.

    Attributes:
        exact: values that occur in conditions.
        near: values close to those.
        generic: values that any column of the family may have.
        rich: many more generic values.
        keeps: tests the CHECKs on this column alone, which have excluded some values; None if there are none.
    """

    exact: list[Any] = field(default_factory=list)
    near: list[Any] = field(default_factory=list)
    generic: Sequence[Any] = ()
    rich: Sequence[Any] = ()
    keeps: Callable[[Any], bool] | None = None

    def kept_by(self, keeps: Callable[[Any], bool]) -> "CandidateValues":
        """Returns the values that satisfy a CHECK; the generic ones if none does."""
        exact, near = list(filter(keeps, self.exact)), list(filter(keeps, self.near))
        generic = list(filter(keeps, self.generic))
        rich = list(filter(keeps, self.rich))
        return CandidateValues(exact, near, generic or near or exact or self.generic, rich, keeps)

    def add(self, other: "CandidateValues") -> None:
        """Adds the values of another object, without duplicates."""
        self.exact += [value for value in other.exact if value not in self.exact]
        self.near += [value for value in other.near if value not in self.near]


def candidates(literal: Any, family: Family, today: date) -> CandidateValues:
    """Returns the values that a literal suggests for a column of a family.

    Args:
        literal: an int, a float or a text, as in the query.
        family: family of the column.
        today: the date that `now` stands for.
    """
    match family:
        case "int" | "float":
            return _numbers(literal, family)
        case "text":
            return _texts_of_length(literal) if isinstance(literal, int) else _texts(str(literal))
        case "date" | "timestamp" | "datetext":
            return _days(literal, family, today)
        case "time" if isinstance(literal, str) and literal[:2].isdigit():
            return CandidateValues([literal])
        case "uuid" if isinstance(literal, str) and _UUID.fullmatch(literal):
            return CandidateValues([literal])
        case "json" if isinstance(literal, str) and literal[:1] in "{[":
            return CandidateValues([literal])
        case _:
            return CandidateValues()


def of_lengths(texts: Sequence[str], lengths: Sequence[int]) -> list[str]:
    """Returns texts cut or padded to lengths, for conditions on both a text and its length."""
    return [(text + _LETTERS)[:length] for text in texts for length in lengths if 1 <= length <= _LONGEST_TEXT]


_MOST_BETWEEN = 20


_FILLERS: dict[Family, Callable[[int], Any]] = {
    "int": lambda number: number + 1,
    "float": lambda number: float(number + 1),
    "text": lambda number: f"k{number}",
    "date": lambda number: _SOME_DAY + timedelta(days=number),
    "timestamp": lambda number: datetime(2021, 3, 15) + timedelta(days=number),
    "datetext": lambda number: (_SOME_DAY + timedelta(days=number)).isoformat(),
    "time": lambda number: f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}",
    "bool": lambda number: bool(number % 2),
    "blob": lambda number: f"k{number}".encode(),
    "uuid": _uuid,
    "json": lambda number: f'{{"k": {number}}}',
    "other": lambda number: None,
}


def filler(family: Family, number: int) -> Any:
    """Returns the value with this number in a sequence of different values; used for keys."""
    return _FILLERS[family](number)


def between(family: Family, values: Sequence[Any]) -> list[Any]:
    """Returns some values from the least of these on to the greatest; none for other than numbers and days."""
    if not values:
        return []
    least, greatest = min(values), max(values)
    match family:
        case "int":
            return list(range(least, min(greatest, least + _MOST_BETWEEN) + 1))
        case "float":
            step = (greatest - least) / _MOST_BETWEEN
            return [round(float(least) + float(step) * number, 6) for number in range(_MOST_BETWEEN + 1)]
        case "text" | "datetext":
            try:
                first = date.fromisoformat(least[:10])
                return [(first + timedelta(days=number)).isoformat() + least[10:] for number in range(_MOST_BETWEEN)]
            except (ValueError, OverflowError):
                return []
        case _:
            return []


def is_narrow(column: SqlColumn) -> bool:
    """Returns whether a column's type excludes values of its family that are made in sequence, see `filler`."""
    return column.length is not None or column.type.upper().startswith(("ENUM", "TINYINT", "UTINYINT"))


def members_of(column: SqlColumn) -> list[str]:
    """Returns the values of an enum; none for other columns."""
    if not column.type.upper().startswith("ENUM"):
        return []
    return [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", column.type)]


def plain(column: SqlColumn, family: Family) -> Any:
    """Returns the value of a column that has to have one, though nothing reads it; None if none is known."""
    kind = column.type.upper()
    if family == "other":
        return (
            "[]" if kind.endswith("[]") else "{}" if kind.startswith("MAP") else "1 day" if kind == "INTERVAL" else None
        )
    return next(iter(members_of(column)), GENERIC[family][0])


def fits(value: Any, column: SqlColumn, *, wide: bool = False) -> bool:
    """Whether a column's type can hold a value unchanged; `wide`: all integers have 64 bits, as in SQLite."""
    if isinstance(value, str):
        if not is_narrow(column):
            return True
        members = members_of(column)
        return (column.length is None or len(value) <= column.length) and (not members or value in members)
    kind = column.type.upper()
    if isinstance(value, int) and not isinstance(value, bool):
        if wide:
            return _BIG_RANGE[0] <= value <= _BIG_RANGE[1] or family_of(column) != "int"
        low, high = _RANGES.get(kind, _BIG_RANGE if "BIG" in kind or "HUGE" in kind else _INT_RANGE)
        return low <= value <= high or family_of(column) != "int"
    if isinstance(value, float) and kind.startswith("DECIMAL("):
        width, _, scale = kind[8:].rstrip(")").partition(",")
        return abs(value) < 10.0 ** (int(width) - int(scale or 0)) and round(value, int(scale or 0)) == value
    return True


def _numbers(literal: Any, family: Family) -> CandidateValues:
    if isinstance(literal, int) and family == "int":
        return CandidateValues([literal], [literal - 1, literal + 1])
    try:
        number = float(literal)
    except ValueError:
        return CandidateValues()
    if abs(number) > 1e15:
        return CandidateValues()
    if family == "float":
        return CandidateValues([number], [number - 1, number + 1, number - 0.5, number + 0.5, number + 0.004])
    whole = int(number)
    if whole != number:
        return CandidateValues([], [whole, whole + 1])
    return CandidateValues([whole], [whole - 1, whole + 1])


def _texts(literal: str) -> CandidateValues:
    core = literal.replace("%", "").replace("_", "x")  # what a LIKE with this pattern finds
    exact = [literal] if core == literal else [literal, core]
    near = [core[:-1], core + "x", "x" + core] if core else ["x"]
    if "%" in literal:
        near += [f"x{core}x", *(part for part in literal.split("%") if part)]
    near += [form for form in (core.upper(), core.lower(), core.title()) if form != core]
    return CandidateValues(exact, near)


def _texts_of_length(length: int) -> CandidateValues:
    """Returns texts whose length is the number, since a number compared with a text column often means a length."""
    if not 1 <= length <= _LONGEST_TEXT:
        return _texts(str(length))
    return CandidateValues([], [str(length), *(_LETTERS[: length + step] for step in (-1, 0, 1))])


def _days_by_part(number: int, family: Family) -> CandidateValues:
    """Returns moments whose month, day, hour, minute or distance from another is the number, for `hour(x) >= 18`."""
    found = [datetime(2021, number, 14, 8)] if 1 <= number <= 12 else []
    found += [datetime(2021, 1, number, 7)] if 1 <= number <= 31 else []
    for part in (number - 1, number, number + 1):
        found += [datetime(2021, 3, 15, part, 0, 1)] if 0 <= part <= 23 else []
        found += [datetime(2021, 3, 15) + timedelta(days=part), datetime(2021, 3, 15) + timedelta(hours=part)]
    found += [datetime(2021, 3, 15) + timedelta(minutes=number)]
    if family == "date":
        return CandidateValues([], list(dict.fromkeys(one.date() for one in found)))
    return CandidateValues([], found if family == "timestamp" else [_as_text(one, True) for one in found])


def _days(literal: Any, family: Family, today: date) -> CandidateValues:
    part = int(literal) if isinstance(literal, str) and len(literal) == 2 and literal.isdigit() else literal
    if isinstance(part, int) and 0 <= part <= _LARGEST_PART:
        return _days_by_part(part, family)
    found = _moment(literal, today)
    if found is None:
        return CandidateValues()
    day = timedelta(days=1)
    midnight = datetime(found.year, found.month, found.day)
    if family == "date":
        return CandidateValues([midnight.date()], [(midnight - day).date(), (midnight + day).date()])
    last = midnight + day - timedelta(seconds=1)
    exact = [found, last] if found == midnight else [found]
    near = [found - day, found + day, midnight + day / 2, found - timedelta(seconds=1), last]
    if family == "timestamp":
        return CandidateValues(exact, near)
    long = len(str(literal)) > 10
    return CandidateValues([_as_text(one, long) for one in exact], [_as_text(one, long) for one in near])


def _as_text(moment: datetime, long: bool) -> str:
    return moment.isoformat(sep=" ") if long or moment.time() != datetime.min.time() else moment.date().isoformat()


def _moment(literal: Any, today: date) -> datetime | None:
    text = str(literal).strip()
    try:
        if text.lower() in ("now", "today"):
            return datetime(today.year, today.month, today.day)
        if text.isdigit() and len(text) == 4:
            return datetime(int(text), 6, 15)
        if len(text) == 7 and text[4] == "-":
            return datetime.fromisoformat(f"{text}-15")
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None

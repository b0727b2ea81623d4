"""Values worth trying: what a literal of a query means for a column of some type, and what lies next to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal

from eval_pipeline.sql_equivalence.schema.parts import SqlColumn

Family = Literal["int", "float", "text", "date", "timestamp", "datetext", "time", "bool", "blob", "other"]

_FAMILIES: tuple[tuple[tuple[str, ...], Family], ...] = (
    (("TIMESTAMP", "DATETIME"), "timestamp"),
    (("DATE",), "date"),
    (("TIME",), "time"),
    (("INTERVAL",), "other"),
    (("BOOL", "LOGICAL"), "bool"),
    (("INT", "SERIAL", "LONG"), "int"),
    (("DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC"), "float"),
    (("VARCHAR", "TEXT", "CHAR", "STRING", "UUID", "JSON", "ENUM"), "text"),
    (("BLOB", "BYTEA", "BINARY", "BIT"), "blob"),
)
_SOME_DAY = date(2021, 3, 15)
_RANGES = {"TINYINT": (-128, 127), "SMALLINT": (-32768, 32767), "UTINYINT": (0, 255), "USMALLINT": (0, 65535)}
_INT_RANGE, _BIG_RANGE = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)

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
    "other": (None,),
}


def family_of(column: SqlColumn) -> Family:
    """What kind of values a column holds."""
    kind = column.type.upper()
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "LIST", "UNION")):
        return "other"
    return next((family for words, family in _FAMILIES if any(word in kind for word in words)), "other")


@dataclass(slots=True)
class CandidateValues:
    """Values for a column.

    Attributes:
        exact: those that conditions name.
        near: those beside them.
        generic: those that any column of the family may have.
        keeps: the CHECKs on this column alone, which have ruled out some; None without any.
    """

    exact: list[Any] = field(default_factory=list)
    near: list[Any] = field(default_factory=list)
    generic: Sequence[Any] = ()
    keeps: Callable[[Any], bool] | None = None

    def kept_by(self, keeps: Callable[[Any], bool]) -> "CandidateValues":
        """Those that a CHECK leaves; the generic ones where that is none."""
        exact, near = list(filter(keeps, self.exact)), list(filter(keeps, self.near))
        generic = list(filter(keeps, self.generic))
        return CandidateValues(exact, near, generic or near or exact or self.generic, keeps)

    def add(self, other: "CandidateValues") -> None:
        """Takes in others', without repetition."""
        self.exact += [value for value in other.exact if value not in self.exact]
        self.near += [value for value in other.near if value not in self.near]


def candidates(literal: Any, family: Family, today: date) -> CandidateValues:
    """What a literal suggests for a column of a family.

    Args:
        literal: an int, a float or a text, as it stands in the query.
        family: of the column.
        today: what `now` means.
    """
    match family:
        case "int" | "float":
            return _numbers(literal, family)
        case "text":
            return _texts(str(literal))
        case "date" | "timestamp" | "datetext":
            return _days(literal, family, today)
        case "time" if isinstance(literal, str) and literal[:2].isdigit():
            return CandidateValues([literal])
        case _:
            return CandidateValues()


def filler(family: Family, number: int) -> Any:
    """The `number`-th of values that are all different, for keys."""
    match family:
        case "int":
            return number + 1
        case "float":
            return float(number + 1)
        case "text":
            return f"k{number}"
        case "date":
            return _SOME_DAY + timedelta(days=number)
        case "timestamp":
            return datetime(2021, 3, 15) + timedelta(days=number)
        case "datetext":
            return (_SOME_DAY + timedelta(days=number)).isoformat()
        case "time":
            return f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"
        case "bool":
            return bool(number % 2)
        case "blob":
            return f"k{number}".encode()
        case _:
            return None


def fits(value: Any, column: SqlColumn) -> bool:
    """Whether a column's type holds a value as it is."""
    kind = column.type.upper()
    if isinstance(value, int) and not isinstance(value, bool):
        low, high = _RANGES.get(kind, _BIG_RANGE if "BIG" in kind or "HUGE" in kind else _INT_RANGE)
        return low <= value <= high or family_of(column) != "int"
    if isinstance(value, float) and kind.startswith("DECIMAL("):
        width, _, scale = kind[8:].rstrip(")").partition(",")
        return abs(value) < 10.0 ** (int(width) - int(scale or 0)) and round(value, int(scale or 0)) == value
    return True


def _numbers(literal: Any, family: Family) -> CandidateValues:
    try:
        number = float(literal)
    except ValueError:
        return CandidateValues()
    if abs(number) > 1e15:
        return CandidateValues()
    if family == "float":
        return CandidateValues([number], [number - 1, number + 1, number - 0.5, number + 0.5])
    whole = int(number)
    if whole != number:
        return CandidateValues([], [whole, whole + 1])
    return CandidateValues([whole], [whole - 1, whole + 1])


def _texts(literal: str) -> CandidateValues:
    core = literal.replace("%", "").replace("_", "x")
    exact = [core]
    near = [core[:-1], core + "x", "x" + core] if core else ["x"]
    if "%" in literal:
        near += [f"x{core}x", *(part for part in literal.split("%") if part)]
    near += [form for form in (core.upper(), core.lower(), core.title()) if form != core]
    return CandidateValues(exact, near)


def _days(literal: Any, family: Family, today: date) -> CandidateValues:
    found = _moment(literal, today)
    if found is None:
        return CandidateValues()
    day = timedelta(days=1)
    midnight = datetime(found.year, found.month, found.day)
    if family == "date":
        return CandidateValues([midnight.date()], [(midnight - day).date(), (midnight + day).date()])
    exact, near = [found], [found - day, found + day, midnight + day / 2, found - timedelta(seconds=1)]
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

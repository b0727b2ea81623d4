"""What a database holds: its objects, and what is different after a script."""

import marshal
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from eval_pipeline.core.model import Failed
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.wire import row_to_wire

TABLE, VIEW, FUNCTION, SEQUENCE, TYPE, SCHEMA = "table", "view", "function", "sequence", "type", "schema"
MATERIALIZED = "materialized view"
STORED = (TABLE, MATERIALIZED)
"""Kinds of objects that have rows of their own."""
A_TRIGGER = "a trigger"
CHECK, DEFAULT = "check ", "default "
"""Beginnings of rules that are expressions."""
NOW, TODAY = "(now)", "(today)"
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d(:?\d\d)?)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WITHOUT_REFERENCES = 2
"""The last version of marshal's format in which equal values have equal bytes."""
_SECOND = timedelta(seconds=1)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\s+|::[\w\" ]+(?:\([\d, ]*\))?|[^'\"`\s:]+|.", re.DOTALL)
_KINDS = (
    ("number", ("int", "serial", "num", "dec", "real", "floa", "doub", "money")),
    ("text", ("char", "text", "clob", "string")),
    ("timestamp", ("timestamp", "datetime")),
    ("date", ("date",)),
    ("time", ("time",)),
    ("boolean", ("bool",)),
    ("blob", ("blob", "bytea", "binary")),
)


@dataclass(frozen=True, slots=True)
class Thing:
    """An object of a database.

    Attributes:
        kind: `table`, `view`, `materialized view`, `function`, `sequence`, `type` or `schema`.
        columns: of a table or view, in lower case.
        rows: only of tables that are different afterwards, and of views that a script made or changed.
        rules: what a table demands, as texts that do not depend on how it was written, such as `not null (id)`.
        definition: the text of a view or function, or of a table's triggers; it only says whether that was changed.
    """

    kind: str
    columns: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    rules: frozenset[str] = frozenset()
    definition: str = ""

    def with_rows(self, found: SqlRows) -> "Thing":
        """Returns the same with the rows of a query for all its columns."""
        return replace(self, columns=tuple(name.lower() for name in found.columns), rows=found.rows)


@dataclass(frozen=True, slots=True)
class Script:
    """What runs on a private copy.

    Attributes:
        statements: run one after another until one fails.
        checks: run afterwards, each whether or not those before it failed.
        setup: run before; what they do is not counted as a change.
    """

    statements: tuple[str, ...]
    checks: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """An object before and after a script; None where it does not exist."""

    before: Thing | None
    after: Thing | None


@dataclass(frozen=True)
class Effects:
    """What a script did to a private copy.

    Attributes:
        changes: the objects that are different afterwards, by name in lower case; one of another schema than the
            database's own has it in front.
        error: why a statement failed, after which no further one ran; what it left is in `changes`.
        checks: for each check that ran afterwards, its result or why it failed.
    """

    changes: dict[str, ObjectChange]
    error: Failed | None = None
    checks: tuple[SqlRows | str, ...] = ()


def fingerprint(rows: Iterable[tuple[Any, ...]]) -> tuple[int, int]:
    """Returns a number that is the same for the same rows in any order, and how many they are."""
    total = count = 0
    for row in rows:
        try:
            told: bytes | str = marshal.dumps(row, _WITHOUT_REFERENCES)
        except ValueError:  # other values than numbers and texts
            told = repr(row)
        total += hash(told)  # not of the row itself: -1 and -2 have the same
        count += 1
    return total, count


def kind_of_type(declared: str) -> str:
    """Returns what a type holds, whatever its size: `number`, `text`, `date`, …, or its name; empty for none."""
    name = declared.strip().lower()
    if name.endswith("[]") or name.startswith(("struct", "map", "union", "enum", "interval")):
        return name
    return next((kind for kind, parts in _KINDS if any(part in name for part in parts)), name)


def normal(expression: str) -> str:
    """Returns an expression without what never changes its meaning: white space, case, quotes, casts of literals."""
    pieces = []
    for piece in _QUOTED.findall(expression):
        if piece.startswith("'"):
            pieces.append(piece)
        elif not piece.isspace() and not piece.startswith("::"):
            pieces.append(piece.strip('"`').lower())
    text = "".join(pieces)
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1]
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def names(columns: Iterable[str]) -> str:
    """Returns columns as they stand in a rule: `(a, b)`."""
    return f"({', '.join(column.lower() for column in columns)})"


def without_clock(rows: list[tuple[Any, ...]], began: datetime, ended: datetime) -> list[tuple[Any, ...]]:
    """Returns rows in which times of the clock between two moments are `NOW`, and the day is `TODAY`."""
    first, last = began - _SECOND, ended + _SECOND
    days = {began.date(), ended.date()}

    def told(cell: Any) -> Any:
        if isinstance(cell, str):
            if _TIME.fullmatch(cell):
                return NOW if _within(cell, first, last) else cell
            return TODAY if _DATE.fullmatch(cell) and cell in {str(day) for day in days} else cell
        if isinstance(cell, datetime):
            return NOW if first <= _in_utc(cell) <= last else cell
        return TODAY if isinstance(cell, date) and cell in days else cell

    return [tuple(map(told, row)) for row in rows]


def _within(text: str, first: datetime, last: datetime) -> bool:
    try:
        return first <= _in_utc(datetime.fromisoformat(text)) <= last
    except ValueError:
        return False


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def effects_to_wire(effects: Effects) -> dict[str, Any]:
    """Returns effects in the form that the child process sends."""
    return {
        "changes": {name: [_sent(one.before), _sent(one.after)] for name, one in effects.changes.items()},
        "error": None if effects.error is None else [effects.error.error_class, effects.error.message],
        "checks": [one if isinstance(one, str) else [one.columns, _sent_rows(one.rows)] for one in effects.checks],
    }


def effects_from_wire(told: dict[str, Any]) -> Effects:
    """Reads effects that `effects_to_wire` wrote."""
    from eval_pipeline.core.model import ErrorClass

    changes = {name: ObjectChange(*map(_received, both)) for name, both in told["changes"].items()}
    error = told["error"] and Failed(ErrorClass(told["error"][0]), told["error"][1])
    checks = (one if isinstance(one, str) else SqlRows(tuple(one[0]), [*map(tuple, one[1])]) for one in told["checks"])
    return Effects(changes, error, tuple(checks))


def _sent(thing: Thing | None) -> list[Any] | None:
    if thing is None:
        return None
    rules = sorted(thing.rules)
    return [thing.kind, thing.columns, list(_sent_rows(thing.rows)), rules, thing.definition]


def _sent_rows(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    return [row_to_wire(row) for row in rows]


def _received(told: list[Any] | None) -> Thing | None:
    if told is None:
        return None
    kind, columns, rows, rules, definition = told
    return Thing(kind, tuple(columns), [*map(tuple, rows)], frozenset(rules), definition)


def changed_names(before: dict[str, Thing], after: dict[str, Thing]) -> Iterator[str]:
    """Yields the names of objects that exist only before or only after, or are something else, rows apart."""
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield name

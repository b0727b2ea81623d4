"""Compares the states that two scripts left: whether they are the same, and otherwise in what they differ."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from eval_pipeline.sandbox.sql.effects.state import (
    A_TRIGGER,
    CHECK,
    DEFAULT,
    STORED,
    TABLE,
    VIEW,
    Effects,
    ObjectChange,
    Thing,
)
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.graded import unmatched
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.table_comparison.table import ComparedTable

COLUMNS = ("object", "change", "row")
"""The columns of the rows that `change_rows` returns."""
_OF_TABLES = frozenset({Relaxation.COLUMN_ORDER})
_OF_VIEWS = _OF_TABLES | {Relaxation.COLUMN_NAMES}
_ABSENT = Thing("")
_TYPE = "type "
_NAMED = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class StateDifference:
    """An object that is not as it should be.

    Attributes:
        name: in lower case; `check 2` for the second check.
        words: in what it differs; no sentence of its own.
    """

    name: str
    words: str

    def __str__(self) -> str:
        return f"{self.name}: {self.words}"


class EffectChange(NamedTuple):
    """One change: of a row, or of what an object is."""

    name: str
    how: str
    columns: tuple[str, ...] = ("",)
    cells: tuple[Any, ...] = ()


def differences(generated: Effects, expected: Effects) -> list[StateDifference]:
    """Returns in what the state that a script left differs from the expected one; none if they are the same.

    If there are checks, these show what CHECK and DEFAULT do, and their texts are not compared.
    """
    names = sorted({*generated.changes, *expected.changes})
    found = [
        StateDifference(name, words)
        for name in names
        if (words := _difference(generated.changes.get(name), expected.changes.get(name), bool(expected.checks)))
    ]
    return [*found, *_of_checks(generated.checks, expected.checks)]


def _difference(mine: ObjectChange | None, theirs: ObjectChange | None, checked: bool) -> str:
    """Returns in what an object differs that at least one of two scripts changed; empty if it is the same."""
    if theirs is None:
        assert mine is not None
        if mine.before is None or mine.after is None or mine.after.kind not in STORED:
            return f"{_done(mine)}, which is not expected"
        return _differing(mine.after, mine.before, mine.before, checked=checked)
    if mine is None:
        if theirs.before is None or theirs.after is None or theirs.after.kind not in STORED:
            return f"not {_done(theirs)}"
        return _differing(theirs.before, theirs.after, theirs.before, checked=checked)
    if mine.after is None or theirs.after is None:
        if mine.after is theirs.after:
            return ""
        return f"not {_done(theirs)}" if mine.after is not None else "dropped, which is not expected"
    return _differing(mine.after, theirs.after, theirs.before or _ABSENT, checked=checked)


def _done(change: ObjectChange) -> str:
    return "dropped" if change.after is None else "created" if change.before is None else "changed"


def _differing(mine: Thing, theirs: Thing, before: Thing, *, checked: bool) -> str:
    if mine.kind != theirs.kind:
        return f"a {mine.kind} instead of a {theirs.kind}"
    if theirs.kind not in (*STORED, VIEW):
        return ""
    return "; ".join(chain(_rows(mine, theirs), _rules(mine, theirs, before, checked=checked)))


def _rows(mine: Thing, theirs: Thing) -> Iterator[str]:
    found = compare(ComparedTable(mine.columns, mine.rows), ComparedTable(theirs.columns, theirs.rows))
    granted = _OF_TABLES if theirs.kind == TABLE else _OF_VIEWS
    if not found.accepted(granted):
        yield found.sentence(granted)


def _rules(mine: Thing, theirs: Thing, before: Thing, *, checked: bool) -> Iterator[str]:
    """Yields what a table should demand but does not, and what it demands although it should not.

    How something new is made is the answer's to choose, as long as it holds and demands what is asked.
    """
    left_out = (CHECK, DEFAULT) if checked else ()
    typed = _typed(mine) & _typed(theirs)

    def only(one: Thing, other: Thing) -> list[str]:
        rules = sorted(rule for rule in one.rules - other.rules if not rule.startswith(left_out))
        return [rule for rule in rules if not rule.startswith(_TYPE) or _columns_of(rule) <= typed]

    extra = [rule for rule in only(mine, theirs) if rule.startswith(_TYPE) or not _is_new(rule, before)]
    extra = [rule for rule in extra if rule != A_TRIGGER]  # told below
    if missing := only(theirs, mine):
        yield f"without {', '.join(missing)}"
    if extra:
        yield f"with {', '.join(extra)}"
    if mine.definition != before.definition == theirs.definition:
        yield "its triggers are changed" if mine.kind == TABLE else "its definition is changed"


def _typed(thing: Thing) -> set[str]:
    """Returns the columns that have a type; in SQLite some have none."""
    return {column for rule in thing.rules if rule.startswith(_TYPE) for column in _columns_of(rule)}


def _is_new(rule: str, before: Thing) -> bool:
    """Returns whether a rule is about a table or a column that was not there before."""
    return not before.kind or not _columns_of(rule) <= set(before.columns)


def _columns_of(rule: str) -> set[str]:
    """Returns the columns that a rule names; none for one that is an expression."""
    named = _NAMED.search(rule)
    return set(named[1].split(", ")) if named and not rule.startswith(CHECK) else set()


def _of_checks(mine: Sequence[SqlRows | str], theirs: Sequence[SqlRows | str]) -> Iterator[StateDifference]:
    for number, (one, other) in enumerate(zip(mine, theirs, strict=True), 1):
        name = f"check {number}"
        if isinstance(one, str) and not isinstance(other, str):
            yield StateDifference(name, f"fails: {one.splitlines()[0]}")
        elif isinstance(other, str) and not isinstance(one, str):
            yield StateDifference(name, "does not fail")
        elif isinstance(one, SqlRows) and isinstance(other, SqlRows):
            found = compare(ComparedTable(one.columns, one.rows), ComparedTable(other.columns, other.rows))
            if not found.accepted(_OF_VIEWS):
                yield StateDifference(name, found.sentence(_OF_VIEWS))


def changed(effects: Effects) -> list[EffectChange]:
    """Returns what a script changed: each row that it added or removed, and what else it did."""
    return list(_changed(effects))


def change_rows(listed: Sequence[EffectChange]) -> list[tuple[str, str, str]]:
    """Returns changes as rows for readers: which object, `added`, `removed` or another change, and the row as text."""
    return [(one.name, one.how, ", ".join(map(_told, one.columns, one.cells))) for one in listed]


def change_cells(listed: Sequence[EffectChange]) -> list[tuple[Any, ...]]:
    """Returns the same with the cells of each row, by which two scripts can be compared in part."""
    return [(one.name, one.how, *one.cells) for one in listed]


def _changed(effects: Effects) -> Iterator[EffectChange]:
    for name, change in sorted(effects.changes.items()):
        before, after = change.before or _ABSENT, change.after or _ABSENT
        if change.before is None or change.after is None or before.kind not in (*STORED, VIEW):
            yield EffectChange(name, _done(change), cells=((change.after or before).kind,))
        elif before.columns != after.columns:
            yield EffectChange(name, "columns", cells=(", ".join(sorted(after.columns)),))
        if change.before and change.after:
            yield from (EffectChange(name, "demands", cells=(rule,)) for rule in sorted(after.rules - before.rules))
            yield from (
                EffectChange(name, "no longer demands", cells=(rule,)) for rule in sorted(before.rules - after.rules)
            )
        (old, mine), (new, theirs) = _by_name(before), _by_name(after)
        yield from (EffectChange(name, "removed", old, row) for row in _only(mine, () if old != new else theirs))
        yield from (EffectChange(name, "added", new, row) for row in _only(theirs, () if old != new else mine))
    for number, result in enumerate(effects.checks, 1):
        if isinstance(result, SqlRows):
            yield from (EffectChange(f"check {number}", "returned", result.columns, row) for row in result.rows)
        else:
            yield EffectChange(f"check {number}", "fails")


def _by_name(thing: Thing) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Returns the columns in the order of the alphabet, and the rows."""
    order = sorted(range(len(thing.columns)), key=lambda place: thing.columns[place])
    return tuple(thing.columns[place] for place in order), [tuple(row[place] for place in order) for row in thing.rows]


def _only(rows: Sequence[tuple[Any, ...]], others: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Returns the rows that the others do not have, as multisets, in an order that does not depend on the engine."""
    told = sorted(zip(map(repr, rows), rows, strict=True), key=lambda one: one[0])
    return [told[place][1] for place in unmatched([text for text, _ in told], list(map(repr, others)))]


def _told(name: str, cell: Any) -> str:
    text = "NULL" if cell is None else str(cell)
    return f"{name}={text}" if name else text

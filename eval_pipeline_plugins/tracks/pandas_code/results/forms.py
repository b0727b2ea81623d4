"""Compares results whatever form they have: names that nobody gave, a dict or records for a table, dates as text.

What is asked for is a table. A result is read in each way in which a person could read it as one; which differences of
form then remain is told by `table_comparison`.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, time
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.table_comparison.comparison import compare as compare_tables
from eval_pipeline.table_comparison.relaxations import NONE, Relaxation, Set
from eval_pipeline.table_comparison.rows import equal
from eval_pipeline.table_comparison.table import ComparedTable, Shape
from eval_pipeline_plugins.tracks.pandas_code.results.bands import alike
from eval_pipeline_plugins.tracks.pandas_code.results.periods import month_of_quarter, readings
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import ResultColumn, ResultTable, read_result
from eval_pipeline_plugins.tracks.pandas_code.results.shapes import as_long, as_tables

_NAMELESS = frozenset({"", "index", "key", "keys", "value", "values"})
_BY_PLACE = "#"
_NAMES: Set = frozenset({Relaxation.COLUMN_NAMES})
LEAST_DECIMALS = 2
"""What is rounded to fewer says something else, where nobody asked for that."""
_PERIOD = re.compile("month|quarter|year")


@value
class Form:
    """What is asked of the form of a result.

    Attributes:
        names: columns whose names the question or the case gives.
        known: columns of the given tables.
        spoken: those of them that the question speaks of.
        overlooked: what the contract overlooks.
        of_one_year: whether the question is about a single year, so that a month's number or name says which it is.
        by_row: whether the expected column has one value for each row of a table, in their order.
    """

    names: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    spoken: tuple[str, ...] = ()
    overlooked: Set = NONE
    of_one_year: bool = False
    by_row: bool = False

    @property
    def key(self) -> tuple[list[str], list[str], list[str], bool]:
        """What decides about equality beside the tables, as plain data."""
        return list(self.names), list(self.spoken), sorted(self.overlooked), self.of_one_year


AS_IT_STANDS = Form()
OF_FORM: Set = frozenset(Relaxation) - {
    Relaxation.EXTRA_COLUMNS,
    Relaxation.MISSING_COLUMNS,
    Relaxation.DUPLICATES,
    Relaxation.ROUNDING,
    Relaxation.PERCENT,
}
"""What changes nothing of what a result says."""


@value
class _Side:
    """Columns of a result that is read as a table.

    Attributes:
        names: comparable names, None for a column without one; raw: the names as they are.
    """

    names: tuple[str | None, ...]
    raw: tuple[Hashable, ...]
    cells: tuple[tuple[Any, ...], ...]
    rows: int
    shape: Shape


@value
class _Reading:
    """Two tables to compare: columns have the same name if one must be the other, others have none.

    Attributes:
        further: what has to be overlooked beside differences of these tables.
        claimed: places of generated columns whose names say which they are.
        given: names of generated and of expected columns that are those of given tables, else None.
    """

    generated: ComparedTable
    expected: ComparedTable
    further: Set
    claimed: frozenset[int]
    given: tuple[tuple[str | None, ...], tuple[str | None, ...]]


def accepts(generated: Json, wanted: ResultTable, form: Form, ties: Sequence[int] | None) -> bool:
    """Returns whether a result is the expected table in a form that may be overlooked.

    Args:
        generated: a result in the sandbox's tagged JSON.
        wanted: the expected result.
        form: what is asked of the form.
        ties: groups of expected rows whose order does not matter (`Table.ties`); None if no order does.
    """
    may = form.overlooked - {Relaxation.COLUMN_NAMES}
    for reading in _readings(generated, wanted, form, ties):
        if reading.further <= form.overlooked and equal(reading.generated, reading.expected, may):
            told = compare_tables(reading.generated, reading.expected)
            if told.accepted(may, LEAST_DECIMALS) and _is_certain(reading, told.columns):
                return True
    return False


def ways(generated: Json, wanted: ResultTable, form: Form, ties: Sequence[int] | None) -> tuple[Set, ...]:
    """Returns the smallest sets of relaxations that make a result the expected table; none if it differs in meaning.

    Of several readings the one counts that needs the least beyond what is overlooked. For the arguments see `accepts`.
    """
    found = []
    for reading in _readings(generated, wanted, form, ties):
        told = compare_tables(reading.generated, reading.expected)
        needs = tuple(one | reading.further for one in told.needs if told.accepted(one - _NAMES, LEAST_DECIMALS))
        if needs and _is_certain(reading, told.columns):
            found.append(needs)
    return min(found, key=lambda needs: (min(len(one - form.overlooked) for one in needs), len(needs[0])), default=())


def _is_certain(reading: _Reading, columns: Sequence[int | None]) -> bool:
    """Whether a reader knows which columns are the answer.

    Beside a column more of its kind, and without the expected name, any of the two could be meant; and what is called
    like one column of the given tables is no other one of them.
    """
    if len(reading.generated.columns) < len(reading.expected.columns) == len(reading.generated.rows):
        return tuple(columns) == tuple(range(len(columns)))  # a list for a row: its items have places, and no names
    taken = {place for place in columns if place is not None}
    mine, theirs = reading.given
    pairs = [(mine[place], theirs[there]) for there, place in enumerate(columns) if place is not None]
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return False
    extra = [place for place in range(len(reading.generated.columns)) if place not in taken]
    if not extra or taken <= reading.claimed:
        return True
    cells = reading.generated.cells()
    return not {_kind(cells[place]) for place in extra} & {_kind(cells[place]) for place in taken - reading.claimed}


def _readings(generated: Json, wanted: ResultTable, form: Form, ties: Sequence[int] | None) -> Iterator[_Reading]:
    """Yields the tables as which a result can be read, each beside the expected one."""
    expected = _side(wanted, with_index=True)
    groups, names = None if ties is None else tuple(ties), _comparable(form.names)
    for place, result in enumerate(as_tables(generated, wanted, form.spoken)):
        try:
            got = read_result(result)
        except ValueError:
            continue
        if not names & {*expected.names} and (long := as_long(got, wanted)) is not None:
            yield from _named(_side(long, with_index=False), expected, form, groups, frozenset({Relaxation.SHAPE}))
        labelled = any(level.labels for level in got.index)
        reshaped = place > 0 or (got.kind == "dict") != (wanted.kind == "dict")
        # The labels of one row are names of columns, which say which cell is which.
        needless = labelled and got.columns and not (wanted.rows == 1 < len(wanted.columns))
        for with_index in (True, False) if needless else (labelled,):
            side = _side(got, with_index=with_index)
            further = frozenset({Relaxation.SHAPE} if reshaped else set())
            yield from _named(side, expected, form, groups, further)
            if expected.shape != "table":
                continue
            if Relaxation.DATES in form.overlooked:
                for mine, theirs in _by_periods(side, expected, form):
                    yield from _named(mine, theirs, form, groups, further | {Relaxation.DATES})
            if (named := alike(side.cells, expected.cells)) is not None:
                mine, theirs = (_with_cells(*pair) for pair in zip((side, expected), named, strict=True))
                yield from _named(mine, theirs, form, groups, further | _NAMES)


def _by_periods(got: _Side, wanted: _Side, form: Form) -> Iterator[tuple[_Side, _Side]]:
    """Yields the two sides with columns that name periods written alike.

    A column of numbers names periods if it is called so, or like the column that its dates are from.
    """
    known = {_name(ResultColumn(name, ()), 0) for name in form.known}
    called, others = (
        [name is not None and (name in known or _PERIOD.search(name) is not None) for name in side.names]
        for side in (got, wanted)
    )
    for mine, theirs in readings(got.cells, wanted.cells, (called, others), of_one_year=form.of_one_year):
        yield _with_cells(got, mine), _with_cells(wanted, theirs)


def _with_cells(side: _Side, cells: Sequence[Sequence[Any]]) -> _Side:
    return replace(side, cells=tuple(map(tuple, cells)))


def _side(table: ResultTable, *, with_index: bool) -> _Side:
    columns = [*(level for level in table.index if level.labels and with_index), *table.columns]
    shape: Shape = "table"
    if len(columns) == 1:
        shape = "scalar" if table.kind == "value" else "list"
    names = [_name(column, len(columns)) for column in columns]
    raw = tuple(column.name for column in columns)
    return _Side(tuple(names), raw, tuple(tuple(map(_plain, column.cells)) for column in columns), table.rows, shape)


def _name(column: ResultColumn, width: int) -> str | None:
    """Returns a name without capitals, spaces and signs; None for one that says nothing."""
    name = column.name
    if name is None or (type(name) is int and 0 <= name < width):
        return None
    parts = name if isinstance(name, tuple) else (name,)
    text = "".join(letter for part in parts for letter in str(part).casefold() if letter.isalnum())
    if isinstance(name, tuple):
        text = text.removeprefix("list")
    return None if text in _NAMELESS else text


def _comparable(names: Sequence[str]) -> set[str | None]:
    return {_name(ResultColumn(name, ()), 0) for name in names} - {None}


def _plain(cell: Hashable) -> Any:
    """Returns a cell as the comparison of tables knows it: periods are the text of their beginning."""
    try:
        match cell:
            case ("datetime", str() as text) if text.endswith("000"):
                return datetime.fromisoformat(text[:-3])
            case ("date" | "interval", str() as text):
                return text
            case ("time", str() as text):
                return time.fromisoformat(text)
            case ("period", str() as text):
                return month_of_quarter(text.partition("/")[0])
            case str():
                return month_of_quarter(cell)
    except ValueError:
        return cell
    return cell


def _kind(cells: Sequence[Any]) -> str:
    kinds = {
        "number" if isinstance(cell, int | float) else "text" if isinstance(cell, str) else "other"
        for cell in cells
        if cell is not None
    }
    return kinds.pop() if len(kinds) == 1 else "mixed"


def _named(got: _Side, wanted: _Side, form: Form, ties: tuple[int, ...] | None, further: Set) -> Iterator[_Reading]:
    """Yields the two tables with names only where the names decide which column is which.

    A generated column that is called like an expected one is that one or wrong. Where a name is given by the question,
    another one has to be overlooked as such. Columns without names are told by their place.
    """
    claims = {name for name in got.names if name is not None and got.names.count(name) == wanted.names.count(name) == 1}
    unnamed = all(name is None for name in got.names)
    asked, known = _comparable(form.names), _comparable(form.known)
    if None not in got.names and (asked & {*wanted.names}) - claims:
        further |= {Relaxation.GIVEN_NAMES}
    mine = tuple(name if name in claims else None for name in got.names)
    theirs = tuple(name if name in claims else None for name in wanted.names)
    free = [raw for raw, name in zip(wanted.raw, theirs, strict=True) if name is None and raw is not None]
    called = [raw for raw, name in zip(got.raw, mine, strict=True) if name is None and raw is not None]
    if (free and called) or not (unnamed or {*got.raw} >= {*wanted.raw}):
        further |= {Relaxation.COLUMN_NAMES}
    claimed = frozenset(place for place, name in enumerate(mine) if name is not None)

    def reading(names: tuple[Hashable, ...], others: tuple[Hashable, ...]) -> _Reading:
        return _Reading(
            ComparedTable.from_columns(names, got.cells, None, got.shape),
            ComparedTable.from_columns(others, wanted.cells, ties, wanted.shape),
            further,
            claimed,
            (given(got.names), given(wanted.names)),
        )

    def given(names: tuple[str | None, ...]) -> tuple[str | None, ...]:
        return tuple(name if name in known else None for name in names)

    if unnamed and len(mine) == len(theirs) > 1:
        mine = theirs = tuple(f"{_BY_PLACE}{place}" for place in range(len(mine)))
    yield reading(mine, theirs)

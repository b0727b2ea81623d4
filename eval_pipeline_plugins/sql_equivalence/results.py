"""Compares the results of two queries: rows as multisets, columns in any order that fits every database."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.table_comparison.alignment.matching import Trial
from eval_pipeline.table_comparison.comparison import TableComparison, compare
from eval_pipeline.table_comparison.difference import closest
from eval_pipeline.table_comparison.relaxations import Relaxation, Set
from eval_pipeline.table_comparison.rows import TooManyOrdersError, column_choices, column_orders, equal, same_rows
from eval_pipeline.table_comparison.table import ComparedTable

_MOST_ORDERS = 24
_MOST_CHOICES = 4
_FEW_ROWS = 50
"""Rows up to which columns are likely to have the same cells by chance."""

Row = tuple[Any, ...]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query.

    Attributes:
        columns: names.
        rows: in the engine's order.
        ties: for each row the number of its group, in ascending order; rows that the outermost ORDER BY does not
            distinguish share a group. None if the order of rows has no meaning.
        keyed: the rows with the keys of that ORDER BY that are not selected; empty if there are none.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    ties: tuple[int, ...] | None = None
    keyed: Rows = ()


EQUAL: Set = frozenset({Relaxation.COLUMN_NAMES, Relaxation.COLUMN_ORDER, Relaxation.TIE_ORDER})
"""What is overlooked in results that count as equal."""


_OTHER_COLUMNS: Set = frozenset({Relaxation.EXTRA_COLUMNS, Relaxation.MISSING_COLUMNS})
TIES: Set = frozenset({Relaxation.TIE_ORDER})
_FORMS: Set = frozenset({Relaxation.DUPLICATES, Relaxation.ROW_ORDER, Relaxation.ROUNDING, Relaxation.TOLERANCE})
"""In what two queries of one meaning may differ on further databases; columns and cells are settled by the data."""


@dataclass(frozen=True, slots=True)
class Overlooked:
    """In what two results may differ and still agree.

    Attributes:
        relaxations: beyond `EQUAL`.
        columns: for each expected column the position of the generated one that stands for it, None for one that is
            missing; None if any will do.
    """

    relaxations: Set = frozenset()
    columns: tuple[int | None, ...] | None = None

    def agree(self, generated: Result, expected: Result) -> bool:
        """Returns whether two results are equal but for what is overlooked."""
        mine, theirs = self._cut(generated, expected)
        same = len(mine.columns) == len(theirs.columns) and same_rows(mine.rows, theirs.rows, theirs.ties)
        return same or equal(*_tables(mine, theirs), self.relaxations | EQUAL)

    def widened(self, generated: Result, expected: Result) -> "Overlooked | None":
        """Returns what also makes these two results equal; None if only what says something about meaning does."""
        mine, theirs = self._cut(generated, expected)
        found = [one for one in compared(mine, theirs).needs if one <= self.relaxations | EQUAL | _FORMS]
        added = self.relaxations | found[0] if found else self.relaxations
        return None if added == self.relaxations else Overlooked(added, self.columns)

    def _cut(self, generated: Result, expected: Result) -> tuple[Result, Result]:
        """Returns both with those columns only that stand for each other."""
        if self.columns is None:
            return generated, expected
        pairs = [(mine, place) for place, mine in enumerate(self.columns) if mine is not None]
        return _chosen(generated, [mine for mine, _ in pairs]), _chosen(expected, [place for _, place in pairs])


def compared(generated: Result, expected: Result) -> TableComparison:
    """Returns what has to be overlooked for two results to be equal, whatever their columns are called.

    A column in place of another one is a difference in meaning, and not one missing and one extra.
    """
    found = compare(*_tables(generated, expected))
    needs = dict.fromkeys(one - {Relaxation.COLUMN_NAMES} for one in found.needs if not one >= _OTHER_COLUMNS)
    difference = found.difference if needs or not found.needs else closest(Trial(*_tables(generated, expected)))[1]
    if difference is not None:
        difference = replace(difference, overlooked=difference.overlooked - {Relaxation.COLUMN_NAMES})
    return replace(found, needs=tuple(needs), difference=difference)


def _tables(generated: Result, expected: Result) -> tuple[ComparedTable, ComparedTable]:
    return ComparedTable(generated.columns, generated.rows), ComparedTable(
        expected.columns, expected.rows, expected.ties
    )


def overlooking(found: TableComparison, generated: Result, expected: Result) -> Iterator[Overlooked]:
    """Yields the mildest of what makes two results equal, once for each way of pairing their columns.

    In short results, columns that mean different things may have the same cells. None of the ways is known if there
    are no rows, or if rows stand for columns.
    """
    if not found.needs:
        return
    needed = found.needs[0]
    if not expected.rows or Relaxation.SHAPE in needed:
        yield Overlooked(needed)
        return
    yield Overlooked(needed, found.columns)
    if len(expected.rows) > _FEW_ROWS or Relaxation.MISSING_COLUMNS in needed:
        return
    try:
        for order in islice(column_choices(*_tables(generated, expected), needed | EQUAL), _MOST_CHOICES):
            if order != found.columns:
                yield Overlooked(needed, order)
    except TooManyOrdersError:
        return


def _chosen(result: Result, places: Sequence[int]) -> Result:
    rows = [tuple(row[place] for place in places) for row in result.rows]
    return Result(tuple(result.columns[place] for place in places), rows, result.ties)


class ColumnMatch:
    """An order of columns in which the results of two queries are equal on every database seen so far."""

    def __init__(self, overlooked: Overlooked | None = None) -> None:
        """Begins; with `overlooked`, results agree by it and any order of columns fits."""
        self._overlooked = overlooked
        self._seen: list[tuple[Rows, Result]] = []
        self._order: tuple[int, ...] | None = None

    @property
    def order(self) -> tuple[int, ...] | None:
        """For each expected column, the position of the matching generated column; None before any result."""
        return self._order

    def copy(self) -> "ColumnMatch":
        """Returns an independent copy."""
        other = ColumnMatch(self._overlooked)
        other._seen, other._order = list(self._seen), self._order
        return other

    def agrees(self, generated: Result, expected: Result) -> bool:
        """Returns whether such an order still exists with these results; if not, they are not stored.

        Raises:
            SqlError: too many orders are possible to try them all.
        """
        if self._overlooked is not None:
            return self._overlooked.agree(generated, expected)
        width = len(expected.columns)
        if len(generated.columns) != width or len(generated.rows) != len(expected.rows):
            return False
        order = self._order if self._order is not None else tuple(range(width))
        if not same_rows(reordered(generated.rows, order), expected.rows, expected.ties):
            found = next(_fitting([*self._seen, (generated.rows, expected)], every=False), None)
            if found is None:
                return False
            order = found
        self._order = order
        self._seen.append((generated.rows, expected))
        return True

    def orders(self) -> tuple[tuple[int, ...], ...] | None:
        """Returns every order that fits all results seen; None if there is no result yet, or too many orders fit.

        Results that are empty, or whose columns have the same values, fit many orders; only further databases can then
        tell which one is right.
        """
        if not self._seen:
            return None
        fitting = _fitting(self._seen, every=True)
        try:
            found = tuple(islice(fitting, _MOST_ORDERS + 1))
        except SqlError:
            return None
        return found if 0 < len(found) <= _MOST_ORDERS else None


def _fitting(results: Sequence[tuple[Rows, Result]], *, every: bool) -> Iterator[tuple[int, ...]]:
    """Yields orders of columns that fit all results. Raises a SqlError if there are too many to try."""
    tables = [
        (ComparedTable(one.columns, rows), ComparedTable(one.columns, one.rows, one.ties))
        for rows, one in reversed(results)
    ]
    try:
        yield from column_orders(tables, every=every)
    except TooManyOrdersError as error:
        raise SqlError(ErrorClass.TIMEOUT, str(error)) from error


def reordered(rows: Rows, order: Sequence[int]) -> list[Row]:
    """Returns rows with their columns in another order."""
    if tuple(order) == tuple(range(len(order))):
        return list(rows)
    return [tuple(row[place] for place in order) for row in rows]

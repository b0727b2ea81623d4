"""Compares two tables: what one must overlook for them to be equal, or how they differ."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.table_comparison.assigning import bag_of
from eval_pipeline.table_comparison.matching import Trial
from eval_pipeline.table_comparison.needs import smallest_sets
from eval_pipeline.table_comparison.pairing import closest_columns
from eval_pipeline.table_comparison.relaxations import MILDEST_FIRST, Relaxation, Set
from eval_pipeline.table_comparison.table import Row, Table

_EXAMPLES = 3
_SHOWN = 40
_SHOWN_CELLS = 6


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column of which some cells differ.

    Attributes:
        name: its expected name. rows: in how many rows it differs. of: of so many.
        examples: pairs of a generated and an expected cell.
    """

    name: Hashable
    rows: int
    of: int
    examples: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The closest match of two tables that are not equal.

    Attributes:
        words: one sentence.
        missing: how many expected rows have no generated one; extra: the other way round. Columns that only one
            table has do not count.
        missing_rows, extra_rows: the first of them, with the cells of the columns that both have.
        columns: columns that differ in rows which are the same otherwise.
    """

    words: str
    missing: int = 0
    extra: int = 0
    missing_rows: tuple[Row, ...] = ()
    extra_rows: tuple[Row, ...] = ()
    columns: tuple[ColumnDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two tables compare.

    Attributes:
        needs: the smallest sets of relaxations that make them equal, the mildest first; an empty set alone if they
            are equal as they stand, none if they differ whatever is overlooked.
        columns: for each expected column the place of the generated one under the first set, or in the closest match;
            None where there is none.
        decimals: the least number of decimals that a column was rounded to, if the first set that needs `ROUNDING` is
            taken.
        difference: the closest match; None if the tables are equal as they stand.
        names: of the expected and of the generated columns.
        rows: numbers of generated and of expected rows.
    """

    needs: tuple[Set, ...]
    columns: tuple[int | None, ...]
    decimals: int | None
    difference: Difference | None
    names: tuple[tuple[Hashable, ...], tuple[Hashable, ...]]
    rows: tuple[int, int]

    def accepted(self, overlooked: Collection[Relaxation], decimals: int = 0) -> bool:
        """Returns whether the tables are equal if this is overlooked, and numbers keep at least so many decimals."""
        allowed = frozenset(overlooked)
        coarse = self.decimals is not None and self.decimals < decimals
        return any(need <= allowed and not (coarse and Relaxation.ROUNDING in need) for need in self.needs)

    def sentence(self) -> str:
        """Returns in words what is overlooked under the first set, or how the tables differ."""
        if not self.needs:
            return self.difference.words if self.difference is not None else "the tables differ"
        if not self.needs[0]:
            return "the same table"
        words = [self._words(one) for one in MILDEST_FIRST if one in self.needs[0]]
        return "the same rows, but " + (", ".join(words[:-1]) + " and " + words[-1] if words[1:] else words[0])

    def _words(self, one: Relaxation) -> str:
        expected, generated = self.names
        match one:
            case Relaxation.EXTRA_COLUMNS:
                extra = [name for place, name in enumerate(generated) if place not in self.columns]
                return f"with {_count(len(extra), 'more column', 'more columns')} {_listed(extra)}".rstrip()
            case Relaxation.MISSING_COLUMNS:
                missing = [name for name, place in zip(expected, self.columns, strict=True) if place is None]
                return f"without {_count(len(missing), 'column', 'columns')} {_listed(missing)}".rstrip()
            case Relaxation.DUPLICATES:
                more = self.rows[0] - self.rows[1]
                if more > 0:
                    return f"{_count(more, 'row repeats', 'rows repeat')}"
                return f"{_count(-more, 'repeated row is', 'repeated rows are')} there once" if more else "repeated"
            case Relaxation.ROUNDING:
                return f"rounded to {_count(self.decimals or 0, 'decimal', 'decimals')}"
        return _WORDS[one]


_WORDS = {
    Relaxation.COLUMN_NAMES: "under other names",
    Relaxation.GIVEN_NAMES: "without a name that the question gives",
    Relaxation.COLUMN_ORDER: "with the columns in another order",
    Relaxation.ROW_ORDER: "the order is lost",
    Relaxation.TIE_ORDER: "with tied rows in another order",
    Relaxation.TOLERANCE: "with numbers that are close only",
    Relaxation.PERCENT: "with fractions as percentages, or percentages as fractions",
    Relaxation.DATES: "with dates in another form",
    Relaxation.TEXT_NUMBERS: "with numbers as text",
    Relaxation.CASE: "in another case of letters",
    Relaxation.WHITE_SPACE: "with other white space",
    Relaxation.NULLS: "with missing values written in another way",
    Relaxation.SHAPE: "in another shape",
}


def compare(generated: Table, expected: Table) -> Comparison:
    """Compares two tables.

    Args:
        generated: one, for example a model's result.
        expected: the right one; its `ties` say whether the order of rows counts.
    """
    rows = len(generated.rows), len(expected.rows)
    names = expected.columns, generated.columns
    if generated.shape == expected.shape and names[0] == names[1] and _same(generated.rows, expected.rows):
        return Comparison((frozenset(),), tuple(range(len(expected.columns))), None, None, names, rows)
    trial = Trial(generated, expected)
    needs = smallest_sets(lambda overlooked: trial.fit(overlooked) is not None, trial.stages)
    fit = trial.fit(needs[0]) if needs else None
    rounded = next((trial.fit(need) for need in needs if Relaxation.ROUNDING in need), None)
    if fit is None:
        columns, difference = closest(trial)
    else:
        columns, difference = fit.columns, None
    return Comparison(needs, columns, rounded.decimals if rounded is not None else None, difference, names, rows)


def _same(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    try:
        return rows == others
    except (ArithmeticError, ValueError):  # a signalling NaN or an array does not say
        return False


def closest(trial: Trial) -> tuple[tuple[int | None, ...], Difference]:
    """Returns the closest match of two tables: columns by their names, then by how many cells they share."""
    generated, expected = trial.generated, trial.expected
    columns = closest_columns(trial)
    pairs = [(place, here) for place, here in enumerate(columns) if here is not None]
    absent = [expected.columns[place] for place, here in enumerate(columns) if here is None]
    more = [name for here, name in enumerate(generated.columns) if here not in columns]
    if not pairs:
        return columns, Difference("no column is like an expected one", len(expected.rows), len(generated.rows))
    added = {place: trial.hashes(here, place) for place, here in pairs}
    mine: Any = sum(one for _, one, _ in added.values())
    theirs: Any = sum(other for _, _, other in added.values())
    extra, missing = _unmatched(mine, theirs), _unmatched(theirs, mine)

    def shown(table: Table, places: Sequence[int], rows: Sequence[int]) -> tuple[Row, ...]:
        return tuple(tuple(table.rows[row][place] for place in places) for row in rows[:_EXAMPLES])

    missing_rows = shown(expected, [place for place, _ in pairs], missing)
    extra_rows = shown(generated, [here for _, here in pairs], extra)
    differing = _differing_columns(trial, dict(pairs), added, (mine, theirs), (extra, missing))
    words = [_column_words(one) for one in differing]
    if absent:
        words.append(f"{_count(len(absent), 'column is', 'columns are')} missing: {_listed(absent)}".rstrip(": "))
    if more:
        words.append(f"{_count(len(more), 'column is', 'columns are')} not expected: {_listed(more)}".rstrip(": "))
    if missing and not differing:
        words.append(f"{_count(len(missing), 'row is', 'rows are')} missing, e.g. {_cells(missing_rows[0])}")
    if extra and not differing:
        words.append(f"{_count(len(extra), 'row is', 'rows are')} not expected, e.g. {_cells(extra_rows[0])}")
    sentence = "; ".join(words) or "the rows are the same, but not their order"
    return columns, Difference(sentence, len(missing), len(extra), missing_rows, extra_rows, differing)


def _differing_columns(
    trial: Trial,
    columns: dict[int, int],
    added: dict[int, Any],
    rows: tuple[Any, Any],
    odd: tuple[list[int], list[int]],
) -> tuple[ColumnDifference, ...]:
    """Returns columns without which the rows are the same: all that have other cells, or a single one."""
    import numpy as np

    extra, missing = map(np.array, odd)
    if not len(extra) or len(extra) != len(missing):
        return ()
    others = [place for place, (same, _, _) in added.items() if not same]
    for places in [others] if others else [[place] for place in added]:
        if len(places) == len(added):
            continue
        mine = rows[0][extra] - sum(added[place][1][extra] for place in places)
        theirs = rows[1][missing] - sum(added[place][2][missing] for place in places)
        if bag_of(mine) == bag_of(theirs):
            order = missing[theirs.argsort(kind="stable")][mine.argsort(kind="stable").argsort()]
            return tuple(
                _column_difference(trial, place, columns[place], (extra, order), added[place]) for place in places
            )
    return ()


def _column_difference(
    trial: Trial, place: int, here: int, rows: tuple[Any, Any], added: tuple[bool, Any, Any]
) -> ColumnDifference:
    generated, expected = trial.generated.rows, trial.expected.rows
    differing = (added[1][rows[0]] != added[2][rows[1]]).nonzero()[0]
    first = zip(*(side[differing[:_EXAMPLES]].tolist() for side in rows), strict=True)
    examples = tuple((generated[one][here], expected[other][place]) for one, other in first)
    return ColumnDifference(trial.expected.columns[place], len(differing), len(expected), examples)


def _unmatched(rows: Any, others: Any) -> list[int]:
    """Returns the places of rows that `others` does not have, as multisets, by their hashes."""
    import numpy as np

    order = rows.argsort(kind="stable")
    ranked, others = rows[order], np.sort(others)
    before = np.arange(len(rows)) - np.searchsorted(ranked, ranked)
    there = np.searchsorted(others, ranked, side="right") - np.searchsorted(others, ranked)
    found: list[int] = np.sort(order[before >= there]).tolist()
    return found


def _column_words(one: ColumnDifference) -> str:
    mine, theirs = one.examples[0]
    name = "a column" if one.name is None else f"column `{one.name}`"
    return f"{name} differs in {one.rows:,} of {_count(one.of, 'row', 'rows')}: {_cell(mine)} for {_cell(theirs)}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _listed(names: Sequence[Hashable]) -> str:
    named = [f"`{name}`" for name in names if name is not None]
    return ", ".join(named[:_EXAMPLES]) + (", …" if len(named) > _EXAMPLES else "")


def _cells(row: Row) -> str:
    return "(" + ", ".join([*map(_cell, row[:_SHOWN_CELLS]), *["…"][: len(row) - _SHOWN_CELLS]]) + ")"


def _cell(cell: Any) -> str:
    try:
        text = "NULL" if cell is None else str(cell)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        text = "a very large number"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

"""Compares two tables: what one must overlook for them to be equal, or how they differ."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from eval_pipeline.table_comparison.alignment.matching import Trial
from eval_pipeline.table_comparison.difference import Difference, closest, counted, listed
from eval_pipeline.table_comparison.relaxations import MILDEST_FIRST, Relaxation, Set, smallest_sets
from eval_pipeline.table_comparison.table import ComparedTable, Row


@dataclass(frozen=True, slots=True)
class TableComparison:
    """How two tables compare.

    Attributes:
        needs: the smallest sets of relaxations that make them equal, the mildest first; an empty set alone if they
            are equal as they stand, none if they differ whatever is overlooked.
        columns: for each expected column the place of the generated one under the first set, or in the closest match;
            None where there is none.
        decimals: the least number of decimals that a column was rounded to, if the first set that needs `ROUNDING` is
            taken.
        difference: of the closest match; None if some set is enough.
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

    def sentence(self, granted: Collection[Relaxation] = ()) -> str:
        """Returns in words what is overlooked under the first set, or how the tables differ.

        Args:
            granted: what need not be told.
        """
        overlooked = self.needs[0] if self.needs else self.difference.overlooked if self.difference else frozenset()
        words = [self._words(one) for one in MILDEST_FIRST if one in overlooked and one not in granted]
        told = ", ".join(words[:-1]) + " and " + words[-1] if words[1:] else "".join(words)
        if self.difference is not None:
            return f"{told}; beside that, {self.difference.words}" if told else self.difference.words
        return f"the same rows, but {told}" if told else "the same table"

    def _words(self, one: Relaxation) -> str:
        expected, generated = self.names
        match one:
            case Relaxation.EXTRA_COLUMNS:
                extra = [name for place, name in enumerate(generated) if place not in self.columns]
                return f"with {counted(len(extra), 'more column', 'more columns')} {listed(extra)}".rstrip()
            case Relaxation.MISSING_COLUMNS:
                missing = [name for name, place in zip(expected, self.columns, strict=True) if place is None]
                return f"without {counted(len(missing), 'column', 'columns')} {listed(missing)}".rstrip()
            case Relaxation.DUPLICATES:
                more = self.rows[0] - self.rows[1]
                if more > 0:
                    return f"{counted(more, 'row repeats', 'rows repeat')}"
                return f"{counted(-more, 'repeated row is', 'repeated rows are')} there once" if more else "repeated"
            case Relaxation.ROUNDING:
                decimals = self.decimals if self.difference is None else self.difference.decimals
                return f"rounded to {counted(decimals or 0, 'decimal', 'decimals')}"
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


def compare(generated: ComparedTable, expected: ComparedTable) -> TableComparison:
    """Compares two tables.

    Args:
        generated: one, for example a model's result.
        expected: the right one; its `ties` say whether the order of rows counts.
    """
    rows = len(generated.rows), len(expected.rows)
    names = expected.columns, generated.columns
    if generated.shape == expected.shape and names[0] == names[1] and _same(generated.rows, expected.rows):
        return TableComparison((frozenset(),), tuple(range(len(expected.columns))), None, None, names, rows)
    trial = Trial(generated, expected)
    needs = smallest_sets(lambda overlooked: trial.fit(overlooked) is not None, trial.stages)
    fit = trial.fit(needs[0]) if needs else None
    rounded = next((trial.fit(need) for need in needs if Relaxation.ROUNDING in need), None)
    if fit is None:
        columns, difference = closest(trial)
    else:
        columns, difference = fit.columns, None
    return TableComparison(needs, columns, rounded.decimals if rounded is not None else None, difference, names, rows)


def _same(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    try:
        return rows == others
    except (ArithmeticError, ValueError):  # a signalling NaN or an array does not say
        return False

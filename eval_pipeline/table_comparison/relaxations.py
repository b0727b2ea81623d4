"""What may be overlooked when two tables are compared."""

from enum import StrEnum


class Relaxation(StrEnum):
    """A kind of difference that can be overlooked; the values stand in suites and in the store."""

    EXTRA_COLUMNS = "extra_columns"
    MISSING_COLUMNS = "missing_columns"
    COLUMN_NAMES = "column_names"
    GIVEN_NAMES = "given_names"
    COLUMN_ORDER = "column_order"
    DUPLICATES = "duplicates"
    ROW_ORDER = "row_order"
    TIE_ORDER = "tie_order"
    ROUNDING = "rounding"
    TOLERANCE = "tolerance"
    PERCENT = "percent"
    DATES = "dates"
    TEXT_NUMBERS = "text_numbers"
    CASE = "case"
    WHITE_SPACE = "white_space"
    NULLS = "nulls"
    SHAPE = "shape"


Set = frozenset[Relaxation]

NONE: Set = frozenset()

MILDEST_FIRST = (
    Relaxation.COLUMN_NAMES,
    Relaxation.GIVEN_NAMES,
    Relaxation.COLUMN_ORDER,
    Relaxation.TIE_ORDER,
    Relaxation.WHITE_SPACE,
    Relaxation.CASE,
    Relaxation.TEXT_NUMBERS,
    Relaxation.DATES,
    Relaxation.NULLS,
    Relaxation.ROUNDING,
    Relaxation.SHAPE,
    Relaxation.PERCENT,
    Relaxation.TOLERANCE,
    Relaxation.ROW_ORDER,
    Relaxation.EXTRA_COLUMNS,
    Relaxation.DUPLICATES,
    Relaxation.MISSING_COLUMNS,
)
"""By how much meaning is lost: of several explanations of a difference the mildest is told."""

OF_TEXTS: Set = frozenset(
    {
        Relaxation.WHITE_SPACE,
        Relaxation.CASE,
        Relaxation.TEXT_NUMBERS,
        Relaxation.DATES,
        Relaxation.NULLS,
        Relaxation.PERCENT,
    }
)
"""Those that give cells another key."""

OF_NUMBERS: Set = frozenset({Relaxation.ROUNDING, Relaxation.TOLERANCE, Relaxation.PERCENT})
"""Those that are about pairs of numbers."""

FORM: Set = OF_TEXTS | OF_NUMBERS
"""All that are about cells."""

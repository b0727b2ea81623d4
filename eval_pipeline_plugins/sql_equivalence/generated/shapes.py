"""The shapes of generated databases; each shape finds other differences."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a database.

    Attributes:
        rows: minimum and maximum number of rows in a table.
        nulls: share of NULL if it is allowed.
        width: how many different values a column gets.
        duplicates: share of rows that repeat the previous one.
        empty: whether one table stays empty.
        groups: whether there are as many rows as conditions on counts require.
        exact: share of values that occur in conditions.
        long: whether there are more rows than limits and windows require, however many these are.
        rich: share of values drawn from the many values in `values.RICH`.
        different: whether no two rows of a table have the same value in a column, so that orders have no ties.
        keys_meet: whether columns that are compared with each other get at most two values, even if other columns get
            more.
    """

    rows: tuple[int, int]
    nulls: float = 0.1
    width: int = 2
    duplicates: float = 0.2
    empty: bool = False
    groups: bool = False
    exact: float = 0.6
    keys_meet: bool = False
    long: bool = False
    rich: float = 0.0
    different: bool = False


SHAPES = (
    Shape((1, 2), nulls=0.0, width=1),
    Shape((2, 3), nulls=0.25, width=2),
    Shape((3, 5), nulls=0.0, width=2, duplicates=0.4),
    Shape((4, 6), nulls=0.1, width=3, exact=0.4),
    Shape((3, 5), nulls=0.1, width=2, groups=True, duplicates=0.3),
    Shape((1, 3), nulls=0.5, width=1),
    Shape((6, 9), nulls=0.15, width=4),
    Shape((2, 4), nulls=0.1, width=2, empty=True),
    Shape((5, 8), nulls=0.0, width=3, groups=True, exact=0.8),
    Shape((4, 7), nulls=0.0, width=1, groups=True, exact=0.9),
    Shape((6, 9), nulls=0.0, width=6, groups=True, keys_meet=True),
)

AIMED = (
    Shape((5, 8), nulls=0.0, width=8, duplicates=0.0, rich=0.7),
    Shape((2, 3), nulls=0.0, width=1, duplicates=0.0, exact=1.0, groups=True),
    Shape((6, 9), nulls=0.0, width=9, duplicates=0.1, exact=0.5, rich=0.3, long=True, keys_meet=True),
    Shape((3, 6), nulls=0.0, width=2, duplicates=0.6, exact=0.7, groups=True, keys_meet=True),
    Shape((6, 9), nulls=0.1, width=12, duplicates=0.0, exact=0.3, rich=0.6),
    Shape((4, 8), nulls=0.0, width=5, duplicates=0.0, exact=0.3, long=True, different=True),
    Shape((4, 7), nulls=0.0, width=1, exact=0.9, groups=True, keys_meet=True),
    Shape((8, 12), nulls=0.2, width=6, duplicates=0.2, exact=0.8, rich=0.2),
)
"""They kill mutants that small databases leave: many different values, groups of a size, more rows than a limit."""

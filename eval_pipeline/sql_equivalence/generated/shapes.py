"""What generated databases look like: each shape finds other differences."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """What a database looks like.

    Attributes:
        rows: fewest and most of a table.
        nulls: share of NULL where it is allowed.
        width: how many different values a column gets.
        duplicates: share of rows that repeat the one before.
        empty: whether one table stays empty.
        groups: whether there are as many rows as conditions on counts ask for.
        exact: share of values that conditions name.
        keys_meet: whether columns that are compared with each other get two values at most, however many others get.
    """

    rows: tuple[int, int]
    nulls: float = 0.1
    width: int = 2
    duplicates: float = 0.2
    empty: bool = False
    groups: bool = False
    exact: float = 0.6
    keys_meet: bool = False


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

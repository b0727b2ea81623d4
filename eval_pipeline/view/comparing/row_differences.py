"""Compares the rows that two queries returned: which rows both have, and which only one has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.table_comparison.graded import only_in_one

_MOST_SHOWN = 12

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Compares the rows of a second result with those of a first; duplicate rows count as often as they occur.

    Attributes:
        columns: columns of the first and of the second result.
        removed, added: some of the rows that only the first has, and that only the second has.
        only_first, only_second, common: number of rows.
        reordered: whether both have the same rows in a different order.
    """

    columns: tuple[Sequence[str], Sequence[str]]
    removed: Rows
    added: Rows
    only_first: int
    only_second: int
    common: int
    reordered: bool

    @property
    def is_same(self) -> bool:
        """Whether both have the same rows, perhaps in a different order."""
        return not self.only_first and not self.only_second


def row_differences(first: Any, second: Any) -> RowDifferences | None:
    """Compares two results of the form `{"columns": […], "rows": [[…]]}`; None if one of them is not a table."""
    if not (_is_table(first) and _is_table(second)):
        return None
    before, after = first["rows"], second["rows"]
    removed, added = only_in_one(before, after)
    return RowDifferences(
        (first["columns"], second["columns"]),
        [before[place] for place in removed[:_MOST_SHOWN]],
        [after[place] for place in added[:_MOST_SHOWN]],
        len(removed),
        len(added),
        len(before) - len(removed),
        not removed and not added and any(only_in_one([row], [after[n]])[0] for n, row in enumerate(before)),
    )


def _is_table(result: Any) -> bool:
    return (
        isinstance(result, dict)
        and all(isinstance(result.get(name), list) for name in ("columns", "rows"))
        and all(isinstance(row, list) for row in result["rows"])
    )

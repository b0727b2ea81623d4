"""Rows that two queries returned: what both have, what only one has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.ids import canonical_json

_MOST_SHOWN = 12

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Rows of a second result against those of a first one; an equal row counts as often as it is there.

    Attributes:
        columns: of the first result, and of the second one.
        removed, added: some of the rows that only the first, and that only the second has.
        only_first, only_second, common: how many rows there are.
        reordered: both have the same rows, in another order.
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
        """Nothing is different but perhaps the order."""
        return not self.only_first and not self.only_second


def row_differences(first: Any, second: Any) -> RowDifferences | None:
    """How two results differ, each `{"columns": […], "rows": [[…]]}`; None where one of them is no table."""
    if not (_is_table(first) and _is_table(second)):
        return None
    before, after = ([(canonical_json(row), row) for row in result["rows"]] for result in (first, second))
    counts = [Counter(key for key, _ in rows) for rows in (before, after)]
    removed = _beyond(before, counts[1])
    added = _beyond(after, counts[0])
    return RowDifferences(
        (first["columns"], second["columns"]),
        removed[:_MOST_SHOWN],
        added[:_MOST_SHOWN],
        len(removed),
        len(added),
        len(before) - len(removed),
        not removed and not added and [key for key, _ in before] != [key for key, _ in after],
    )


def _is_table(result: Any) -> bool:
    return (
        isinstance(result, dict)
        and all(isinstance(result.get(name), list) for name in ("columns", "rows"))
        and all(isinstance(row, list) for row in result["rows"])
    )


def _beyond(rows: Sequence[tuple[str, Any]], other: Counter[str]) -> list[Any]:
    """Rows that the other result has less often, in their order."""
    left, found = Counter(other), []
    for key, row in rows:
        if left[key]:
            left[key] -= 1
        else:
            found.append(row)
    return found

"""What a snippet does, according to its syntax tree."""

from functools import lru_cache

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.analysis.columns import touched_columns
from eval_pipeline_plugins.tracks.pandas_code.analysis.filters import Filters, read_filters
from eval_pipeline_plugins.tracks.pandas_code.analysis.names import AssignedNames
from eval_pipeline_plugins.tracks.pandas_code.analysis.operations import (
    STATISTICS,
    grouping_columns,
    join_columns,
    joins,
    operations,
)
from eval_pipeline_plugins.tracks.pandas_code.analysis.sorting import Sorting, read_sorting
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse


@value
class Snippet:
    """What a snippet does.

    Attributes:
        columns: names that it uses like columns; they may include names that no table has.
        operations: names of what it calls, and of functions given to `agg` and others, in order.
        sorting: how it sorts, and which rows it takes from the ends.
        filters: its conditions on rows.
        groupings: columns by which it groups.
        joined: whether it joins tables.
        join_columns: columns by which it joins.
    """

    columns: frozenset[str]
    operations: tuple[str, ...]
    sorting: Sorting
    filters: Filters
    groupings: frozenset[str]
    joined: bool
    join_columns: frozenset[str]

    @property
    def order_keys(self) -> tuple[str, ...]:
        """Returns the columns of its last sort, for `compare`."""
        return self.sorting.keys

    def gives(self, statistic: str) -> bool:
        """Returns whether it has an operation for one of `STATISTICS`; summing truth values also counts as counting."""
        if statistic == "count" and self.filters.counted:
            return True
        return not STATISTICS[statistic].isdisjoint(self.operations)

    @property
    def statistical_operations(self) -> tuple[str, ...]:
        """Returns its operations that belong to any of `STATISTICS`, without duplicates."""
        known = frozenset[str]().union(*STATISTICS.values())
        return tuple(dict.fromkeys(name for name in self.operations if name in known))


@lru_cache(maxsize=256)
def read_snippet(code: str) -> Snippet | None:
    """Analyses a snippet; None if it does not parse."""
    tree = parse(code)
    if tree is None:
        return None
    names = AssignedNames(tree)
    return Snippet(
        columns=touched_columns(tree, names),
        operations=operations(tree, names),
        sorting=read_sorting(tree, names),
        filters=read_filters(tree, names),
        groupings=grouping_columns(tree, names),
        joined=bool(joins(tree, names)),
        join_columns=join_columns(tree, names),
    )

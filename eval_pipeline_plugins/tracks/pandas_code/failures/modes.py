"""Names of failure modes."""

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.results.structure import (
    AGGREGATES,
    FILTERS,
    GROUPINGS,
    JOINS,
    LIMITS,
    SORTS,
)

OF_KIND = {
    "filter": "wrong_filter",
    "boundary": "wrong_boundary",
    "constant": "wrong_constant",
    "grouping": "wrong_grouping",
    "aggregation": "wrong_aggregate",
    "sort": "missing_sort",
    "limit": "wrong_n",
    "join": "wrong_join",
    "column": "wrong_column",
    "derived": "wrong_step",
    "step": "wrong_step",
}
"""The mode for each kind of requirement (`variants.mutants.Kind`)."""

OF_ASPECT = {
    LIMITS: "wrong_n",
    SORTS: "missing_sort",
    FILTERS: "wrong_filter",
    JOINS: "wrong_join",
    GROUPINGS: "wrong_grouping",
    AGGREGATES: "wrong_aggregate",
}
"""The mode for each aspect in which code differs from the reference code, first that applies."""


@value
class Failure:
    """What went wrong, and what shows it.

    Attributes:
        mode: one of `FAILURE_MODES`.
        why: one sentence.
    """

    mode: str
    why: str

"""Requirement coverage: the share of filters, groups, orders and joins in the question that the code has."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import MetricResult
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.metrics.understanding import takes

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import Snippet
    from eval_pipeline_plugins.tracks.pandas_code.question.question import Direction, End, QuestionWords

WEIGHTS = {
    "filter_conditions_coverage": 0.3,
    "groupby_columns_coverage": 0.3,
    "sorting_coverage": 0.2,
    "join_conditions_coverage": 0.2,
}
DIRECTIONS: "Mapping[End, Direction]" = {"top": "descending", "bottom": "ascending"}
"""The sort direction that puts an end (top or bottom) first."""
_JOINED_WITHOUT_KEYS = 0.5
_NO_CODE = "There is no code that parses"


@value
class MetShare:
    """How far one kind of requirement is met.

    Attributes:
        share: 0..1; 1 if the question asks for none.
        missing: a sentence on what is missing; empty if nothing is.
    """

    share: float
    missing: str = ""


_MET = MetShare(1.0)


def requirement_coverage(question: str, code: str, tables: Mapping[str, Sequence[str]]) -> MetricResult:
    """Returns how far code covers a question's requirements, judged by the texts alone.

    Args:
        question: the question.
        code: the code that answers it.
        tables: the columns of each table.
    """
    from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import read_snippet
    from eval_pipeline_plugins.tracks.pandas_code.question.question import read_question

    return coverage_score(read_question(question, tables), read_snippet(code))


def coverage_score(asked: "QuestionWords", written: "Snippet | None") -> MetricResult:
    """Returns 0.3 · filters + 0.3 · groups + 0.2 · sorting + 0.2 · joins; each part is 1 if the question asks for none.

    Args:
        asked: what the question asks for.
        written: what the code does; None if there is no code or it does not parse, which gives 0.
    """
    if written is None:
        missing: list[str] = [_NO_CODE]
        return MetricResult(0.0, details={**dict.fromkeys(WEIGHTS, 0.0), "missing_requirements": missing})
    parts = {
        "filter_conditions_coverage": filters(asked, written),
        "groupby_columns_coverage": groups(asked, written),
        "sorting_coverage": sorting(asked, written),
        "join_conditions_coverage": joins(asked, written),
    }
    score = sum(WEIGHTS[name] * part.share for name, part in parts.items())
    shares = {name: part.share for name, part in parts.items()}
    sentences = [part.missing for part in parts.values() if part.missing]
    return MetricResult(score, details={**shares, "missing_requirements": sentences})


def filters(asked: "QuestionWords", written: "Snippet") -> MetShare:
    """Returns the number of conditions in the code divided by that in the question, at most 1; 1 if it has none.

    A `between` counts as two conditions if the question states its two ends separately.
    """
    if not asked.conditions:
        return _MET
    found = written.filters.conditions + max(0, written.filters.ranges - asked.ranges)
    if found >= asked.conditions:
        return _MET
    return MetShare(
        found / asked.conditions, f"Filter condition missing: {asked.conditions - found} of {asked.conditions}"
    )


def groups(asked: "QuestionWords", written: "Snippet") -> MetShare:
    """Returns the share of the requested grouping columns that the code uses.

    Without columns, whether it groups at all.
    """
    if not asked.grouped:
        return _MET
    if not written.gives("group"):
        return MetShare(0.0, "Group by operation missing")
    missing = [column for column in asked.groupings if column not in written.groupings]
    if not missing:
        return _MET
    return MetShare(1 - len(missing) / len(asked.groupings), f"Group by columns missing: {', '.join(missing)}")


def sorting(asked: "QuestionWords", written: "Snippet") -> MetShare:
    """Returns the share of the requested sort orders that the code has.

    Any order is right if no direction is stated.
    """
    wanted = [*asked.directions, *asked.ends]
    found = written.sorting
    if not wanted:
        return _MET if not asked.ordered or found.directions else MetShare(0.0, "Sorting missing")
    missing = [direction for direction in asked.directions if direction not in found.directions]
    missing += [DIRECTIONS[end] for end in asked.ends if not _gives_end(end, asked, written)]
    if not missing:
        return _MET
    share = 1 - len(missing) / len(wanted)
    if not found.directions:
        return MetShare(share, "Sorting missing")
    return MetShare(share, f"Sorting direction missing: {', '.join(dict.fromkeys(missing))}")


def _gives_end(end: "End", asked: "QuestionWords", written: "Snippet") -> bool:
    """Returns whether the code has the order for one end; a single largest row may also be found with a maximum."""
    from eval_pipeline_plugins.tracks.pandas_code.question.question import RowSelection

    if DIRECTIONS[end] in written.sorting.directions:
        return True
    numbers = {selection.n for selection in asked.selections if selection.end == end}
    if numbers <= {1}:
        return takes(written, RowSelection(end, 1)) or written.gives("max" if end == "top" else "min")
    # Taken from the end of the opposite order, or by rank.
    return any(cut.end == end and cut.n is not None for cut in written.sorting.cuts) and bool(
        written.sorting.directions or "rank" in written.operations
    )


def joins(asked: "QuestionWords", written: "Snippet") -> MetShare:
    """Returns 1 for a join with keys as named in the question (any if none are named), 0.5 for a join without them."""
    if not asked.joined:
        return _MET
    if not written.joined:
        return MetShare(0.0, "Join/merge operation missing")
    missing = [column for column in asked.join_keys if column not in written.join_columns]
    if not asked.join_keys and not written.join_columns:
        missing = list(asked.shared_columns)
        return MetShare(_JOINED_WITHOUT_KEYS, f"Join key columns missing{': ' if missing else ''}{', '.join(missing)}")
    if not missing:
        return _MET
    return MetShare(_JOINED_WITHOUT_KEYS, f"Join key columns missing: {', '.join(missing)}")

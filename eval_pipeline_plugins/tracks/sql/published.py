"""Scores of two results by the rules of other benchmarks; the metrics are in `metrics/published.py` and `spider.py`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from eval_pipeline.core.model import Failed
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline_plugins.tracks.sql.metrics.published import has_columns, positional_f1, same_row_sets
from eval_pipeline_plugins.tracks.sql.metrics.spider import same_bags


def published_scores(generated: SqlRows, expected: SqlRows, accepted: str, asks_order: bool) -> dict[str, float]:
    """Returns the score for each metric.

    Args:
        generated: result of a model's query.
        expected: result of the accepted query.
        accepted: the accepted query; Spider's evaluator takes the order of rows from its text.
        asks_order: whether the question asks for an order of rows, as defog understands it.
    """
    mine, theirs = _hashable_rows(generated), _hashable_rows(expected)
    return {
        "bird_ex": same_row_sets(mine, theirs),
        "bird_soft_f1": positional_f1(mine, theirs),
        "spider_execution": same_bags(mine, theirs, "order by" in accepted.lower()),
        "defog_subset": has_columns(mine, theirs, expected.columns, asks_order),
    }


def test_suite_score(
    databases: Sequence[Path], generated: str, accepted: str, run: Callable[[Path, str], SqlRows | Failed]
) -> float | None:
    """Returns 1.0 if both have the same result on all databases, by the rules of `spider_execution`.

    None if the accepted query does not run on one of them.
    """
    ordered, score = "order by" in accepted.lower(), 1.0
    for path in databases:
        mine, theirs = (run(path, sql) for sql in (generated, accepted))
        if isinstance(theirs, Failed):
            return None
        if isinstance(mine, Failed) or not same_bags(_hashable_rows(mine), _hashable_rows(theirs), ordered):
            score = 0.0
    return score


def best_scores(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns each score's best value over the accepted queries that have it."""
    return {name: max(one.get(name, 0.0) for one in scores) for name in {key: None for one in scores for key in one}}


def _hashable_rows(found: SqlRows) -> list[tuple[object, ...]]:
    return [tuple(map(_hashable, row)) for row in found.rows]


def _hashable(cell: object) -> object:
    """Returns lists and structs of DuckDB as text, since the evaluators put rows into sets."""
    return str(cell) if isinstance(cell, list | dict) else cell

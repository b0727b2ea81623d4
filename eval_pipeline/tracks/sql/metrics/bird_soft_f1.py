"""Soft F1 as BIRD's mini-dev defines it (bird-bench/mini_dev, evaluation_f1.py)."""

from collections.abc import Mapping

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.published import WHERE_NULL, Rows, published_result


def positional_f1(generated: Rows, expected: Rows) -> float:
    """Returns the F1 score over cells, where each row is compared with the row at the same position.

    Repeated rows are removed first. A cell is a hit if the other row has an equal cell anywhere. All counts of a pair
    are divided by the width of the expected row; a row without a partner counts as one miss.
    """
    if not generated and not expected:
        return 1.0
    mine, theirs = list(dict.fromkeys(generated)), list(dict.fromkeys(expected))
    hits = 0.0
    extra, missing = float(max(len(mine) - len(theirs), 0)), float(max(len(theirs) - len(mine), 0))
    for own, other in zip(mine, theirs, strict=False):
        found = sum(cell in other for cell in own)
        hits += found / len(other)
        extra += (len(own) - found) / len(other)
        missing += sum(cell not in own for cell in other) / len(other)
    precision = hits / (hits + extra) if hits + extra else 0.0
    recall = hits / (hits + missing) if hits + missing else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def bird_soft_f1(
    generated: str | None,
    execution: str | None,
    published: Mapping[str, float],
    should_pass: bool,
    changes_data: bool = False,
) -> MetricResult:
    """Returns the score of a turn."""
    return published_result("bird_soft_f1", generated, execution, published, should_pass, changes_data)


METRIC = Metric(
    "bird_soft_f1",
    bird_soft_f1,
    "score",
    f"Soft F1 of BIRD's mini-dev: over cells, rows compared by position, repeated ones removed, 0..1; {WHERE_NULL}",
)

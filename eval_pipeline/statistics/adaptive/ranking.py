"""Ranks models that answer the same uniformly drawn conversations, with looks on a schedule.

Every two models are compared by the exact sign-flip test on conversations (`mcnemar_exact`), for which the
conversations asked so far are a sample of possible ones. The t test of full evaluations errs too often at the small
levels that are left for a pair and a look (1.5 times at the first look in 700 simulated rankings). The information of a
look grows with the number of conversations, so the boundary of `looks.critical` applies to each pair; the error of the
family is divided equally among the pairs (Bonferroni), so that the probability of any wrong order, over all pairs and
looks, is at most 5%. A model of which all pairs are decided need not be asked further.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

from numpy.typing import ArrayLike

from eval_pipeline.statistics.adaptive.looks import critical
from eval_pipeline.statistics.pairs.paired import paired_difference


def pair_verdict(
    first: ArrayLike, second: ArrayLike, clusters: ArrayLike, *, asked: Sequence[int], looks: int, pairs: int
) -> int:
    """Decides at one look which of two models is better.

    Args:
        first: Shape (turns,), the first model's outcomes on the turns asked so far, 1 or 0.
        second: Shape (turns,), the second model's.
        clusters: Shape (turns,), whole numbers, the conversations.
        asked: Number of conversations asked up to each look so far, ascending.
        looks: Number of looks of the schedule.
        pairs: Number of pairs of the family.

    Returns:
        1 if the second model is better, -1 if the first one is, 0 if that is not decided.

    Raises:
        ValueError: If shapes do not fit, or ``asked`` does not ascend or is longer than the schedule.
    """
    found = paired_difference(first, second, clusters)
    p_value = found.p_exact
    if p_value is None or not found.difference:
        return 0
    boundary = critical(1.0 - 0.05 / pairs, len(asked), looks, tuple(map(float, asked)))
    level = 2.0 * (1.0 - NormalDist().cdf(boundary))
    return 0 if p_value > level else 1 if found.difference > 0.0 else -1

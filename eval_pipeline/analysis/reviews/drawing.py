"""Draws answers for people to review, with known probabilities, so that estimates from the reviews are unbiased.

With `disagreement`, answers are drawn from strata by who disagrees about them; answers on which judge, metrics or model
versions disagree are drawn more often. The allocation follows Neyman (1934, "On the Two Different Aspects of the
Representative Method"): n_h is proportional to N_h S_h, where S_h is the standard deviation of a verdict if half (with
disagreement) or one in twenty (without) of them differ from the metric.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random

import numpy as np
import numpy.typing as npt

from eval_pipeline.analysis.reviews.answers import Answer, Place
from eval_pipeline.analysis.reviews.scores import NONE, AllScores
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.suites.reviews.queues import Queue, Stratum

UNIFORM, DISAGREEMENT = WAYS = ("uniform", "disagreement")
JUDGE_AND_METRIC, METRICS, MODELS = "judge and metric disagree", "metrics disagree", "models disagree"
ALL_RIGHT, ALL_WRONG, UNSCORED, ALL = "all say right", "all say wrong", "not scored", "all"
_OPEN = math.sqrt(0.5 * 0.5)
_SETTLED = math.sqrt(0.05 * 0.95)
_LEAST = 2
"""Minimum sample of a stratum; fewer would show no spread."""


def draw(
    scores: AllScores,
    by: str,
    size: int,
    seed: int,
    read: Callable[[Sequence[tuple[Partition, Place]]], Iterable[Answer]],
) -> Queue:
    """Draws a queue of `size` answers; the same seed and answers give the same queue.

    Args:
        scores: the answers to draw from.
        by: method of the draw, one of `WAYS`.
        size: how many to draw.
        seed: seed of the draw.
        read: returns the answers at some places, in the same order.

    Raises:
        UsageError: there are no answers, or `size` is too small to cover every stratum.
    """
    if not len(scores):
        raise UsageError("there is no answer to review; every call failed")
    strata = strata_of(scores) if by == DISAGREEMENT else {ALL: np.arange(len(scores))}
    counts = allocation({name: len(members) for name, members in strata.items()}, size)
    random = Random(seed)
    placed: list[tuple[float, str, int]] = []
    for name, members in strata.items():
        drawn = random.sample(range(len(members)), counts[name])
        # Every beginning of the list contains each stratum in proportion, so that estimates need not wait for its end.
        placed += [((at + random.random()) / counts[name], name, int(members[one])) for at, one in enumerate(drawn)]
    placed.sort(key=lambda one: (one[0], one[1]))
    told = {name: Stratum(population=len(members), drawn=counts[name]) for name, members in strata.items()}
    answers = read([scores.place(index) for *_, index in placed])
    items = tuple(answer.item(name) for answer, (_, name, _) in zip(answers, placed, strict=True))
    return Queue.drawn(datetime.now(UTC), by, seed, told, items)


def strata_of(scores: AllScores) -> dict[str, npt.NDArray[np.intp]]:
    """Returns the indices of the answers, grouped by the first kind of disagreement that applies to each."""
    kinds = {
        UNSCORED: scores.correct == NONE,
        JUDGE_AND_METRIC: (scores.judged != NONE) & (scores.judged != scores.correct),
        METRICS: scores.disputed,
        MODELS: scores.models_disagree,
        ALL_RIGHT: scores.correct == 1,
        ALL_WRONG: scores.correct == 0,
    }
    first = np.select(list(kinds.values()), range(len(kinds)))
    members = {name: np.flatnonzero(first == number) for number, name in enumerate(kinds)}
    order = (JUDGE_AND_METRIC, METRICS, MODELS, ALL_RIGHT, ALL_WRONG, UNSCORED)
    return {name: members[name] for name in order if len(members[name])}


def allocation(populations: Mapping[str, int], size: int) -> dict[str, int]:
    """Returns the number to draw from each stratum, proportional to N_h S_h, at least two and at most all.

    Raises:
        UsageError: `size` is too small to cover every stratum.
    """
    least = {name: min(_LEAST, count) for name, count in populations.items()}
    size = min(size, sum(populations.values()))
    if size < sum(least.values()):
        raise UsageError(
            f"{size} are too few for {len(populations)} kinds of answers; expected at least {sum(least.values())}"
        )
    shares = {
        name: count * (_SETTLED if name in {ALL_RIGHT, ALL_WRONG} else _OPEN) for name, count in populations.items()
    }
    counts = dict(least)
    # Give one at a time to the stratum furthest below its share (D'Hondt), so that rounding cannot miss the total.
    for _ in range(size - sum(counts.values())):
        open_ones = [name for name in counts if counts[name] < populations[name]]
        chosen = max(open_ones, key=lambda name: shares[name] / (counts[name] + 1))
        counts[chosen] += 1
    return counts

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
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.analysis.reviews.answers import Answer, Place
from eval_pipeline.analysis.reviews.scores import NONE, AllScores
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.suites.reviews.queues import Queue, Stratum, StratumCell

UNIFORM, DISAGREEMENT, NARROWEST = WAYS = ("uniform", "disagreement", "narrowest")
JUDGE_AND_METRIC, METRICS, MODELS = "judge and metric disagree", "metrics disagree", "models disagree"
ALL_RIGHT, ALL_WRONG, UNSCORED, ALL = "all say right", "all say wrong", "not scored", "all"
_OPEN, _SETTLED = 0.5, 0.05
"""Expected share of errors of the metric where there is disagreement, and elsewhere."""
_ASSUMED = 4.0
"""Number of reviews that the expected share counts as beside those there are."""
_LEAST = 2
"""Minimum sample of a stratum; fewer would show no spread."""


def draw(
    scores: AllScores,
    by: str,
    size: int,
    seed: int,
    read: Callable[[Sequence[tuple[Partition, Place]]], Iterable[Answer]],
    known: Mapping[Place, bool] | None = None,
) -> Queue:
    """Draws a queue of `size` answers; the same seed and answers give the same queue.

    Args:
        scores: the answers to draw from.
        by: method of the draw, one of `WAYS`.
        size: how many to draw.
        seed: seed of the draw.
        read: returns the answers at some places, in the same order.
        known: whether people call an answer right, of those reviewed before; only `narrowest` uses it.

    Raises:
        UsageError: there are no answers, or `size` is too small to cover every stratum.
    """
    if not len(scores):
        raise UsageError("there is no answer to review; every call failed")
    strata = _STRATA[by](scores)
    errors = _errors(scores, strata, known or {}) if by == NARROWEST else {}
    counts = allocation({name: len(members) for name, members in strata.items()}, size, errors)
    random = Random(seed)
    placed: list[tuple[float, str, int]] = []
    for name, members in strata.items():
        drawn = random.sample(range(len(members)), counts[name])
        # Every beginning of the list contains each stratum in proportion, so that estimates need not wait for its end.
        placed += [((at + random.random()) / counts[name], name, int(members[one])) for at, one in enumerate(drawn)]
    placed.sort(key=lambda one: (one[0], one[1]))
    told = {
        name: Stratum(population=len(members), drawn=counts[name], cells=_cells(scores, members))
        for name, members in strata.items()
    }
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


def strata_by_verdict(scores: AllScores) -> dict[str, npt.NDArray[np.intp]]:
    """Returns the strata of `strata_of`, those with both verdicts of the metric split by it."""
    found = {}
    for name, members in strata_of(scores).items():
        if name in {ALL_RIGHT, ALL_WRONG, UNSCORED}:
            found[name] = members
            continue
        for verdict, word in ((1, "right"), (0, "wrong")):
            if len(own := members[scores.correct[members] == verdict]):
                found[f"{name}, metric says {word}"] = own
    return found


def _errors(
    scores: AllScores, strata: Mapping[str, npt.NDArray[np.intp]], known: Mapping[Place, bool]
) -> dict[str, float]:
    """Returns the expected share of errors of the metric in each stratum, given what people said before."""
    turns = pa.array(sorted({place[0] for place in known}), pa.string())
    candidates = np.flatnonzero(pc.is_in(scores.turn_ids, value_set=turns).to_numpy(zero_copy_only=False))
    wrong = np.full(len(scores), -1, np.int8)
    for index in candidates:
        right = known.get(scores.place(int(index))[1])
        if right is not None:
            wrong[index] = int(right) != max(int(scores.correct[index]), 0)
    found = {}
    for name, members in strata.items():
        seen = wrong[members]
        expected = _ASSUMED * _expected(name)
        found[name] = float(((seen == 1).sum() + expected) / ((seen >= 0).sum() + _ASSUMED))
    return found


def _expected(name: str) -> float:
    return _SETTLED if name in {ALL_RIGHT, ALL_WRONG} else _OPEN


def _cells(scores: AllScores, members: npt.NDArray[np.intp]) -> tuple[StratumCell, ...]:
    """Returns how many answers of a stratum have the same model version and verdicts."""
    rows = np.column_stack([scores.of[members], scores.correct[members], scores.judged[members]])
    counts: dict[tuple[str, bool | None, bool | None], int] = {}
    for (place, *said), count in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
        metric, judge = (None if one == NONE else bool(one) for one in said)
        key = scores.partitions[place].model_version, metric, judge
        counts[key] = counts.get(key, 0) + int(count)
    return tuple(
        StratumCell(model_version=version, metric=metric, judge=judge, answers=count)
        for (version, metric, judge), count in counts.items()
    )


def allocation(populations: Mapping[str, int], size: int, errors: Mapping[str, float] | None = None) -> dict[str, int]:
    """Returns the number to draw from each stratum, proportional to N_h S_h, at least two and at most all.

    Args:
        populations: the size of each stratum.
        size: how many to draw.
        errors: the expected share of errors in each stratum; by default half or one in twenty.

    Raises:
        UsageError: `size` is too small to cover every stratum.
    """
    least = {name: min(_LEAST, count) for name, count in populations.items()}
    size = min(size, sum(populations.values()))
    if size < sum(least.values()):
        raise UsageError(
            f"{size} are too few for {len(populations)} kinds of answers; expected at least {sum(least.values())}"
        )
    expected = {name: (errors or {}).get(name, _expected(name)) for name in populations}
    shares = {name: count * math.sqrt(expected[name] * (1.0 - expected[name])) for name, count in populations.items()}
    counts = dict(least)
    # Give one at a time to the stratum furthest below its share (D'Hondt), so that rounding cannot miss the total.
    for _ in range(size - sum(counts.values())):
        open_ones = [name for name in counts if counts[name] < populations[name]]
        chosen = max(open_ones, key=lambda name: shares[name] / (counts[name] + 1))
        counts[chosen] += 1
    return counts


_STRATA: Mapping[str, Callable[[AllScores], dict[str, npt.NDArray[np.intp]]]] = {
    UNIFORM: lambda scores: {ALL: np.arange(len(scores))},
    DISAGREEMENT: strata_of,
    NARROWEST: strata_by_verdict,
}

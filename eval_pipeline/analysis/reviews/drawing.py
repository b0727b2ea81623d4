"""Drawing answers for people to review, with known probabilities: figures from what they say stay unbiased.

By `disagreement` answers are drawn from strata, by who disagrees about them, more of those on which judge, metrics or
model versions disagree. How many of which follows Neyman (1934, "On the Two Different Aspects of the Representative
Method"): n_h in proportion to N_h S_h, with the standard deviation S_h that a verdict has where half (disagreement) or
one in twenty (no disagreement) differ from the metric.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from random import Random

from eval_pipeline.analysis.reviews.answers import Answer
from eval_pipeline.core.errors import UsageError
from eval_pipeline.suites.reviews.queues import Queue, Stratum

UNIFORM, DISAGREEMENT = WAYS = ("uniform", "disagreement")
JUDGE_AND_METRIC, METRICS, MODELS = "judge and metric disagree", "metrics disagree", "models disagree"
ALL_RIGHT, ALL_WRONG, UNSCORED, ALL = "all say right", "all say wrong", "not scored", "all"
_OPEN = math.sqrt(0.5 * 0.5)
_SETTLED = math.sqrt(0.05 * 0.95)
_LEAST = 2
"""Of a stratum: fewer show no spread."""


def draw(answers: Sequence[Answer], by: str, size: int, seed: int) -> Queue:
    """A queue of that many answers; the same ones for the same seed and answers.

    Raises:
        UsageError: there are none, or so few are asked for that a stratum would go without.
    """
    answered = sorted((answer for answer in answers if answer.answered), key=lambda answer: answer.place)
    if not answered:
        raise UsageError("there is no answer to review; every call failed")
    strata = strata_of(answered) if by == DISAGREEMENT else {ALL: answered}
    counts = allocation({name: len(members) for name, members in strata.items()}, size)
    random = Random(seed)
    placed: list[tuple[float, str, Answer]] = []
    for name, members in strata.items():
        drawn = random.sample(members, counts[name])
        # Each beginning of the list has of every stratum its share, so that figures need not wait for its end.
        placed += [((index + random.random()) / counts[name], name, answer) for index, answer in enumerate(drawn)]
    placed.sort(key=lambda one: (one[0], one[1]))
    told = {name: Stratum(population=len(members), drawn=counts[name]) for name, members in strata.items()}
    items = tuple(answer.item(name) for _, name, answer in placed)
    return Queue.drawn(datetime.now(UTC), by, seed, told, items)


def strata_of(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """The answers by the first disagreement that there is about them; empty kinds are left out."""
    verdicts: dict[str, set[bool]] = {}
    for answer in answers:
        if answer.correct is not None:
            verdicts.setdefault(answer.turn_id, set()).add(answer.correct)
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        found.setdefault(_kind(answer, len(verdicts.get(answer.turn_id, ())) > 1), []).append(answer)
    order = (JUDGE_AND_METRIC, METRICS, MODELS, ALL_RIGHT, ALL_WRONG, UNSCORED)
    return {name: found[name] for name in order if name in found}


def allocation(populations: Mapping[str, int], size: int) -> dict[str, int]:
    """How many to draw of each stratum, in proportion to N_h S_h, at least two, and at most as many as there are.

    Raises:
        UsageError: so few are asked for that a stratum would go without.
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
    # One after the other to whichever is furthest below its share (D'Hondt): rounding cannot miss the size.
    for _ in range(size - sum(counts.values())):
        open_ones = [name for name in counts if counts[name] < populations[name]]
        chosen = max(open_ones, key=lambda name: shares[name] / (counts[name] + 1))
        counts[chosen] += 1
    return counts


def _kind(answer: Answer, models_disagree: bool) -> str:
    if answer.correct is None:
        return UNSCORED
    if answer.judged is not None and answer.judged != answer.correct:
        return JUDGE_AND_METRIC
    if any(said != answer.correct for said in answer.strict):
        return METRICS
    if models_disagree:
        return MODELS
    return ALL_RIGHT if answer.correct else ALL_WRONG

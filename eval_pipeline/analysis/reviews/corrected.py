"""Figures that correct metric and judge by what people say: accuracy as reviewers would say, and biases by group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from eval_pipeline.analysis.reviews.answers import Answer
from eval_pipeline.statistics.samples.corrected import drawn_bias, drawn_corrected_rate
from eval_pipeline.statistics.samples.sampling import DrawnEstimate, Strata
from eval_pipeline.suites.reviews.queues import Queue, QueueItem, StratumCell
from eval_pipeline.suites.reviews.review import RIGHT, WRONG, AnswerKey, Review, verdict_of


@dataclass(frozen=True, slots=True)
class ReviewedUnit:
    """A reviewed answer.

    Attributes:
        reviews: the reviews that count.
        answer: the recorded answer; None if it is gone or its response has changed.
        item: how a queue has drawn it; None if no queue did.
    """

    key: AnswerKey
    reviews: Sequence[Review]
    answer: Answer | None
    item: QueueItem | None = None

    @property
    def verdict(self) -> str | None:
        """The majority verdict; None if it is a tie."""
        return verdict_of(self.reviews)

    @property
    def gold_wrong(self) -> bool:
        """Whether most reviewers say that the gold is wrong."""
        return sum(review.gold_wrong for review in self.reviews) * 2 > len(self.reviews)

    @property
    def tags(self) -> set[str]:
        """Every failure tag that was given."""
        return {review.tag for review in self.reviews if review.tag is not None}

    @property
    def cluster(self) -> str:
        """Shared by answers that are not independent."""
        return self.answer.cluster if self.answer else self.key.turn_id.rpartition("#")[0]

    def said(self, rater: str) -> bool | None:
        """Returns the verdict of `metric` or `judge`; None if there is none."""
        if self.answer is None:
            return None
        return self.answer.correct if rater == "metric" else self.answer.judged


Row = dict[str, Any]
METRIC, JUDGE = RATERS = ("metric", "judge")
LEAST = 12
"""Fewest reviews that bear a figure.

Wilson's interval of a share of one half is z / sqrt(n + z²) wide: at most half of all values from n = 3 z² = 11.5 on.
"""


def headline_rater(queue: Queue) -> str:
    """Returns whose verdicts the one figure to be shown corrects: the judge's if it was asked about all answers.

    This depends on the draw alone; choosing the narrower of two intervals would make it too narrow.
    """
    cells = [cell for stratum in queue.strata.values() for cell in stratum.cells]
    return JUDGE if cells and all(cell.judge is not None for cell in cells) else METRIC


def corrected_figure(rater: str) -> str:
    """Returns the name of the figure that corrects a rater's verdicts."""
    return f"{rater}_corrected_accuracy"


@dataclass(frozen=True)
class Corrected:
    """The corrected figures of a queue.

    Attributes:
        queue: the queue; without cells (in older files) there are no accuracies.
        units: its reviewed answers, with their items.
        strata: their strata.
    """

    queue: Queue
    units: Sequence[ReviewedUnit]
    strata: Strata

    def rows(self, version: str | None) -> Iterator[Row]:
        """Yields the figures about the answers of a model version, or all; without the columns of queue and version."""
        for rater in RATERS:
            if any(_verdict(cell, rater) is not None for cell in self._cells):
                yield {"figure": corrected_figure(rater), "label": None} | self._accuracy(version, rater)
        for rater in RATERS:
            yield from self._biases(version, rater)

    @cached_property
    def _cells(self) -> list[StratumCell]:
        return [cell for stratum in self.queue.strata.values() for cell in stratum.cells]

    def _accuracy(self, version: str | None, rater: str) -> Row:
        own = [cell for cell in self._cells if version in (None, cell.model_version)]
        said = [unit.verdict for unit in self.units]
        found = drawn_corrected_rate(
            [one == RIGHT for one in said],
            [_prediction(unit.item, rater) for unit in self.units if unit.item],
            [one in {RIGHT, WRONG} for one in said],
            self.strata,
            sum(cell.answers * _prediction(cell, rater) for cell in own) / sum(cell.answers for cell in own),
            group=[version in (None, unit.key.model_version) for unit in self.units],
        )
        return _row(found)

    def _biases(self, version: str | None, rater: str) -> Iterator[Row]:
        """Yields how much more a rater calls right than people do: of all answers, and by tag of the case."""
        said = [unit.said(rater) for unit in self.units]
        right = np.array([unit.verdict == RIGHT for unit in self.units], dtype=bool)
        both = np.array(
            [
                one is not None and unit.verdict in {RIGHT, WRONG} and version in (None, unit.key.model_version)
                for one, unit in zip(said, self.units, strict=True)
            ],
            dtype=bool,
        )
        if not both.any():
            return
        theirs = np.array([bool(one) for one in said], dtype=bool)
        tags = [unit.answer.tags if unit.answer else frozenset() for unit in self.units]
        for label in [None, *sorted(frozenset[str]().union(*tags))]:
            inside = both & np.array([label is None or label in own for own in tags], dtype=bool)
            if label is None or inside.sum() >= LEAST:
                yield {"figure": f"{rater}_bias", "label": label} | _row(drawn_bias(theirs, right, inside, self.strata))


def _verdict(one: StratumCell | QueueItem, rater: str) -> bool | None:
    return one.metric if rater == METRIC else one.judge


def _prediction(one: StratumCell | QueueItem, rater: str) -> float:
    """Returns what is expected of people: the rater's verdict, for the judge the metric's where it was not asked."""
    said = _verdict(one, rater)
    said = one.metric if said is None else said
    return 0.5 if said is None else float(said)


def _row(found: DrawnEstimate) -> Row:
    return {name: getattr(found, name) for name in ("n", "population", "value", "se", "low", "high", "reason")}

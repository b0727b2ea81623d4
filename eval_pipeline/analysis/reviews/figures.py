"""Figures computed from reviews: accuracy in people's judgement, and how well metric and judge agree with people."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eval_pipeline.analysis.reviews.answers import Answer, Place
from eval_pipeline.analysis.reviews.corrected import LEAST, Corrected, ReviewedUnit
from eval_pipeline.statistics.intervals import estimate_rate
from eval_pipeline.statistics.raters.agreement import cohens_kappa
from eval_pipeline.statistics.samples.sampling import NO_SPREAD, ONE_WORD, Strata, drawn_kappa, drawn_rate
from eval_pipeline.suites.reviews.queues import Queue
from eval_pipeline.suites.reviews.review import (
    CANNOT_TELL,
    RIGHT,
    VERDICTS,
    WRONG,
    AnswerKey,
    Review,
    asked_by_queues,
    by_answer,
    current,
)

TOO_FEW = f"fewer than {LEAST} reviews bear no figure"
NO_INTERVAL = "it has no interval"
TOO_WIDE = "its 95% interval covers more than half of what is possible"
Row = dict[str, Any]
Bools = NDArray[np.bool_]


class _Sight(Protocol):
    """How figures are estimated from the reviewed units."""

    def rate(self, values: Bools, domain: Bools) -> Row: ...

    def kappa(self, first: Bools, second: Bools, domain: Bools) -> Row: ...


@dataclass(frozen=True)
class _Drawn:
    """Estimates figures for all the answers from which a queue was drawn."""

    strata: Strata

    def rate(self, values: Bools, domain: Bools) -> Row:
        return _row(drawn_rate(values, domain, self.strata))

    def kappa(self, first: Bools, second: Bools, domain: Bools) -> Row:
        return _row(drawn_kappa(first, second, domain, self.strata))


@dataclass(frozen=True)
class _LookedAt:
    """Figures of the reviewed answers themselves, without generalising."""

    clusters: NDArray[np.int64]

    def rate(self, values: Bools, domain: Bools) -> Row:
        return _rate(values[domain].astype(np.float64), self.clusters[domain])

    def kappa(self, first: Bools, second: Bools, domain: Bools) -> Row:
        return _kappa(first[domain].astype(np.int64), second[domain].astype(np.int64), self.clusters[domain])


def figure_rows(reviews: Sequence[Review], queues: Mapping[str, Queue], answers: Mapping[Place, Answer]) -> list[Row]:
    """Returns the rows of `review_statistics`: figures without a value where the reviews can bear none.

    Arguments as of `estimated_rows`.
    """
    return [_borne(row) for row in estimated_rows(reviews, queues, answers)]


def estimated_rows(
    reviews: Sequence[Review], queues: Mapping[str, Queue], answers: Mapping[Place, Answer]
) -> list[Row]:
    """Returns all figures that can be computed, however little they say.

    Args:
        reviews: each once, including superseded ones.
        queues: the queues by id.
        answers: the answers that the reviews are about, by place.
    """
    together, asked = by_answer(current(reviews)), asked_by_queues(reviews)
    rows: list[Row] = []
    for queue in queues.values():
        units, strata = units_of_queue(queue, together, asked.get(queue.id, {}), answers)
        corrected = Corrected(queue, units, strata)
        rows += [{"queue": queue.id} | row for row in _figures(units, _Drawn(strata), corrected)]
    looked_at = [ReviewedUnit(key, found, _answer_of(found[0], answers)) for key, found in together.items()]
    rows += [
        {"queue": None} | row for row in _figures(looked_at, _LookedAt(_codes(unit.cluster for unit in looked_at)))
    ]
    return rows + [{"queue": None, "model_version": None} | row for row in _between_people(looked_at)]


def unborne(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a sentence for each reason why figures have no value, with their names."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["value"] is None:
            names.setdefault(str(row["reason"]), {})[str(row["figure"]).replace("_", " ")] = None
    for reason, found in names.items():
        yield f"no figure of {', '.join(found)}: {reason}"


def _borne(row: Row) -> Row:
    """Returns a figure without numbers, with the reason, where an interval cannot tell how far it may be wrong.

    It is from too few reviews, has no interval, or could be nearly anything.
    """
    if row["value"] is None or (row["low"] is not None and row["low"] == row["high"]):  # or nothing was left out
        return row
    widest = 0.5 if all(place not in row["figure"] for place in ("kappa", "bias")) else 1.0
    why = None
    if row["n"] < LEAST:
        why = TOO_FEW
    elif row["low"] is None:
        why = row["reason"] or NO_INTERVAL
    elif row["high"] - row["low"] > widest:
        why = TOO_WIDE
    return row if why is None else row | dict.fromkeys(("value", "se", "low", "high")) | {"reason": why}


def units_of_queue(
    queue: Queue,
    together: Mapping[AnswerKey, Sequence[Review]],
    asked: Collection[AnswerKey],
    answers: Mapping[Place, Answer],
) -> tuple[list[ReviewedUnit], Strata]:
    """Returns the units of a queue that were reviewed for the queue, and their strata.

    An answer that was reviewed for another reason (e.g. because it failed) waits for its turn in the queue. Counting it
    earlier would make the reviewed answers a biased sample of the queue.
    """
    names = {name: code for code, name in enumerate(queue.strata)}
    units, codes = [], []
    for item in queue.items:
        found = together.get(item.answer, ())
        if found and item.answer in asked:
            answer = answers.get((item.turn_id, item.model_version, str(item.eval_date), item.sample))
            same = answer is not None and answer.response_hash == item.response_hash
            units.append(ReviewedUnit(item.answer, found, answer if same else None, item))
            codes.append(names[item.stratum])
    sizes = np.array([stratum.population for stratum in queue.strata.values()], dtype=np.int64)
    return units, Strata(np.array(codes, dtype=np.int64), sizes)


def _figures(units: Sequence[ReviewedUnit], sight: _Sight, corrected: Corrected | None = None) -> Iterator[Row]:
    """Yields the figures of all units together, and by model version if there are several."""
    if not units:
        return
    versions = sorted({unit.key.model_version for unit in units})
    scopes: list[str | None] = [None, *versions] if len(versions) > 1 else list(versions)
    verdicts = [unit.verdict for unit in units]
    right, wrong = (np.array([said == word for said in verdicts], dtype=bool) for word in (RIGHT, WRONG))
    unsure = np.array([said == CANNOT_TELL for said in verdicts], dtype=bool)
    disputed = np.array([said is None for said in verdicts], dtype=bool)
    gold_wrong = np.array([unit.gold_wrong for unit in units], dtype=bool)
    tags = sorted({tag for unit in units for tag in unit.tags})
    for scope in scopes:
        inside = np.array([scope in (None, unit.key.model_version) for unit in units], dtype=bool)
        own = {"model_version": scope, "label": None}
        yield own | {"figure": "accuracy"} | sight.rate(right, inside & (right | wrong))
        yield own | {"figure": "cannot_tell"} | sight.rate(unsure, inside)
        yield own | {"figure": "disputed"} | sight.rate(disputed, inside)
        yield own | {"figure": "gold_wrong"} | sight.rate(gold_wrong, inside)
        for tag in tags:
            has = np.array([tag in unit.tags for unit in units], dtype=bool)
            yield own | {"figure": "failure_tag", "label": tag} | sight.rate(has, inside)
        for rater in ("metric", "judge"):
            said = [unit.said(rater) for unit in units]
            known = np.array([one is not None for one in said], dtype=bool)
            if (known & inside).any():
                theirs = np.array([bool(one) for one in said], dtype=bool)
                for name, row in _against_people(theirs, right, inside & known & (right | wrong), sight):
                    yield own | {"figure": f"{rater}_{name}"} | row
        if corrected:
            yield from (own | row for row in corrected.rows(scope))


def _against_people(theirs: Bools, right: Bools, both: Bools, sight: _Sight) -> Iterator[tuple[str, Row]]:
    """Yields the agreement of a metric or judge with people, over the answers that both have judged."""
    yield "accuracy", sight.rate(theirs == right, both)
    yield "true_positive_rate", sight.rate(theirs, both & right)
    yield "true_negative_rate", sight.rate(~theirs, both & ~right)
    yield "kappa", sight.kappa(theirs, right, both)


def _between_people(units: Sequence[ReviewedUnit]) -> Iterator[Row]:
    """Yields the agreement of every two people on the answers that both have reviewed."""
    names = sorted({review.who for unit in units for review in unit.reviews})
    said = [{review.who: review.verdict for review in unit.reviews} for unit in units]
    for one, other in combinations(names, 2):
        both = [place for place, found in enumerate(said) if one in found and other in found]
        if not both:
            continue
        clusters = _codes(units[place].cluster for place in both)
        first, second = (np.array([VERDICTS.index(said[place][who]) for place in both]) for who in (one, other))
        own = {"label": f"{one} and {other}", "figure": "reviewers_agreement"}
        yield own | _rate((first == second).astype(np.float64), clusters)
        yield own | {"figure": "reviewers_kappa"} | _kappa(first, second, clusters)


def _answer_of(review: Review, answers: Mapping[Place, Answer]) -> Answer | None:
    found = answers.get((review.turn_id, review.model_version, str(review.eval_date), review.sample))
    return found if found is not None and found.response_hash == review.response_hash else None


def _codes(names: Iterator[str]) -> NDArray[np.int64]:
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def _rate(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> Row:
    found = estimate_rate(values, clusters)
    told = {"n": found.n, "population": None, "value": found.mean, "se": found.se}
    return told | {"low": found.low, "high": found.high, "reason": found.reason}


def _kappa(first: NDArray[np.int64], second: NDArray[np.int64], clusters: NDArray[np.int64]) -> Row:
    found = cohens_kappa(first, second, clusters)
    row: Row = {"n": found.n, "population": None, "value": found.kappa}
    if found.kappa is not None and found.se == 0.0:
        alone = min(len(set(side.tolist())) for side in (first, second)) < 2
        return row | {"se": None, "low": None, "high": None, "reason": ONE_WORD if alone else NO_SPREAD}
    return row | {"se": found.se, "low": found.low, "high": found.high, "reason": found.reason}


def _row(found: Any) -> Row:
    return {name: getattr(found, name) for name in ("n", "population", "value", "se", "low", "high", "reason")}

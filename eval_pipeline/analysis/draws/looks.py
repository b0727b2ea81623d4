"""The looks at an evaluation whose cases are drawn: when they take place, what they show, and when to stop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eval_pipeline.analysis.draws.history import matrix
from eval_pipeline.core import shown
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import UsageError
from eval_pipeline.statistics.intervals import estimate_rate
from eval_pipeline.workspace.asked.draws import Candidate, Design, DrawnBatch

if TYPE_CHECKING:
    from eval_pipeline.statistics.adaptive import DrawSettings, Factors, Sampler, SuiteUnits

_AROUND_EXPECTED = (0.5, 0.8, 1.1, 1.5, 2.2)
"""When to look for a width, in terms of what is expected to be enough."""
_OF_SUITE = (0.1, 0.2, 0.35, 0.5, 0.7)
"""When to look for a decision, in terms of the suite."""
_FEWEST = 10
"""Cases before the first look: an interval from fewer means little."""
_MOST_OF_SUITE = 0.9
"""Beyond this share, a look saves too little to be worth its part of the error; all is asked instead."""


@dataclass(frozen=True, slots=True)
class SuiteEstimate:
    """An estimate for the whole suite, and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Look:
    """What is known after a batch.

    Attributes:
        correct: the share of right turns.
        difference: that share minus the baseline's. Its interval treats the suite as a sample of questions, as in a
            comparison of full evaluations. None without a baseline.
        effective: number of turns of a uniform draw that would give an interval of the same width.
        naive, naive_low, naive_high: plain mean over the asked turns, with the interval that it would have in a uniform
            draw.
        usd: what the answers cost; None without prices.
        dearest: the most that a case cost; None without prices.
    """

    number: int
    looks: int
    turns: int
    cases: int
    correct: SuiteEstimate
    difference: SuiteEstimate | None
    effective: float
    naive: float
    naive_low: float | None
    naive_high: float | None
    usd: float | None
    dearest: float | None

    @property
    def verdict(self) -> str | None:
        """How the model version compares with the baseline; None without one."""
        if self.difference is None:
            return None
        return "better" if self.difference.low > 0 else "worse" if self.difference.high < 0 else "undecided"


@dataclass(frozen=True, slots=True)
class KnownAnswers:
    """What is known about the asked turns, by turn id: 1 right or 0 wrong, and the cost of each if it is known."""

    correct: Mapping[str, float]
    usd: Mapping[str, float | None]

    def missing(self, design: Design) -> int:
        """Returns the number of drawn turns without a verdict."""
        drawn = (design.candidates[place] for batch in design.batches for place in batch.places)
        return sum(turn not in self.correct for candidate in drawn for turn in candidate.turns)


def schedule(until: Until, candidates: Sequence[Candidate]) -> tuple[int, ...]:
    """Returns the total number of cases asked by each look, ascending; empty for a budget.

    By the last look it is all of them, or the part that the rule allows.
    """
    total = len(candidates)
    if until.usd is not None:
        return ()
    if until.half_width is None:
        wanted = [share * total * (until.share or 1.0) for share in _OF_SUITE]
    else:
        expected = expected_cases(until.half_width, candidates, len(_AROUND_EXPECTED))
        wanted = [share * expected for share in _AROUND_EXPECTED]
    places = sorted({max(_FEWEST, round(number)) for number in wanted})
    last = total if until.share is None else min(total, max(_FEWEST, round(until.share * total)))
    return (*(number for number in places if number < _MOST_OF_SUITE * last), last)


def expected_cases(half_width: float, candidates: Sequence[Candidate], looks: int) -> float:
    """Returns the number of cases after which the interval is expected to be as narrow as wanted."""
    from eval_pipeline.statistics.adaptive import expected_turns

    units, factors = _model(candidates)
    return expected_turns(units, factors, half_width, looks=looks) * len(candidates) / units.turns


class Draw:
    """A design with the answers to its batches: gives the looks so far, and draws the next batch."""

    def __init__(self, design: Design, answers: KnownAnswers, clusters: Mapping[str, str] | None = None) -> None:
        """Observes the answers to all batches.

        Args:
            design: How the cases are drawn.
            answers: The answers so far.
            clusters: The cluster of each case by its id, for comparisons; by default each case is one of its own.

        Raises:
            UsageError: the recorded batches differ from those that would be drawn now.
        """
        self.design, self._answers = design, answers
        self.looks: list[Look] = []
        self._sampler: Any = _sampler(design, clusters or {})
        for number, batch in enumerate(design.batches, start=1):
            self._observe(batch)
            self.looks.append(self._look(number))

    @classmethod
    def unasked(cls, design: Design) -> "Draw":
        """Returns the draw of a design that has no batches yet."""
        return cls(design, KnownAnswers({}, {}))

    @property
    def stopped(self) -> str | None:
        """Why no more questions are asked, as a sentence without the final period; None if more are asked."""
        if not self.looks:
            return None
        until, last = self.design.until, self.looks[-1]
        if not self.design.left:
            verdict = f": {last.verdict} against {until.baseline}" if last.difference is not None else ""
            return f"every case was asked{verdict}"
        if until.ranked:
            return self.design.ended or None
        if until.half_width is not None:
            half = (last.correct.high - last.correct.low) / 2
            reached = half <= until.half_width
            told = f"the interval is ±{shown.points(half).removeprefix('+')} points, at most {until.label()}"
            return told if reached else None
        if last.difference is not None:
            if last.verdict != "undecided":
                return f"decided: {last.verdict} than {until.baseline}"
            ended = len(self.design.batches) == len(self.design.schedule)
            if not ended or not until.share:
                return None
            # At least a few cases are asked, which may be more than the given part of a small suite.
            of = f"{last.cases:,} of {len(self.design.candidates):,}"
            return f"not decided within {shown.given(until.share)} of the cases ({of})"
        spent = shown.dollars(last.usd or 0.0)
        return None if self._next_size() else f"another case may exceed the budget, {spent} are spent"

    def next_batch(self, first: int = _FEWEST) -> DrawnBatch:
        """Draws the next batch; `first` is the size of the first batch if there is no schedule."""
        batch = self._sampler.draw(self._next_size() if self.looks or self.design.schedule else first)
        return DrawnBatch(tuple(map(int, batch.units)), tuple(map(float, batch.probabilities)))

    def _next_size(self) -> int:
        """Returns the number of cases in the next batch; 0 if the budget allows no more."""
        if self.design.schedule:
            return self.design.schedule[len(self.design.batches)] - self.design.asked
        last, budget = self.looks[-1], self.design.until.usd
        assert budget is not None
        if last.usd is None or last.dearest is None:
            raise UsageError(f"--until '{self.design.until.label()}': not every answer has a price")
        room = budget - last.usd
        if last.dearest == 0:
            return self.design.left
        # Each case of a batch may cost as much as the dearest so far.
        return max(0, min(int(room / last.dearest), self.design.left, last.cases))

    def _observe(self, batch: DrawnBatch) -> None:
        from eval_pipeline.statistics.adaptive import UnitBatch

        turns = [self.design.candidates[place].turns for place in batch.places]
        outcomes = [np.array([self._answers.correct[turn] for turn in found], dtype=np.float64) for found in turns]
        drawn = UnitBatch(np.array(batch.places, dtype=np.int64), np.array(batch.probabilities, dtype=np.float64))
        try:
            self._sampler.observe(drawn, outcomes)
        except ValueError as error:
            raise UsageError(
                f"the draw on record does not fit its answers ({error}): answers were scored anew, or another version "
                "drew them; run in full, or give another --eval-date"
            ) from error

    def _look(self, number: int) -> Look:
        from eval_pipeline.statistics.adaptive.looks import spending

        looks = self.design.looks
        look = min(number, looks)
        if self.design.baseline is None:
            found, compared = self._sampler.estimate(look=look, looks=looks), None
        else:
            found = self._sampler.estimate(look=look, looks=looks, beyond=False)
            compared = self._sampler.estimate(look=look, looks=looks, spent=spending(self.design.schedule))
        places = [place for batch in self.design.batches[:number] for place in batch.places]
        drawn = [self.design.candidates[place] for place in places]
        values = [self._answers.correct[turn] for candidate in drawn for turn in candidate.turns]
        clusters = [place for place, candidate in zip(places, drawn, strict=True) for _ in candidate.turns]
        naive = estimate_rate(values, clusters)
        assert naive.mean is not None
        costs = [[self._answers.usd.get(turn) for turn in candidate.turns] for candidate in drawn]
        known = [[cost for cost in case if cost is not None] for case in costs]
        priced = all(len(mine) == len(case) for mine, case in zip(known, costs, strict=True))
        sums = [sum(case) for case in known]
        correct, difference = SuiteEstimate(found.value, found.low, found.high), None
        if compared is not None:  # on this very suite, the share is the baseline's, which is known, and the difference
            shift = float(baseline_outcomes(self.design).mean())
            ends = (max(0.0, found.low + shift), min(1.0, found.high + shift))
            correct, difference = (
                SuiteEstimate(found.value + shift, *ends),
                SuiteEstimate(compared.value, compared.low, compared.high),
            )
        spent = (sum(sums), max(sums)) if priced else (None, None)
        return Look(
            number=number,
            looks=looks,
            turns=len(values),
            cases=len(drawn),
            correct=correct,
            difference=difference,
            effective=found.effective,
            naive=naive.mean,
            naive_low=naive.low,
            naive_high=naive.high,
            usd=spent[0],
            dearest=spent[1],
        )


def baseline_outcomes(design: Design) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Returns the baseline's outcome of every turn, shape (turns,)."""
    assert design.baseline is not None
    outcomes: np.ndarray[tuple[int], np.dtype[np.float64]] = matrix(design.candidates)[:, design.baseline]
    return outcomes


def _model(
    candidates: Sequence[Candidate], clusters: Mapping[str, str] | None = None, settings: "DrawSettings | None" = None
) -> "tuple[SuiteUnits, Factors | None]":
    from eval_pipeline.statistics.adaptive import History, SuiteUnits, fit_factors

    sizes = np.array([len(candidate.turns) for candidate in candidates], dtype=np.int64)
    ids = tuple(candidate.case_id for candidate in candidates)
    units = SuiteUnits(ids, sizes, tuple((clusters or {}).get(name, name) for name in ids))
    return units, fit_factors(History(matrix(candidates)), settings)


def _sampler(design: Design, clusters: Mapping[str, str]) -> "Sampler | Any":
    from eval_pipeline.statistics import adaptive

    settings = adaptive.DrawSettings() if design.method > 1 and design.until.half_width else adaptive.EARLIER
    units, factors = _model(design.candidates, clusters, settings)
    if design.baseline is None:
        uniform = 1.0 if design.until.ranked else settings.uniform
        return adaptive.Sampler(units, factors, seed=design.seed, uniform=uniform)
    return adaptive.DifferenceSampler(units, factors, baseline_outcomes(design), seed=design.seed)

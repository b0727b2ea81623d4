"""The canary: a few conversations asked first, so that a wrong configuration does not cost a whole run.

Their responses are part of the evaluation. The rest is asked only after they turn out to be readable.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from random import Random

from eval_pipeline.core import shown
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Attempt, CallErrorKind, Turn
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.stages.attempts.seen import SeenAttempt, counted, example, said_by_endpoint, seen_of
from eval_pipeline.stages.attempts.units import AskingUnit
from eval_pipeline.tracks.base import Track

TURNS = 20
TURNS_BEFORE_BATCHES = 5
"""Number of turns asked singly, at the full price, before a batch is submitted."""
FEWEST = 50
"""Smallest number of turns for a canary; below it, little would be saved, and the check `readable` comes soon."""
FEW_LEFT = FEWEST - TURNS
"""If at most this many turns remain to be paid for, a bad canary does not stop the run."""
READABLE_SHARE, SAME_SHARE = 0.1, 0.9
"""A run stops if at most the first share of the canary is readable, or at least the second share failed alike."""
HOPELESS = 5
"""After this many calls that all failed in the same way, the rest of the canary is not awaited."""


class CanaryError(EvalError):
    """The canary stopped a run; the message says what was seen and what usually fixes it."""

    def __init__(self, sentence: str, example: str) -> None:
        super().__init__(sentence)
        self.example = example


class CanaryResult(Enum):
    """The canary's result so far."""

    OPEN = "not known yet"
    PASSED = "the rest may be asked"
    BAD = "it looks like the configuration"


def draw(units: Iterable[AskingUnit], suite: str, version: ModelVersion) -> frozenset[int]:
    """Draws the units to ask first (by index): whole conversations at random, the same ones each time.

    Returns an empty set if the evaluation is not much larger than the canary would be.
    """
    places: dict[str, dict[int, int]] = {}  # case → index of a unit → its turns
    planned = 0
    for place, unit in enumerate(units):
        planned += len(unit.turns)
        if unit.sample == 0:
            places.setdefault(unit.case.id, {})[place] = len(unit.turns)
    if planned < FEWEST:
        return frozenset()
    order = sorted(places)
    Random(json_hash([suite, version.name, version.samples_per_turn, order])).shuffle(order)
    wanted = TURNS_BEFORE_BATCHES if version.batch else TURNS
    drawn: list[int] = []
    turns = 0
    for case in order:
        if turns >= wanted:
            break
        drawn += places[case]
        turns += sum(places[case].values())
    return frozenset(drawn)


def judge(seen: Sequence[SeenAttempt], expected: int, gold: Sequence[str]) -> CanaryResult:
    """Judges the attempts seen so far.

    Args:
        seen: attempts, each at another turn.
        expected: number of attempts that the canary will have in the end.
        gold: the right answers of the canary's turns; if nearly all are equal, equal responses mean nothing.
    """
    if expected < HOPELESS:
        return CanaryResult.PASSED
    alike = max(Counter(gold).values()) >= SAME_SHARE * len(gold)
    compared = [one.same for one in seen if one.what != "ran" or not alike]
    same = max(Counter(compared).values(), default=0)
    readable, left = sum(one.readable for one in seen), expected - len(seen)
    if not left:
        bad = readable <= READABLE_SHARE * expected or same >= SAME_SHARE * expected
        return CanaryResult.BAD if bad else CanaryResult.PASSED
    if len(seen) >= HOPELESS and same == len(seen) and not any(one.answered for one in seen):
        return CanaryResult.BAD
    if readable > READABLE_SHARE * expected and same + left < SAME_SHARE * expected:
        return CanaryResult.PASSED
    return CanaryResult.OPEN


class Canary:
    """Watches the attempts of a canary and holds back the other units until its result is known."""

    def __init__(self, track: Track, units: Iterable[AskingUnit], places: frozenset[int]) -> None:
        """Starts with nothing asked; without `places`, everything may be asked at once."""
        drawn = [unit for place, unit in enumerate(units) if place in places] if places else []
        self.places = places
        self._track = track
        self._turns: list[Turn] = [turn for unit in drawn for turn in unit.turns]
        self._gold = [track.expected_text(turn) for turn in self._turns]
        self._expected = len(self._turns)
        self._seen: list[SeenAttempt] = []
        self._over = asyncio.Event()
        if not places:
            self._over.set()

    def add(self, place: int, attempts: Sequence[Attempt]) -> CanaryResult:
        """Adds the attempts of a unit and returns the result; units outside the canary, and late ones, always pass."""
        if place not in self.places or self._over.is_set():
            return CanaryResult.PASSED
        for attempt in attempts:
            if attempt.call_failure is not None and attempt.call_failure.kind is CallErrorKind.BUDGET:
                self._expected -= 1  # the budget refused the call
            else:
                self._seen.append(seen_of(self._track, attempt))
        return judge(self._seen, self._expected, self._gold)

    def pass_on(self) -> None:
        """Lets the other units be asked."""
        self._over.set()

    async def passed(self) -> None:
        """Waits until the other units may be asked."""
        await self._over.wait()

    def error(self, version: ModelVersion, planned: int) -> CanaryError:
        """Returns the error that says what the canary saw and what usually fixes it.

        `planned` counts the evaluation's turns.
        """
        order = {turn.id: place for place, turn in enumerate(self._turns)}  # makes the sentence reproducible
        seen = sorted(self._seen, key=lambda one: order[one.turn_id])
        first = _commonest(seen)[0]
        return CanaryError(
            sentence(self._track, version, seen, planned), "" if said_by_endpoint(first) else example(first)
        )


def _commonest(seen: Sequence[SeenAttempt]) -> tuple[SeenAttempt, int]:
    """Returns the first attempt of the most frequent kind, and the number of attempts of that kind."""
    same, count = Counter(one.same for one in seen).most_common(1)[0]
    return next(one for one in seen if one.same == same), count


def sentence(track: Track, version: ModelVersion, seen: Sequence[SeenAttempt], planned: int) -> str:
    """Returns the message about a bad canary; it contains no text of a response."""
    readable = [one for one in seen if one.readable]
    first, count = _commonest(seen)
    answers = shown.counted(len(seen), "answer", "answers")
    what = f"{len(readable)} of {answers} can be read" if readable else "no answer can be read"
    kinds = counted(seen)
    if first.what == "ran" and count >= SAME_SHARE * len(seen):
        what = f"{count} of {answers} are the same, whatever is asked"
    told = f"stopped after the first {len(seen)} of {shown.turns(planned)}: {what}{f' ({kinds})' if kinds else ''}"
    from eval_pipeline.stages.attempts.advice import advice

    hints = advice(track, version, seen)
    kept = "What was answered is kept; run again after mending it"
    if any(one.answered for one in seen):
        kept += " (with --fresh if the correction is not in the model version)"
    if said_by_endpoint(first):
        told += f"; e.g. {example(first)}"
    return (
        f"{told}. That looks like the configuration, not like the model: {'; '.join(hints)}. "
        f"{kept}, or with --no-canary to ask the rest as it is"
    )

"""Two attempts at a task beside each other: steps that do the same stand in one line."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from eval_pipeline.core.errors import EvalError
from eval_pipeline.tracks.abilities import cards_of
from eval_pipeline.tracks.shown.cards import TimelineCard, TimelineStep
from eval_pipeline.view.comparing.sides import LETTERS, sides_of
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.page import NotFoundError, whole_number
from eval_pipeline.view.turn.seen import PageSection, TurnSeen, by_track, turn_seen

SIDES = 2
OTHER_SAMPLE = "other_sample"
"""Argument of the address of a turn: the sample of the attempt beside this one, if it is another."""


class Pair(NamedTuple):
    """Steps of two attempts that stand beside each other; None where one has none."""

    first: TimelineStep | None
    second: TimelineStep | None

    @property
    def same(self) -> str:
        """What is the same of both: `call and result`, `call`, or nothing."""
        if self.first is None or self.second is None or _done(self.first) != _done(self.second):
            return ""
        return "call and result" if self.first.result == self.second.result else "call"


def aligned(first: Sequence[TimelineStep], second: Sequence[TimelineStep]) -> list[Pair]:
    """Returns the steps of two attempts in order, those beside each other that do the same.

    What stands between such steps is paired in order, if it can be by tool. Steps without any text are left out.
    """
    one, other = ([step for step in steps if step.call or step.result] for steps in (first, second))
    return list(_matched(one, other, (_done, _maker)))


def _matched(first: Sequence[TimelineStep], second: Sequence[TimelineStep], keys: Sequence[Any]) -> Iterator[Pair]:
    if not keys:
        yield from map(Pair._make, zip_longest(first, second))
        return
    key, *others = keys
    matcher = SequenceMatcher(None, [*map(key, first)], [*map(key, second)], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from map(Pair._make, zip(first[a:b], second[c:d], strict=True))
        elif tag == "replace":
            yield from _matched(first[a:b], second[c:d], others)
        else:
            yield from map(Pair._make, zip_longest(first[a:b], second[c:d]))


def _done(step: TimelineStep) -> tuple[str, str]:
    """Returns what a step does, whatever its spaces and case."""
    return step.by, " ".join(step.call.split()).casefold()


def _maker(step: TimelineStep) -> str:
    return step.by


def _values(seen: TurnSeen) -> Mapping[str, Any] | None:
    """Returns the steps of the two attempts that an address names; None if it names none, or one has none."""
    versions, other = seen.visit.argument("versions"), seen.visit.argument(OTHER_SAMPLE)
    if not versions and not other:
        return None
    try:
        sides = sides_of(seen.visit)[:SIDES] if versions else [seen.evaluation] * SIDES
        samples = [seen.sample] * SIDES
        if other:
            first = versions and sides[0].partition != seen.evaluation.partition
            samples[0 if first else 1] = whole_number(other)
        found = [_steps(seen, side, sample) for side, sample in zip(sides, samples, strict=True)]
    except EvalError:  # an evaluation of an old address is gone, or its suite is; the page says so elsewhere
        return None
    if None in found:
        return None
    named = [(letter, side.partition, sample) for letter, side, sample in zip(LETTERS, sides, samples, strict=False)]
    return {"sides": named, "pairs": aligned(*(steps for steps in found if steps is not None))}


def _steps(seen: TurnSeen, side: StoredEvaluation, sample: int) -> Sequence[TimelineStep] | None:
    try:
        same = (side.partition, sample) == (seen.evaluation.partition, seen.sample)
        cards, _ = by_track(seen if same else turn_seen(seen.visit, side, seen.turn_id, sample), cards_of)
    except NotFoundError:
        return None
    return next((card.steps for card in cards or () if isinstance(card, TimelineCard)), None)


PART = PageSection("beside", "Steps side by side", "parts/beside.html.j2", _values)

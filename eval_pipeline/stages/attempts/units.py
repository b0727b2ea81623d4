"""Units: turns that can be asked independently of all others, and their order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from eval_pipeline.core.model import Case, Turn
from eval_pipeline.core.model_versions import ModelVersion


@dataclass(frozen=True, slots=True)
class Unit:
    """Turns that are asked one after the other.

    They are a single turn, or a whole conversation that shows the model its own answers.
    """

    case: Case
    turns: tuple[Turn, ...]
    sample: int


def plan_units(cases: Sequence[Case], version: ModelVersion) -> Iterator[Unit]:
    """Yields the units of an evaluation in the suite's order."""
    for case in cases:
        for sample in range(version.samples_per_turn):
            if version.history == "own":
                yield Unit(case, case.turns, sample)
            else:
                yield from (Unit(case, (turn,), sample) for turn in case.turns)


def turn_by_turn(units: Sequence[Unit], conversations: int) -> Iterator[tuple[int, Unit]]:
    """Yields the units with their indices, ordered so that turns of one conversation are not asked at the same time.

    Conversations are grouped into windows of at least `conversations`. Within a window, all first turns come first,
    then all second turns, and so on. When a later turn is asked, the endpoint has the shared part of its prompt in its
    cache.
    """
    by_case = [list(placed) for _, placed in groupby(enumerate(units), key=lambda placed: placed[1].case.id)]
    windows = max(1, len(by_case) // conversations)
    for number in range(windows):
        first, end = (len(by_case) * edge // windows for edge in (number, number + 1))
        for round_ in zip_longest(*by_case[first:end]):
            yield from filter(None, round_)

"""Units: turns that can be asked independently of all others, and their order."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest

from eval_pipeline.core.model import Case, Turn
from eval_pipeline.core.model_versions import ModelVersion


@dataclass(frozen=True, slots=True)
class AskingUnit:
    """Turns that are asked one after the other.

    They are a single turn, or a whole conversation that shows the model its own answers.
    """

    case: Case
    turns: tuple[Turn, ...]
    sample: int


class Units:
    """The units of an evaluation in the suite's order.

    They are made whenever one iterates over them, so that of a large suite only some cases need to be in memory.

    Attributes:
        cases, turns: their number; turns are counted once for each sample.
    """

    def __init__(self, read: Callable[[], Iterable[Case]], version: ModelVersion, cases: int, turns: int) -> None:
        """Takes a function that returns the cases anew, and how many cases and turns it returns, without samples."""
        self._read, self._version = read, version
        self.cases, self.turns = cases, turns * version.samples_per_turn

    def __iter__(self) -> Iterator[AskingUnit]:
        return plan_units(self._read(), self._version)

    def __len__(self) -> int:
        return self.cases * self._version.samples_per_turn if self._version.history == "own" else self.turns


def plan_units(cases: Iterable[Case], version: ModelVersion) -> Iterator[AskingUnit]:
    """Yields the units of an evaluation in the suite's order."""
    for case in cases:
        for sample in range(version.samples_per_turn):
            if version.history == "own":
                yield AskingUnit(case, case.turns, sample)
            else:
                yield from (AskingUnit(case, (turn,), sample) for turn in case.turns)


def turn_by_turn(units: Iterable[AskingUnit], cases: int, conversations: int) -> Iterator[tuple[int, AskingUnit]]:
    """Yields the units with their indices, ordered so that turns of one conversation are not asked at the same time.

    Conversations are grouped into windows of at least `conversations`. Within a window, all first turns come first,
    then all second turns, and so on. When a later turn is asked, the endpoint has the shared part of its prompt in its
    cache.

    Args:
        units: in the suite's order; only those of one window are in memory.
        cases: how many cases they belong to.
        conversations: fewest conversations in a window.
    """
    by_case = (list(placed) for _, placed in groupby(enumerate(units), key=lambda placed: placed[1].case.id))
    windows = max(1, cases // conversations)
    for number in range(windows):
        first, end = (cases * edge // windows for edge in (number, number + 1))
        for round_ in zip_longest(*islice(by_case, end - first)):
            yield from filter(None, round_)

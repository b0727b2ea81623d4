"""How often the metrics find what was planted: rates by kind of fault, and right ways that are blamed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval_pipeline.statistics.intervals import wilson_interval
from eval_pipeline_tests.tracks.agent.planted.plans import KINDS, READ, Plan, plans
from eval_pipeline_tests.tracks.agent.planted.playing import Played

_Z = 1.96
RIGHT = "right"


@dataclass(frozen=True)
class Rate:
    """How many of `n` attempts of a kind were told exactly.

    Attributes:
        kind: one of `KINDS`, `RIGHT`, or `all` faults.
        step, mode: attempts whose step and whose mode are exact; for right ones, those that nobody blames.
    """

    kind: str
    n: int
    step: int
    mode: int

    def row(self) -> str:
        """Returns a line of a table in Markdown, with Wilson's interval of 95 %."""
        return f"| {self.kind} | {self.n} | {_told(self.step, self.n)} | {_told(self.mode, self.n)} |"


def _told(count: int, n: int) -> str:
    low, high = wilson_interval(count / n, n, _Z)
    return f"{count / n:.3f} ({low:.3f} to {high:.3f})"


def sample(count: int | None, seed: int, names: str = READ) -> list[Plan]:
    """Returns so many plans, each kind of fault and right ways in turn; all of them without a count."""
    every = plans(names)
    if count is None:
        return list(every)
    chance = random.Random(seed)
    by_kind = {kind: [one for one in every if one.mode == kind] for kind in (*KINDS, None)}
    for found in by_kind.values():
        chance.shuffle(found)
    in_turn = (found[place] for place in range(len(every)) for found in by_kind.values() if place < len(found))
    return [plan for plan, _ in zip(in_turn, range(count), strict=False)]


def rates(found: Sequence[Played]) -> Iterator[Rate]:
    """Returns a rate for each kind that there is, one for all faults, and one for right ways."""
    faults = [one for one in found if one.plan.mode is not None]
    groups = {kind: [one for one in faults if one.plan.mode == kind] for kind in KINDS} | {"all": faults}
    groups[RIGHT] = [one for one in found if one.plan.mode is None]
    for kind, those in groups.items():
        if those:
            modes = sum(one.found[0] == one.mode for one in those)
            yield Rate(kind, len(those), sum(one.found[1] == one.step for one in those), modes)

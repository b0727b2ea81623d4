"""Turns side by side, broken down: how wrong answers fail, and which tags only some evaluations get right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eval_pipeline.reports.charts.svg.rows import LOSS
from eval_pipeline.view.comparing.found import CommonOrder, kinds_sql, silent_sides
from eval_pipeline.view.comparing.sides import LEAST
from eval_pipeline.view.comparing.sql import Choice, by_tag_sql
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.overview.parts import ModeChange
from eval_pipeline.view.published import StoreView

_MOST_KINDS = 12
_MOST_TAGS = 8


class KindTurns(NamedTuple):
    """A way in which answers are wrong.

    Attributes:
        name: the failure mode, or else the error class.
        turns: how many turns fail so in each evaluation, in order.
    """

    name: str
    turns: Sequence[int]

    @property
    def growth(self) -> int:
        """How many more turns fail so in the last evaluation than in the first; negative for fewer."""
        return self.turns[-1] - self.turns[0]


@dataclass(frozen=True, slots=True)
class TagTurns:
    """Turns with a tag.

    Attributes:
        turns: how many there are.
        lost: of these, how many the first evaluation gets right and another one wrong.
        won: of these, how many the first evaluation gets wrong and another one right.
    """

    tag: str
    turns: int
    lost: int
    won: int


def kinds(
    look: StoreView, sides: Sequence[StoredEvaluation], turns: CommonOrder, changes: Mapping[str, ModeChange]
) -> list[KindTurns]:
    """Returns how wrong answers to these turns fail, the most frequent first.

    Of two evaluations first what has grown significantly by `changes`, then what has grown most.
    """
    counted = [_counted(look, side, turns) for side in sides]
    names = {name for found in counted for name in found}
    found = [KindTurns(name, [one.get(name, 0) for one in counted]) for name in names]
    grown = len(sides) == LEAST
    worse = {name for name, change in changes.items() if change.state == LOSS}
    order = sorted(found, key=lambda one: (one.name not in worse, -one.growth * grown, -sum(one.turns), one.name))
    return order[:_MOST_KINDS]


def _counted(look: StoreView, side: StoredEvaluation, turns: CommonOrder) -> dict[str, int]:
    def count() -> dict[str, int]:
        rows = turns.among(look.table(kinds_sql(side)))["kind"].value_counts().to_pylist()
        return {row["values"]: row["counts"] for row in rows}

    return look.remembered(("kinds", side.partition, turns.sql), count)


def by_tag(look: StoreView, sides: Sequence[StoredEvaluation], choice: Choice) -> list[TagTurns]:
    """Returns the tags on which the evaluations differ; first those on which the first one is right and others wrong.

    Group and tag of the choice do not count, as these lead to the groups of each tag.
    """
    sql = by_tag_sql(sides, choice, silent_sides(look, sides), _MOST_TAGS)
    return look.remembered(("by tag", sql), lambda: [TagTurns(**row) for row in look.rows(sql)])

"""The mistakes at the head of a page: the wrong turns, the most frequent kind first."""

from collections.abc import Mapping
from dataclasses import dataclass

from eval_pipeline.reports.contents.mistakes import mistakes, wrong_text
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.html.drawing import Place, clipped
from eval_pipeline.reports.queries import mistakes_query
from eval_pipeline.reports.shown import place, short

MOST = 25
_FEWEST = 3
"""Of each kind, as far as there is room, so that rare kinds are seen too."""
_LONGEST_QUESTION, _LONGEST = 160, 400


@dataclass(frozen=True, slots=True)
class MistakeLine:
    """A wrong turn in one line.

    Attributes:
        link: whether the page shows the turn below, so that the line can link to it.
    """

    place: str
    link: bool
    kind: str
    question: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Mistakes:
    """The mistakes that the page shows first.

    Attributes:
        title: how many there are, and how many of them are shown.
    """

    title: str
    lines: tuple[MistakeLine, ...]
    sql: tuple[str, ...]


def mistakes_shown(evaluation: Evaluation, shown: Mapping[Place, str]) -> Mistakes:
    """Returns the mistakes, at most `MOST`; `shown` are the turns that the page shows in full."""
    found = mistakes(evaluation)
    chosen = _chosen(found)
    some = f"{len(chosen)} of them are here" if len(chosen) < len(found) else "all are here"
    title = f"{len(found):,} of {evaluation.turns:,} turns are wrong; {some}, the most frequent kind first."
    return Mistakes(title, tuple(_line(row, shown) for row in chosen), (mistakes_query(evaluation.partition),))


def _chosen(found: list[Row]) -> list[Row]:
    """Returns the first mistakes of each kind, in the order of all; further ones while there is room."""
    of_kind: dict[str, int] = {}
    ranks: list[bool] = []
    for row in found:
        of_kind[row["kind"]] = of_kind.get(row["kind"], 0) + 1
        ranks.append(of_kind[row["kind"]] > _FEWEST)
    kept = sorted(range(len(found)), key=ranks.__getitem__)[:MOST]
    return [found[number] for number in sorted(kept)]


def _line(row: Row, shown: Mapping[Place, str]) -> MistakeLine:
    turn, sample = row["turn_id"], row["sample"]
    question = short(row["question"] or "", _LONGEST_QUESTION)
    return MistakeLine(
        place(turn, sample), (turn, sample) in shown, row["kind"], question, clipped(wrong_text(row), _LONGEST)
    )

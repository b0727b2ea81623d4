"""The mistakes at the head of a page: the wrong turns, the most frequent kind first."""

from collections.abc import Mapping
from dataclasses import dataclass

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.html.clipping import clipped
from eval_pipeline.reports.mistakes import Mistake, Place, mistakes, mistakes_query
from eval_pipeline.reports.shown import UNKNOWN

MOST = 25
_FEWEST = 3
"""Of each kind, as far as there is room, so that rare kinds are seen too."""
_LONGEST_QUESTION, _LONGEST = 160, 400


@dataclass(frozen=True, slots=True)
class Line:
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
    lines: tuple[Line, ...]
    sql: tuple[str, ...]


def mistakes_shown(evaluation: Evaluation, shown: Mapping[Place, str]) -> Mistakes:
    """Returns the mistakes, at most `MOST`; `shown` are the turns that the page shows in full."""
    found = mistakes(evaluation)
    chosen = _chosen(found)
    some = f", {len(chosen)} of them" if len(chosen) < len(found) else ""
    title = f"{len(found):,} of {evaluation.turns:,} turns are wrong{some}: the most frequent kind first"
    lines = tuple(_line(evaluation, one, shown) for one in chosen)
    return Mistakes(title, lines, (mistakes_query(evaluation.partition),))


def _chosen(found: list[Mistake]) -> list[Mistake]:
    """Returns the first mistakes of each kind, in the order of all; further ones while there is room."""
    if len(found) <= MOST:
        return found
    of_kind: dict[str, int] = {}
    first: list[Mistake] = []
    others: list[Mistake] = []
    for one in found:
        of_kind[one.kind] = of_kind.get(one.kind, 0) + 1
        (first if of_kind[one.kind] <= _FEWEST else others).append(one)
    kept = {one.place for one in [*first, *others][:MOST]}
    return [one for one in found if one.place in kept]


def _line(evaluation: Evaluation, mistake: Mistake, shown: Mapping[Place, str]) -> Line:
    turn, sample = mistake.place
    place = turn.removeprefix(f"{evaluation.partition.suite}/") + (f"~{sample}" if sample else "")
    row = mistake.row
    wrong = mistake.what or mistake.message or _both(row["expected"], row["answer"])
    question = " ".join(clipped(str(row["question"] or ""), _LONGEST_QUESTION).split())
    return Line(place, mistake.place in shown, mistake.kind, question, clipped(wrong, _LONGEST))


def _both(expected: object, answer: object) -> str:
    return f"expected {UNKNOWN if expected is None else expected}, answered {UNKNOWN if answer is None else answer}"

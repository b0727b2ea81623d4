"""The mistakes at the head of a page: the wrong turns, the most frequent kind first."""

from collections.abc import Mapping, Sequence

from eval_pipeline.core.values import value
from eval_pipeline.reports.contents.mistakes import kinds_of, mistakes, wrong_text
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.html.drawing import Place, clipped
from eval_pipeline.reports.queries import mistakes_query
from eval_pipeline.reports.shown import place, short

MOST = 25
_FEWEST = 3
"""Of each kind, as far as there is room, so that rare kinds are seen too."""
_LONGEST_QUESTION, _LONGEST = 160, 400


@value
class Mistakes:
    """The mistakes that the page shows first.

    Attributes:
        title: how many there are, and how many of them are shown.
        lines: of each its place, its kind, the question, what is wrong, and whether the page shows the turn below, so
            that the line can link to it.
        sql: the query.
    """

    title: str
    lines: Sequence[Row]
    sql: str


def mistakes_shown(evaluation: Evaluation, shown: Mapping[Place, str]) -> Mistakes:
    """Returns the mistakes, at most `MOST`; `shown` are the turns that the page shows in full."""
    found = mistakes(evaluation)
    chosen = _chosen(found)
    some = f"{len(chosen)} of them are here" if len(chosen) < len(found) else "all are here"
    title = f"{len(found):,} of {evaluation.turns:,} turns are wrong; {some}, the most frequent kind first."
    return Mistakes(title, [_line(row, shown) for row in chosen], mistakes_query(evaluation.partition))


def _chosen(found: list[Row]) -> list[Row]:
    """Returns the first mistakes of each kind, in the order of all; further ones while there is room."""
    ranks = [number >= _FEWEST for rows in kinds_of(found).values() for number in range(len(rows))]
    kept = sorted(range(len(found)), key=ranks.__getitem__)[:MOST]
    return [found[number] for number in sorted(kept)]


def _line(row: Row, shown: Mapping[Place, str]) -> Row:
    turn = row["turn_id"], row["sample"]
    question, wrong = short(row["question"] or "", _LONGEST_QUESTION), clipped(wrong_text(row), _LONGEST)
    return {"place": place(*turn), "link": turn in shown, "kind": row["kind"], "question": question, "wrong": wrong}

"""Pictures of evaluations side by side: how accurate each is, and of two how their wrong answers fail."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core import shown
from eval_pipeline.reports.charts.svg.rows import IntervalRow, Part, parts_chart, rate_rows
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.comparing.breakdown import KindTurns
from eval_pipeline.view.comparing.sides import LEAST, LETTERS
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.filtering.only import of_evaluation
from eval_pipeline.view.overview.parts import ModeChange, mode_changes_sql
from eval_pipeline.view.overview.pictures import MODES_CORRECTED, Picture, markup, part_of
from eval_pipeline.view.published import StoreView

_MOST_MODES = 6


@dataclass(frozen=True, slots=True)
class Common:
    """How answers fail to the turns that all evaluations have.

    Attributes:
        turns: how many turns these are.
        kinds: the ways to fail, in the order in which they are to be drawn.
        changes: their changes between two evaluations.
        address_of: returns the address of the turns that fail in a way.
    """

    turns: int
    kinds: Sequence[KindTurns]
    changes: Mapping[str, ModeChange]
    address_of: Callable[[str], str]


def pictures_of(
    look: StoreView, sides: Sequence[StoredEvaluation], names: Sequence[str], others: Sequence[str], common: Common
) -> Iterator[Picture]:
    """Yields the pictures of evaluations, which `names` tell apart; `others` were asked another part than the first.

    An accuracy on another part of the suite does not stand beside that of the first.
    """
    told = [f"{letter}, {name}" for letter, name in zip(LETTERS, _short(sides, names), strict=False)]
    sql = [_accuracy_sql(side) for side in sides]
    accuracies = look.remembered(("accuracies", *sql), lambda: _read(look, sql))
    alike = [one for one in zip(accuracies, sides, told, strict=True) if one[2][0] not in others]
    rows = [row for one in alike if (row := _row(*one))]
    if rows and len(alike) > 1:
        words = f"Accuracy: {'; '.join(row.words for row in rows)}"
        about = "each on all of its turns, with 95% intervals"
        about += f"; without {' and '.join(others)}, asked another part of the suite" if others else ""
        yield Picture("Accuracy", about, markup(rate_rows(rows, words)), sql)
    if common.kinds and len(sides) == LEAST:
        parts = [_part(one, common) for one in common.kinds[:_MOST_MODES]]
        words = f"How answers fail, B beside A: {'; '.join(part.words for part in parts)}"
        about = f"{common.turns:,} common turns; what grew significantly in B first; {MODES_CORRECTED}"
        queries = [mode_changes_sql(*(side.partition for side in sides))]
        yield Picture("Failure modes", about, markup(parts_chart(parts, "B", "A", words)), queries)


def _short(sides: Sequence[StoredEvaluation], names: Sequence[str]) -> Sequence[str]:
    """Returns dates instead of names if only these differ, as a long name is cut before its date."""
    versions, days = {side.partition.model_version for side in sides}, [side.partition.eval_date for side in sides]
    return [str(day) for day in days] if len(versions) == 1 and len(set(days)) == len(days) else names


def _accuracy_sql(side: StoredEvaluation) -> str:
    return f"""SELECT mean, low, high, n FROM {side.table("statistics")} AS s
WHERE {of_evaluation(side, "s")} AND s.metric = 'correct' AND s.split = 'all'"""


def _read(look: StoreView, queries: Sequence[str]) -> list[dict[str, float] | None]:
    return [next(iter(look.rows(sql)), None) for sql in queries]


def _row(figures: dict[str, float] | None, side: StoredEvaluation, told: str) -> IntervalRow | None:
    if figures is None or figures["mean"] is None:
        return None
    ends = (figures["mean"], figures["low"], figures["high"])
    words = f"{told}: {shown.estimate(*ends)} of {shown.turns(int(figures['n']))} right"
    return IntervalRow(told, *ends, shown.estimate(*ends), "", words, turns_address(side.partition))


def _part(kind: KindTurns, common: Common) -> Part:
    first, last = kind.turns
    words = f"{kind.name}: {last:,} of B, {first:,} of A"
    share, before = last / max(1, common.turns), first / max(1, common.turns)
    told = f"{last:,} · {shown.rate(share)}"
    return part_of(kind.name, share, before, told, common.changes.get(kind.name), words, common.address_of(kind.name))

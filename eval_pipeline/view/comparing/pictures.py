"""Pictures of evaluations side by side: how accurate each is, and of two how their wrong answers fail."""

from collections.abc import Callable, Iterator, Sequence

from eval_pipeline.core import shown
from eval_pipeline.reports.charts.svg.rows import IntervalRow, Part, parts_chart, rate_rows
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.comparing.breakdown import KindTurns
from eval_pipeline.view.comparing.sides import LEAST, LETTERS
from eval_pipeline.view.evaluation import Evaluation
from eval_pipeline.view.filtering.only import of_evaluation
from eval_pipeline.view.overview.parts import ModeChange, mode_changes, mode_changes_sql
from eval_pipeline.view.overview.pictures import Picture, markup, part_of
from eval_pipeline.view.published import Look

_MOST_MODES = 6


def pictures_of(
    look: Look,
    sides: Sequence[Evaluation],
    names: Sequence[str],
    found: Sequence[KindTurns],
    common: int,
    address_of: Callable[[str], str],
) -> Iterator[Picture]:
    """Yields the pictures.

    Args:
        look: the store.
        sides: the evaluations, which `names` tell apart.
        names: what they are called.
        found: how answers to the turns that all have fail, in the order in which they are to be drawn.
        common: how many turns all have.
        address_of: returns the address of the turns that fail in a way.
    """
    told = [f"{letter}, {name}" for letter, name in zip(LETTERS, _short(sides, names), strict=False)]
    sql = [_accuracy_sql(side) for side in sides]
    accuracies = look.remembered(("accuracies", *sql), lambda: _read(look, sql))
    rows = [row for one in zip(accuracies, sides, told, strict=True) if (row := _row(*one))]
    if rows:
        words = f"Accuracy: {'; '.join(row.words for row in rows)}"
        yield Picture("Accuracy", "each on all of its turns, with 95% intervals", markup(rate_rows(rows, words)), sql)
    if found and len(sides) == LEAST:
        places = [side.partition for side in sides]
        changes, queries = mode_changes(look, *places), [mode_changes_sql(*places)]
        parts = [_part(one, common, changes.get(one.name), address_of(one.name)) for one in found[:_MOST_MODES]]
        words = f"How answers fail, B beside A: {'; '.join(part.words for part in parts)}"
        about = f"{common:,} common turns; what has grown most in B first; changes in points"
        yield Picture("Failure modes", about, markup(parts_chart(parts, "B", "A", words)), queries)


def _short(sides: Sequence[Evaluation], names: Sequence[str]) -> Sequence[str]:
    """Returns dates instead of names if only these differ, as a long name is cut before its date."""
    versions, days = {side.partition.model_version for side in sides}, [side.partition.eval_date for side in sides]
    return [str(day) for day in days] if len(versions) == 1 and len(set(days)) == len(days) else names


def _accuracy_sql(side: Evaluation) -> str:
    return f"""SELECT mean, low, high, n FROM {side.table("statistics")} AS s
WHERE {of_evaluation(side, "s")} AND s.metric = 'correct' AND s.split = 'all'"""


def _read(look: Look, queries: Sequence[str]) -> list[dict[str, float] | None]:
    return [next(iter(look.rows(sql)), None) for sql in queries]


def _row(figures: dict[str, float] | None, side: Evaluation, told: str) -> IntervalRow | None:
    if figures is None or figures["mean"] is None:
        return None
    ends = (figures["mean"], figures["low"], figures["high"])
    words = f"{told}: {shown.estimate(*ends)} of {shown.turns(int(figures['n']))} right"
    return IntervalRow(told, *ends, shown.estimate(*ends), "", words, turns_address(side.partition))


def _part(kind: KindTurns, common: int, change: ModeChange | None, address: str) -> Part:
    first, last = kind.turns
    words = f"{kind.name}: {last:,} of B, {first:,} of A"
    share, before = last / max(1, common), first / max(1, common)
    return part_of(kind.name, share, before, f"{last:,} · {shown.rate(share)}", change, words, address)

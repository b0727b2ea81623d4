"""The paired test of each evaluation against the first: the published result, or one computed from the record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from eval_pipeline.analysis.baseline import is_drawn
from eval_pipeline.analysis.comparisons.chosen.causes import causes_of, prompt_difference
from eval_pipeline.analysis.comparisons.evaluations import evaluated_at
from eval_pipeline.analysis.comparisons.pairs import comparison_rows, is_refused
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.turning import turned
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.words import counted_figures, pair_verdict, trend_verdict
from eval_pipeline.view.comparing.sides import LETTERS
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.page import Visit
from eval_pipeline.view.published import Row, StoreView
from eval_pipeline.workspace.evaluations import evaluation_at
from eval_pipeline.workspace.workspace import Workspace

_NOT_ON_RECORD = "the record does not hold both evaluations to their end"


@dataclass(frozen=True, slots=True)
class Test:
    """The test of a pair.

    Attributes:
        letter: letter of the second evaluation.
        row: as in `model_comparisons`, with the first evaluation as model_a; None if there is none.
        published: whether it is in the store, corrected for all pairs of the suite; otherwise it was made for this
            page.
        missing: why there is no row.
        names: what the two are called.
        causes: in what they were made differently, in words.
        prompt_difference: how their prompts differ, as a unified diff.
        trend: what `trends` says of the second, if the first is the date before it.
    """

    letter: str
    first: Partition
    second: Partition
    row: Row | None
    published: bool
    missing: str = ""
    names: tuple[str, str] = ("", "")
    causes: str = ""
    prompt_difference: str = ""
    trend: str = ""

    @property
    def verdict(self) -> str:
        """Which of the two is better, if that is known."""
        if self.row is None:
            return f"not tested: {self.missing}"
        first, second = (_within(*one) for one in zip(self.names, (self.first, self.second), strict=True))
        return pair_verdict(self.row | {"name_a": f"A ({first})", "name_b": f"{self.letter} ({second})"})

    @property
    def figures(self) -> Sequence[Row]:
        """Both figures; only one if no answers are missing, none if the two cannot be compared."""
        return () if self.row is None or is_refused(self.row["reason"]) else counted_figures(self.row)

    def coverage(self, side: str) -> str:
        """Returns how far the turns of one side got."""
        return Coverage.from_row(self.row, f"_{side}").text() if self.row is not None else ""


def _within(name: str, place: Partition) -> str:
    """Returns a name as it stands within brackets: `fake-1, 2026-11-27`."""
    further = name.removeprefix(f"{place.model_version} (")
    return name if further == name else f"{place.model_version}, {further.removesuffix(')')}"


def tests_of(visit: Visit, sides: Sequence[StoredEvaluation], names: Sequence[str]) -> list[Test]:
    """Tests the first evaluation against each of the others; `names` tell them apart."""
    first, *others = (side.partition for side in sides)
    found = []
    for letter, other, name in zip(LETTERS[1:], others, names[1:], strict=False):
        causes, difference = visit.look.remembered(("causes", first, other), partial(_causes, visit, first, other))
        test = _tested(visit, letter, first, other)
        told = replace(test, names=(names[0], name), causes=causes, prompt_difference=difference)
        found.append(replace(told, trend=_trend(visit.look, first, other)))
    return found


def _trend(look: StoreView, first: Partition, second: Partition) -> str:
    sql = "SELECT * FROM trends WHERE suite = ? AND model_version = ? AND previous_date = ? AND eval_date = ?"
    if first.model_version != second.model_version or first.evaluation or second.evaluation:
        return ""
    row = look.row(sql, [first.suite, first.model_version, first.eval_date, second.eval_date])
    return trend_verdict(row) if row else ""


def _causes(visit: Visit, *sides: Partition) -> tuple[str, str]:
    """Returns in what two evaluations were made differently; empty texts if the record does not have both."""
    workspace = Workspace(visit.bench.home)
    first, second = (evaluation_at(workspace, side) for side in sides)
    if first is None or second is None:
        return "", ""
    return "; ".join(causes_of(first, second)), "\n".join(prompt_difference(first, second))


def _tested(visit: Visit, letter: str, first: Partition, second: Partition) -> Test:
    row = _published(visit.look, first, second)
    if row is not None:
        return Test(letter, first, second, row, published=True)
    try:
        made = partial(_made, Workspace(visit.bench.home), first, second)
        # An error is not cached, as it may not occur the next time.
        row = visit.look.remembered(("paired", first, second), made)
    except EvalError as error:
        return Test(letter, first, second, None, published=False, missing=str(error))
    return Test(letter, first, second, row, published=False, missing="" if row else _why_not(visit, first, second))


def _why_not(visit: Visit, *sides: Partition) -> str:
    return untested(Workspace(visit.bench.home), *sides)


def untested(workspace: Workspace, *sides: Partition) -> str:
    """Returns why two evaluations cannot be tested turn by turn."""
    drawn = [side for side in sides if is_drawn(workspace, side)]
    if not drawn:
        return _NOT_ON_RECORD
    names = " and ".join(f"{side.model_version} on {side.eval_date}" for side in drawn)
    return f"only drawn cases were asked of {names}, which are no fair sample of the suite"


def _published(look: StoreView, first: Partition, second: Partition) -> Row | None:
    """Returns the published row of exactly these two evaluations, in either order; earlier ones have none."""
    if first.evaluation or second.evaluation:
        return None
    sql = """SELECT * FROM model_comparisons
        WHERE suite = ? AND model_a = ? AND eval_date_a = ? AND model_b = ? AND eval_date_b = ?"""
    one, other = _named(first), _named(second)
    row = look.row(sql, [first.suite, *one, *other])
    if row is not None:
        return row
    row = look.row(sql, [first.suite, *other, *one])
    return None if row is None else turned(row)


def _made(workspace: Workspace, first: Partition, second: Partition) -> Row | None:
    found = [evaluated_at(workspace, place) for place in (first, second)]
    a, b = found
    return comparison_rows([(a, b)], TurnReader(workspace))[0] if a and b else None


def _named(partition: Partition) -> tuple[str, date]:
    return partition.model_version, partition.eval_date

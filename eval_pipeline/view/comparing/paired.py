"""The paired test of each evaluation against the first: the published result, or one computed from the record."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from eval_pipeline.analysis.baseline import is_drawn
from eval_pipeline.analysis.comparisons.evaluations import evaluations_of
from eval_pipeline.analysis.comparisons.pairs import comparison_rows, is_refused
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.turning import turned
from eval_pipeline.core.coverage import Coverage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.words import pair_verdict
from eval_pipeline.view.comparing.sides import LETTERS
from eval_pipeline.view.evaluation import Evaluation
from eval_pipeline.view.page import Visit
from eval_pipeline.view.published import Look, Row
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
    """

    letter: str
    first: Partition
    second: Partition
    row: Row | None
    published: bool
    missing: str = ""

    @property
    def verdict(self) -> str:
        """Which of the two is better, if that is known."""
        if self.row is None:
            return f"not tested: {self.missing}"
        return pair_verdict(self.row | {"model_a": f"A ({self.first.model_version})", "model_b": self._second})

    @property
    def _second(self) -> str:
        return f"{self.letter} ({self.second.model_version})"

    @property
    def figures(self) -> Sequence[tuple[str, str]]:
        """Both figures, each as a description and the prefix of its columns; only one if no answers are missing."""
        if self.row is None or is_refused(self.row["reason"]):
            return ()
        missing = self.row["unanswered_a"] or self.row["unanswered_b"]
        alone = [("answered by both", "")]
        return [*alone, ("unanswered as wrong", "conservative_")] if missing else alone

    def coverage(self, side: str) -> str:
        """Returns how far the turns of one side got."""
        return Coverage.from_row(self.row, f"_{side}").text() if self.row is not None else ""


def tests_of(visit: Visit, sides: Sequence[Evaluation]) -> list[Test]:
    """Tests the first evaluation against each of the others."""
    first, *others = (side.partition for side in sides)
    return [_tested(visit, letter, first, other) for letter, other in zip(LETTERS[1:], others, strict=False)]


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


def _published(look: Look, first: Partition, second: Partition) -> Row | None:
    """Returns the published row of exactly these two evaluations, in either order."""
    sql = """SELECT * FROM model_comparisons
        WHERE suite = ? AND model_a = ? AND eval_date_a = ? AND model_b = ? AND eval_date_b = ?"""
    one, other = _named(first), _named(second)
    row = look.row(sql, [first.suite, *one, *other])
    if row is not None:
        return row
    row = look.row(sql, [first.suite, *other, *one])
    return None if row is None else turned(row)


def _made(workspace: Workspace, first: Partition, second: Partition) -> Row | None:
    found = {one.partition: one for several in evaluations_of(workspace, first.suite).values() for one in several}
    if first not in found or second not in found:
        return None
    return comparison_rows([(found[first], found[second])], TurnReader(workspace))[0]


def _named(partition: Partition) -> tuple[str, date]:
    return partition.model_version, partition.eval_date

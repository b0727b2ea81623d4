"""The figures of the home page: every suite with its model versions, as queries of the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.charts.trend import of_one_scope
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.evaluation import LEADERBOARD, by_suite, implausible, leaderboard
from eval_pipeline.view.published import Row, StoreView


@dataclass(frozen=True, slots=True)
class ModelVersionLine:
    """A model version on a suite.

    Attributes:
        partition: its newest evaluation.
        figures: its row of the leaderboard, with what a turn and a right turn cost.
        nights: its rows of `trends`, oldest first.
        odd: signs that point to a wrong configuration instead of a bad model.
    """

    partition: Partition
    figures: Row
    nights: Sequence[Row]
    odd: Sequence[str]

    @property
    def newest(self) -> Row | None:
        """The newest row of `trends`; None before there is one of this evaluation."""
        last = self.nights[-1] if self.nights else None
        return last if last and last["eval_date"] == self.partition.eval_date else None

    @property
    def loss(self) -> Row | None:
        """The newest row of `trends` if a loss is open."""
        return self.nights[-1] if self.nights and self.nights[-1]["open_loss_date"] else None

    @property
    def before(self) -> Partition | None:
        """The evaluation on the date before, which may have been asked something else."""
        if self.newest is None or len(self.nights) == 1:
            return None
        return replace(self.partition, eval_date=self.nights[-2]["eval_date"])

    @property
    def change(self) -> Row | None:
        """The newest row of `trends` if it was tested against the date before."""
        return self.newest if self.newest and self.newest["previous_difference"] is not None else None

    @property
    def lost_turns(self) -> str:
        """The address that shows the evaluation beside the one from which it has lost."""
        assert self.loss is not None
        return compare_path([replace(self.partition, eval_date=self.loss["open_loss_against"]), self.partition])

    @property
    def changed_turns(self) -> str:
        """The address that shows the evaluation beside the one before; of its turns if there is none."""
        return turns_address(self.partition) if self.before is None else compare_path([self.before, self.partition])


@dataclass(frozen=True, slots=True)
class SuiteLines:
    """A suite with its model versions, newest first, those that were asked a part below the others.

    Attributes:
        retired: how many model versions are left out, because no file lists them any more.
        sql: the queries of these figures.
        about: the model version that the reader chose to be told of; empty for none.
    """

    suite: Row
    lines: Sequence[ModelVersionLine]
    retired: int
    sql: Sequence[str]
    about: str = ""

    @property
    def name(self) -> str:
        """Name of the suite."""
        return str(self.suite["suite"])

    @property
    def newest(self) -> date:
        """Date of the newest evaluation."""
        return max(line.partition.eval_date for line in self.lines)

    @property
    def charted(self) -> Sequence[ModelVersionLine]:
        """The model versions that were asked the same: the whole suite if one was, otherwise what the newest was."""
        return of_one_scope(self.lines, lambda line: line.figures["scope"])

    @property
    def told(self) -> ModelVersionLine:
        """The model version whose failures and tags are shown.

        That is the one that the reader chose, otherwise the one with the largest open loss, otherwise of those of the
        newest date one with an earlier date, and of these the most accurate one. Stand-ins are considered only where
        there is nothing else.
        """
        if asked := [line for line in self.lines if line.partition.model_version == self.about]:
            return asked[0]
        charted = [line for line in self.charted if not line.figures["simulated"]] or self.charted
        lost = [line for line in charted if line.loss]
        if lost:
            return min(lost, key=lambda line: line.loss["open_loss_difference"] if line.loss else 0.0)
        newest = [line for line in charted if line.partition.eval_date == charted[0].partition.eval_date]
        return max(newest, key=lambda line: line.before is not None)


def suites_of(look: StoreView, *, with_retired: bool) -> list[SuiteLines]:
    """Returns the suites with an evaluation, newest first."""
    suites = look.rows("SELECT suite, track, version, description FROM suites ORDER BY suite")
    board, nights = leaderboard(look), by_suite(look.rows(TRENDS))
    found = []
    for suite in suites:
        rows = board.get(suite["suite"], [])
        shown = [row for row in rows if with_retired or not row["retired"]]
        lines = _lines(look, suite["suite"], shown, nights.get(suite["suite"], []))
        found.append(SuiteLines(suite, lines, len(rows) - len(shown), [LEADERBOARD, TRENDS]))
    return sorted((one for one in found if one.lines), key=lambda one: one.newest, reverse=True)


TRENDS = """SELECT t.*, k.who, k.why FROM trends AS t LEFT JOIN (
    SELECT suite, model_version, open_loss_date, arg_max(who, acknowledged_at) AS who,
        arg_max(why, acknowledged_at) AS why
    FROM acknowledgements GROUP BY ALL
) AS k USING (suite, model_version, open_loss_date)
ORDER BY t.suite, t.model_version, t.eval_date"""
"""All dates of each model version, with who has acknowledged its open loss."""


def _lines(look: StoreView, suite: str, board: Sequence[Row], trends: Sequence[Row]) -> list[ModelVersionLine]:
    nights: dict[str, list[Row]] = {}
    for row in trends:
        nights.setdefault(row["model_version"], []).append(row)
    odd = implausible(look, suite)
    lines = [_line(suite, row, nights.get(row["model_version"], []), odd) for row in board]
    # Those of the same date keep the leaderboard's order.
    return sorted(lines, key=lambda line: (line.figures["scope"] == "full", line.partition.eval_date), reverse=True)


def _line(suite: str, figures: Row, nights: Sequence[Row], odd: Mapping[Partition, Sequence[str]]) -> ModelVersionLine:
    partition = Partition(suite, figures["model_version"], figures["eval_date"])
    return ModelVersionLine(partition, figures, nights, odd.get(partition, ()))

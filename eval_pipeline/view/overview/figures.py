"""The figures of the home page: every suite with its model versions, as queries of the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.evaluation import implausible
from eval_pipeline.view.published import Look, Row


@dataclass(frozen=True, slots=True)
class Line:
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
    """A suite with its model versions, newest first.

    Attributes:
        retired: how many model versions are left out, because no file lists them any more.
        sql: the queries of these figures.
    """

    suite: Row
    lines: Sequence[Line]
    retired: int
    sql: Sequence[str]

    @property
    def name(self) -> str:
        """Name of the suite."""
        return str(self.suite["suite"])

    @property
    def newest(self) -> date:
        """Date of the newest evaluation."""
        return max(line.partition.eval_date for line in self.lines)

    @property
    def told(self) -> Line:
        """The model version whose failures and tags are shown.

        That is the one with the largest open loss, otherwise of those of the newest date one with an earlier date, and
        of these the most accurate one.
        """
        lost = [line for line in self.lines if line.loss]
        if lost:
            return min(lost, key=lambda line: line.loss["open_loss_difference"] if line.loss else 0.0)
        newest = [line for line in self.lines if line.partition.eval_date == self.newest]
        return max(newest, key=lambda line: line.before is not None)


def suites_of(look: Look, *, with_retired: bool) -> list[SuiteLines]:
    """Returns the suites with an evaluation, newest first."""
    suites = look.rows("SELECT suite, track, version, description FROM suites ORDER BY suite")
    found = [_lines(look, row, with_retired=with_retired) for row in suites]
    return sorted((one for one in found if one.lines), key=lambda one: one.newest, reverse=True)


def board_sql(suite: str) -> str:
    """Returns the query for the newest evaluation of each model version, with what a turn and a right turn cost."""
    return f"""SELECT d.*, d.usd / nullif(d.turns, 0) AS usd_per_turn, d.tokens / nullif(d.turns, 0) AS tokens_per_turn,
    c.usd_per_correct_turn, c.tokens_per_correct_turn
FROM leaderboard_details({text(suite)}, with_retired := true) AS d
LEFT JOIN latest_cost_per_correct_answer AS c USING (suite, model_version)"""


def trends_sql(suite: str) -> str:
    """Returns the query for all dates of each model version, with who has acknowledged its open loss."""
    return f"""SELECT t.*, k.who, k.why FROM trends AS t LEFT JOIN (
    SELECT suite, model_version, open_loss_date, arg_max(who, acknowledged_at) AS who,
        arg_max(why, acknowledged_at) AS why
    FROM acknowledgements GROUP BY ALL
) AS k USING (suite, model_version, open_loss_date)
WHERE t.suite = {text(suite)} ORDER BY t.model_version, t.eval_date"""


def _lines(look: Look, suite: Row, *, with_retired: bool) -> SuiteLines:
    name = suite["suite"]
    sql = [board_sql(name), trends_sql(name)]
    board, trends = (look.rows(query) for query in sql)
    nights: dict[str, list[Row]] = {}
    for row in trends:
        nights.setdefault(row["model_version"], []).append(row)
    shown = [row for row in board if with_retired or not row["retired"]]
    odd = implausible(look, name)
    lines = [_line(name, row, nights.get(row["model_version"], []), odd) for row in shown]
    # Model versions with the same date keep the leaderboard's order.
    lines.sort(key=lambda line: line.partition.eval_date, reverse=True)
    return SuiteLines(suite, lines, len(board) - len(shown), sql)


def _line(suite: str, figures: Row, nights: Sequence[Row], odd: Mapping[Partition, Sequence[str]]) -> Line:
    partition = Partition(suite, figures["model_version"], figures["eval_date"])
    return Line(partition, figures, nights, odd.get(partition, ()))

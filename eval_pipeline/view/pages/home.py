"""The home page: every suite with its model versions, newest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from starlette.responses import Response

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.evaluation import implausible
from eval_pipeline.view.page import Page, Visit
from eval_pipeline.view.published import Look, Row

_TRENDS = """
SELECT t.model_version, t.eval_date, t.accuracy, t.open_loss_date, t.open_loss_against, t.open_loss_difference,
    t.open_loss_p_value, k.who, k.why
FROM trends AS t LEFT JOIN (
    SELECT suite, model_version, open_loss_date, arg_max(who, acknowledged_at) AS who,
        arg_max(why, acknowledged_at) AS why
    FROM acknowledgements GROUP BY ALL
) AS k USING (suite, model_version, open_loss_date)
WHERE t.suite = ? ORDER BY t.model_version, t.eval_date
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A model version on a suite.

    Attributes:
        figures: its row of the leaderboard.
        dates, accuracies: its results over time, oldest first.
        loss: the newest row of `trends` if a loss is open, otherwise None.
        odd: signs that point to a wrong configuration instead of a bad model.
    """

    partition: Partition
    figures: Row
    dates: Sequence[date]
    accuracies: Sequence[float | None]
    loss: Row | None
    odd: Sequence[str]

    @property
    def trend(self) -> str:
        """A description of the trend line in words."""
        known = [f"{value:.0%}" for value in self.accuracies if value is not None]
        return f"accuracy on {len(self.dates)} dates from {self.dates[0]} to {self.dates[-1]}: {', '.join(known)}"


@dataclass(frozen=True, slots=True)
class SuiteLines:
    """A suite with its model versions, newest first."""

    suite: Row
    lines: Sequence[Line]
    retired: int

    @property
    def newest(self) -> date:
        """Date of the newest evaluation."""
        return max(line.partition.eval_date for line in self.lines)


def lost_turns(line: Line) -> str:
    """Returns the address that shows the evaluation with the loss next to the one before it."""
    assert line.loss is not None
    return compare_path([replace(line.partition, eval_date=line.loss["open_loss_against"]), line.partition])


def _respond(visit: Visit) -> Response:
    retired = bool(visit.argument("retired"))
    suites = visit.look.remembered(("home", retired), lambda: _suites(visit.look, with_retired=retired))
    return visit.page("home.html.j2", "Evaluations", suites=suites, with_retired=retired, lost_turns=lost_turns)


def _suites(look: Look, *, with_retired: bool) -> list[SuiteLines]:
    suites = look.rows("SELECT suite, track, version, description FROM suites ORDER BY suite")
    found = [_lines(look, row, with_retired=with_retired) for row in suites]
    return sorted((one for one in found if one.lines), key=lambda one: one.newest, reverse=True)


def _lines(look: Look, suite: Row, *, with_retired: bool) -> SuiteLines:
    board = look.rows(f"SELECT * FROM leaderboard_details({text(suite['suite'])}, with_retired := true)")
    series: dict[str, list[Row]] = {}
    for row in look.rows(_TRENDS, [suite["suite"]]):
        series.setdefault(row["model_version"], []).append(row)
    shown = [row for row in board if with_retired or not row["retired"]]
    odd = implausible(look, suite["suite"])
    lines = [_line(suite["suite"], row, series.get(row["model_version"], []), odd) for row in shown]
    # Model versions with the same date keep the leaderboard's order.
    lines.sort(key=lambda line: line.partition.eval_date, reverse=True)
    return SuiteLines(suite, lines, len(board) - len(shown))


def _line(suite: str, figures: Row, series: Sequence[Row], odd: Mapping[Partition, Sequence[str]]) -> Line:
    last: dict[str, Any] | None = series[-1] if series else None
    loss = last if last and last["open_loss_date"] else None
    partition = Partition(suite, figures["model_version"], figures["eval_date"])
    dates, accuracies = ([row[name] for row in series] for name in ("eval_date", "accuracy"))
    return Line(partition, figures, dates, accuracies, loss, odd.get(partition, ()))


PAGES = (Page("/", _respond),)

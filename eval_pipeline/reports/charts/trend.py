"""Accuracy over dates from rows of `trends`, as the home page and the page of a night draw it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from eval_pipeline.core import shown
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.charts.svg.rows import LOSS, IntervalRow, rate_rows
from eval_pipeline.reports.charts.svg.series import MOST_SERIES, DatePoint, Series, series_chart
from eval_pipeline.reports.places.links import compare_path, evaluation_path

Row = dict[str, Any]
_Asked = TypeVar("_Asked")
Linked = Callable[[str], str]
_MOST_NIGHTS = 40
_MOST_ROWS = 8
_LOST = "loss"


class Trend(NamedTuple):
    """A drawn trend.

    Attributes:
        title: what it shows: dates, if there are several.
        model_versions: how many it shows.
        svg: the drawing.
    """

    title: str
    model_versions: int
    svg: str


def trend_of(suite: str, nights: Mapping[str, Sequence[Row]], linked: Linked = str) -> Trend:
    """Draws the accuracy of model versions over dates, or a row for each if all have one date only.

    Only of those that were asked the same part of the suite.

    Args:
        suite: the suite.
        nights: rows of `trends` of each model version, oldest first; none is empty.
        linked: makes the address of a page from the workbench's path; an empty one makes no link.
    """
    nights = dict(of_one_scope(list(nights.items()), lambda one: one[1][-1]["scope"]))
    if all(len(rows) == 1 for rows in nights.values()):
        several = [_interval_row(suite, rows[-1], linked) for rows in nights.values()][:_MOST_ROWS]
        words = f"Accuracy of model versions on {suite}: {'; '.join(row.words for row in several)}"
        return Trend("Accuracy", len(several), rate_rows(several, words))
    # Open losses must not be missing, and the longest series say most; colours follow the given order.
    ranked = sorted(nights, key=lambda name: (nights[name][-1]["open_loss_date"] is None, -len(nights[name])))
    chosen = {name: nights[name] for name in nights if name in ranked[:MOST_SERIES]}
    series = [_series(suite, rows, linked) for rows in chosen.values()]
    words = f"Accuracy on {suite} by date, with 95% intervals: {'; '.join(_words(r[-1]) for r in chosen.values())}"
    return Trend("Accuracy by date", len(series), series_chart(series, words))


def of_one_scope(found: Sequence[_Asked], scope_of: Callable[[_Asked], str]) -> list[_Asked]:
    """Returns those that were asked the same: the whole suite if one was, otherwise what the first was."""
    scopes = [scope_of(one) for one in found]
    common = "full" if "full" in scopes else scopes[0]
    return [one for one, scope in zip(found, scopes, strict=True) if scope == common]


def _series(suite: str, rows: Sequence[Row], linked: Linked) -> Series:
    last = rows[-1]
    points = [_point(suite, row, linked) for row in rows[-_MOST_NIGHTS:]]
    return Series(last["model_version"], points, _rate(last), linked(evaluation_path(_place(suite, last))))


def _point(suite: str, row: Row, linked: Linked) -> DatePoint:
    """Returns a date as a point that leads to its turns, or of a loss to both dates side by side."""
    here, loss, compared = _place(suite, row), row["verdict"] == _LOST, row.get("compared", True)
    words, path = f"{row['model_version']} on {row['eval_date']}: {_estimate(row)} right", evaluation_path(here)
    if loss:
        change = shown.points(row["previous_difference"], row["previous_low"], row["previous_high"])
        words += f", {change} points against {row['previous_date']}, a loss"
        path = compare_path([Partition(suite, row["model_version"], row["previous_date"]), here])
    elif row["break_reason"]:
        words += f"; not comparable with the date before ({row['break_reason']} changed)"
    if not compared:
        words += "; not compared yet"
    ends = (row["accuracy"], row["low"], row["high"])
    return DatePoint(row["eval_date"], *ends, loss, row["break_reason"] or "", compared, words, linked(path))


def _interval_row(suite: str, row: Row, linked: Linked) -> IntervalRow:
    point = _point(suite, row, linked)
    state = LOSS if point.loss else ""
    ends = (point.value, point.low, point.high)
    return IntervalRow(row["model_version"], *ends, _estimate(row), state, point.words, point.href)


def _words(row: Row) -> str:
    loss = ", a loss is open" if row["open_loss_date"] else ""
    return f"{row['model_version']}: {_rate(row)} on {row['eval_date']}{loss}"


def _rate(row: Row) -> str:
    return shown.rate(row["accuracy"], row["low"], row["high"])


def _estimate(row: Row) -> str:
    return shown.estimate(row["accuracy"], row["low"], row["high"])


def _place(suite: str, row: Row) -> Partition:
    return Partition(suite, row["model_version"], row["eval_date"])

"""The charts that compare model versions."""

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING

from eval_pipeline.core import shown
from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.charts.canvas import ALARM, BLUE, FAINT, SERIES, Chart
from eval_pipeline.reports.charts.points import Point, draw_points, percent_axis, points_axis
from eval_pipeline.reports.charts.svg.plane import CostPoint, cost_chart
from eval_pipeline.reports.charts.svg.rows import GAIN, LOSS, SAME, IntervalRow, change_rows, rate_rows
from eval_pipeline.reports.charts.svg.series import MOST_SERIES
from eval_pipeline.reports.charts.trend import trend_of
from eval_pipeline.reports.comparison.suite import Row, Standing, SuiteComparison, differs
from eval_pipeline.reports.comparison.words import pair_verdict, trend_verdict
from eval_pipeline.reports.places.links import linked, view_url

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PAIRS = 30
_MOST_DATES = 8
_ROOM_FOR_NAMES = 1.35
"""How far the cost axis extends beyond the most expensive model, to make room for its name."""
_UNITS = {"usd": "US dollars per turn", "tokens": "tokens per turn"}


def comparison_charts(compared: SuiteComparison) -> Iterator[Chart]:
    """Yields charts of accuracy, cost against accuracy, paired differences, and the trend over dates."""
    yield _side_by_side(compared.charted)
    for simulated in (False, True):
        group = [found for found in compared.charted if found.row["simulated"] is simulated]
        priced = [found for found in group if found.cost is not None and found.row["accuracy"] is not None]
        if len(priced) > 1:
            yield _cost(priced, simulated)
    tested = [row for row in compared.pairs if row["verdict"] is not None]
    if tested:
        yield _pairs(sorted(tested, key=lambda row: -abs(row["difference"]))[:_MOST_PAIRS])
    series = [(name, list(rows)) for name, rows in groupby(compared.nights, lambda row: str(row["model_version"]))]
    longest = [(name, rows) for name, rows in series if len(rows) > 1]
    if longest:
        yield _trend(compared.suite, longest[:MOST_SERIES], len(longest))


def _side_by_side(standings: Sequence[Standing]) -> Chart:
    rows = [found.row for found in standings]
    return Chart(
        "accuracy-of-models",
        "Accuracy of model versions",
        "Share of correct turns of each model version's newest evaluation, with 95% intervals. Whether two differ is "
        "told by the paired test, not by whether these intervals overlap.",
        ("model version", "turns", "accuracy", "95% interval"),
        [
            (
                r["model_version"],
                shown.count(r["n"]),
                shown.rate(r["accuracy"], r["low"], r["high"]),
                shown.interval(r["low"], r["high"]),
            )
            for r in rows
        ],
        partial(_draw_side_by_side, rows=rows),
        height=1.1 + 0.34 * len(rows),
        svg=rate_rows([_rate_row(row) for row in rows], "Accuracy of model versions, with 95% intervals"),
    )


def _rate_row(row: Row) -> IntervalRow:
    ends = (row["accuracy"], row["low"], row["high"])
    name, told = row["model_version"], shown.estimate(*ends)
    return IntervalRow(name, *ends, told, words=f"{name}: {told} of {shown.turns(row['n'])}")


def _draw_side_by_side(axes: "Axes", rows: Sequence[Row]) -> None:
    points = [(row["accuracy"], row["low"], row["high"]) for row in rows]
    _draw_lying(axes, [row["model_version"] for row in rows], points, [BLUE] * len(rows))
    percent_axis(axes.xaxis)
    axes.set(xlim=(-0.02, 1.02), xlabel="correct turns")


def _cost(standings: Sequence[Standing], simulated: bool) -> Chart:
    unit = standings[0].unit or "tokens"
    kind = "simulated stand-ins" if simulated else "models"
    return Chart(
        f"cost-against-accuracy{'-simulated' if simulated else ''}",
        f"Cost against accuracy, {kind}" if simulated else "Cost against accuracy",
        f"{_UNITS[unit].capitalize()} and share of correct turns of each; the line joins the Pareto front, the {kind} "
        "that no other one beats on both.",
        ("model version", _UNITS[unit], "accuracy", "on the Pareto front"),
        [
            (found.model_version, shown.figure(found.cost, "usd" if unit == "usd" else "count"),
             shown.rate(found.row["accuracy"], found.row["low"], found.row["high"]), "yes" if found.on_front else "no")
            for found in standings
        ],
        partial(_draw_cost, standings=standings, unit=unit),
        height=3.8,
        svg=cost_chart(
            [_cost_point(found, unit) for found in standings], _UNITS[unit], "Cost against accuracy", unit == "usd"
        ),
    )  # fmt: skip


def _cost_point(found: Standing, unit: str) -> CostPoint:
    row, name = found.row, found.model_version
    ends = (row["accuracy"], row["low"], row["high"])
    cost = shown.figure(found.cost, "usd" if unit == "usd" else "tokens")
    front = ", on the Pareto front" if found.on_front else ""
    words = f"{name}: {cost}{'' if unit == 'usd' else ' tokens'} a turn, {shown.estimate(*ends)} right{front}"
    return CostPoint(name, found.cost or 0, *ends, "", bool(found.on_front), words)


def _draw_cost(axes: "Axes", standings: Sequence[Standing], unit: str) -> None:
    from matplotlib.ticker import FuncFormatter

    front = sorted((found for found in standings if found.on_front), key=lambda found: found.cost or 0)
    axes.step([f.cost or 0 for f in front], [f.row["accuracy"] for f in front], where="post", color=ALARM, lw=1.2)
    for found in standings:
        row, colour = found.row, BLUE if found.on_front else FAINT
        draw_points(axes, [Point(found.cost or 0, row["accuracy"], row["low"], row["high"])], colour, joined=False)
        axes.annotate(
            found.model_version, (found.cost or 0, row["accuracy"]), xytext=(6, -11), textcoords="offset points",
            fontsize=8.5,
        )  # fmt: skip
    percent_axis(axes.yaxis)
    told: Unit = "usd" if unit == "usd" else "tokens"
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown.given(value, told)))
    axes.margins(y=0.12)
    dearest = max(found.cost or 0 for found in standings)
    axes.set_xlim(0, _ROOM_FOR_NAMES * dearest or 1)
    axes.set(xlabel=_UNITS[unit], ylabel="correct turns")


def _pairs(pairs: Sequence[Row]) -> Chart:
    return Chart(
        "model-against-model",
        "Model against model",
        "Difference of accuracy of the second minus the first on their common turns, with Holm-corrected 95% "
        "intervals; coloured where the interval excludes 0, grey where the two cannot be told apart.",
        ("pair", "difference", "corrected 95% interval", "verdict"),
        [
            (_pair_name(row), shown.points(row["difference"], row["low"], row["high"]),
             shown.interval(row["low_corrected"], row["high_corrected"], "points"), pair_verdict(row))
            for row in pairs
        ],
        partial(_draw_pairs, pairs=pairs),
        height=1.3 + 0.36 * len(pairs),
        svg=change_rows([_change_row(row) for row in pairs], "Differences of accuracy of pairs of model versions"),
    )  # fmt: skip


def _change_row(row: Row) -> IntervalRow:
    ends = (row["difference"], row["low_corrected"], row["high_corrected"])
    state = SAME if not differs(row) else LOSS if row["difference"] < 0 else GAIN
    name = _pair_name(row).replace("\n", " ")
    told = shown.points(row["difference"], row["low"], row["high"])
    words = f"{name}: {told} points [{shown.interval(*ends[1:], 'points')}], {pair_verdict(row)}"
    return IntervalRow(name, *ends, told, state, words)


def _draw_pairs(axes: "Axes", pairs: Sequence[Row]) -> None:
    axes.axvline(0, color=FAINT, linewidth=1.2)
    colours = [ALARM if differs(row) else FAINT for row in pairs]
    points = [(row["difference"], row["low_corrected"], row["high_corrected"]) for row in pairs]
    _draw_lying(axes, [_pair_name(row) for row in pairs], points, colours)
    points_axis(axes.xaxis)
    axes.margins(x=0.08)
    axes.set_xlabel("percentage points")


def _trend(suite: str, series: Sequence[tuple[str, list[Row]]], of: int) -> Chart:
    more = "" if of == len(series) else f"; {len(series)} of {of} model versions"
    return Chart(
        "trend",
        f"Accuracy over evaluation dates{more}",
        "Share of correct turns on each date, with 95% intervals; a dotted line stands where suite, prompt, harness, "
        "scorer or judge changed, a ring where a date is significantly worse than the one before.",
        ("model version", "date", "accuracy", "95% interval", "verdict"),
        [
            (name, row["eval_date"].isoformat(), shown.rate(row["accuracy"], row["low"], row["high"]),
             shown.interval(row["low"], row["high"]), trend_verdict(row))
            for name, rows in series
            for row in rows
        ],
        partial(_draw_trend, series=series),
        height=3.9,
        svg=trend_of(suite, dict(series), linked if view_url() else lambda path: "").svg,
    )  # fmt: skip


def _draw_trend(axes: "Axes", series: Sequence[tuple[str, list[Row]]]) -> None:
    from matplotlib.dates import ConciseDateFormatter, date2num
    from matplotlib.ticker import FixedLocator

    for colour, (name, rows) in zip(SERIES, series, strict=False):
        days = [float(date2num(row["eval_date"])) for row in rows]  # type: ignore[no-untyped-call]
        points = [Point(d, row["accuracy"], row["low"], row["high"]) for d, row in zip(days, rows, strict=True)]
        draw_points(axes, points, colour, joined=True, label=name)
        for day, row in zip(days, rows, strict=True):
            if row["break_reason"]:
                axes.axvline(day, color=colour, linestyle=":", linewidth=1)
            if row["verdict"] == "loss":
                axes.plot([day], [row["accuracy"]], marker="o", markersize=12, markerfacecolor="none", color=ALARM)
    # An automatic locator is not used, because it would mark hours between the dates of a few nights.
    locator = FixedLocator([float(date2num(day)) for day in _marked(series)])  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    percent_axis(axes.yaxis)
    axes.set_ylabel("correct turns")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)


def _marked(series: Sequence[tuple[str, list[Row]]]) -> list[date]:
    """Returns the evaluation dates that the axis marks.

    These are all if they are few, otherwise evenly spaced ones up to the newest.
    """
    days = sorted({row["eval_date"] for _, rows in series for row in rows})
    return days[:: -ceil(len(days) / _MOST_DATES)][::-1]


def _draw_lying(
    axes: "Axes",
    names: Sequence[str],
    points: Sequence[tuple[float | None, float | None, float | None]],
    colours: Sequence[str],
) -> None:
    """Draws one horizontal line per name, from the top, with value and interval."""
    for place, ((value, low, high), colour) in enumerate(zip(points, colours, strict=True)):
        if low is not None and high is not None:
            axes.hlines(place, low, high, color=colour, linewidth=1.6, alpha=0.6)
        if value is not None:
            axes.plot([value], [place], marker="o", markersize=6, color=colour)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)


def _pair_name(row: Row) -> str:
    return f"{row['model_b']}\nminus {row['model_a']}"

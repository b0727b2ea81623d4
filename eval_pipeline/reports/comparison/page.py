"""Writes the `report.html` that compares a suite's model versions."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from eval_pipeline.core import shown
from eval_pipeline.reports.charts.canvas import Chart, write_chart
from eval_pipeline.reports.charts.svg.plane import CostPoint, cost_chart
from eval_pipeline.reports.charts.svg.rows import GAIN, LOSS, SAME, IntervalRow, change_rows, rate_rows
from eval_pipeline.reports.charts.svg.series import MOST_SERIES
from eval_pipeline.reports.charts.trend import trend_of
from eval_pipeline.reports.comparison.book import write_comparison_book
from eval_pipeline.reports.comparison.differing import CHANGES, differing_query, sides_of_pair
from eval_pipeline.reports.comparison.suite import (
    Row,
    Standing,
    SuiteComparison,
    differs,
    pairs_query,
    trends_query,
)
from eval_pipeline.reports.comparison.words import READING, comparison_warnings, pair_verdict, trend_verdict
from eval_pipeline.reports.contents.gold import READING as SUSPECTS_READING
from eval_pipeline.reports.files.flat_files import write_flat
from eval_pipeline.reports.html.comparisons import (
    contracts_sheet,
    conversations_sheet,
    costs_sheet,
    coverage_sheet,
    differing_sheet,
    figures_sheet,
    pairs_sheet,
    standings_sheet,
    trends_sheet,
)
from eval_pipeline.reports.html.drawing import suspects_sheet
from eval_pipeline.reports.html.render import Sheet, render
from eval_pipeline.reports.places.links import compare_path, linked, view_url
from eval_pipeline.reports.places.paths import CHARTS, PAGE
from eval_pipeline.store.tables import MODEL_COMPARISONS, TRENDS

_UNITS = {"usd": "US dollars per turn", "tokens": "tokens per turn"}


def comparison_charts(compared: SuiteComparison) -> Iterator[Chart]:
    """Yields charts of accuracy, cost against accuracy, paired differences, and the trend over dates."""
    yield _side_by_side(compared.charted)
    for kind, priced in compared.priced():
        yield _cost(priced, kind)
    if compared.tested:
        yield _pairs(compared.tested)
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
        svg=rate_rows([_rate_row(row) for row in rows], "Accuracy of model versions, with 95% intervals"),
    )


def _rate_row(row: Row) -> IntervalRow:
    ends = (row["accuracy"], row["low"], row["high"])
    name, told = row["model_version"], shown.estimate(*ends)
    return IntervalRow(name, *ends, told, words=f"{name}: {told} of {shown.turns(row['n'])}")


def _cost(standings: Sequence[Standing], kind: str) -> Chart:
    unit, simulated = standings[0].unit or "tokens", standings[0].row["simulated"]
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
        svg=change_rows([_change_row(row) for row in pairs], "Differences of accuracy of pairs of model versions"),
    )  # fmt: skip


def _change_row(row: Row) -> IntervalRow:
    ends = (row["difference"], row["low_corrected"], row["high_corrected"])
    state = SAME if not differs(row) else LOSS if row["difference"] < 0 else GAIN
    name = _pair_name(row).replace("\n", " ")
    told = shown.points(row["difference"], row["low"], row["high"])
    words = f"{name}: {told} points [{shown.interval(*ends[1:], 'points')}], {pair_verdict(row)}"
    return IntervalRow(name, *ends, told, state, words)


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
        svg=trend_of(suite, dict(series), linked if view_url() else lambda path: "").svg,
    )  # fmt: skip


def _pair_name(row: Row) -> str:
    return f"{row['model_b']}\nminus {row['model_a']}"


_MOST_TURNS, _FEWEST_TURNS = 100, 10
_ROOM = 2_000
"""Differing turns on a page, over all pairs; more would take megabytes."""


def write_comparison_page(compared: SuiteComparison, folder: Path) -> None:
    """Writes the page, and its charts as files."""
    charts = list(comparison_charts(compared))
    (folder / CHARTS).mkdir()
    for chart in charts:
        write_chart(chart, folder / CHARTS)
    sql = {"pairs": [pairs_query(compared.suite)], "trends": [trends_query(compared.suite)]}
    day = compared.eval_date.isoformat()
    most = max(_FEWEST_TURNS, min(_MOST_TURNS, _ROOM // (2 * len(compared.pairs) or 1)))
    text = render(
        "comparison.html.j2",
        f"{compared.suite} · comparison · {day}",
        charts,
        heading=f"{compared.suite} · model versions side by side",
        subheading=f"Newest evaluation: {day} · {len(compared.standings)} model versions",
        warnings=comparison_warnings(compared),
        standings=standings_sheet(compared.standings, [*sql["trends"], *sql["pairs"]]),
        coverage=coverage_sheet(compared, sql["trends"]),
        pairs=pairs_sheet(compared.pairs, sql["pairs"]),
        costs=costs_sheet(compared.pairs, sql["pairs"]),
        figures=figures_sheet(compared.pairs, sql["pairs"]),
        differing=list(_differing(compared, most)),
        differing_sql=differing_query(compared.suite, most),
        contracts=contracts_sheet(compared.suite, compared.contracts),
        conversations=conversations_sheet(compared),
        trends=trends_sheet(compared.nights, sql["trends"]),
        suspects=[suspects_sheet(compared.suite, compared.suspects)] if compared.suspects else [],
        suspects_reading=SUSPECTS_READING,
        reading=READING,
    )
    (folder / PAGE).write_text(text, encoding="utf-8")


def _differing(compared: SuiteComparison, most: int) -> Iterator[tuple[str, str, list[tuple[Sheet, str]], str]]:
    """Yields, for each pair, the turns that only one answered correctly; the page shows some, the workbook all.

    Each comes with its address in the workbench.
    """
    for pair in compared.pairs:
        a, b = pair["model_a"], pair["model_b"]
        rows = list(compared.differing(pair, most))
        tables = []
        for change, right in zip(CHANGES, (a, b), strict=True):
            count = pair[change]
            title = f"Only {right} is right: {count:,} turn{'s' * (count != 1)}"
            note = f"{most:,} of them; all are in the workbook." if count > most else ""
            tables.append((differing_sheet(title, a, b, [row for row in rows if row["change"] == change]), note))
        yield f"{b} minus {a}", pair_verdict(pair), tables, compare_path(sides_of_pair(compared.suite, pair))


def write_comparison_files(compared: SuiteComparison, folder: Path) -> None:
    """Writes page, charts and workbook, and the two tables as Parquet and CSV."""
    for table in (MODEL_COMPARISONS, TRENDS):
        write_flat(compared.flat(table), folder, table.name)
    write_comparison_book(compared, folder)
    write_comparison_page(compared, folder)

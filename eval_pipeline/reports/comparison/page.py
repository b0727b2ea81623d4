"""Writes the `report.html` that compares a suite's model versions."""

import json
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline.reports.charts.canvas import write_chart
from eval_pipeline.reports.comparison.charts import comparison_charts
from eval_pipeline.reports.comparison.conversation import figures_query
from eval_pipeline.reports.comparison.differing import CHANGES, differing_query, differing_turns, sides_of_pair
from eval_pipeline.reports.comparison.suite import SuiteComparison
from eval_pipeline.reports.comparison.words import (
    READING,
    comparison_warnings,
    pair_verdict,
    pairs_query,
    trends_query,
)
from eval_pipeline.reports.contents.gold import READING as SUSPECTS_READING
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
from eval_pipeline.reports.html.gold import suspects_sheet
from eval_pipeline.reports.html.render import Sheet, render
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.reports.places.paths import CHARTS, PAGE

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
        differing=list(_differing(compared)),
        differing_sql=differing_query(compared.suite),
        contracts=contracts_sheet(compared.suite, compared.contracts),
        conversations=conversations_sheet(compared.conversations, [figures_query(compared.suite)]),
        trends=trends_sheet(compared.nights, sql["trends"]),
        suspects=[suspects_sheet(compared.suite, compared.suspects)] if compared.suspects else [],
        suspects_reading=SUSPECTS_READING,
        reading=READING,
    )
    (folder / PAGE).write_text(text, encoding="utf-8")


def _differing(compared: SuiteComparison) -> Iterator[tuple[str, str, list[tuple[Sheet, str]], str]]:
    """Yields, for each pair, the turns that only one answered correctly; the page shows some, the workbook all.

    Each comes with its address in the workbench.
    """
    most = max(_FEWEST_TURNS, min(_MOST_TURNS, _ROOM // (2 * len(compared.pairs) or 1)))
    for pair in compared.pairs:
        a, b = pair["model_a"], pair["model_b"]
        found = differing_turns(compared.suite, pair, compared.answers, most)
        tables = []
        for change, right in zip(CHANGES, (a, b), strict=True):
            count = len(json.loads(pair[f"{change}_turns"]))
            title = f"Only {right} is right: {count:,} turn{'s' * (count != 1)}"
            note = f"{most:,} of them; all are in the workbook." if count > most else ""
            tables.append((differing_sheet(title, a, b, [one for one in found if one.change == change]), note))
        yield f"{b} minus {a}", pair_verdict(pair), tables, compare_path(sides_of_pair(compared.suite, pair))

"""`report.html` of a suite's model versions side by side."""

import json
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.charts.canvas import drawn, write_chart
from eval_pipeline.reports.comparison.charts import comparison_charts
from eval_pipeline.reports.comparison.conversation import figures_query
from eval_pipeline.reports.comparison.suite import SIDES, Row, SuiteComparison
from eval_pipeline.reports.comparison.words import (
    READING,
    SIMULATED_AMONG,
    pair_verdict,
    pairs_query,
    trends_query,
)
from eval_pipeline.reports.gold import READING as SUSPECTS_READING
from eval_pipeline.reports.html.comparisons import (
    conversations_sheet,
    coverage_sheet,
    figures_sheet,
    pairs_sheet,
    standings_sheet,
    trends_sheet,
)
from eval_pipeline.reports.html.gold import suspects_sheet
from eval_pipeline.reports.html.render import render
from eval_pipeline.reports.links import compare_path, view_url
from eval_pipeline.reports.paths import CHARTS, PAGE

_MOST_TURNS = 200
_Changes = list[tuple[str, list[str], str]]


def write_comparison_page(compared: SuiteComparison, folder: Path) -> None:
    """Writes the page, and its charts as files."""
    charts = [drawn(chart) for chart in comparison_charts(compared)]
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
        warnings=[SIMULATED_AMONG] if any(found.row["simulated"] for found in compared.standings) else [],
        standings=standings_sheet(compared.standings, [*sql["trends"], *sql["pairs"]]),
        coverage=coverage_sheet(compared.standings, sql["trends"]),
        pairs=pairs_sheet(compared.pairs, sql["pairs"]),
        figures=figures_sheet(compared.pairs, sql["pairs"]),
        view_url=view_url(),
        discordant=list(_discordant(compared.suite, compared.pairs)),
        conversations=conversations_sheet(compared.conversations, [figures_query(compared.suite)]),
        trends=trends_sheet(compared.nights, sql["trends"]),
        suspects=[suspects_sheet(compared.suite, compared.suspects)] if compared.suspects else [],
        suspects_reading=SUSPECTS_READING,
        reading=READING,
    )
    (folder / PAGE).write_text(text, encoding="utf-8")


def _discordant(suite: str, pairs: list[Row]) -> Iterator[tuple[str, str, _Changes, str]]:
    """For each pair the turns that only one got right; the workbook has those that are too many for a page.

    Each with its address in the workbench.
    """
    for row in pairs:
        a, b = row["model_a"], row["model_b"]
        changes: _Changes = []
        sides = [Partition(suite, row[f"model_{side}"], row[f"eval_date_{side}"]) for side in SIDES]
        for column, title in (("broken_turns", f"Only {a} is right"), ("fixed_turns", f"Only {b} is right")):
            turns = json.loads(row[column])
            note = f" … and {len(turns) - _MOST_TURNS:,} more in the workbook" if len(turns) > _MOST_TURNS else ""
            changes.append((f"{title}: {len(turns):,}", turns[:_MOST_TURNS], note))
        yield f"{b} minus {a}", pair_verdict(row), changes, compare_path(sides)

"""Writes `reports/nights/<date>.html`: a night on one page, with links to its reports."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from eval_pipeline.core import shown
from eval_pipeline.core.model import Partition
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.charts.trend import trend_of
from eval_pipeline.reports.html.render import Sheet, render
from eval_pipeline.reports.nights.message import (
    changed,
    dollars,
    figure,
    headline,
    how_far,
    loss_link,
    loss_text,
    oddities,
    part_losses,
)
from eval_pipeline.reports.nights.night import Night, NightEvaluation, Row
from eval_pipeline.reports.places.links import linked, view_url
from eval_pipeline.reports.places.paths import PAGE, comparison_folder, night_page, report_folder
from eval_pipeline.store.durable import make_folders, replace_durably, temporary_path

if TYPE_CHECKING:
    from markupsafe import Markup

_HEADERS = ("evaluation", "accuracy", "change", "coverage", "tokens", "dollars", "status")
_SIMULATED = "SIMULATED model versions are among these: they are stand-ins, and say nothing about any real model."


def write_night(night: Night, reports: Path, ui: str = "") -> Path:
    """Writes the page below the reports' folder and returns its path."""
    place = night_page(reports, night.day)
    text = render(
        "night.html.j2",
        f"night of {night.day.isoformat()}",
        [],
        heading=f"Night of {night.day.isoformat()}",
        subheading=headline(night).split(": ", 2)[2],
        warnings=[_SIMULATED] if any(one.row and one.row["simulated"] for one in night.evaluated) else [],
        losses=[
            *((loss_text(loss), loss_link(loss) if view_url() else "") for loss in night.losses),
            *((text, "") for text in (*part_losses(night), *oddities(night))),
        ],
        failed=[
            (
                f"{run.model_version} {'failed' if run.failed else 'was canceled'}",
                f"{ui.rstrip('/')}/runs/{run.run_id}" if ui else "",
                run.run_id,
            )
            for run in (*night.failed, *night.canceled)
        ],
        trends=[_trend(suite, series) for suite, series in night.trends.items()],
        evaluated=Sheet(
            "Evaluations of this night", _HEADERS, [_cells(one) for one in night.evaluated], frozenset({1, 2, 3, 6})
        ),
        links=list(_links(night, reports)),
    )
    make_folders(place.parent)
    aside = temporary_path(place)
    aside.write_text(text, encoding="utf-8")
    replace_durably(aside, place)
    return place


def _trend(suite: str, series: Mapping[str, Sequence[Row]]) -> tuple[str, str, "Markup"]:
    """Returns a suite's name, what the picture shows, and the picture; its marks lead on where people reach pages."""
    from markupsafe import Markup

    found = trend_of(suite, series, linked if view_url() else lambda path: "")
    left = f", {found.model_versions} of {len(series)} model versions" if found.model_versions < len(series) else ""
    return suite, f"{found.title}{left}", Markup(found.svg)  # noqa: S704, every text in it is escaped


def _cells(one: NightEvaluation) -> list[str]:
    return [
        f"{one.suite} · {one.model_version}",
        figure(one),
        changed(one),
        "; ".join(filter(None, [how_far(one), one.cases.text(examples=False)])),
        shown.count(one.tokens),
        UNKNOWN if one.usd is None else dollars(one.usd),
        one.status,
    ]


def _links(night: Night, reports: Path) -> Iterator[tuple[str, str]]:
    """Yields title and relative address of the pages that exist."""
    for suite in dict.fromkeys(one.suite for one in night.evaluated):
        yield from _link(f"{suite}: model versions side by side", comparison_folder(reports, suite, night.day), reports)
    for one in night.evaluated:
        folder = report_folder(reports, Partition(one.suite, one.model_version, night.day))
        yield from _link(f"{one.suite} · {one.model_version}", folder, reports)


def _link(title: str, folder: Path, reports: Path) -> Iterator[tuple[str, str]]:
    page = folder / PAGE
    if page.is_file():
        yield title, f"../{quote(page.relative_to(reports).as_posix(), safe='/@+~')}"

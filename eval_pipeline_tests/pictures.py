"""Charts of reports without their pictures, which take most of a report's time."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from eval_pipeline.reports.charts.canvas import Chart, Drawn, drawn

_PNG = b"\x89PNG\r\n"
sketched_names: set[str] = set()
"""Charts whose drawing has been tried: the first one of each name is."""


def sketch(chart: Chart) -> Drawn:
    """The chart with an empty picture."""
    if chart.name not in sketched_names:
        from matplotlib.figure import Figure

        chart.draw(Figure().add_subplot())
        sketched_names.add(chart.name)
    return Drawn(chart, chart.svg, _PNG)


@contextmanager
def _drawn_by(function: Callable[[Chart], Drawn]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for page in ("eval_pipeline.reports.html.page", "eval_pipeline.reports.comparison.page"):
            patch.setattr(f"{page}.drawn", function)
        yield


def sketches() -> AbstractContextManager[None]:
    """Reports have sketches while this lasts."""
    return _drawn_by(sketch)


def drawn_whole() -> AbstractContextManager[None]:
    """Reports have their pictures while this lasts."""
    return _drawn_by(drawn)

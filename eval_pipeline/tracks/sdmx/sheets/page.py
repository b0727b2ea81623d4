"""Tables and charts of this track on the page of an evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from eval_pipeline.core import shown
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.charts.canvas import ALARM, SERIES, Chart
from eval_pipeline.reports.charts.svg.crossed import Cell, Stack, grid_chart, stacks_chart
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.html.render import Sheet
from eval_pipeline.tracks.sdmx.sheets.figures import READING as RECALL_READING
from eval_pipeline.tracks.sdmx.sheets.figures import RECALL_AT, candidate_recalls, recalls_query
from eval_pipeline.tracks.sdmx.sheets.figures import TITLE as RECALL_TITLE
from eval_pipeline.tracks.sdmx.sheets.places import (
    BY,
    COUNTS,
    READING,
    STATES,
    counts_query,
    heat_map,
    tags_query,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#2e7d4f", "#d08a1d", SERIES[1], ALARM)
_MOST_BARS = 16
_MOST_ROWS = 40
_LONGEST = 34
Cells = Mapping[tuple[str, str], Row]


def place_sheets(evaluation: Evaluation) -> Iterator[Sheet]:
    """Yields tables of turns and terms by dimension, by data set, and by both, of dimensions by tag, and of recall."""
    headers = ("turns", *STATES.values(), "terms in targets", "found", "missed", "extra terms")
    for by in BY:
        query = counts_query(evaluation.partition, by)
        cells = [[row["place"], *(shown.count(row[column]) for column in COUNTS)] for row in evaluation.query(query)]
        more = f"; the first {_MOST_ROWS} of {len(cells):,}" if len(cells) > _MOST_ROWS else ""
        caption = f"By {by}{more}. {READING}" if by == "dimension" else f"By {by}, counted in the same way{more}"
        if cells:
            yield Sheet(caption, (by, *headers), cells[:_MOST_ROWS], frozenset(), [query])
    dimensions, tags, of_cells = heat_map(evaluation)
    if of_cells:
        crossed = [[name, *(_cell(of_cells, name, tag) for tag in tags)] for name in dimensions]
        caption = "Dimension by tag: turns that are right there, of all turns there"
        yield Sheet(caption, ("dimension", *tags), crossed, frozenset(), [tags_query(evaluation.partition)])
    recalls = candidate_recalls(evaluation)
    if recalls:
        at = ("dimension", *(f"first {most}" for most in RECALL_AT), "cases")
        cells = [[name, *_recalls(found)] for name, found in recalls.items()]
        caption = f"{RECALL_TITLE}. {RECALL_READING}"
        yield Sheet(caption, at, cells[:_MOST_ROWS], frozenset(), [recalls_query(evaluation.partition)])


def _recalls(found: Mapping[int, Row]) -> Iterator[str]:
    for most in RECALL_AT:
        yield shown.estimate(*(found[most][name] for name in ("mean", "low", "high")))
    yield shown.count(found[RECALL_AT[0]]["n"])


def place_charts(evaluation: Evaluation) -> Iterator[Chart]:
    """Yields charts of turns by dimension and by data set, and the heat map of dimensions by tag."""
    for by in ("dimension", "data set"):
        if found := evaluation.query(counts_query(evaluation.partition, by))[:_MOST_BARS]:
            yield _bars(by, found)
    dimensions, tags, cells = heat_map(evaluation)
    if cells:
        yield _heat(dimensions, tags, cells)


def _bars(by: str, found: Sequence[Row]) -> Chart:
    return Chart(
        f"turns-by-{by.replace(' ', '-')}",
        f"Turns by {by}",
        f"Turns that are right at each {by}, or have terms missing, extra, or both; a turn counts once at each {by}.",
        (by, "turns", *STATES.values()),
        [(row["place"], shown.count(row["turns"]), *(shown.count(row[state]) for state in STATES)) for row in found],
        partial(_draw_bars, found=found),
        _bars_svg(by, found),
        height=1.5 + 0.34 * len(found),
    )


def _bars_svg(by: str, found: Sequence[Row]) -> str:
    stacks = []
    for row in found:
        states = ", ".join(f"{shown.count(row[state])} {name}" for state, name in STATES.items())
        words = f"{row['place']}: {shown.turns(row['turns'])}, {states}"
        stacks.append(Stack(row["place"], [row[state] for state in STATES], _right(row), words))
    return stacks_chart(stacks, tuple(STATES.values()), f"Turns by {by}: {'; '.join(stack.words for stack in stacks)}")


def _draw_bars(axes: "Axes", found: Sequence[Row]) -> None:
    from matplotlib.ticker import MaxNLocator

    places, ends = range(len(found)), [0.0] * len(found)
    for (state, name), colour in zip(STATES.items(), _COLOURS, strict=True):
        lengths = [row[state] for row in found]
        axes.barh(places, lengths, left=ends, color=colour, height=0.62, label=name)
        ends = [end + length for end, length in zip(ends, lengths, strict=True)]
    for place, row in zip(places, found, strict=True):
        text = _right(row)
        axes.annotate(text, (row["turns"], place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5)
    axes.set_yticks(places, [_short(row["place"]) for row in found])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.3 * max(row["turns"] for row in found))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("turns; told are the right ones of all")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.55 / (0.34 * len(found) + 0.3)), ncols=4)


def _heat(dimensions: Sequence[str], tags: Sequence[str], cells: Cells) -> Chart:
    return Chart(
        "dimension-by-tag",
        "Dimension by tag",
        "Share of turns that are right at each dimension, by tag of the case; in a cell, the right ones of all turns.",
        ("dimension", *tags),
        [(name, *(_cell(cells, name, tag) for tag in tags)) for name in dimensions],
        partial(_draw_heat, dimensions=dimensions, tags=tags, cells=cells),
        _heat_svg(dimensions, tags, cells),
        height=1.7 + 0.34 * len(dimensions),
    )


def _heat_svg(dimensions: Sequence[str], tags: Sequence[str], cells: Cells) -> str:
    grid = [[_cell_mark(cells.get((name, tag)), name, tag) for tag in tags] for name in dimensions]
    told = "; ".join(cell.words for row in grid for cell in row if cell)
    return grid_chart(dimensions, tags, grid, f"Turns that are right, by dimension and tag: {told}")


def _cell_mark(row: Row | None, name: str, tag: str) -> Cell | None:
    if row is None:
        return None
    words = f"{name}, {tag}: {shown.count(row['right'])} of {shown.turns(row['turns'])} right"
    return Cell(_share(row), _cell({(name, tag): row}, name, tag), words)


def _draw_heat(axes: "Axes", dimensions: Sequence[str], tags: Sequence[str], cells: Cells) -> None:
    rates = [[_share(cells.get((name, tag))) for tag in tags] for name in dimensions]
    axes.imshow(rates, cmap="RdYlGn", vmin=0, vmax=1, aspect="auto", alpha=0.75)
    for y, name in enumerate(dimensions):
        for x, tag in enumerate(tags):
            if (row := cells.get((name, tag))) is not None:
                text = f"{row['right']}/{row['turns']}"
                axes.text(x, y, text, ha="center", va="center", fontsize=min(8.5, 64 / len(tags)), color="#111827")
    axes.set_xticks(range(len(tags)), [_short(tag) for tag in tags], rotation=35, ha="right")
    axes.set_yticks(range(len(dimensions)), [_short(name) for name in dimensions])
    axes.grid(visible=False)


def _right(row: Row) -> str:
    return f"{shown.count(row['right'])} of {shown.count(row['turns'])}"


def _share(row: Row | None) -> float:
    return float("nan") if row is None else row["right"] / row["turns"]


def _cell(cells: Cells, dimension: str, tag: str) -> str:
    row = cells.get((dimension, tag))
    return UNKNOWN if row is None else f"{row['right']:,}/{row['turns']:,}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"

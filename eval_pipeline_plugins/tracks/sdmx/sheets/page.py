"""Tables and charts of this track on the page of an evaluation."""

from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.core import shown
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.charts.canvas import Chart
from eval_pipeline.reports.charts.svg.crossed import ShareCell, Stack, grid_chart, stacks_chart
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.html.render import Sheet
from eval_pipeline_plugins.tracks.sdmx.sheets.figures import READING as RECALL_READING
from eval_pipeline_plugins.tracks.sdmx.sheets.figures import RECALL_AT, candidate_recalls, recalls_query
from eval_pipeline_plugins.tracks.sdmx.sheets.figures import TITLE as RECALL_TITLE
from eval_pipeline_plugins.tracks.sdmx.sheets.places import (
    BY,
    COUNTS,
    READING,
    STATES,
    counts_query,
    heat_map,
    tags_query,
)

_MOST_BARS = 16
_MOST_ROWS = 40
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
        _bars_svg(by, found),
    )


def _bars_svg(by: str, found: Sequence[Row]) -> str:
    stacks = []
    for row in found:
        states = ", ".join(f"{shown.count(row[state])} {name}" for state, name in STATES.items())
        words = f"{row['place']}: {shown.turns(row['turns'])}, {states}"
        stacks.append(Stack(row["place"], [row[state] for state in STATES], _right(row), words))
    return stacks_chart(stacks, tuple(STATES.values()), f"Turns by {by}: {'; '.join(stack.words for stack in stacks)}")


def _heat(dimensions: Sequence[str], tags: Sequence[str], cells: Cells) -> Chart:
    return Chart(
        "dimension-by-tag",
        "Dimension by tag",
        "Share of turns that are right at each dimension, by tag of the case; in a cell, the right ones of all turns.",
        ("dimension", *tags),
        [(name, *(_cell(cells, name, tag) for tag in tags)) for name in dimensions],
        _heat_svg(dimensions, tags, cells),
    )


def _heat_svg(dimensions: Sequence[str], tags: Sequence[str], cells: Cells) -> str:
    grid = [[_cell_mark(cells.get((name, tag)), name, tag) for tag in tags] for name in dimensions]
    told = "; ".join(cell.words for row in grid for cell in row if cell)
    return grid_chart(dimensions, tags, grid, f"Turns that are right, by dimension and tag: {told}")


def _cell_mark(row: Row | None, name: str, tag: str) -> ShareCell | None:
    if row is None:
        return None
    words = f"{name}, {tag}: {shown.count(row['right'])} of {shown.turns(row['turns'])} right"
    return ShareCell(row["right"] / row["turns"], _cell({(name, tag): row}, name, tag), words)


def _right(row: Row) -> str:
    return f"{shown.count(row['right'])} of {shown.count(row['turns'])}"


def _cell(cells: Cells, dimension: str, tag: str) -> str:
    row = cells.get((dimension, tag))
    return UNKNOWN if row is None else f"{row['right']:,}/{row['turns']:,}"

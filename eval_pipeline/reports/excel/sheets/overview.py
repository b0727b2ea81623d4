"""The sheet `Overview`: what was evaluated, and the main results."""

from collections.abc import Mapping, Sequence

from eval_pipeline.reports.contents.facts import READING, causes, facts, turns_of_cases, warnings
from eval_pipeline.reports.contents.figures import (
    Figure,
    coverage_table,
    figures_apart,
    headline_figures,
    messages_table,
    metric_names,
    turns_of,
)
from eval_pipeline.reports.contents.mistakes import kinds_of, mistakes, wrong_text
from eval_pipeline.reports.evaluation import OVERALL, Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.charts import CHART_ROWS, Plot, add_bars_chart
from eval_pipeline.reports.excel.colours import colour_rates, compressed
from eval_pipeline.reports.excel.looks import (
    COUNT,
    NOTE,
    PERCENT,
    PLAIN,
    SCORE,
    WARNING,
    WRAPPED,
    CellLook,
    Styled,
    figure_cells,
)
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width
from eval_pipeline.reports.excel.sheets.complexity import add_level_chart, level_table
from eval_pipeline.reports.places.links import linked
from eval_pipeline.reports.queries import mistakes_query, statistics_query, table_query
from eval_pipeline.reports.shown import short
from eval_pipeline.store.tables import COMPLEXITY_CEILING, COST_PER_CORRECT_ANSWER, COVERAGE, ERROR_ANALYSIS

_WIDTHS = (39, 12, 11, 11, 10.5, 10, 46)
_FIGURES = ("figure", "value", "95% low", "95% high", "n", "clusters", "note")
_KINDS, _WRONG = "Kinds of mistakes", "What went wrong"
_MOST_KINDS, _LONGEST = 12, 74


def write_overview(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet: figures and mistakes first, further figures folded, then what was evaluated."""
    partition = evaluation.partition
    page = SheetWriter(book, "Overview", _WIDTHS)
    fit_to_width(page.sheet, "portrait", pages=1)
    page.title(
        f"{partition.suite} · {partition.model_version}",
        f"Evaluation of {partition.eval_date.isoformat()} · track {evaluation.profile.track} · "
        f"{turns_of_cases(evaluation)}",
    )
    for warning in warnings(evaluation):
        page.band(warning, WARNING)
    figures = list(headline_figures(evaluation))
    metrics = metric_names(evaluation)
    _headline(page, evaluation, [figure for figure in figures if figure.name not in metrics])
    _mistakes(book, page, evaluation)
    _coverage(page, evaluation)
    if own := [figure for figure in figures if figure.name in metrics]:
        with page.folded(f"{len(own)} metrics, means of turns: also on the sheet Statistics, with what they mean"):
            _figures(page, own)
    _apart(page, evaluation)
    _failures(page, evaluation)
    page.section("What was evaluated")
    for name, value in facts(evaluation):
        page.fact(name, value)
    page.section("How to read this")
    for text in READING:
        page.note(text)
    page.note(f"Scores from 0 to 1 are shown as {SCORE}, rates in percent. Everything about one conversation: traces/.")
    page.note("Every figure of this workbook is found again in the store by the SQL on the sheet Queries.")
    page.note("A plus sign at the left edge opens the rows below a heading.")


def draw_overview(book: Book, evaluation: Evaluation) -> None:
    """Adds the charts of the sheet, beside each other below the kinds of mistakes; call it after all other sheets."""
    if not (kinds := book.tables.get(_KINDS)):
        return
    sheet, rows = kinds
    row = rows.last + 2
    add_bars_chart(sheet, Plot("Wrong turns by kind", "", "turns", f"A{row}", 10.6), rows, names=1, values=2)
    for ceiling in evaluation.ceilings:
        if found := book.tables.get(level_table(ceiling)):
            add_level_chart(sheet, evaluation, ceiling, found, f"D{row}", 13)
            return


def _headline(page: SheetWriter, evaluation: Evaluation, figures: Sequence[Figure]) -> None:
    page.section("Headline")
    _figures(page, figures)
    page.query("Headline", statistics_query(evaluation.partition, OVERALL))
    for table in (COST_PER_CORRECT_ANSWER, COMPLEXITY_CEILING):
        page.query("Headline", table_query(evaluation.partition, table.name))


def _figures(page: SheetWriter, figures: Sequence[Figure]) -> None:
    found = page.table(_FIGURES, [_figure_row(figure) for figure in figures])
    rates = [found.first + place for place, figure in enumerate(figures) if figure.is_good_when_high]
    if rates:
        colour_rates(page.sheet, compressed(rates, "B"))


def _mistakes(book: Book, page: SheetWriter, evaluation: Evaluation) -> None:
    """Writes how often each kind of mistake is made, with an example, and leaves room for the charts."""
    page.section(_WRONG)
    found = mistakes(evaluation)
    if not found:
        page.note("no turn is wrong" if evaluation.turns else "no turns were evaluated")
        return
    share = CellLook(PERCENT)
    rows: list[list[Styled]] = []
    for kind, wrong in list(kinds_of(found).items())[:_MOST_KINDS]:
        example = short(f"{wrong[0]['question'] or ''} → {wrong_text(wrong[0])}", _LONGEST)
        rows.append([(kind, PLAIN), (wrong[0]["turns"], COUNT), (wrong[0]["share"], share), (example, NOTE)])
    table = page.table([f"{len(found):,} wrong turns by kind", "turns", "share", "example"], rows)
    book.tables[_KINDS] = page.sheet, table
    page.query(_WRONG, mistakes_query(evaluation.partition))
    page.blank(CHART_ROWS + 1)


def _apart(page: SheetWriter, evaluation: Evaluation) -> None:
    """Writes the figures that have tables of their own, and where the turns behind them are."""
    for title, figures in figures_apart(evaluation).items():
        page.section(title)
        page.table(_FIGURES, [_figure_row(figure) for figure in figures])
        if path := turns_of(evaluation, figures[-1]):
            page.fact(f"Turns of {figures[-1].name}", linked(path))
        page.query(title, statistics_query(evaluation.partition, OVERALL))


def _coverage(page: SheetWriter, evaluation: Evaluation) -> None:
    _left_out(page, evaluation)
    page.figures(coverage_table(evaluation))


def _left_out(page: SheetWriter, evaluation: Evaluation) -> None:
    counts = evaluation.case_counts
    if not counts.left_out:
        return
    page.section(f"Cases: {counts.count()} are in the figures")
    shown: list[list[Styled]] = [[("in the figures", PLAIN), (counts.cases, COUNT)]]
    shown += [[(because, WRAPPED), (cases, COUNT)] for because, cases, _ in causes(counts)]
    page.table(["", "cases"], shown)
    for because, _, examples in causes(counts):
        for example in filter(None, examples.splitlines()):
            page.fact(because, example)
            because = ""
    page.query("Cases", table_query(evaluation.partition, COVERAGE.name))


def _figure_row(figure: Figure) -> list[Styled]:
    if figure.unit == "level":
        values: list[Styled] = [(figure.value, CellLook(bold=True)), (figure.low, PLAIN), (figure.high, PLAIN)]
    else:
        values = [*figure_cells(figure.value, figure.unit, figure.low, figure.high)]
    return [
        (figure.label, CellLook(bold=figure.is_primary)), *values, (figure.n, COUNT), (figure.clusters, COUNT),
        (figure.note, NOTE),
    ]  # fmt: skip


def _failures(page: SheetWriter, evaluation: Evaluation) -> None:
    groups: dict[str, list[Row]] = {}
    for row in evaluation.error_groups:
        groups.setdefault(row["grouping"], []).append(row)
    if not groups.keys() & {"error_class", "failure_mode"}:
        return
    title = "Turns that are not correct, by error class, failure mode and message"
    with page.folded(title):
        _groups(page, groups)
        _messages(page, evaluation)
    page.query(title, table_query(evaluation.partition, ERROR_ANALYSIS.name))


def _groups(page: SheetWriter, groups: Mapping[str, Sequence[Row]]) -> None:
    for grouping, title in (("error_class", "error class"), ("failure_mode", "failure mode")):
        share = CellLook(PERCENT)
        shown: list[list[Styled]] = [
            [(row["value"], PLAIN), (row["turns"], COUNT), (row["share"], share), (row["example_turn_id"], NOTE)]
            for row in groups.get(grouping, ())
        ]
        page.table([title, "turns", "share", "example"], shown)
        page.blank()


def _messages(page: SheetWriter, evaluation: Evaluation) -> None:
    table, more = messages_table(evaluation)
    page.figures(table, titled=False)
    if more:
        page.note(f"and {more} more in error_analysis of statistics.json")

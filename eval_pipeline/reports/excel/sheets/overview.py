"""The sheets `Overview` (what was evaluated, and the main results) and `Complexity`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core import shown
from eval_pipeline.reports.contents.facts import READING, causes, facts, turns_of_cases, warnings
from eval_pipeline.reports.contents.figures import (
    FITTED,
    Figure,
    axis_title,
    ceiling_sentence,
    coverage_table,
    figures_apart,
    headline_figures,
    messages_table,
    metric_names,
    turns_of,
)
from eval_pipeline.reports.contents.mistakes import kinds_of, mistakes, wrong_text
from eval_pipeline.reports.evaluation import OVERALL, Evaluation, Row
from eval_pipeline.reports.excel.book import Book, Rows
from eval_pipeline.reports.excel.charts import CHART_ROWS, AccuracyColumns, Plot, add_accuracy_chart, add_bars_chart
from eval_pipeline.reports.excel.looks import (
    COUNT,
    FAINT,
    NOTE,
    PERCENT,
    PLAIN,
    SCORE,
    WARNING,
    WHOLE,
    WRAPPED,
    CellLook,
    Styled,
    colour_rates,
    compressed,
    figure_cells,
)
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width, fold_columns, foldable
from eval_pipeline.reports.places.links import linked
from eval_pipeline.reports.queries import mistakes_query, statistics_query, table_query, where
from eval_pipeline.reports.shown import short
from eval_pipeline.store.tables import COMPLEXITY_CEILING, COST_PER_CORRECT_ANSWER, COVERAGE, ERROR_ANALYSIS

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

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


_COMPLEXITY_WIDTHS = (14, 9, 14, 11, 10, 10, 9, 9, 11, 10, 30)
_COLUMNS = AccuracyColumns(level=1, accuracy=4, up=7, down=8, threshold=9, fitted=10)
_IN_SENTENCE = ("the monotone curve never falls", "interval open")
_HELPER = CellLook(SCORE, colour=FAINT)
_SHOWN = (
    ("level", "level", CellLook(WHOLE, align="left")),
    ("turns", "n", COUNT),
    ("clusters", "clusters", COUNT),
    ("accuracy", "accuracy", CellLook(PERCENT, bold=True)),
    ("95% low", "low", CellLook(PERCENT)),
    ("95% high", "high", CellLook(PERCENT)),
    ("up", "up", _HELPER),
    ("down", "down", _HELPER),
    ("threshold", "threshold", CellLook("0%", colour=FAINT)),
    ("fitted", "fitted", CellLook(PERCENT)),
    ("note", "note", NOTE),
)
"""Header, column of the query, and look."""
_CHART_COLUMN = "M"
_LEVELS = (
    "SELECT axis, level, n, clusters, accuracy, low, high, if(high < accuracy, 0, high - accuracy) AS up, "
    "if(low > accuracy, 0, accuracy - low) AS down, threshold, a.fitted, a.reason AS note "
    "FROM accuracy_by_complexity AS a JOIN complexity_ceiling AS c USING (suite, model_version, eval_date, axis) "
    "WHERE {where} ORDER BY axis, level"
)


def write_complexity(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    page = SheetWriter(book, "Complexity", (*_COMPLEXITY_WIDTHS, 3))
    page.title(
        "Accuracy against complexity",
        "Whiskers are 95% intervals, clustered by conversation or group; up and down are their lengths.",
        FITTED,
    )
    fit_to_width(page.sheet, pages=1)
    foldable(page.sheet)
    fold_columns(page.sheet, "GHI")
    sql = _LEVELS.format(where=where(evaluation.partition, "a"))
    page.query("Levels", sql)
    page.query("Fit and ceiling", table_query(evaluation.partition, "complexity_ceiling"))
    levels = evaluation.query(sql)
    for ceiling in evaluation.ceilings:
        _axis(book, page, evaluation, ceiling, [row for row in levels if row["axis"] == ceiling["axis"]])


def level_table(ceiling: Row) -> str:
    """Returns the name of an axis's table for charts of other sheets."""
    return f"levels of {ceiling['axis']}"


def add_level_chart(
    sheet: "Worksheet", evaluation: Evaluation, ceiling: Row, table: tuple["Worksheet", Rows], anchor: str,
    width: float = 16.0, told: str = "",
) -> None:  # fmt: skip
    """Adds the chart of an axis to a sheet, drawn from its table (sheet and rows); `told` follows in its title."""
    title = axis_title(ceiling["axis"])
    plot = Plot(f"Accuracy by {title}{told}", title, "share of correct turns", anchor, width)
    highest = max(row["level"] for row in evaluation.levels if row["axis"] == ceiling["axis"])
    add_accuracy_chart(sheet, plot, table, _COLUMNS, highest)


def _axis(book: Book, page: SheetWriter, evaluation: Evaluation, ceiling: Row, levels: list[Row]) -> None:
    title, sentence = axis_title(ceiling["axis"]), ceiling_sentence(ceiling)
    page.section(f"By {title}")
    start = page.next_row
    page.note(sentence)
    if ceiling["slope"] is not None:
        odds, p = ceiling["odds_ratio"], ceiling["p_value"]
        page.note(f"a step multiplies the odds of a correct turn by {shown.number(odds)} (p {shown.p_value(p)})")
    for reason in (ceiling["reason"] or "").split("; "):
        if reason and reason != sentence and not reason.startswith(_IN_SENTENCE):
            page.note(reason)
    if not levels:
        page.note("no turn has a level on this axis")
        return
    cells = [[(row[name], look) for _, name, look in _SHOWN] for row in levels]
    found = page.table([header for header, _, _ in _SHOWN], cells)
    colour_rates(page.sheet, f"D{found.first}:D{found.last}")
    table = book.tables[level_table(ceiling)] = page.sheet, found
    add_level_chart(page.sheet, evaluation, ceiling, table, f"{_CHART_COLUMN}{start}", told=f": {sentence}")
    page.blank(max(0, start + CHART_ROWS - page.next_row))

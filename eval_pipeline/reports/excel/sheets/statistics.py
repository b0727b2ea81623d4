"""The sheets `Statistics`, `Mistakes` and `Calibration`, and those that tracks and plug-ins add."""

from collections.abc import Iterator

from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.contents.figures import further_tables, matrix_of
from eval_pipeline.reports.contents.mistakes import mistakes
from eval_pipeline.reports.evaluation import ALL, Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.charts import CHART_ROWS, Plot, add_columns_chart
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.looks import (
    BY_UNIT,
    COUNT,
    HEADER_RIGHT,
    HEADER_TEXT,
    NOTE,
    PLAIN,
    SCORE,
    TEXT,
    WHOLE,
    CellLook,
    Styled,
    colour_rates,
    compressed,
)
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import Fold, fit_to_width, fold_columns, foldable
from eval_pipeline.reports.profile import OF_CASES, WORSE_WHEN_HIGH
from eval_pipeline.reports.queries import mistakes_query, statistics_query, table_query
from eval_pipeline.reports.shown import place
from eval_pipeline.store.tables import CALIBRATION

_HEADERS = (
    ("metric", 26), ("split", 24), ("group", 22), ("n", 9), ("clusters", 10), ("mean", 13), ("se", 12),
    ("95% low", 13), ("95% high", 13), ("method", 18), ("metric failures", 10), ("mean without failures", 14.5),
    ("reason", 30), ("meaning", 100),
)  # fmt: skip
_TEXTS = frozenset({"metric", "split", "group", "method", "reason", "meaning"})


def write_statistics_sheet(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet: the figures over all turns, then of each group the accuracy, with its other metrics folded."""
    from openpyxl.utils import get_column_letter

    sheet = book.sheet("Statistics")
    sheet.freeze_panes = "B2"
    letters = {name: get_column_letter(place) for place, (name, _) in enumerate(_HEADERS, start=1)}
    for name, width in _HEADERS:
        sheet.column_dimensions[letters[name]].width = width
    foldable(sheet)
    fold_columns(sheet, [letters[name] for name in ("se", "method")])
    fit_to_width(sheet, "portrait")
    sheet.print_title_rows = "1:1"
    book.add_query(sheet.title, "all rows", statistics_query(evaluation.partition))
    written, rates = book.rows_of(sheet), []
    written.append([(name, HEADER_TEXT if name in _TEXTS else HEADER_RIGHT) for name, _ in _HEADERS], 30)
    numbered = {row["axis"] for row in evaluation.ceilings} | {"turn_number"}
    for row, fold in _folded(evaluation):
        written.append(_cells(evaluation, row, row["split"] in numbered), fold=fold)
        if evaluation.profile.unit(row["metric"]) in ("rate", "score") and row["metric"] not in WORSE_WHEN_HIGH:
            rates.append(written.last_row)
    sheet.auto_filter.ref = f"A1:{letters['meaning']}{written.last_row}"
    sheet.print_area = f"A1:{letters['95% high']}{written.last_row}"
    if rates:
        colour_rates(sheet, compressed(rates, letters["mean"]))


def _folded(evaluation: Evaluation) -> Iterator[tuple[Row, Fold]]:
    """Yields the rows in order, and whether they are seen: those of all turns, and the first one of each group."""
    apart = evaluation.profile.apart
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in evaluation.statistics:
        if row["metric"].removeprefix(OF_CASES) not in apart:
            groups.setdefault((row["split"], row["split_value"]), []).append(row)
    for (split, _), rows in sorted(groups.items(), key=lambda item: item[0][0] != ALL):
        for number, row in enumerate(sorted(rows, key=lambda row: split != ALL and row["metric"] != "correct")):
            yield row, "" if split == ALL or len(rows) == 1 else "inside" if number else "head"


def _cells(evaluation: Evaluation, row: Row, numbered: bool) -> list[Styled]:
    figure, group = CellLook(BY_UNIT[evaluation.profile.unit(row["metric"])]), row["split_value"]
    shown = (int(group), CellLook(WHOLE, align="left", indent=1)) if numbered else (group, TEXT)
    method = None if row["method"] == "none" else row["method"]
    failed = row["failures"] > 0
    return [
        (row["metric"], TEXT), (row["split"], TEXT), shown, (row["n"], COUNT), (row["clusters"], COUNT),
        (row["mean"], figure), (row["se"], figure), (row["low"], figure), (row["high"], figure), (method, TEXT),
        (row["failures"] if failed else None, COUNT), (row["mean_without_failures"] if failed else None, figure),
        (row["reason"], NOTE), (evaluation.profile.meaning(row["metric"]), NOTE),
    ]  # fmt: skip


_WIDTH = 18
_LONGEST_TITLE = 31
"""The most characters that Excel allows in a sheet's title."""


def write_further(book: Book, evaluation: Evaluation) -> None:
    """Writes one sheet per added aggregate; does nothing if there are none."""
    for table in further_tables(evaluation):
        name, _, comment = table.caption.partition(": ")
        matrix = matrix_of(table)
        columns = max(len(table.columns), len(matrix.columns) if matrix else 0)
        page = SheetWriter(book, _title(book, name), [_WIDTH] * columns)
        page.title(name, comment)
        page.blank()
        if matrix is not None:
            page.figures(matrix)
            page.section("The same as rows, with an example")
        page.figures(table, titled=False)


def _title(book: Book, name: str) -> str:
    """Returns the table's name, changed as needed to be a valid and unused sheet title."""
    taken = {title.casefold() for title in book.titles}
    title = name[:_LONGEST_TITLE]
    while title.casefold() in taken:
        title = f"{title[: _LONGEST_TITLE - 1]}_"
    return title


TITLE = "Mistakes"
_SAMPLE = Field("sample", 9, WHOLE)
_FIELDS = (
    Field("turn", 36, link=lambda row: f"'Turns'!A{row['number'] + 2}"),
    Field("kind", 18),
    Field("score", 9, SCORE, rate=True),
    Field("question", 48, wrap=True),
    Field("what is wrong", 60, wrap=True, column="what"),
    Field("expected", 44, wrap=True),
    Field("answer", 44, wrap=True),
)


def write_mistakes_sheet(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet; a suite without mistakes has only its header."""
    fields = [*_FIELDS[:1], *([_SAMPLE] if evaluation.several_samples else []), *_FIELDS[1:]]
    book.add_query(TITLE, "all rows", mistakes_query(evaluation.partition))
    rows = (
        row
        | {
            "turn": place(row["turn_id"]),
            "number": evaluation.order[row["turn_id"], row["sample"]],
        }
        for row in mistakes(evaluation)
    )
    write_long_sheet(book, TITLE, fields, rows, frozen=2, pages=2)


_WIDTHS = (34, 12, 12, 12, 12, 12, 12, 40)
_SCORES = (
    "calibration_score", "reliability", "resolution", "ece", "brier", "brier_reliability", "brier_resolution",
    "brier_uncertainty",
)  # fmt: skip

_LEVELS = (
    FigureColumn("level", "level"), FigureColumn("promised", "nominal", "rate"),
    FigureColumn("right", "accuracy", "rate"),
    FigureColumn("95% low", "low", "rate"), FigureColumn("95% high", "high", "rate"),
    FigureColumn("answers", "n", "tokens"),
    FigureColumn("clusters", "clusters", "tokens"), FigureColumn("note", "reason", "note"),
)  # fmt: skip


def write_calibration(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet; does nothing if the track has no calibration figures."""
    rows = evaluation.optional(CALIBRATION)
    if not rows:
        return
    page = SheetWriter(book, "Calibration", _WIDTHS)
    page.title("Calibration", "Whether the words for confidence say how often answers are right.")
    fit_to_width(page.sheet, pages=1)
    overall = next(row for row in rows if row["level"] == ALL)
    page.section("Scores")
    for text in (overall["verdict"], overall["warning"], overall["reason"]):
        if text:
            page.note(text)
    columns = {column.name: column.comment for column in CALIBRATION.columns}
    page.table(
        ["score", "value", "note"],
        [[(name, PLAIN), (overall[name], CellLook(SCORE, bold=True)), (columns[name], NOTE)] for name in _SCORES],
    )
    _levels(page, [row for row in rows if row["level"] != ALL])
    page.query("Scores and levels", table_query(evaluation.partition, CALIBRATION.name))


def _levels(page: SheetWriter, levels: list[Row]) -> None:
    if not levels:
        page.section("By level of confidence")
        page.note("no answer said how sure it was")
        return
    table = page.figures(FigureTable("By level of confidence", _LEVELS, levels, []))
    page.blank()
    plot = Plot("Promised and reached accuracy", "confidence", "accuracy", f"A{page.next_row}", 16)
    add_columns_chart(page.sheet, plot, table, names=1, values=(2, 3), number_format="0%")
    page.blank(CHART_ROWS)

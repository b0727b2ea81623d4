"""The sheet `Statistics`: every metric over all turns and for each split."""

from collections.abc import Iterator

from eval_pipeline.reports.evaluation import ALL, Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.colours import colour_rates, compressed
from eval_pipeline.reports.excel.looks import (
    BY_UNIT,
    COUNT,
    HEADER_RIGHT,
    HEADER_TEXT,
    NOTE,
    TEXT,
    WHOLE,
    CellLook,
    Styled,
)
from eval_pipeline.reports.excel.printing import Fold, fit_to_width, fold_columns, foldable
from eval_pipeline.reports.profile import OF_CASES, WORSE_WHEN_HIGH
from eval_pipeline.reports.queries import statistics_query

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
        for place, row in enumerate(sorted(rows, key=lambda row: split != ALL and row["metric"] != "correct")):
            yield row, "" if split == ALL or len(rows) == 1 else "inside" if place else "head"


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

"""The sheet `SQL`: how queries were compared, the validator's verdicts, and how reliable the judge is."""

from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.looks import COUNT, NOTE, PERCENT, PLAIN, SCORE, CellLook, Styled, colour_rates
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width
from eval_pipeline.reports.queries import table_query
from eval_pipeline.store.tables import JUDGE_AGREEMENT

_WIDTHS = (38, 16, 19, 14, 14, 60)
_LABELS = (
    ("Equivalence: what decided", "equivalence_rung"),
    ("Safety: was the validator right", "safety_verdict"),
    ("Validation: was the validator right", "validation_verdict"),
    ("Why the validator rejected", "validation_category"),
    ("Databases", "database"),
)
"""The title, and the column of `sql_turns`."""
_COUNTS = "count(*) AS turns, count(*) FILTER (correct) AS correct, avg(correct::INT) AS accuracy"
_COUNTED = (
    FigureColumn("turns", "turns", "tokens"),
    FigureColumn("correct", "correct", "tokens"),
    FigureColumn("accuracy", "accuracy", "rate"),
)
_JUDGED = ("same", "partly", "different")
_FIGURES = (
    ("Agreement", "agreement", PERCENT),
    ("Called same of those that are", "true_positive_rate", PERCENT),
    ("Not called same of those that differ", "true_negative_rate", PERCENT),
    ("Share that is the same (base rate)", "base_rate", PERCENT),
    ("Cohen's kappa", "kappa", SCORE),
)


def write_sql(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    page = SheetWriter(book, "SQL", _WIDTHS)
    page.title("SQL", "How queries were compared with the accepted ones, and what the validator made of them.")
    fit_to_width(page.sheet, "portrait", pages=1)
    for title, column in _LABELS:
        _counts(page, evaluation, title, column)
    _agreement(page, evaluation)


def _counts(page: SheetWriter, evaluation: Evaluation, title: str, column: str) -> None:
    sql = table_query(
        evaluation.partition,
        "sql_turns",
        f"{column}, {_COUNTS}",
        f"AND {column} IS NOT NULL GROUP BY ALL ORDER BY turns DESC, {column}",
    )
    if not (rows := evaluation.query(sql)):
        page.section(title)
        page.note("no turn")
        return
    columns = (FigureColumn(column.replace("_", " "), column), *_COUNTED)
    table = page.figures(FigureTable(title, columns, rows, [sql]))
    colour_rates(page.sheet, f"D{table.first}:D{table.last}")


def _agreement(page: SheetWriter, evaluation: Evaluation) -> None:
    page.section("The judge against the evidence")
    (row,) = evaluation.optional(JUDGE_AGREEMENT)
    if not row["n"]:
        page.note(row["reason"] or "nothing was rated by both")
    rows: list[list[Styled]] = [
        [
            (f"judge: {judged}", PLAIN), (row[f"judge_{judged}_evidence_same"], COUNT),
            (row[f"judge_{judged}_evidence_different"], COUNT),
        ]
        for judged in _JUDGED
    ]  # fmt: skip
    page.table(["pairs rated by both", "evidence: same", "evidence: different"], rows)
    page.blank()
    figures: list[list[Styled]] = [
        [
            (label, PLAIN), (row[name], CellLook(form, bold=True)), (row[f"{name}_low"], CellLook(form)),
            (row[f"{name}_high"], CellLook(form)), (row["reason"], NOTE),
        ]
        for label, name, form in _FIGURES
    ]  # fmt: skip
    page.table(["figure", "value", "95% low", "95% high", "note"], figures)
    page.blank()
    calls = ("judged", "judge_calls", "judge_failures", "calls_saved", "calls_avoidable")
    comments = {column.name: column.comment for column in JUDGE_AGREEMENT.columns}
    page.table(
        ["count", "pairs", "note"],
        [[(name.replace("_", " "), PLAIN), (row[name], COUNT), (comments[name], NOTE)] for name in calls],
    )
    page.query("The judge against the evidence", table_query(evaluation.partition, JUDGE_AGREEMENT.name))

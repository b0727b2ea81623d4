"""The sheet `Cost`: total spending, what it was for, and the cost per correct result."""

from eval_pipeline.core import shown
from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.contents.figures import extremes
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.charts import CHART_ROWS, Plot, add_columns_chart
from eval_pipeline.reports.excel.looks import INTEGER, NOTE, PLAIN, Styled, figure_cells
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width
from eval_pipeline.reports.queries import literal, table_query

_WIDTHS = (38, 13, 15, 18, 15, 15, 13, 40)
_SPENT = {
    "input tokens": "input_tokens",
    "output tokens": "output_tokens",
    "cache reads": "cache_read_tokens",
    "cache writes": "cache_write_tokens",
    "US dollars": "usd",
}
_ANSWERED = "FILTER (call_error IS NULL)"


def _sum(name: str) -> str:
    """Returns the SQL for the sum over answers; what one of them does not tell nobody knows of all."""
    function, kind = ("fsum", "DOUBLE") if name == "usd" else ("sum", "BIGINT")
    known = f"count({name}) {_ANSWERED} = count(*) {_ANSWERED}"
    return f"CASE WHEN {known} THEN coalesce({function}({name}) {_ANSWERED}, 0)::{kind} END AS {name}"


_BY_ATTEMPT = f"count(*) AS attempts, count(call_error) AS failed, {', '.join(map(_sum, _SPENT.values()))}"
_OF_ATTEMPTS = (
    FigureColumn("kind", "kind"),
    FigureColumn("attempts", "attempts", "tokens"),
    *(FigureColumn(header, name, "usd" if name == "usd" else "tokens") for header, name in _SPENT.items()),
    FigureColumn("note", "note", "note"),
)
_BY_TURN = "split_value::BIGINT AS turn, max(n) FILTER (metric = 'attempts') AS turns, " + ", ".join(
    f"max(mean) FILTER (metric = '{name}') AS {name}" for name in ("tokens", "usd", "latency_ms")
)
_OF_TURNS = (
    FigureColumn("turn", "turn", "number"),
    FigureColumn("turns", "turns", "tokens"),
    FigureColumn("mean tokens", "tokens", "tokens"),
    FigureColumn("mean US dollars", "usd", "usd"),
    FigureColumn("mean latency", "latency_ms", "ms"),
)


def write_cost(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    page = SheetWriter(book, "Cost", _WIDTHS)
    fit_to_width(page.sheet, "portrait", pages=1)
    page.title(
        "Cost",
        "Recovery attempts included, a judge's tokens apart. "
        "An answer from the journal counts what it cost when it was asked.",
    )
    _per_success(page, evaluation.cost)
    page.query("Over what came out right", table_query(evaluation.partition, "cost_per_correct_answer"))
    _by_attempt(page, evaluation)
    _by_turn(page, evaluation)
    _extremes(page, evaluation)


def _per_success(page: SheetWriter, cost: Row) -> None:
    page.section("Over what came out right")
    figures: tuple[tuple[str, str, Unit, str | None], ...] = (
        ("Tokens in all", "tokens_total", "tokens", None),
        ("US dollars in all", "usd_total", "usd", None),
        ("Tokens per successful conversation", "tokens_per_success", "tokens", "reason"),
        ("US dollars per successful conversation", "usd_per_success", "usd", "usd_reason"),
        ("Tokens per correct turn", "tokens_per_correct_turn", "tokens", None),
        ("US dollars per correct turn", "usd_per_correct_turn", "usd", None),
        ("Successful conversations", "successful_conversations", "tokens", None),
        ("Conversations", "conversations", "tokens", None),
        ("Correct turns", "correct_turns", "tokens", None),
        ("Turns", "turns", "tokens", None),
    )
    rows: list[list[Styled]] = []
    for label, name, unit, reason in figures:
        note = cost[reason] if reason else _unknown(cost, name)
        cells = figure_cells(cost[name], unit, cost.get(f"{name}_low"), cost.get(f"{name}_high"))
        rows.append([(label, PLAIN), *cells, (note, NOTE)])
    page.table(["figure", "value", "95% low", "95% high", "note"], rows)


def _unknown(cost: Row, name: str) -> str | None:
    if cost[name] is not None:
        return None
    if name.endswith("correct_turn") and not cost["correct_turns"]:
        return "no correct turn"
    return "not every call has a known price" if name.startswith("usd") else "not every call told its tokens"


def _by_attempt(page: SheetWriter, evaluation: Evaluation) -> None:
    sql = " UNION ALL ".join(
        table_query(evaluation.partition, "attempts", f"{literal(kind)} AS kind, {_BY_ATTEMPT}", condition)
        for kind, condition in (("Generations", "AND number = 0"), ("Recovery attempts", "AND number > 0"))
    )
    rows = [
        row
        | {
            "note": f"{shown.counted(row['failed'], 'call', 'calls')} gave no response and count nothing"
            if row["failed"]
            else None
        }
        for row in evaluation.query(sql)
    ]
    page.figures(FigureTable("Generations and recovery attempts", _OF_ATTEMPTS, rows, [sql]))


def _by_turn(page: SheetWriter, evaluation: Evaluation) -> None:
    sql = table_query(
        evaluation.partition, "statistics", _BY_TURN, "AND split = 'turn_number' GROUP BY ALL ORDER BY turn"
    )
    rows, start = evaluation.query(sql), page.next_row + 1
    if not rows:
        page.section("By turn number")
        page.note("no turns")
        return
    table = page.figures(FigureTable("By turn number", _OF_TURNS, rows, [sql]))
    if any(row["tokens"] is not None for row in rows):
        plot = Plot("Tokens by turn number", "turn number (from 0)", "mean tokens per turn", f"G{start + 1}", 10.5)
        add_columns_chart(page.sheet, plot, table, names=1, values=(3,), number_format=INTEGER)
        page.blank(max(0, start + 1 + CHART_ROWS - page.next_row))


def _extremes(page: SheetWriter, evaluation: Evaluation) -> None:
    for table, missing in extremes(evaluation):
        if table.rows:
            page.figures(table)
        else:
            page.section(table.caption)
            page.note(missing)

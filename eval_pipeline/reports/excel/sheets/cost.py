"""The sheet `Cost`: total spending, what it was for, and the cost per correct result."""

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.charts import CHART_ROWS, Plot, add_columns_chart
from eval_pipeline.reports.excel.looks import (
    COUNT,
    DOLLARS,
    INTEGER,
    MILLISECONDS,
    NOTE,
    PLAIN,
    WHOLE,
    WRAPPED,
    Look,
    Styled,
)
from eval_pipeline.reports.excel.page import Page
from eval_pipeline.reports.extremes import EXTREMES, MOST, VERDICTS, top_turns
from eval_pipeline.reports.queries import extremes_query, table_query
from eval_pipeline.store import tables

_WIDTHS = (42, 16, 15.5, 17.5, 15, 15, 15, 62)
_BY_ATTEMPT = (
    "number > 0 AS recovery, count(*) AS attempts, sum(input_tokens)::BIGINT AS input_tokens, "
    "sum(output_tokens)::BIGINT AS output_tokens, sum(cache_read_tokens)::BIGINT AS cache_reads, "
    "sum(cache_write_tokens)::BIGINT AS cache_writes, sum(usd) AS usd, count(call_error) AS calls_without_response"
)
_SPENT = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "usd")


def write_cost(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    page = Page(book, "Cost", _WIDTHS)
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


def _per_success(page: Page, cost: Row) -> None:
    page.section("Over what came out right")
    figures = (
        ("Tokens in all", "tokens_total", INTEGER, None),
        ("US dollars in all", "usd_total", DOLLARS, None),
        ("Tokens per successful conversation", "tokens_per_success", INTEGER, "reason"),
        ("US dollars per successful conversation", "usd_per_success", DOLLARS, "usd_reason"),
        ("Tokens per correct turn", "tokens_per_correct_turn", INTEGER, None),
        ("US dollars per correct turn", "usd_per_correct_turn", DOLLARS, None),
        ("Successful conversations", "successful_conversations", INTEGER, None),
        ("Conversations", "conversations", INTEGER, None),
        ("Correct turns", "correct_turns", INTEGER, None),
        ("Turns", "turns", INTEGER, None),
    )
    rows: list[list[Styled]] = []
    for label, name, form, reason in figures:
        note = cost[reason] if reason else _unknown(cost, name)
        rows.append(
            [(label, PLAIN), (cost[name], Look(form, bold=True)), (cost.get(f"{name}_low"), Look(form)),
             (cost.get(f"{name}_high"), Look(form)), (note, NOTE)]
        )  # fmt: skip
    page.table(["figure", "value", "95% low", "95% high", "note"], rows)


def _unknown(cost: Row, name: str) -> str | None:
    if cost[name] is not None:
        return None
    if name.endswith("correct_turn") and not cost["correct_turns"]:
        return "no correct turn"
    return "not every call has a known price" if name.startswith("usd") else "not every call told its tokens"


def _by_attempt(page: Page, evaluation: Evaluation) -> None:
    page.section("Generations and recovery attempts")
    headers = ["kind", "attempts", "input tokens", "output tokens", "cache reads", "cache writes", "US dollars", "note"]
    parts = (("Generations", tables.GENERATIONS), ("Recovery attempts", tables.RECOVERY_ATTEMPTS))
    rows = [_attempt_row(label, evaluation.read(table)) for label, table in parts]
    page.table(headers, rows)
    page.query(
        "Generations and recovery attempts", table_query(evaluation.partition, "attempts", _BY_ATTEMPT, "GROUP BY ALL")
    )


def _attempt_row(label: str, attempts: pa.Table) -> list[Styled]:
    answered = attempts.filter(pc.is_null(attempts["call_error"]))
    failed = attempts.num_rows - answered.num_rows
    totals = [(_total(answered, name), Look(DOLLARS if name == "usd" else INTEGER)) for name in _SPENT]
    note = f"{failed:,} calls gave no response and count nothing" if failed else None
    return [(label, PLAIN), (attempts.num_rows, COUNT), *totals, (note, NOTE)]


def _total(table: pa.Table, column: str) -> int | float | None:
    """Returns the sum of a column, or None if any value is unknown."""
    if table[column].null_count:
        return None
    total: int | float | None = pc.sum(table[column]).as_py()
    return total or 0


def _by_turn(page: Page, evaluation: Evaluation) -> None:
    page.section("By turn number")
    start, shown = page.next_row, ("tokens", "usd", "latency_ms")
    found: dict[int, dict[str, Row]] = {}
    for row in evaluation.statistics:
        if row["split"] == "turn_number" and row["metric"] in ("attempts", *shown):
            found.setdefault(int(row["split_value"]), {})[row["metric"]] = row
    if not found:
        page.note("no turns")
        return
    forms = (INTEGER, DOLLARS, MILLISECONDS)
    rows: list[list[Styled]] = [
        [(turn, Look(WHOLE, align="left")), (metrics["attempts"]["n"], COUNT)]
        + [(metrics[name]["mean"], Look(form)) for name, form in zip(shown, forms, strict=True)]
        for turn, metrics in sorted(found.items())
    ]
    headers = ["turn", "turns", "mean tokens", "mean US dollars", "mean latency"]
    table = page.table(headers, rows)
    page.query("By turn number", _by_turn_query(evaluation))
    if any(metrics["tokens"]["mean"] is not None for metrics in found.values()):
        plot = Plot("Tokens by turn number", "turn number (from 0)", "mean tokens per turn", f"G{start}", 16)
        add_columns_chart(page.sheet, plot, table, names=1, values=(3,), number_format=INTEGER)
        page.blank(max(0, start + CHART_ROWS - page.next_row))


def _by_turn_query(evaluation: Evaluation) -> str:
    columns = (
        "turn_index AS turn, count(*) AS turns, avg(tokens) AS tokens, avg(usd) AS usd, avg(latency_ms) AS latency_ms"
    )
    return table_query(evaluation.partition, "turn_results", columns, "GROUP BY turn_index ORDER BY turn_index")


def _extremes(page: Page, evaluation: Evaluation) -> None:
    headers = ["turn", "tokens", "US dollars", "latency", "attempts", "correct", "complexity", "question"]
    for title, column, missing in EXTREMES:
        page.section(title)
        rows = [_extreme(row) for row in top_turns(evaluation.results, column)]
        if rows:
            page.table(headers, rows)
            page.query(title, extremes_query(evaluation.partition, column, MOST))
        else:
            page.note(missing)


def _extreme(row: Row) -> list[Styled]:
    return [
        (row["turn_id"], PLAIN), (row["tokens"], COUNT), (row["usd"], Look(DOLLARS)),
        (row["latency_ms"], Look(MILLISECONDS)), (row["attempts"], COUNT),
        (VERDICTS[row["correct"]], Look(align="right")), (row["complexity"], COUNT), (row["question"], WRAPPED),
    ]  # fmt: skip

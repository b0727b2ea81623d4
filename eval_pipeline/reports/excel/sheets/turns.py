"""The sheets `Turns` and `Errors`."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.looks import DECIMAL, DOLLARS, GENERAL, INTEGER, MILLISECONDS, SCORE, WHOLE
from eval_pipeline.reports.files.flat_files import errors_query, errors_table, turns_query, turns_table
from eval_pipeline.reports.profile import WORSE_WHEN_HIGH, MetricInfo
from eval_pipeline.reports.queries import in_parts
from eval_pipeline.reports.shown import shown_json

_MOST_LINES = 3
_LEFT_OUT = frozenset({"turn_id", "outcome", "plan", "simulated", "num_dialogue_turns", "gold", "response"})
_KEY = frozenset({"suite", "model_version", "eval_date"})
_FIELDS = {
    field.name: field
    for field in (
        Field("conversation_id", 30),
        Field("turn_idx", 8, WHOLE),
        Field("sample", 9, WHOLE),
        Field("question", 52, wrap=True),
        Field("expected", 16),
        Field("expected_answer", 16),
        Field("answer", 16),
        Field("gold", 40, wrap=True),
        Field("response", 60, wrap=True),
        Field("correct", 10, verdict="good"),
        Field("first_attempt_correct", 10, verdict="good"),
        Field("score", 9, SCORE, rate=True),
        Field("error_type", 16),
        Field("error_message", 52, wrap=True),
        Field("failure_mode", 17),
        Field("ground_truth_program", 40),
        Field("expected_printed", 14),
        Field("input_tokens", 10, INTEGER),
        Field("output_tokens", 10, INTEGER),
        Field("tokens", 10, INTEGER),
        Field("usd", 11, DOLLARS),
        Field("latency_ms", 11, MILLISECONDS),
        Field("attempts", 9, INTEGER),
        Field("complexity", 11, INTEGER),
        Field("plan_steps", 8, INTEGER),
        Field("operations_per_turn", 11, INTEGER),
        Field("trace_id", 40),
        Field("turn_id", 36),
        Field("error_context", 60),
    )
}


def write_turns_sheet(book: Book, evaluation: Evaluation) -> None:
    """Writes one row per turn: verdict, gold and response first, then every metric, then the features of the case."""
    table = turns_table(evaluation)
    metrics = {metric.name for metric in evaluation.profile.metrics}
    left_out = _LEFT_OUT | _KEY | evaluation.profile.apart.keys()
    names = [name for name in table.column_names if name not in left_out]
    behind = names.index("error_type") + 1
    ordered = sorted(names[behind:], key=lambda name: (name != "failure_mode", name not in metrics))
    mode = int(ordered[:1] == ["failure_mode"])
    book.add_query("Turns", "all rows", turns_query(evaluation))
    names = [*names[:behind], *ordered[:mode], "gold", "response", *ordered[mode:]]
    _write(book, "Turns", evaluation, table.select(names))


def write_errors_sheet(book: Book, evaluation: Evaluation) -> None:
    """Writes one row per failed turn, with the column names of `errors.csv`; it links to the same turn in `Turns`."""
    table = errors_table(evaluation)
    last = ("error_context", "trace_id", "turn_id")
    names = [name for name in table.column_names if name not in _KEY.union(last)]
    book.add_query("Errors", "all rows", errors_query(evaluation))
    _write(book, "Errors", evaluation, table.select([*names, *last]))


def _write(book: Book, title: str, evaluation: Evaluation, table: pa.Table) -> None:
    if not evaluation.several_samples:
        table = table.drop_columns(["sample"])
    metrics = {metric.name: metric for metric in evaluation.profile.metrics}
    fields = [_field(name, table.schema.field(name).type, metrics.get(name)) for name in table.column_names]
    if title == "Errors":
        fields[0] = replace(
            fields[0], link=lambda row: f"'Turns'!A{evaluation.order[row['turn_id'], row.get('sample', 0)] + 2}"
        )
    write_long_sheet(book, title, fields, _rows(table), frozen=2, most_lines=_MOST_LINES)


def _field(name: str, kind: pa.DataType, metric: MetricInfo | None) -> Field:
    if name in _FIELDS:
        return _FIELDS[name]
    if pa.types.is_boolean(kind):
        if metric is None:
            return Field(name, verdict="neutral")
        return Field(name, verdict="bad" if name in WORSE_WHEN_HIGH else "good")
    if metric is not None and metric.kind == "score":
        return Field(name, format=SCORE, rate=True)
    if pa.types.is_integer(kind) or (metric is not None and metric.kind == "count"):
        return Field(name, format=INTEGER)
    return Field(name, format=DECIMAL if pa.types.is_floating(kind) else GENERAL)


def _rows(table: pa.Table) -> Iterator[Row]:
    for row in in_parts(table):
        yield row | {"gold": shown_json(json.loads(row["gold"]))} if row.get("gold") else row

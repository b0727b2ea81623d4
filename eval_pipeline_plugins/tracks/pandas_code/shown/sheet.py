"""The sheet `Code`: the six scores of every turn, beside the code and its missing requirements."""

import json
from collections.abc import Iterator

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.places.paths import trace_file
from eval_pipeline.reports.queries import TURN, where

SHEET = "Code"
SCORES = (
    "overall_score",
    "correctness_score",
    "quality_score",
    "performance_score",
    "understanding_score",
    "coverage_score",
    "recovery_score",
)
_DETAILED = ("coverage_score", "quality_score", "performance_score")
"""The metrics whose details the sheet shows."""
_SCORE = "0.000"
_FROZEN = 2

FIELDS = (
    Field("conversation_id", 24, link=lambda row: trace_file(row["conversation_id"])),
    Field("turn_idx", 9, "0"),
    Field("sample", 9, "0"),
    Field("correct", 10, verdict="good"),
    *(Field(name, 12, _SCORE, rate=True) for name in SCORES),
    Field("failure_mode", 18),
    Field("missing requirements", 40, wrap=True),
    Field("findings", 40, wrap=True),
    Field("generated ms", 14, "0.0"),
    Field("reference ms", 14, "0.0"),
    Field("question", 50, wrap=True),
    Field("code", 70, wrap=True),
    Field("reference_code", 70, wrap=True),
)


def write_code(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    book.add_query(SHEET, "all rows", _query(evaluation))
    write_long_sheet(book, SHEET, FIELDS, _rows(evaluation), _FROZEN)


def _query(evaluation: Evaluation) -> str:
    """Returns the query for the sheet's rows; findings and missing requirements are in JSON."""
    of_turns = ", ".join(f"t.{name}" for name in ("correct", *SCORES, "failure_mode"))
    details = ", ".join(f"any_value(details) FILTER (metric = '{name}') AS {name}" for name in _DETAILED)
    costs = ", ".join(
        f"(m.performance_score ->> '$.{name}_ms')::DOUBLE AS \"{name} ms\"" for name in ("generated", "reference")
    )
    return (
        f"SELECT turn_id, sample, t.case_id AS conversation_id, t.turn_index AS turn_idx, {of_turns}, "
        "m.coverage_score -> '$.missing_requirements' AS missing, "
        f"m.quality_score -> '$.findings' AS findings, {costs}, t.question, t.code, t.reference_code "
        f"FROM {evaluation.profile.turns_table.name} AS t LEFT JOIN (SELECT {TURN}, {details} FROM metrics "
        f"GROUP BY ALL) AS m USING ({TURN}) WHERE {where(evaluation.partition, 't')}"
    )


def _rows(evaluation: Evaluation) -> Iterator[Row]:
    for row in evaluation.in_order(evaluation.query(_query(evaluation))):
        found = json.loads(row["findings"] or "[]")
        yield row | {
            "missing requirements": "\n".join(json.loads(row["missing"] or "[]")),
            "findings": "\n".join(f"line {one['line']}: {one['rule']} {one['message']}" for one in found),
        }

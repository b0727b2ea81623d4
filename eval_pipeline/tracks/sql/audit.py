"""Finds signs of wrong gold (accepted queries that disagree), and recognises equal answers of models."""

from collections.abc import Iterator

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.capabilities import Contradiction
from eval_pipeline.tracks.sql.cases.case_file import Gold, SqlCase
from eval_pipeline.tracks.sql.execute import SHOWN_ROWS

_DISAGREE_SCORE, _TABLES_SCORE = 0.6, 0.3
"""Chosen by judgement, not measured: two right answers may intentionally have different results; see docs/gold.md."""
_DIGITS = 6


def contradictions(case: SqlCase) -> list[Contradiction]:
    """Returns turns whose accepted queries have different results, or read other tables than the expected ones."""
    found = ((turn, next(_doubts(turn.gold), None)) for turn in case.turns)
    return [Contradiction(turn.id, *doubt) for turn, doubt in found if doubt is not None]


def _doubts(gold: Gold) -> Iterator[tuple[str, float]]:
    from eval_pipeline.tracks.sql.effects.judging import disagreements
    from eval_pipeline.tracks.sql.evidence import executed
    from eval_pipeline.tracks.sql.metrics.tables_read import table_accuracy

    if gold.may_change:
        yield from ((told, _DISAGREE_SCORE) for told in disagreements(gold))
        return
    for other in gold.accepted[1:]:
        compared = executed(gold.database, other, gold.accepted[0])
        if compared.execution == "different":
            yield f"accepted queries give different results on the suite's database: {_short(other)}", _DISAGREE_SCORE
    if gold.accepted and gold.tables:
        read = table_accuracy(gold.accepted[0], gold.tables, gold.database.dialect)
        if read.value is not None and read.value < 1.0:
            tables = ", ".join(gold.tables)
            yield f"the first accepted query does not read just the expected tables ({tables})", _TABLES_SCORE


def answer_key(told: Json) -> str:
    """Returns a key that is equal for results with the same rows, whatever their order and the names of columns.

    For results with more rows than the record keeps, it uses the first rows in their order, and the number of rows.
    """
    if "declined" in told:
        return "declined"
    if "blocked" in told:
        return "blocked"
    if told.get("rows") is None:
        return " ".join(str(told["sql"]).casefold().split())
    rows = [json_text([_rounded(cell) for cell in row]) for row in told["rows"]]
    ordered = sorted(rows) if told["row_count"] <= SHOWN_ROWS else rows
    return json_text([told["row_count"], ordered])


def _rounded(cell: Json) -> Json:
    """Rounds numbers to a few digits, so that 2 equals 2.0 and floating-point noise is ignored."""
    return f"{cell:.{_DIGITS}g}" if isinstance(cell, (int, float)) and not isinstance(cell, bool) else cell


def _short(sql: str, most: int = 120) -> str:
    text = " ".join(sql.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"

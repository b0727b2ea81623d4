"""Finds signs of wrong gold, and recognises equal answers of models."""

from collections.abc import Collection, Iterator
from math import prod

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.capabilities import Contradiction
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlCase, SqlTurn
from eval_pipeline_plugins.tracks.sql.responses.running import SHOWN_ROWS

_TABLES_SCORE = 0.3
"""Chosen by judgement, not measured; see docs/gold.md."""
_DIGITS = 6


def contradictions(case: SqlCase) -> list[Contradiction]:
    """Returns turns whose first accepted query reads other tables than the expected ones, or that a lint doubts.

    That several accepted queries have different results is no doubt: they are listed since each is right. Scripts that
    change data are not doubted.
    """
    turns = [turn for turn in case.turns if not turn.gold.may_change]
    return [doubt for turn in turns for doubt in (*_other_tables(turn), *_linted(turn, case.tags))]


def _other_tables(turn: SqlTurn) -> Iterator[Contradiction]:
    from eval_pipeline_plugins.tracks.sql.metrics.tables_read import table_accuracy

    gold = turn.gold
    if gold.accepted and gold.tables:
        read = table_accuracy(gold.accepted[0], gold.tables, gold.database.dialect)
        if read.value is not None and read.value < 1.0:
            told = f"the first accepted query does not read just the expected tables ({', '.join(gold.tables)})"
            yield Contradiction(turn.id, told, _TABLES_SCORE)


def _linted(turn: SqlTurn, meant: Collection[str]) -> Iterator[Contradiction]:
    """Yields the lint's findings of a turn as one doubt; of several accepted queries, all have to be doubted so.

    Kinds of findings that the case names among its tags are meant by its author.
    """
    from eval_pipeline_plugins.tracks.sql.gold.lint import SCORES, findings

    found = [findings(sql, turn.gold.database) for sql in turn.gold.accepted]
    shared = set.intersection(*({one.kind for one in each} for each in found)) if found else set[str]()
    told = [one for one in (found[0] if found else ()) if one.kind in shared and one.kind not in meant]
    if told:
        score = 1 - prod(1 - SCORES[one.kind] for one in told)
        yield Contradiction(turn.id, "; ".join(f"{one.kind}: {one.words}" for one in told), score, linted=True)


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

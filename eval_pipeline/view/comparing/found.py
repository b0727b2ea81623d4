"""A page of turns side by side: what each evaluation said there, and how that differs from what the first one said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.ids import parse_json
from eval_pipeline.store.ddl import text
from eval_pipeline.view.comparing import agreement
from eval_pipeline.view.comparing.agreement import Group
from eval_pipeline.view.comparing.row_differences import RowDifferences, row_differences
from eval_pipeline.view.comparing.sql import (
    Choice,
    Position,
    groups_sql,
    left_out_sql,
    tags_sql,
    turns_sql,
)
from eval_pipeline.view.differences import Piece, differences
from eval_pipeline.view.evaluation import Evaluation
from eval_pipeline.view.filtering.sql import of_evaluation
from eval_pipeline.view.published import Look, Row

PAGE_SIZE = 20
_MOST_TAGS = 200
MOST_SHOWN = 2_000
"""Characters of an answer or a response; the turn's own page has all of them."""
_MOST_RESULT = 1_000_000
"""Characters of a result that is compared row by row."""
_MOST_WORDS = 600
"""Of two texts together that are compared word by word: a page does so with dozens of them."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an evaluation said on a turn.

    Attributes:
        row: of `turn_results`.
        response: of its last attempt, cut; None where the call failed.
        answer_pieces, response_pieces: against those of the first evaluation; of the first, and where they are the
            same, None.
        rows: how the rows that it returned differ from the first one's; None where they are no rows.
    """

    row: Row
    response: str | None
    answer_pieces: Sequence[Piece] | None = None
    response_pieces: Sequence[Piece] | None = None
    rows: RowDifferences | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that all sides have.

    Attributes:
        place: where it stands in the list.
        sides: what each said, in their order.
    """

    turn_id: str
    place: Position
    sides: Sequence[Said]


@dataclass(frozen=True, slots=True)
class Turns:
    """A page of turns.

    Attributes:
        sql: the query that was run.
        before, after: whether there are turns before and after these.
    """

    sql: str
    turns: Sequence[Turn]
    before: bool
    after: bool


def groups(look: Look, sides: Sequence[Evaluation], choice: Choice) -> list[Group]:
    """The groups that there are, regressions first; counted once a state of the store."""
    sql = groups_sql(sides, choice)
    found: list[Group] = look.remembered(("groups", sql), lambda: [Group(**row) for row in look.rows(sql)])
    return sorted(found, key=lambda group: (agreement.rank(group.code), group.code))


def left_out(look: Look, sides: Sequence[Evaluation]) -> int:
    """Turns that all have but that were asked otherwise, or have another gold, in one of them."""
    sql = left_out_sql(sides)
    return look.remembered(("left out", sql), lambda: int(look.rows(sql)[0]["otherwise"]))


def tags(look: Look, sides: Sequence[Evaluation]) -> list[tuple[str, int]]:
    """Tags of the turns, the most frequent first."""
    sql = tags_sql(sides, _MOST_TAGS)
    return look.remembered(("tags", sql), lambda: [(row["value"], row["turns"]) for row in look.rows(sql)])


def page_of_turns(
    look: Look, sides: Sequence[Evaluation], choice: Choice, found: Sequence[Group], beyond: Position | None,
    *, backwards: bool,
) -> Turns:  # fmt: skip
    """The turns after a position, or before it; the first ones where there is none."""
    codes = [group.code for group in found]
    sql = turns_sql(sides, choice, codes, beyond, backwards=backwards, limit=PAGE_SIZE + 1)
    rows = look.rows(sql)
    more, rows = len(rows) > PAGE_SIZE, rows[:PAGE_SIZE]
    if backwards:
        rows.reverse()
    before, after = (more, True) if backwards else (beyond is not None, more)
    return Turns(sql, _with_what_was_said(look, sides, rows), before, after)


def _with_what_was_said(look: Look, sides: Sequence[Evaluation], rows: Sequence[Row]) -> list[Turn]:
    if not rows:
        return []
    said = [_said(look, side, rows) for side in sides]
    found = []
    for row in rows:
        key = (row["turn_id"], row["sample"])
        place = Position(*(row[name] for name in Position._fields))
        first, *others = (one[key] for one in said)
        found.append(Turn(row["turn_id"], place, [_alone(first), *(_against(first, other) for other in others)]))
    return found


def _said(look: Look, side: Evaluation, rows: Sequence[Row]) -> Mapping[tuple[str, int], Row]:
    """Results and last attempts of an evaluation on some turns."""
    listed = ", ".join(f"({text(row['turn_id'])}, {row['sample']})" for row in rows)
    chosen = f"(turn_id, sample) IN ({listed})"
    found = look.rows(
        f"""SELECT r.*, a.response, a.result, a.error_message
        FROM (FROM turn_results AS r WHERE {of_evaluation(side, "r")} AND {chosen}) AS r
        LEFT JOIN (
            SELECT turn_id, sample, left(response, {MOST_SHOWN + 1}) AS response, error_message,
                CASE WHEN length(CAST(result AS VARCHAR)) <= {_MOST_RESULT} THEN result END AS result
            FROM attempts AS a WHERE {of_evaluation(side, "a")} AND {chosen}
            QUALIFY row_number() OVER (PARTITION BY turn_id, sample ORDER BY number DESC) = 1
        ) AS a ON a.turn_id = r.turn_id AND a.sample = r.sample"""
    )
    return {(row["turn_id"], row["sample"]): row for row in found}


def _alone(row: Row) -> Said:
    return Said(row, row["response"])


def _against(first: Row, row: Row) -> Said:
    """What was said, against what the first said."""
    return Said(
        row,
        row["response"],
        _pieces(first["answer"], row["answer"]),
        _pieces(first["response"], row["response"]),
        row_differences(_result(first), _result(row)),
    )


def _result(row: Row) -> Any:
    return parse_json(row["result"]) if row["result"] is not None else None


def _pieces(first: str | None, second: str | None) -> Sequence[Piece] | None:
    """The words that differ; None where they are the same, or one of them is not there."""
    if first is None or second is None or first == second:
        return None
    return differences(first[:MOST_SHOWN], second[:MOST_SHOWN], _MOST_WORDS)

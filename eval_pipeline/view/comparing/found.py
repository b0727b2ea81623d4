"""A page of turns side by side: what each evaluation said there, and how that differs from what the first one said."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_pipeline.core.ids import parse_json
from eval_pipeline.store.ddl import quoted, text
from eval_pipeline.view.comparing.agreement import Group
from eval_pipeline.view.comparing.row_differences import RowDifferences, row_differences
from eval_pipeline.view.comparing.sql import (
    Choice,
    Position,
    otherwise_sql,
    silent_sql,
    tags_sql,
    turns_sql,
)
from eval_pipeline.view.differences import Piece, differences
from eval_pipeline.view.evaluation import Evaluation
from eval_pipeline.view.filtering.sql import of_evaluation
from eval_pipeline.view.published import Look, Row

if TYPE_CHECKING:
    import pyarrow as pa

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


class Order:
    """The common turns of a choice in their order, regressions first; some megabytes for a hundred thousand."""

    def __init__(self, sql: str, rows: "pa.Table") -> None:
        self.sql = sql
        self._rows = rows

    @cached_property
    def groups(self) -> Sequence[Group]:
        """The groups that there are, in their order."""
        counted = self._rows["code"].value_counts().to_pylist()
        return [Group(row["values"], row["counts"]) for row in counted]

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def page(self, beyond: Position | None, *, backwards: bool) -> "Places":
        """The places after a position, or before it; the first ones where there is none."""
        size = len(self)
        start, end = 0, min(PAGE_SIZE, size)
        if beyond is not None and backwards:
            end = bisect_left(range(size), beyond, key=self._at)
            start = max(0, end - PAGE_SIZE)
        elif beyond is not None:
            start = bisect_right(range(size), beyond, key=self._at)
            end = min(start + PAGE_SIZE, size)
        rows = self._rows.slice(start, end - start).to_pylist()
        return Places(rows, start > 0, end < size)

    def among(self, others: "pa.Table") -> "pa.Table":
        """Those of other rows that are of these turns."""
        keys = ["turn_id", "sample"]
        return others.join(self._rows.select(keys), keys, join_type="left semi")

    def _at(self, place: int) -> Position:
        return Position(*(self._rows[name][place].as_py() for name in Position._fields))


class Places(NamedTuple):
    """Where turns of a page stand.

    Attributes:
        rows: with a position and `turn_id`.
        before, after: whether there are turns before and after these.
    """

    rows: Sequence[Row]
    before: bool
    after: bool


def order(look: Look, sides: Sequence[Evaluation], choice: Choice) -> Order:
    """All common turns of a choice; found once a state of the store."""
    silent = [number for number, side in enumerate(sides) if _failed_calls(look, side)]
    sql = turns_sql(sides, choice, silent)
    return look.remembered(("compared", sql), lambda: Order(sql, look.table(sql)), large=True)


def _failed_calls(look: Look, side: Evaluation) -> int:
    sql = silent_sql(side)
    return look.remembered(("silent", sql), lambda: int(look.rows(sql)[0]["turns"]))


def left_out(look: Look, sides: Sequence[Evaluation]) -> int:
    """Turns that all have but that were asked otherwise, or have another gold, in one of them."""
    sql = otherwise_sql(sides)
    return look.remembered(("left out", sql), lambda: int(look.rows(sql)[0]["turns"]))


def tags(look: Look, sides: Sequence[Evaluation]) -> list[tuple[str, int]]:
    """Tags of the turns, the most frequent first."""
    sql = tags_sql(sides, _MOST_TAGS)
    return look.remembered(("tags", sql), lambda: [(row["value"], row["turns"]) for row in look.rows(sql)])


def with_what_was_said(look: Look, sides: Sequence[Evaluation], rows: Sequence[Row]) -> list[Turn]:
    """The turns of a page with what each evaluation said there."""
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
    # By id alone, which the store can look up: other samples of these turns are few.
    chosen = f"turn_id IN ({', '.join(text(row['turn_id']) for row in rows)})"
    found = look.rows(f"SELECT * FROM turn_results AS r WHERE {of_evaluation(side, 'r')} AND {chosen}")
    modes = _failure_modes(look, side, chosen)
    attempts = look.rows(
        f"""SELECT turn_id, sample, left(response, {MOST_SHOWN + 1}) AS response, error_message,
            CASE WHEN length(CAST(result AS VARCHAR)) <= {_MOST_RESULT} THEN result END AS result
        FROM attempts AS a WHERE {of_evaluation(side, "a")} AND {chosen} ORDER BY number"""
    )
    last = {(row["turn_id"], row["sample"]): row for row in attempts}
    none = {"response": None, "error_message": None, "result": None}
    return {
        key: row | last.get(key, none) | {"failure_mode": modes.get(key)}
        for row in found
        for key in [(row["turn_id"], row["sample"])]
    }


def _failure_modes(look: Look, side: Evaluation, chosen: str) -> Mapping[tuple[str, int], str | None]:
    if "failure_mode" not in side.columns:
        return {}
    table = quoted(side.track_table)
    sql = f"SELECT turn_id, sample, failure_mode FROM {table} AS t WHERE {of_evaluation(side, 't')} AND {chosen}"
    return {(row["turn_id"], row["sample"]): row["failure_mode"] for row in look.rows(sql)}


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

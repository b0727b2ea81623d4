"""A page of turns side by side: each evaluation's answer, and how it differs from the first one's."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_pipeline.core.ids import parse_json, text_hash
from eval_pipeline.core.provenance import UNKNOWN
from eval_pipeline.reports.queries import KIND
from eval_pipeline.store.published.ddl import text
from eval_pipeline.table_comparison.graded import only_in_one
from eval_pipeline.view.comparing.agreement import Group
from eval_pipeline.view.comparing.sql import (
    Choice,
    CommonPosition,
    otherwise_sql,
    silent_sql,
    tags_sql,
    turns_sql,
)
from eval_pipeline.view.drawing import Piece, differences
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.filtering.found import FilterOrder as Turns
from eval_pipeline.view.filtering.only import of_evaluation
from eval_pipeline.view.published import Row, StoreView

if TYPE_CHECKING:
    import pyarrow as pa


_MOST_SHOWN = 12

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Compares the rows of a second result with those of a first; duplicate rows count as often as they occur.

    Attributes:
        columns: columns of the first and of the second result.
        removed, added: some of the rows that only the first has, and that only the second has.
        only_first, only_second, common: number of rows.
        reordered: whether both have the same rows in a different order.
    """

    columns: tuple[Sequence[str], Sequence[str]]
    removed: Rows
    added: Rows
    only_first: int
    only_second: int
    common: int
    reordered: bool

    @property
    def is_same(self) -> bool:
        """Whether both have the same rows, perhaps in a different order."""
        return not self.only_first and not self.only_second


def row_differences(first: Any, second: Any) -> RowDifferences | None:
    """Compares two results of the form `{"columns": […], "rows": [[…]]}`; None if one of them is not a table."""
    if not (_is_table(first) and _is_table(second)):
        return None
    before, after = first["rows"], second["rows"]
    removed, added = only_in_one(before, after)
    return RowDifferences(
        (first["columns"], second["columns"]),
        [before[place] for place in removed[:_MOST_SHOWN]],
        [after[place] for place in added[:_MOST_SHOWN]],
        len(removed),
        len(added),
        len(before) - len(removed),
        not removed and not added and any(only_in_one([row], [after[n]])[0] for n, row in enumerate(before)),
    )


def _is_table(result: Any) -> bool:
    return (
        isinstance(result, dict)
        and all(isinstance(result.get(name), list) for name in ("columns", "rows"))
        and all(isinstance(row, list) for row in result["rows"])
    )


PAGE_SIZE = 20
_MOST_TAGS = 200
MOST_SHOWN = 2_000
"""The most characters shown of an answer or a response; the page of the turn shows all."""
_MOST_RESULT = 1_000_000
"""The most characters of a result that is compared row by row."""
_MOST_WORDS = 600
"""The most words, in two texts together, for a word-by-word comparison; a page makes dozens of them."""


@dataclass(frozen=True, slots=True)
class AnswerBeside:
    """What an evaluation answered on a turn.

    Attributes:
        row: its row of `turn_results`, with `kind`, and the `response` of its last attempt, cut; None if the call
            failed.
        answer_pieces, response_pieces: differences from the first evaluation's; None for the first, and if they are
            equal.
        rows: how its result rows differ from the first one's; None if the results are not tables.
        other_prompt: whether its first attempt had another prompt than the first evaluation's.
    """

    row: Row
    answer_pieces: Sequence[Piece] | None = None
    response_pieces: Sequence[Piece] | None = None
    rows: RowDifferences | None = None
    other_prompt: bool = False


@dataclass(frozen=True, slots=True)
class CommonTurn:
    """A turn that all evaluations have.

    Attributes:
        place: its position in the list.
        sides: what each evaluation answered, in order.
    """

    turn_id: str
    place: CommonPosition
    sides: Sequence[AnswerBeside]


class CommonOrder(Turns):
    """The chosen common turns in order, regressions first; takes some megabytes for a hundred thousand turns."""

    def __init__(self, sql: str, rows: "pa.Table") -> None:
        super().__init__(rows)
        self.sql = sql

    @cached_property
    def groups(self) -> Sequence[Group]:
        """The groups that have turns, in the order of their ranks."""
        counted = self._rows["code"].value_counts().to_pylist()
        return [Group(row["values"], row["counts"]) for row in counted]

    def page(self, beyond: CommonPosition | None, *, backwards: bool) -> "PagePlaces":
        """Returns the page of places after a position, or before it; without a position, the first page."""
        size = len(self)
        start, end = 0, min(PAGE_SIZE, size)
        if beyond is not None and backwards:
            end = bisect_left(range(size), beyond, key=self.position)
            start = max(0, end - PAGE_SIZE)
        elif beyond is not None:
            start = bisect_right(range(size), beyond, key=self.position)
            end = min(start + PAGE_SIZE, size)
        rows = self._rows.slice(start, end - start).to_pylist()
        return PagePlaces(rows, start > 0, end < size)

    def position(self, place: int) -> CommonPosition:
        """Returns the position of the turn at a place, counted from 0."""
        return CommonPosition(*(self._rows[name][place].as_py() for name in CommonPosition._fields))

    def among(self, others: "pa.Table") -> "pa.Table":
        """Returns those of other rows that belong to these turns."""
        keys = ["turn_id", "sample"]
        return others.join(self._rows.select(keys), keys, join_type="left semi")


class PagePlaces(NamedTuple):
    """The positions of a page's turns.

    Attributes:
        rows: rows with the position and `turn_id`.
        before, after: whether there are turns before and after these.
    """

    rows: Sequence[Row]
    before: bool
    after: bool


def order(look: StoreView, sides: Sequence[StoredEvaluation], choice: Choice) -> CommonOrder:
    """Returns all chosen common turns; computed once per state of the store."""
    sql = turns_sql(sides, choice, silent_sides(look, sides))
    return look.remembered(("compared", sql), lambda: CommonOrder(sql, look.table(sql)), large=True)


def silent_sides(look: StoreView, sides: Sequence[StoredEvaluation]) -> list[int]:
    """Returns the indexes of the evaluations with failed calls."""
    return [number for number, side in enumerate(sides) if _failed_calls(look, side)]


def _failed_calls(look: StoreView, side: StoredEvaluation) -> int:
    sql = silent_sql(side)
    return look.remembered(("silent", sql), lambda: int(look.rows(sql)[0]["turns"]))


def left_out(look: StoreView, sides: Sequence[StoredEvaluation]) -> int:
    """Counts the turns that all evaluations have, but with a different question or gold in one of them."""
    sql = otherwise_sql(sides)
    return look.remembered(("left out", sql), lambda: int(look.rows(sql)[0]["turns"]))


def tags(look: StoreView, sides: Sequence[StoredEvaluation]) -> list[tuple[str, int]]:
    """Returns the tags of the turns, the most frequent first."""
    sql = tags_sql(sides, _MOST_TAGS)
    return look.remembered(("tags", sql), lambda: [(row["value"], row["turns"]) for row in look.rows(sql)])


def with_what_was_said(look: StoreView, sides: Sequence[StoredEvaluation], rows: Sequence[Row]) -> list[CommonTurn]:
    """Returns the turns of a page with each evaluation's answer."""
    if not rows:
        return []
    said = [_said(look, side, rows) for side in sides]
    found = []
    for row in rows:
        key = (row["turn_id"], row["sample"])
        place = CommonPosition(*(row[name] for name in CommonPosition._fields))
        first, *others = (one[key] for one in said)
        found.append(
            CommonTurn(row["turn_id"], place, [AnswerBeside(first), *(_against(first, other) for other in others)])
        )
    return found


def _said(look: StoreView, side: StoredEvaluation, rows: Sequence[Row]) -> Mapping[tuple[str, int], Row]:
    """Returns results and last attempts of an evaluation for some turns."""
    # By id alone, which the store can look up; the other samples of these turns are few.
    chosen = f"turn_id IN ({', '.join(text(row['turn_id']) for row in rows)})"
    found = look.rows(f"SELECT * FROM {side.table('turn_results')} AS r WHERE {of_evaluation(side, 'r')} AND {chosen}")
    kinds = {(row["turn_id"], row["sample"]): row["kind"] for row in look.rows(f"{kinds_sql(side)} AND {chosen}")}
    attempts = look.rows(
        f"""SELECT turn_id, sample, number, prompt_hash, left(response, {MOST_SHOWN + 1}) AS response, error_message,
            CASE WHEN length(CAST(result AS VARCHAR)) <= {_MOST_RESULT} THEN result END AS result
        FROM {side.table("attempts")} AS a WHERE {of_evaluation(side, "a")} AND {chosen} ORDER BY number"""
    )
    last = {(row["turn_id"], row["sample"]): row for row in attempts}
    asked = {(row["turn_id"], row["sample"]): row["prompt_hash"] for row in attempts if not row["number"]}
    none = {"response": None, "error_message": None, "result": None}
    return {
        key: row | last.get(key, none) | {"prompt_hash": asked.get(key), "kind": kinds.get(key)}
        for row in found
        for key in [(row["turn_id"], row["sample"])]
    }


def _against(first: Row, row: Row) -> AnswerBeside:
    """Returns an evaluation's answer with its differences from the first one's."""
    return AnswerBeside(
        row,
        _pieces(first["answer"], row["answer"]),
        _pieces(first["response"], row["response"]),
        row_differences(_result(first), _result(row)),
        _other_prompt(first["prompt_hash"], row["prompt_hash"]),
    )


def _other_prompt(first: str | None, second: str | None) -> bool:
    """Returns whether two prompts are known and differ, by their hashes."""
    return first != second and not {first, second} & {None, text_hash(UNKNOWN)}


def _result(row: Row) -> Any:
    return parse_json(row["result"]) if row["result"] is not None else None


def _pieces(first: str | None, second: str | None) -> Sequence[Piece] | None:
    """Returns the words that differ; None if the texts are equal or one is missing."""
    if first is None or second is None or first == second:
        return None
    return differences(first[:MOST_SHOWN], second[:MOST_SHOWN], _MOST_WORDS)


def kinds_sql(side: StoredEvaluation) -> str:
    """Returns the query for how each wrong turn of an evaluation fails, in one word."""
    source = side.table("turn_errors")
    return f"SELECT turn_id, sample, {KIND} AS kind FROM {source} AS e WHERE {of_evaluation(side, 'e')}"

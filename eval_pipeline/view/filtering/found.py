"""The results of a filter: pages of turns, a turn's neighbours, counts, and the values to filter by."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_pipeline.store.published.ddl import quoted, text
from eval_pipeline.view.evaluation import StoredEvaluation, model_version_of
from eval_pipeline.view.filtering.filter import CALLS, JUDGED_OTHERWISE, OF_TRACK, ONLY, Filter
from eval_pipeline.view.filtering.only import of_evaluation, of_latest_dates, theirs
from eval_pipeline.view.filtering.sql import FilterPosition, count_sql, position_of, turns_sql
from eval_pipeline.view.published import Row, StoreView

if TYPE_CHECKING:
    import pyarrow as pa

PAGE_SIZE = 50
_ROWS_AT_ONCE = 5_000
_MOST_CHOICES = 200
_BLIND = ("question", "expected", "answer")
ALWAYS = (*_BLIND, "correct", "error_class")
"""Columns that a list of turns always has, unless it is to tell no verdict."""


@dataclass(frozen=True, slots=True)
class FilteredTurns:
    """A page of turns.

    Attributes:
        sql: the query that was run.
        first, last: positions of the first and the last turn; None if there are none.
        before, after: whether there are turns before and after these.
    """

    sql: str
    rows: Sequence[Row]
    first: FilterPosition | None
    last: FilterPosition | None
    before: bool
    after: bool


def page_of_turns(
    look: StoreView, evaluation: StoredEvaluation, filtered: Filter, beyond: FilterPosition | None, *, backwards: bool
) -> FilteredTurns:
    """Returns the page of turns after a position, or before it; without a position, the first page."""
    columns = wanted_columns(evaluation, filtered)
    sql = turns_sql(evaluation, filtered, columns, beyond=beyond, backwards=backwards, limit=PAGE_SIZE + 1)
    rows = look.rows(sql)
    more, rows = len(rows) > PAGE_SIZE, rows[:PAGE_SIZE]
    if backwards:
        rows.reverse()
    before, after = (more, True) if backwards else (beyond is not None, more)
    first, last = (position_of(filtered, rows[place]) for place in (0, -1)) if rows else (None, None)
    return FilteredTurns(sql, rows, first, last, before, after)


def over_dates(look: StoreView, evaluation: StoredEvaluation, rows: Sequence[Row]) -> Mapping[str, str]:
    """Returns the verdicts of some turns on the latest dates, a sign a sample: `11-27 ✓✗✓ · 11-28 ✓✓✓` by turn id."""
    named = ", ".join(sorted({text(row["turn_id"]) for row in rows}))
    if not named:
        return {}
    signs = "string_agg(if(f.correct, '✓', '✗'), '' ORDER BY f.sample)"
    found = look.rows(
        f"""SELECT turn_id, string_agg(said, ' · ' ORDER BY eval_date) AS said FROM (
            SELECT f.turn_id, f.eval_date, strftime(f.eval_date, '%m\u2011%d\u00a0') || {signs} AS said
            FROM turn_results AS f
            WHERE {of_latest_dates(evaluation, "f")} AND f.turn_id IN ({named}) AND f.correct IS NOT NULL
            GROUP BY f.turn_id, f.eval_date
        ) GROUP BY turn_id"""
    )
    return {row["turn_id"]: row["said"] for row in found}


def wanted_columns(evaluation: StoredEvaluation, filtered: Filter) -> list[str]:
    """Returns the columns of the list: the default ones, those requested, and those that the filter uses."""
    if filtered.is_blind:
        return list(dict.fromkeys([*_BLIND, *filtered.columns]))
    spoken = [*(condition.column for condition in filtered.conditions), filtered.sort]
    spoken += [name for name in OF_TRACK if name in evaluation.columns]
    return list(dict.fromkeys([*ALWAYS, *filter(None, spoken), *filtered.columns]))


class FilterOrder:
    """The turns that match a filter, in its order.

    Only their ids and samples are held, so a hundred thousand turns need some megabytes of memory.
    """

    def __init__(self, rows: "pa.Table") -> None:
        self._rows = rows

    def place(self, turn_id: str, sample: int) -> int | None:
        """Returns the place of a turn, counted from 0; None if the filter does not include it."""
        import pyarrow.compute as pc

        mine = pc.and_(pc.equal(self._rows["turn_id"], turn_id), pc.equal(self._rows["sample"], sample))
        place: int = pc.index(mine, True).as_py()
        return None if place < 0 else place

    def at(self, place: int) -> tuple[str, int] | None:
        """Returns id and sample of the turn at a place; None if there is no such place."""
        if not 0 <= place < len(self):
            return None
        return self._rows["turn_id"][place].as_py(), self._rows["sample"][place].as_py()

    def __len__(self) -> int:
        rows: int = self._rows.num_rows
        return rows


def order(look: StoreView, evaluation: StoredEvaluation, filtered: Filter) -> FilterOrder:
    """Returns all turns of a filter in order."""
    sql = turns_sql(evaluation, filtered, ())

    def read() -> FilterOrder:
        return FilterOrder(look.table(f"SELECT turn_id, sample FROM ({sql})"))

    return look.remembered(("order", sql), read, large=True)


def all_turns(look: StoreView, evaluation: StoredEvaluation, filtered: Filter) -> "Iterator[pa.Table]":
    """Yields all turns of a filter with all columns, some thousand at a time; the first table may be empty.

    Each part is a separate query that starts where the previous one ended. Sorting all rows at once would need too much
    memory.
    """
    beyond = None
    while True:
        sql = turns_sql(evaluation, filtered, tuple(evaluation.columns), beyond=beyond, limit=_ROWS_AT_ONCE)
        rows = look.table(sql)
        if rows.num_rows or beyond is None:
            yield rows
        if rows.num_rows < _ROWS_AT_ONCE:
            return
        beyond = position_of(filtered, rows.slice(rows.num_rows - 1).to_pylist()[0])


def count(look: StoreView, evaluation: StoredEvaluation, filtered: Filter) -> int:
    """Returns how many turns a filter has; counted once per state of the store."""
    sql = count_sql(evaluation, filtered)
    return look.remembered(("count", sql), lambda: int(look.rows(sql)[0]["turns"]))


@dataclass(frozen=True, slots=True)
class Choices:
    """The values by which turns can be filtered, each with its number of turns, the most frequent first.

    Attributes:
        only: those of `filter.ONLY` that may find something, with their words.
    """

    only: Mapping[str, str]
    tags: Sequence[tuple[str, int]]
    error_classes: Sequence[tuple[str, int]]
    failure_modes: Sequence[tuple[str, int]]
    wrong_in: Sequence[tuple[str, int]]
    read_otherwise: Sequence[tuple[str, int]]
    tools: Sequence[tuple[str, int]]
    tool_errors: Sequence[tuple[str, int]]


def choices(look: StoreView, evaluation: StoredEvaluation) -> Choices:
    """Returns the values to choose from."""

    def read() -> Choices:
        tags = f"""SELECT value, count(*) AS turns FROM (
                SELECT unnest(CAST(r.tags AS VARCHAR[])) AS value FROM {evaluation.table("turn_results")} AS r
                WHERE {of_evaluation(evaluation, "r")})
            GROUP BY value ORDER BY turns DESC, value LIMIT {_MOST_CHOICES}"""
        has_verdicts = _has_verdicts(look, evaluation)
        return Choices(
            {name: told for name, told in ONLY.items() if name != JUDGED_OTHERWISE or has_verdicts},
            _pairs(look, tags),
            _values(look, evaluation, "turn_results", "error_class"),
            *(
                _values(look, evaluation, evaluation.track_table, name) if name in evaluation.columns else ()
                for name in OF_TRACK
            ),
            *(_of_calls(look, evaluation, name) for name in ("tool", "error_class")),
        )

    return look.remembered(("choices", evaluation.partition), read)


def _values(look: StoreView, evaluation: StoredEvaluation, table: str, column: str) -> Sequence[tuple[str, int]]:
    name = quoted(column)
    is_boolean = evaluation.columns[column].type == "BOOLEAN"
    value = f"CASE WHEN r.{name} THEN 'yes' ELSE 'no' END" if is_boolean else f"r.{name}"
    return _pairs(
        look,
        f"""SELECT {value} AS value, count(*) AS turns FROM {evaluation.table(table)} AS r
            WHERE {of_evaluation(evaluation, "r")} AND r.{name} IS NOT NULL
            GROUP BY value ORDER BY turns DESC, value LIMIT {_MOST_CHOICES}""",
    )


def _of_calls(look: StoreView, evaluation: StoredEvaluation, column: str) -> Sequence[tuple[str, int]]:
    if CALLS not in evaluation.columns:
        return ()
    return _pairs(
        look,
        f"""SELECT s.{column} AS value, count(DISTINCT (s.turn_id, s.sample)) AS turns
            FROM {evaluation.table("steps")} AS s WHERE {of_evaluation(evaluation, "s")} AND s.{column} IS NOT NULL
            GROUP BY value ORDER BY turns DESC, value LIMIT {_MOST_CHOICES}""",
    )


def _has_verdicts(look: StoreView, evaluation: StoredEvaluation) -> bool:
    """Whether the tool that the answers were recorded by has told verdicts."""
    if not model_version_of(look, evaluation.partition.model_version).get("recorded"):
        return False
    sql = f"""SELECT 1 FROM {evaluation.table("attempts")} AS a WHERE {of_evaluation(evaluation, "a")}
        AND a.number = 0 AND {theirs("a")} IS NOT NULL LIMIT 1"""
    return look.row(sql) is not None


def _pairs(look: StoreView, sql: str) -> Sequence[tuple[str, int]]:
    return [(row["value"], row["turns"]) for row in look.rows(sql)]

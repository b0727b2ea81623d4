"""Lints accepted queries: runs variants of a query on the suite's own data, and tells which of them change its result.

A finding is a doubt (docs/gold.md#lint): it names rows by which people can decide, and removes no case.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import Failed
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.table_comparison.graded import unmatched
from eval_pipeline_plugins.sql_equivalence.queries.determinism import limits_are_ordered, tie_breaks, volatile_parts
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.gold.clock import clock_parts, pinned
from eval_pipeline_plugins.tracks.sql.gold.lint_places import (
    decides,
    key_of_group,
    numbered_otherwise,
    only_source,
    rounds_down,
    sorted_columns,
    table_of,
    texts_beside,
    wrongly_ordered_dates,
)
from eval_pipeline_plugins.tracks.sql.responses.running import result_fingerprint, runnable, runner

SCORES = {
    "empty_result": 0.4,
    "random": 0.5,
    "clock": 0.3,
    "unordered_limit": 0.4,
    "cut_tie": 0.3,
    "nulls_first": 0.4,
    "text_order": 0.5,
    "integer_division": 0.4,
    "repeated_rows": 0.3,
}
"""Kind of finding → how likely the query is wrong, 0..1, chosen by judgement for sorting."""
_OTHER_TIMES = (datetime(2000, 1, 1), datetime(2100, 1, 1))
_ROW_NUMBERS = {"sqlite": "rowid", "duckdb": "rowid", "postgres": "ctid"}
_REALS = {"sqlite": "REAL", "postgres": "NUMERIC"}
"""Where `/` of integers drops the rest → type whose `/` keeps it."""
_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)\s*")
_MOST_SECONDS, _MOST_OF_VARIANT = 1.0, 5.0
"""Processor time of a query of which variants are run, and limit of each of these."""
_MOST_VALUES, _MOST_SHOWN, _LONGEST = 1000, 2, 40


@dataclass(frozen=True, slots=True)
class GoldDoubt:
    """A reason to doubt an accepted query.

    Attributes:
        kind: a key of `SCORES`.
        words: a sentence with the rows that show it.
        mended: the query as it is without what is doubtful, in the ways that it may be meant; none if nobody can say.
    """

    kind: str
    words: str
    mended: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def findings(sql: str, database: Database) -> tuple[GoldDoubt, ...]:
    """Returns what is doubtful about a query that runs; none without data, or if it does not run or parse."""
    if database.path() is None:
        return ()
    native = database.dialect if database.server or database.dialect == "sqlite" else "duckdb"
    text = runnable(sql, database)
    try:
        tree = parse_statement(text, native)
        return tuple(_Query(database, native, text, tree).findings())
    except (SqlSyntaxError, SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError):
        return ()  # trees of forms that sqlglot does not foresee


class _Query:
    """A query with its result, as written again from its syntax tree."""

    def __init__(self, database: Database, native: str, text: str, tree: exp.Expr) -> None:
        self.database, self.native, self.text, self.tree = database, native, text, tree

    def findings(self) -> Iterator[GoldDoubt]:
        result = self.run(self.text)
        if result is None:
            return
        if not result.rows or (len(result.rows) == 1 and all(cell is None for cell in result.rows[0])):
            what = "no row" if not result.rows else "one row of NULL only"
            yield GoldDoubt("empty_result", f"it returns {what}, as do many wrong queries")
        if "it draws at random" in volatile_parts(self.tree):
            yield GoldDoubt("random", "it draws at random")
            return
        if result.cpu_seconds > _MOST_SECONDS:
            return
        yield from self._clock(result)
        again = self.run(self._sql(self.tree))
        if again is None or result_fingerprint(again) != result_fingerprint(result):
            return  # its variants would differ from it for other reasons
        yield from self._cut(result)
        yield from self._numbered()
        yield from self._nulls_first(result)
        yield from self._text_order(result)
        yield from self._integer_division(result)
        yield from self._repeated_rows()

    def run(self, text: str) -> SqlRows | None:
        path = self.database.path()
        assert path is not None
        limits = self.database.limits
        within = replace(limits, seconds=min(limits.seconds, _MOST_OF_VARIANT))
        found = runner().run_now(path, text, within)
        return None if isinstance(found, Failed) else found

    def _sql(self, tree: exp.Expr) -> str:
        return tree.sql(dialect=self.native)

    def _clock(self, result: SqlRows) -> Iterator[GoldDoubt]:
        parts = clock_parts(self.text, self.native)  # none if the clock is pinned: it is replaced in the text
        for at in _OTHER_TIMES if parts else ():
            if difference := _difference(result, self.run(pinned(self.text, self.native, at))):
                read = self.text[parts[0].start : parts[0].end] or "the clock"
                now = f"today {difference[0]}, on {at:%Y-%m-%d} {difference[1]}"
                yield GoldDoubt(
                    "clock", f"its result depends on the day, as it reads {read}: {now}; 'as_of' pins the clock"
                )
                return

    def _cut(self, result: SqlRows) -> Iterator[GoldDoubt]:
        ordered = limits_are_ordered(self.tree)
        broken = tie_breaks(self.tree, self.native)
        found = [self.run(text) for text in broken or ()]
        difference = _difference(found[0], found[1]) if found and found[0] and found[1] else None
        difference = difference or self._tie_of_all_columns(result)
        if difference is None:
            return
        either = f"{difference[0]}, or as well {difference[1]}"
        if ordered:
            yield GoldDoubt("cut_tie", f"LIMIT cuts rows that are tied under ORDER BY: {either}", broken or ())
        else:
            yield GoldDoubt(
                "unordered_limit", f"LIMIT or OFFSET without ORDER BY takes any rows: {either}", broken or ()
            )

    def _numbered(self) -> Iterator[GoldDoubt]:
        """Looks at the ties of ROW_NUMBER, which are cut as those of a LIMIT."""
        number = _ROW_NUMBERS.get(self.native)
        texts = tuple(map(self._sql, numbered_otherwise(self.tree, number))) if number else ()
        if texts and (difference := _difference(self.run(texts[0]), self.run(texts[1]))):
            told = f"ROW_NUMBER takes any of the rows that are tied under its ORDER BY: {difference[0]}, or as well"
            yield GoldDoubt("cut_tie", f"{told} {difference[1]}", texts)

    def _tie_of_all_columns(self, result: SqlRows) -> tuple[str, str] | None:
        """Returns the last row of a `SELECT *` with a LIMIT and the next one, if they are tied."""
        tree = self.tree
        limit, order = tree.args.get("limit"), tree.args.get("order")
        if not isinstance(tree, exp.Select) or not tree.is_star or limit is None or tree.args.get("distinct"):
            return None
        if not isinstance(limit, exp.Limit) or not isinstance(limit.expression, exp.Literal) or not result.rows:
            return None
        keys = [one.this.copy() for one in order.expressions] if order is not None else []
        if any(isinstance(key, exp.Literal) for key in keys):
            return None
        more = tree.copy()
        more.set("expressions", [*more.expressions, *(exp.alias_(key, f"k{place}") for place, key in enumerate(keys))])
        more.set("limit", exp.Limit(expression=exp.Literal.number(int(limit.expression.name) + 1)))
        found = self.run(self._sql(more))
        width = len(result.columns)
        if found is None or len(found.rows) <= len(result.rows) or len(found.columns) != width + len(keys):
            return None
        last, following = found.rows[-2], found.rows[-1]
        if last[width:] != following[width:] or last[:width] == following[:width]:
            return None
        return _row(last[:width]), _row(following[:width])

    def _nulls_first(self, result: SqlRows) -> Iterator[GoldDoubt]:
        if "NULLS FIRST" in " ".join(self.text.upper().split()):
            return  # the author means it
        copy, changed = self.tree.copy(), False
        for key in copy.find_all(exp.Ordered):
            if key.args.get("nulls_first") and decides(key):
                key.set("nulls_first", False)
                changed = True
        if changed and (difference := _difference(result, self.run(self._sql(copy)))):
            told = f"NULL counts as the first value of ORDER BY: {difference[0]}, with NULLS LAST {difference[1]}"
            yield GoldDoubt("nulls_first", told, (self._sql(copy),))

    def _text_order(self, result: SqlRows) -> Iterator[GoldDoubt]:
        copy = self.tree.copy()
        names: list[str] = []
        for column, place in [*sorted_columns(copy)]:
            found = self._text_column(column)
            if found is None:
                continue
            values = self._values(*found)
            name = ".".join(found)
            if len(values) > 1 and all(map(_NUMBER.fullmatch, values)):
                names.append(name)
                for part in [column, *texts_beside(column, place)]:
                    part.replace(exp.cast(part.copy(), "REAL" if self.native == "sqlite" else "DOUBLE"))
            elif (pair := wrongly_ordered_dates(values)) is not None:
                told = f"dates in {name} are compared as text: '{pair[0]}' comes before '{pair[1]}'"
                yield GoldDoubt("text_order", told)
                return
        if names:
            other = self.run(self._sql(copy))
            if difference := _difference(result, other, ordered=self.tree.args.get("order") is not None):
                told = f"numbers in {', '.join(dict.fromkeys(names))} are compared as text"
                yield GoldDoubt(
                    "text_order", f"{told}: {difference[0]}, as numbers {difference[1]}", (self._sql(copy),)
                )

    def _text_column(self, column: exp.Column) -> tuple[str, str] | None:
        """Returns table and name of a column of type text; None for any other, or if its table is not known."""
        table = table_of(column, self.database)
        found = self.database.schema.table(table) if table is not None else None
        known = found.column(column.name) if found is not None else None
        if found is None or known is None or not known.type.upper().startswith(("VARCHAR", "TEXT", "CHAR", "STRING")):
            return None
        return found.name, known.name

    def _values(self, table: str, column: str) -> list[str]:
        name = exp.column(column, quoted=True)
        select = exp.select(name).distinct().from_(exp.to_table(f'"{table}"', dialect="duckdb"))
        select = select.where(exp.not_(exp.Is(this=name.copy(), expression=exp.Null()))).limit(_MOST_VALUES)
        found = self.run(self._sql(select))
        return [str(row[0]) for row in found.rows] if found is not None else []

    def _integer_division(self, result: SqlRows) -> Iterator[GoldDoubt]:
        real, copy = _REALS.get(self.native), self.tree.copy()
        if real is None:
            return
        divisions = [one for one in copy.find_all(exp.Div) if not rounds_down(one)]
        for one in divisions:
            one.set("this", exp.cast(exp.paren(one.this.copy()), real))
        if divisions and (difference := _difference(result, self.run(self._sql(copy)))):
            told = f"a division of integers drops the rest: {difference[0]}, with it {difference[1]}"
            yield GoldDoubt("integer_division", told, (self._sql(copy),))

    def _repeated_rows(self) -> Iterator[GoldDoubt]:
        number = _ROW_NUMBERS.get(self.native)
        for select in self.tree.find_all(exp.Select) if number else ():
            if not select.args.get("joins"):
                continue
            for call in select.find_all(exp.Sum, exp.Avg):
                alias = only_source(call, select, self.database)
                if alias is None or call.find_ancestor(exp.Select) is not select or call.find_ancestor(exp.Window):
                    continue
                assert number is not None
                group = select.args.get("group")
                keys = [key_of_group(key, select) for key in (group.expressions if group is not None else ())]
                texts = [*self._with_and_without(select, call, keys, exp.column(number, table=alias))]
                twice, once = map(self.run, texts)
                if twice is not None and (difference := _difference(twice, once)):
                    told = f"a join repeats rows of {alias} in {call.sql(dialect=self.native)}"
                    told = f"{told}: {difference[0]}, each row once {difference[1]}"
                    yield GoldDoubt(
                        "repeated_rows", told, tuple(texts[1:]) if self._returns(select, [*keys, call]) else ()
                    )
                    return

    def _returns(self, select: exp.Select, parts: Sequence[exp.Expr]) -> bool:
        """Whether a SELECT is the whole query, and returns just these parts, for all groups."""
        cut = select is not self.tree or any(select.args.get(name) for name in ("having", "limit", "offset", "qualify"))
        selected = [one.unalias() for one in select.selects]
        return not cut and len(selected) == len(parts) and all(part in selected for part in parts)

    def _with_and_without(
        self, select: exp.Select, call: exp.Expr, keys: Sequence[exp.Expr], row: exp.Expr
    ) -> Iterator[str]:
        """Yields queries for the groups of a SELECT with an aggregate: over all its rows, and over each row once."""
        inner = select.copy()
        for name in ("group", "having", "order", "limit", "offset", "distinct", "qualify"):
            inner.set(name, None)
        named = [*((f"g{place}", key) for place, key in enumerate(keys)), ("r", row), ("a", call.this)]
        inner.set("expressions", [exp.alias_(part.copy(), name) for name, part in named])
        outer = [exp.column(f"g{place}") for place in range(len(keys))]
        for distinct in (False, True):
            source = inner.copy()
            source.set("distinct", exp.Distinct() if distinct else None)
            made = exp.select(*(one.copy() for one in outer), type(call)(this=exp.column("a")))
            made = made.from_(source.subquery("x"))
            yield self._sql(made.group_by(*(one.copy() for one in outer)) if outer else made)


def _difference(one: SqlRows | None, other: SqlRows | None, *, ordered: bool = False) -> tuple[str, str] | None:
    """Returns some rows that only the one and only the other result has; None if they agree, or one is missing."""
    if one is None or other is None or len(one.columns) != len(other.columns):
        return None
    if result_fingerprint(one) == result_fingerprint(other):
        moved = [pair for pair in zip(one.rows, other.rows, strict=True) if pair[0] != pair[1]] if ordered else []
        return (f"first {_row(moved[0][0])}", f"first {_row(moved[0][1])}") if moved else None
    return _only(one.rows, other.rows), _only(other.rows, one.rows)


def _only(mine: Sequence[Sequence[Any]], theirs: Sequence[Sequence[Any]]) -> str:
    found = [mine[place] for place in unmatched(list(map(repr, mine)), list(map(repr, theirs)))]
    more = f" and {len(found) - _MOST_SHOWN:,} more rows" if len(found) > _MOST_SHOWN else ""
    return f"{', '.join(map(_row, found[:_MOST_SHOWN]))}{more}" if found else "no such row"


def _row(row: Sequence[Any]) -> str:
    cells = ["NULL" if cell is None else str(cell) for cell in row]
    return f"({', '.join(cell if len(cell) <= _LONGEST else f'{cell[:_LONGEST]}…' for cell in cells)})"

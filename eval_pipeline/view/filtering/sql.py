"""Translates a filter to SQL. The page runs and shows the same text, so what is shown is what was run."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import without_surrogates
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.evaluation import StoredEvaluation, TurnColumn
from eval_pipeline.view.filtering.filter import (
    AT_LEAST,
    AT_MOST,
    IS,
    IS_NOT,
    OF_TRACK,
    Condition,
    Filter,
)
from eval_pipeline.view.filtering.only import of_evaluation, only_sql

PLACE = ("case_id", "turn_index", "sample")
"""Columns that give a turn's position in its evaluation; no two turns have the same values."""
_VERDICT = {"right": "r.correct", "wrong": "NOT r.correct", "unscored": "r.correct IS NULL"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_SORTED = 100
_BEYOND_DIGITS = ":"
"""The character after 9: digits, signs, `$`, `,`, `%`, and spaces come before it, letters after it."""
_TEXTS = frozenset({"VARCHAR", "JSON"})
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


class FilterPosition(NamedTuple):
    """The position of a turn in a filter's order.

    Attributes:
        value: value of the column sorted by; None if it is empty or if there is no such column.
    """

    value: Any
    case_id: str
    turn_index: int
    sample: int


def turns_sql(
    evaluation: StoredEvaluation,
    filtered: Filter,
    columns: Sequence[str],
    *,
    beyond: FilterPosition | None = None,
    backwards: bool = False,
    limit: int | None = None,
) -> str:
    """Returns the query for turns.

    Args:
        evaluation: the evaluation with the turns.
        filtered: which turns, and in what order.
        columns: the columns to return, after those of the position.
        beyond: only return turns after this position (before it, if `backwards`).
        backwards: whether the order is reversed.
        limit: maximum number of turns to return.
    """
    wanted = list(dict.fromkeys(("turn_id", *PLACE, *columns)))
    selected = ", ".join(evaluation.columns[name].sql for name in wanted)
    conditions = list(_conditions(evaluation, filtered))
    if beyond is not None:
        conditions.append(_beyond(evaluation, filtered, beyond, backwards=backwards))
    lines = [
        f"SELECT {selected}",
        *_source(evaluation, filtered, wanted),
        "WHERE " + "\n  AND ".join(conditions),
        f"ORDER BY {_order(evaluation, filtered, backwards=backwards)}",
    ]
    return "\n".join([*lines, f"LIMIT {limit}"] if limit is not None else lines)


def count_sql(evaluation: StoredEvaluation, filtered: Filter) -> str:
    """Returns the query that counts the turns of a filter."""
    where = "\n  AND ".join(_conditions(evaluation, filtered))
    return "\n".join(["SELECT count(*) AS turns", *_source(evaluation, filtered, ()), f"WHERE {where}"])


def position_of(filtered: Filter, row: dict[str, Any]) -> FilterPosition:
    """Returns the position of a row of `turns_sql`, which must include the column sorted by."""
    value = row[filtered.sort] if filtered.sort else None
    beginning = value[:_SORTED] if isinstance(value, str) else value
    return FilterPosition(beginning, *(row[name] for name in PLACE))


def position_text(position: FilterPosition) -> str:
    """Encodes a position for an address."""
    return json.dumps(position, default=str, separators=(",", ":"), ensure_ascii=False)


def position_from(found: str) -> FilterPosition:
    """Decodes the position in an address. Raises a UsageError if it is invalid."""
    try:
        value, case_id, turn_index, sample = without_surrogates(json.loads(found))
        return FilterPosition(value, str(case_id), int(turn_index), int(sample))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError("the address contains an invalid position") from error


def _source(evaluation: StoredEvaluation, filtered: Filter, columns: Iterable[str]) -> Iterator[str]:
    """Yields the FROM clause, with the track's table only if one of its columns is used."""
    used = {*columns, filtered.sort, *(condition.column for condition in filtered.conditions)}
    used |= {name for name in OF_TRACK if getattr(filtered, name)}
    yield f"FROM {evaluation.table('turn_results')} AS r"
    if any(evaluation.columns[name].of_track for name in used if name):
        same = of_evaluation(evaluation, "t")
        yield f"LEFT JOIN {evaluation.table(evaluation.track_table)} AS t ON {same}"
        yield "  AND t.turn_id = r.turn_id AND t.sample = r.sample"


def _conditions(evaluation: StoredEvaluation, filtered: Filter) -> Iterator[str]:
    yield of_evaluation(evaluation, "r")
    if filtered.verdict:
        yield _VERDICT[filtered.verdict]
    if filtered.error_class:
        yield f"r.error_class = {text(filtered.error_class)}"
    for name in OF_TRACK:
        if wanted := getattr(filtered, name):
            column = evaluation.columns[name]
            yield f"{column.sql} = {_literal(column, wanted)}"
    if filtered.tag:
        yield f"json_contains(r.tags, {text(json.dumps(filtered.tag, ensure_ascii=False))})"
    if filtered.tool or filtered.tool_error:
        yield _has_call(evaluation, filtered)
    for name in filtered.only:
        yield only_sql(evaluation, name)
    for condition in filtered.conditions:
        yield _condition(evaluation.columns[condition.column], condition)
    if filtered.text:
        yield _has_text(evaluation, filtered.text)


def _has_call(evaluation: StoredEvaluation, filtered: Filter) -> str:
    """Returns the condition that there is a call of the tool which failed in that way."""
    wanted = {"tool": filtered.tool, "error_class": filtered.tool_error}
    named = "".join(f" AND s.{column} = {text(value)}" for column, value in wanted.items() if value)
    calls = f"SELECT s.turn_id, s.sample FROM {evaluation.table('steps')} AS s"
    return f"(r.turn_id, r.sample) IN ({calls}\n    WHERE {of_evaluation(evaluation, 's')}{named})"


def _has_text(evaluation: StoredEvaluation, wanted: str) -> str:
    """Returns the condition that question, answer, a response or an error contains the text."""
    asked = " OR ".join(_contains(f"r.{name}", wanted) for name in ("turn_id", "question", "answer"))
    said = " OR ".join(_contains(f"a.{name}", wanted) for name in ("response", "error_message"))
    attempts = evaluation.table("attempts")
    return (
        f"({asked}\n    OR (r.turn_id, r.sample) IN (SELECT a.turn_id, a.sample FROM {attempts} AS a\n"
        f"      WHERE {of_evaluation(evaluation, 'a')}\n        AND ({said})))"
    )


def _contains(sql: str, wanted: str) -> str:
    return f"contains(lower({sql}), {text(wanted.lower())})"


def _condition(column: TurnColumn, condition: Condition) -> str:
    """Returns a condition as SQL. Raises a UsageError if its value does not fit the column."""
    match condition.operator:
        case "empty":
            return f"{column.sql} IS NULL"
        case "not_empty":
            return f"{column.sql} IS NOT NULL"
        case "contains":
            return _contains(f"CAST({column.sql} AS VARCHAR)", condition.value)
        case _:
            sign = {IS: "=", IS_NOT: "IS DISTINCT FROM", AT_LEAST: ">=", AT_MOST: "<="}[condition.operator]
            if (
                column.type in _TEXTS
                and condition.operator in {AT_LEAST, AT_MOST}
                and _NUMBER.fullmatch(condition.value)
            ):
                # Quoted, as what is beyond every double is written `inf`, which is no number to DuckDB.
                return f"{_number(_comparable(column))} {sign} CAST('{float(condition.value)!r}' AS DOUBLE)"
            return f"{_comparable(column)} {sign} {_literal(column, condition.value)}"


def _sortable(column: TurnColumn, *, descending: bool) -> tuple[str, ...]:
    """Returns the SQL expressions to sort by.

    For texts it is the beginning, since the next page's address contains the last one.
    """
    if column.type not in _TEXTS:
        return (column.sql,)
    return _keys(f"left(CAST({column.sql} AS VARCHAR), {_SORTED})", descending=descending)


def _keys(sql: str, *, descending: bool) -> tuple[str, str]:
    """Returns the sort keys for texts: numbers by value and before other texts in both directions; NULL for NULL."""
    last = "-inf" if descending else "inf"
    return f"if({sql} IS NULL, NULL, coalesce({_number(sql)}, '{last}'::DOUBLE))", sql


def _number(sql: str) -> str:
    """Returns the number that a text represents, such as `1,234.5`, `$7`, or 0.12 for `12%`; NULL for other texts."""
    # Most are numbers as they stand or begin with no sign of one: sparing these the slow cast makes a sort cheap.
    plain = f"coalesce(TRY_CAST({sql} AS DOUBLE), TRY_CAST(translate({sql}, ',$% ', '') AS DOUBLE))"
    value = f"if(isfinite({plain}), if(suffix({sql}, '%'), {plain} / 100, {plain}), NULL)"
    return f"if({sql} < '{_BEYOND_DIGITS}', {value}, NULL)"


def _comparable(column: TurnColumn) -> str:
    return f"CAST({column.sql} AS VARCHAR)" if column.type == "JSON" else column.sql


def _literal(column: TurnColumn, value: Any) -> str:
    """Returns a column's value as SQL. Raises a UsageError if it is not of the column's type."""
    said = str(value).strip()
    try:
        match column.type:
            case "BOOLEAN":
                return {"true": "true", "yes": "true", "false": "false", "no": "false"}[said.lower()]
            case "BIGINT" if _WHOLE.fullmatch(said):
                return str(int(said))
            case "BIGINT" | "DOUBLE":
                return f"CAST('{float(said)!r}' AS DOUBLE)"
            case "DATE":
                return f"DATE '{date.fromisoformat(said)}'"
    except (KeyError, ValueError, OverflowError) as error:
        kind = {"BOOLEAN": "yes or no", "DATE": "a date, YYYY-MM-DD"}.get(column.type, "a number")
        raise UsageError(f"'{said}' does not fit {column.name}; expected {kind}") from error
    return text(str(value))


def _order(evaluation: StoredEvaluation, filtered: Filter, *, backwards: bool) -> str:
    direction = "DESC" if backwards else "ASC"
    places = [f"r.{name} {direction}" for name in PLACE]
    if filtered.sort:
        down = filtered.descending != backwards
        nulls = "FIRST" if backwards else "LAST"
        keys = _sortable(evaluation.columns[filtered.sort], descending=filtered.descending)
        places[:0] = [f"{key} {'DESC' if down else 'ASC'} NULLS {nulls}" for key in keys]
    return ", ".join(places)


def _beyond(evaluation: StoredEvaluation, filtered: Filter, position: FilterPosition, *, backwards: bool) -> str:
    """Returns the condition that a turn comes after (or before) a position; empty values come last."""
    sign = "<" if backwards else ">"
    names = ", ".join(f"r.{name}" for name in PLACE)
    further = f"({names}) {sign} ({text(position.case_id)}, {position.turn_index}, {position.sample})"
    if not filtered.sort:
        return further
    column = evaluation.columns[filtered.sort]
    keys = _sortable(column, descending=filtered.descending)
    if position.value is None:
        within = f"({keys[0]} IS NULL AND {further})"
        return f"({within} OR {keys[0]} IS NOT NULL)" if backwards else within
    literal = _literal(column, position.value)
    literals = _keys(literal, descending=filtered.descending) if column.type in _TEXTS else (literal,)
    other = ">" if filtered.descending == backwards else "<"
    ahead = further
    for key, value in reversed([*zip(keys, literals, strict=True)]):
        ahead = f"{key} {other} {value} OR ({key} = {value} AND ({ahead}))"
    return f"({ahead})" if backwards else f"({ahead} OR {keys[0]} IS NULL)"

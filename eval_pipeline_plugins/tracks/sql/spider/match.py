"""The scores of a turn as Spider's exact match counts them, over all accepted queries."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.spider.query import (
    ColumnUse,
    SpiderCondition,
    SpiderConditions,
    SpiderQuery,
    SpiderTerm,
)
from eval_pipeline_plugins.tracks.sql.spider.reading import UnreadableError, read_query

PARTS = (
    *("select", "select_no_agg", "where", "where_no_op", "group_no_having", "group"),
    *("order", "and_or", "iuen", "keywords"),
)
"""The partial scores: `group` includes HAVING, `iuen` is INTERSECT, UNION and EXCEPT, with the queries after them."""


def partial_scores(generated: SpiderQuery, expected: SpiderQuery) -> dict[str, tuple[bool, int, int]]:
    """Returns for each part whether it is the same, and how much of it each of two comparable queries has."""
    both = generated, expected
    selected = [Counter(query.select) for query in both]
    terms = [Counter(one.term for one in query.select) for query in both]
    where = [Counter(query.where.comparisons) for query in both]
    where_terms = [Counter(one.term for one in query.where.comparisons) for query in both]
    group = [Counter(one.name.rpartition(".")[2] for one in query.group) for query in both]
    words = [set(query.where.words) for query in both]
    rests = [0 if query.rest is None else 1 for query in both]
    used = [keywords(query) for query in both]
    return {
        "select": _compared(*selected),
        "select_no_agg": _compared(*terms),
        "where": _compared(*where),
        "where_no_op": _compared(*where_terms),
        "group_no_having": _compared(*group),
        "group": (_same_groups(*both), int(bool(generated.group)), int(bool(expected.group))),
        "order": (_same_order(*both), int(bool(generated.order)), int(bool(expected.order))),
        "and_or": (True, 1, 1) if words[0] == words[1] else (False, len(words[0]), len(words[1])),
        "iuen": (_same_rest(*both), rests[0], rests[1]),
        "keywords": (used[0] == used[1], len(used[0]), len(used[1])),
    }


def exact_match(generated: SpiderQuery, expected: SpiderQuery) -> bool:
    """Returns whether all parts and the tables of two comparable queries are the same."""
    parts = partial_scores(generated, expected)
    return all(same for same, _, _ in parts.values()) and (
        not expected.tables or Counter(generated.tables) == Counter(expected.tables)
    )


def _compared(mine: Counter[Any], theirs: Counter[Any]) -> tuple[bool, int, int]:
    return mine == theirs, mine.total(), theirs.total()


def _same_groups(generated: SpiderQuery, expected: SpiderQuery) -> bool:
    if not generated.group and not expected.group:
        return True
    mine, theirs = ([column.name for column in query.group] for query in (generated, expected))
    return mine == theirs and generated.having == expected.having


def _same_order(generated: SpiderQuery, expected: SpiderQuery) -> bool:
    if not generated.order and not expected.order:
        return True
    limits = generated.limit is None, expected.limit is None
    return (generated.direction, generated.order, limits[0]) == (expected.direction, expected.order, limits[1])


def _same_rest(generated: SpiderQuery, expected: SpiderQuery) -> bool:
    mine, theirs = generated.rest, expected.rest
    if mine is None or theirs is None:
        return mine is theirs
    return mine[0] == theirs[0] and exact_match(mine[1], theirs[1])


def keywords(query: SpiderQuery) -> frozenset[str]:
    """Returns the keywords that a query has outside of its subqueries."""
    comparisons = [one for conditions in query.conditions for one in conditions.comparisons]
    found = {
        "where": bool(query.where.comparisons),
        "group": bool(query.group),
        "having": bool(query.having.comparisons),
        "order": bool(query.order),
        query.direction: bool(query.order),
        "limit": query.limit is not None,
        "or": any("or" in conditions.words for conditions in query.conditions),
        "not": any(one.negated for one in comparisons),
        "in": any(one.operator == "in" for one in comparisons),
        "like": any(one.operator == "like" for one in comparisons),
    }
    operation = {query.rest[0]} if query.rest is not None else set()
    return frozenset(operation | {word for word, used in found.items() if used})


def comparable(query: SpiderQuery, keys: Mapping[str, str]) -> SpiderQuery:
    """Returns what is compared of a query: without values, columns that are keys of each other as one.

    Inside subqueries of conditions only values are removed, and in those of FROM nothing. DISTINCT stays; it counts in
    subqueries alone.

    Args:
        query: as it was read.
        keys: see `key_names`; applied to columns of the tables in the query's FROM.
    """
    tables = {table for table in query.tables if isinstance(table, str)}
    return _renamed(_without_values(query), {name: new for name, new in keys.items() if name.split(".")[0] in tables})


def _without_values(query: SpiderQuery) -> SpiderQuery:
    def emptied(conditions: SpiderConditions) -> SpiderConditions:
        kept = (replace(one, value=_kept(one.value), second=_kept(one.second)) for one in conditions.comparisons)
        return SpiderConditions(tuple(kept), conditions.words)

    rest = query.rest and (query.rest[0], _without_values(query.rest[1]))
    return replace(query, on=emptied(query.on), where=emptied(query.where), having=emptied(query.having), rest=rest)


def _kept(value: Any) -> SpiderQuery | None:
    return _without_values(value) if isinstance(value, SpiderQuery) else None


def _renamed(query: SpiderQuery, names: Mapping[str, str]) -> SpiderQuery:
    def column(one: ColumnUse) -> ColumnUse:
        return ColumnUse(one.aggregate, names.get(one.name, one.name))

    def term(one: SpiderTerm) -> SpiderTerm:
        return SpiderTerm(one.operator, column(one.left), None if one.right is None else column(one.right))

    def conditions(one: SpiderConditions) -> SpiderConditions:
        changed: list[SpiderCondition] = [replace(each, term=term(each.term)) for each in one.comparisons]
        return SpiderConditions(tuple(changed), one.words)

    return replace(
        query,
        on=conditions(query.on),
        select=tuple(replace(one, term=term(one.term)) for one in query.select),
        where=conditions(query.where),
        group=tuple(map(column, query.group)),
        having=conditions(query.having),
        order=tuple(map(term, query.order)),
        rest=query.rest and (query.rest[0], _renamed(query.rest[1], names)),
    )


@lru_cache(maxsize=64)
def key_names(schema: SqlSchema) -> Mapping[str, str]:
    """Returns the first column of those that foreign keys connect with a column, for each of them."""
    places = {f"{table.name}.{column.name}".lower(): None for table in schema.tables for column in table.columns}
    order = {name: number for number, name in enumerate(places)}
    sets: list[set[str]] = []
    for table in schema.tables:
        for key in table.foreign_keys:
            for column, other in zip(key.columns, key.references, strict=False):
                pair = {f"{table.name}.{column}".lower(), f"{key.table}.{other}".lower()} & order.keys()
                found = next((one for one in sets if one & pair), None)
                if found is None:
                    sets.append(found := set())
                found |= pair
    return {name: min(names, key=order.__getitem__) for names in sets for name in names}


def difficulty(query: SpiderQuery) -> str:
    """Returns `easy`, `medium`, `hard` or `extra` of a query as it was read."""
    clauses, nested, others = _clauses(query), _nested(query), _others(query)
    if not nested:
        if clauses <= 1 and others == 0:
            return "easy"
        if (others <= 2 and clauses <= 1) or (clauses <= 2 and others < 2):
            return "medium"
        if (others > 2 and clauses <= 2) or (2 < clauses <= 3 and others <= 2):
            return "hard"
    if clauses <= 1 and others == 0 and nested <= 1:
        return "hard"
    return "extra"


def _clauses(query: SpiderQuery) -> int:
    """Counts WHERE, GROUP BY, ORDER BY, LIMIT, joins, ORs and LIKEs."""
    found = bool(query.where.comparisons) + bool(query.group) + bool(query.order) + (query.limit is not None)
    found += max(len(query.tables) - 1, 0)
    for conditions in query.conditions:
        found += conditions.words.count("or") + sum(one.operator == "like" for one in conditions.comparisons)
    return found


def _nested(query: SpiderQuery) -> int:
    """Counts queries in conditions and after set operations."""
    comparisons = [one for conditions in query.conditions for one in conditions.comparisons]
    values = [value for one in comparisons for value in (one.value, one.second)]
    return sum(isinstance(value, SpiderQuery) for value in values) + (query.rest is not None)


def _others(query: SpiderQuery) -> int:
    """Counts which of these occur more than once: aggregates, selected terms, conditions of WHERE, columns of GROUP BY.

    The evaluator looks for the aggregate of a condition where its negation is, so that NOT counts as one, and so does
    each AND and OR of HAVING.
    """
    aggregates = sum(one.aggregate != "none" for one in query.select)
    aggregates += sum(one.negated for one in (*query.where.comparisons, *query.having.comparisons))
    aggregates += len(query.having.words) + sum(one.aggregate != "none" for one in query.group)
    aggregates += sum(column.aggregate != "none" for term in query.order for column in term.columns)
    return sum(count > 1 for count in (aggregates, len(query.select), len(query.where.comparisons), len(query.group)))


@dataclass(frozen=True, slots=True)
class SpiderMatch:
    """How a query compares with the accepted query that it matches best.

    Attributes:
        exact: whether all parts and the tables are the same.
        parts: for each of `scores.PARTS` whether it is the same, and how much of it the generated and the accepted
            query have.
        difficulty: of the first accepted query that can be read.
        readable: whether the generated query is in Spider's grammar; if not, it is compared as an empty query.
    """

    exact: bool
    parts: dict[str, tuple[bool, int, int]]
    difficulty: str
    readable: bool


def spider_scores(generated: str | None, gold: SqlGold) -> dict[str, Any] | None:
    """Returns the scores of a turn as plain values, see `SpiderMatch`; None as `spider_match` does."""
    found = spider_match(generated, gold.accepted, gold.database.schema)
    return None if found is None else asdict(found)


def spider_match(generated: str | None, accepted: Sequence[str], schema: SqlSchema) -> SpiderMatch | None:
    """Returns the scores; None if no accepted query is in Spider's grammar."""
    golds = [found for found in (_read(sql, schema) for sql in accepted) if found is not None]
    if not golds:
        return None
    mine, keys = _read(generated, schema) if generated is not None else None, key_names(schema)
    compared = comparable(mine or SpiderQuery(), keys)
    found = []
    for gold in golds:
        wanted = comparable(gold, keys)
        parts = partial_scores(compared, wanted)
        found.append(SpiderMatch(exact_match(compared, wanted), parts, difficulty(golds[0]), mine is not None))
    return max(found, key=lambda one: (one.exact, sum(same for same, _, _ in one.parts.values())))


@lru_cache(maxsize=4096)
def _read(sql: str, schema: SqlSchema) -> SpiderQuery | None:
    try:
        return read_query(sql, _columns(schema))
    except UnreadableError:
        return None


@lru_cache(maxsize=64)
def _columns(schema: SqlSchema) -> dict[str, frozenset[str]]:
    return {table.name.lower(): frozenset(column.name.lower() for column in table.columns) for table in schema.tables}

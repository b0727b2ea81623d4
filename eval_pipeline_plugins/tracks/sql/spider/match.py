"""The scores of a turn as Spider's exact match counts them, over all accepted queries."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.spider.query import SpiderQuery
from eval_pipeline_plugins.tracks.sql.spider.reading import UnreadableError, read_query
from eval_pipeline_plugins.tracks.sql.spider.scores import (
    comparable,
    difficulty,
    exact_match,
    key_names,
    partial_scores,
)


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

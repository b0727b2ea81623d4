"""How a model version fails and what changed by tag: its newest evaluation beside the one before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import where
from eval_pipeline.statistics.pairs.paired import paired_difference
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.published import Look

MOST_MODES, MOST_TAGS = 6, 5
_FEWEST = 3
"""The fewest conversations of a tag that is shown."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to fail.

    Attributes:
        column: the column of turns that has it, `failure_mode` or `error_class`.
        now, before: turns that fail so; `before` is None if there is no evaluation before.
    """

    name: str
    column: str
    now: int
    before: int | None


@dataclass(frozen=True, slots=True)
class Modes:
    """The ways in which an evaluation fails, the most frequent first, and how many turns it and the one before have."""

    modes: Sequence[Mode]
    turns: int
    turns_before: int
    sql: str


@dataclass(frozen=True, slots=True)
class TagChange:
    """A tag on the turns that two evaluations share: accuracy now minus before, with its 95% interval."""

    tag: str
    turns: int
    broken: int
    fixed: int
    difference: float
    low: float | None
    high: float | None


def modes_of(look: Look, now: Partition, before: Partition | None) -> Modes:
    """Returns how an evaluation fails, with the numbers of the one before."""
    sides = f"({where(now, 'e')})" + (f" OR ({where(before, 'e')})" if before else "")
    day = f"DATE {text(now.eval_date.isoformat())}"
    sql = f"""SELECT coalesce(e.failure_mode, e.error_class) AS name, e.failure_mode IS NOT NULL AS is_mode,
    count(*) FILTER (e.eval_date = {day}) AS now, count(*) FILTER (e.eval_date <> {day}) AS before
FROM turn_errors AS e WHERE {sides}
GROUP BY ALL ORDER BY now DESC, before DESC, name"""
    turns = f"""SELECT count(*) FILTER (e.eval_date = {day}) AS now, count(*) FILTER (e.eval_date <> {day}) AS before
FROM turn_results AS e WHERE {sides}"""
    found = [
        Mode(row["name"], "failure_mode" if row["is_mode"] else "error_class", row["now"],
             row["before"] if before else None)
        for row in look.rows(sql)
    ]  # fmt: skip
    (of,) = look.rows(turns)
    return Modes(found, of["now"], of["before"], sql)


def changes_sql(now: Partition, before: Partition) -> str:
    """Returns the query for the tags on which most turns changed, a row for each of their conversations.

    Only turns that both have scored, with the same question and gold.
    """
    columns = "turn_id, sample, question, expected, correct"
    return f"""WITH counted AS (
    SELECT b.tags, b.cluster, count(*) AS turns, count(*) FILTER (a.correct AND NOT b.correct) AS broken,
        count(*) FILTER (b.correct AND NOT a.correct) AS fixed
    FROM (SELECT {columns} FROM turn_results WHERE {where(before)}) AS a
    JOIN (SELECT {columns}, tags, cluster FROM turn_results WHERE {where(now)}) AS b USING (turn_id, sample)
    WHERE a.correct IS NOT NULL AND b.correct IS NOT NULL AND a.question = b.question
        AND a.expected IS NOT DISTINCT FROM b.expected
    GROUP BY b.tags, b.cluster
), tagged AS (
    SELECT unnest(CAST(tags AS VARCHAR[])) AS tag, cluster, turns, broken, fixed FROM counted
), most AS (
    SELECT tag, row_number() OVER (ORDER BY abs(sum(fixed) - sum(broken)) DESC, sum(turns), tag) AS place
    FROM tagged GROUP BY tag HAVING count(DISTINCT cluster) >= {_FEWEST} AND sum(fixed) <> sum(broken)
    ORDER BY place LIMIT {MOST_TAGS}
)
SELECT place, tag, turns, broken, fixed, dense_rank() OVER (ORDER BY cluster) AS cluster
FROM tagged JOIN most USING (tag) ORDER BY place"""


def changes_of(look: Look, now: Partition, before: Partition) -> list[TagChange]:
    """Returns the tags on which most turns were lost or won since the evaluation before, the largest change first."""
    table = look.table(changes_sql(now, before))
    places, *columns = (table[name].to_numpy() for name in ("place", "turns", "broken", "fixed", "cluster"))
    found = []
    for place in sorted(set(places.tolist())):
        of = places == place
        tag = table["tag"][int(of.argmax())].as_py()
        found.append(_change(tag, *(column[of] for column in columns)))
    return sorted(found, key=lambda change: abs(change.difference), reverse=True)


def _change(tag: str, turns: Any, broken: Any, fixed: Any, clusters: Any) -> TagChange:
    """Returns the paired test of a tag from numbers of turns by conversation, of which only the changed ones matter."""
    import numpy as np

    times = np.concatenate([broken, fixed, turns - broken - fixed])
    before, now = (np.repeat(np.repeat(verdicts, len(turns)), times) for verdicts in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    found = paired_difference(before, now, np.repeat(np.tile(clusters, 3), times))
    low, high = found.interval()
    return TagChange(tag, found.n, found.broken, found.fixed, found.difference or 0.0, low, high)


def weakest_sql(now: Partition) -> str:
    """Returns the query for the tags with the lowest accuracy."""
    return f"""SELECT split_value AS tag, n, mean, low, high FROM statistics
WHERE {where(now)} AND metric = 'correct' AND split = 'tag' AND mean IS NOT NULL AND clusters >= {_FEWEST}
ORDER BY mean, n DESC, tag LIMIT {MOST_TAGS}"""

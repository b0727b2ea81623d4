"""How a model version fails and what changed by tag: its newest evaluation beside the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.analysis.comparisons.two_figures import verdict_of
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.charts.svg.rows import GAIN, LOSS, SAME
from eval_pipeline.reports.queries import KIND, KINDS, where
from eval_pipeline.statistics.pairs.paired import CorrectedTest, PairedDifference, holm, paired_difference
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.evaluation import of_earlier, table_of
from eval_pipeline.view.published import StoreView

MOST_MODES, MOST_TAGS = 6, 5
_FEWEST = 3
"""The fewest conversations of a tag that is shown."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to fail.

    Attributes:
        column: the column of turns that has it, one of `KINDS`.
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
class ModeChange:
    """How much more often answers fail in a way, on the turns that two evaluations share.

    Attributes:
        difference: share of these turns now minus before.
        low, high: its interval, corrected by Holm for all ways to fail; None if there is none.
        state: `LOSS` if it grew significantly, `GAIN` if it shrank so, else `SAME`.
    """

    difference: float
    low: float | None
    high: float | None
    state: str


@dataclass(frozen=True, slots=True)
class TagChange:
    """A tag on the turns that two evaluations share: accuracy now minus before.

    Attributes:
        tags: how many tags could have been shown, for all of which the interval is corrected (Bonferroni).
    """

    tag: str
    tags: int
    turns: int
    broken: int
    fixed: int
    difference: float
    low: float | None
    high: float | None


def modes_of(look: StoreView, now: Partition, before: Partition | None) -> Modes:
    """Returns how an evaluation fails, with the numbers of the one before."""
    sides = f"({where(now, 'e')})" + (f" OR ({where(before, 'e')})" if before else "")
    day = f"DATE {text(now.eval_date.isoformat())}"
    first, second = KINDS
    sql = f"""SELECT {KIND} AS name, if(e.{first} IS NULL, {text(second)}, {text(first)}) AS kind,
    count(*) FILTER (e.eval_date = {day}) AS now, count(*) FILTER (e.eval_date <> {day}) AS before
FROM turn_errors AS e WHERE {sides}
GROUP BY ALL ORDER BY now DESC, before DESC, name"""
    turns = f"""SELECT count(*) FILTER (e.eval_date = {day}) AS now, count(*) FILTER (e.eval_date <> {day}) AS before
FROM turn_results AS e WHERE {sides}"""
    found = [Mode(row["name"], row["kind"], row["now"], row["before"] if before else None) for row in look.rows(sql)]
    (of,) = look.rows(turns)
    return Modes(found, of["now"], of["before"], sql)


def mode_changes(look: StoreView, before: Partition, now: Partition) -> Mapping[str, ModeChange]:
    """Returns the change of each way to fail, by the paired test that accuracies have; empty without common turns."""
    return look.remembered(("mode changes", before, now), lambda: _mode_changes(look, before, now))


def _mode_changes(look: StoreView, before: Partition, now: Partition) -> dict[str, ModeChange]:
    import numpy as np

    table = look.table(mode_changes_sql(before, now))
    names = table["name"].combine_chunks().dictionary_encode()
    codes = names.indices.fill_null(-1).to_numpy()
    clusters = table["cluster"].combine_chunks().dictionary_encode().indices.to_numpy()
    counts = np.stack([table[name].to_numpy() for name in ("turns", "gone", "come")])
    turns = counts[0, codes < 0]
    if not turns.sum():
        return {}
    place = np.zeros(clusters.max() + 1, dtype=np.int64)
    place[clusters[codes < 0]] = np.arange(len(turns))
    tests = {}
    for code, name in sorted(enumerate(names.dictionary.to_pylist()), key=lambda one: str(one[1])):
        of = codes == code
        gone, come = np.zeros_like(turns), np.zeros_like(turns)
        gone[place[clusters[of]]], come[place[clusters[of]]] = counts[1, of], counts[2, of]
        tests[name] = _paired(turns, gone, come, np.arange(len(turns)))
    corrected = holm([test.p_value for test in tests.values()])
    return {name: _mode_change(test, one) for (name, test), one in zip(tests.items(), corrected, strict=True)}


def _mode_change(test: PairedDifference, corrected: CorrectedTest | None) -> ModeChange:
    if corrected is None:
        return ModeChange(test.difference or 0.0, None, None, SAME)
    verdict = verdict_of(test, corrected, GAIN, LOSS)
    state = verdict if verdict in {GAIN, LOSS} else SAME
    return ModeChange(test.difference or 0.0, *test.interval(corrected.alpha), state)


def mode_changes_sql(before: Partition, now: Partition) -> str:
    """Returns the query for how many turns fail no longer or newly in each way, by conversation.

    Only of the turns that both have scored, with the same question and gold; how many these are has no name.
    """
    results, errors = (
        [
            f"SELECT {columns} FROM {table_of(one, name)} AS e WHERE {where(one, 'e')}{of_earlier(one, 'e.')}"
            for one in (before, now)
        ]
        for name, columns in (
            ("turn_results", "turn_id, sample, question, expected, cluster, correct"),
            ("turn_errors", f"turn_id, sample, {KIND} AS name"),
        )
    )
    return f"""WITH common AS (
    SELECT turn_id, sample, b.cluster FROM ({results[0]}) AS a JOIN ({results[1]}) AS b USING (turn_id, sample)
    WHERE a.correct IS NOT NULL AND b.correct IS NOT NULL AND a.question = b.question
        AND a.expected IS NOT DISTINCT FROM b.expected
), failed AS (
    SELECT turn_id, sample, name, bool_or(now) AS come, bool_or(NOT now) AS was FROM (
        SELECT *, false AS now FROM ({errors[0]}) UNION ALL SELECT *, true FROM ({errors[1]})
    ) GROUP BY ALL
)
SELECT NULL AS name, cluster, count(*) AS turns, 0 AS gone, 0 AS come FROM common GROUP BY cluster
UNION ALL
SELECT name, cluster, 0, count(*) FILTER (NOT come), count(*) FILTER (NOT was)
FROM failed JOIN common USING (turn_id, sample) GROUP BY name, cluster"""


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
), shown AS (
    SELECT tag, sum(fixed) - sum(broken) AS won, sum(turns) AS turns, count(*) OVER () AS tags
    FROM tagged GROUP BY tag HAVING count(DISTINCT cluster) >= {_FEWEST}
), most AS (
    SELECT tag, tags, row_number() OVER (ORDER BY abs(won) DESC, turns, tag) AS place
    FROM shown WHERE won <> 0 ORDER BY place LIMIT {MOST_TAGS}
)
SELECT place, tag, tags, turns, broken, fixed, dense_rank() OVER (ORDER BY cluster) AS cluster
FROM tagged JOIN most USING (tag) ORDER BY place"""


def changes_of(look: StoreView, now: Partition, before: Partition) -> list[TagChange]:
    """Returns the tags on which most turns were lost or won since the evaluation before, the largest change first."""
    table = look.table(changes_sql(now, before))
    places, *columns = (table[name].to_numpy() for name in ("place", "turns", "broken", "fixed", "cluster"))
    found = []
    for place in sorted(set(places.tolist())):
        of = places == place
        tag, tags = (table[name][int(of.argmax())].as_py() for name in ("tag", "tags"))
        found.append(_change(tag, tags, *(column[of] for column in columns)))
    return sorted(found, key=lambda change: abs(change.difference), reverse=True)


def _change(tag: str, tags: int, turns: Any, broken: Any, fixed: Any, clusters: Any) -> TagChange:
    """Returns the paired test of a tag from numbers of turns by conversation, of which only the changed ones matter."""
    found = _paired(turns, broken, fixed, clusters)
    low, high = found.interval(0.05 / tags)
    return TagChange(tag, tags, found.n, found.broken, found.fixed, found.difference or 0.0, low, high)


def _paired(turns: Any, only_before: Any, only_now: Any, clusters: Any) -> PairedDifference:
    import numpy as np

    times = np.concatenate([only_before, only_now, turns - only_before - only_now])
    before, now = (np.repeat(np.repeat(said, len(turns)), times) for said in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    return paired_difference(before, now, np.repeat(np.tile(clusters, 3), times))


def weakest_sql(now: Partition) -> str:
    """Returns the query for the tags with the lowest accuracy."""
    return f"""SELECT split_value AS tag, n, mean, low, high FROM statistics
WHERE {where(now)} AND metric = 'correct' AND split = 'tag' AND mean IS NOT NULL AND clusters >= {_FEWEST}
ORDER BY mean, n DESC, tag LIMIT {MOST_TAGS}"""

"""Counts turns and terms by dimension, data set or both; a turn counts once wherever it is counted."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import where
from eval_pipeline_plugins.tracks.sdmx import tables

if TYPE_CHECKING:
    from eval_pipeline.reports.evaluation import Evaluation

_MOST_SHOWN = 16
Row = dict[str, Any]
BY = {
    "dimension": "dimension",
    "data set": "dataset_id",
    "data set and dimension": "dataset_id || ' ' || dimension",
}
"""What is counted by, as SQL on `sdmx_dimensions`."""
COUNTS = ("turns", "right", "only_missing", "only_extra", "both", "target_terms", "found", "missed", "extra")
STATES = {"right": "right", "only_missing": "terms missing", "only_extra": "terms extra", "both": "missing and extra"}
"""What can be said of a turn at one place, in words."""
READING = (
    "A turn is counted at each place for which its target or the selection has terms, and once there: right, or with "
    "terms missing, extra, or both. Terms are counted over all these turns."
)


_TURNS = (
    "SELECT {columns}, sum(true_positives) AS t, sum(false_positives) AS f, sum(false_negatives) AS n "
    "FROM {source} WHERE {where} GROUP BY ALL HAVING t + f + n > 0"
)
_COUNTS = (
    'count(*) AS turns, count(*) FILTER (f = 0 AND n = 0) AS "right", '
    "count(*) FILTER (f = 0 AND n > 0) AS only_missing, "
    "count(*) FILTER (f > 0 AND n = 0) AS only_extra, count(*) FILTER (f > 0 AND n > 0) AS both, "
    "sum(t + n)::BIGINT AS target_terms, sum(t)::BIGINT AS found, sum(n)::BIGINT AS missed, sum(f)::BIGINT AS extra"
)


def counts_query(partition: Partition, by: str) -> str:
    """Returns the query for the counts by a key of `BY`, the most frequent place first."""
    of_turns = _TURNS.format(
        columns=f"{BY[by]} AS place, turn_id, sample", source=tables.DIMENSIONS.name, where=where(partition)
    )
    return f"SELECT place, {_COUNTS} FROM ({of_turns}) GROUP BY place ORDER BY turns DESC, place"


def tags_query(partition: Partition) -> str:
    """Returns the query for the counts by dimension and tag."""
    source = (
        f"(SELECT d.*, unnest(from_json(c.tags, '[\"VARCHAR\"]')) AS tag FROM {tables.DIMENSIONS.name} AS d "
        "JOIN cases AS c USING (suite, case_id))"
    )
    of_turns = _TURNS.format(columns="dimension, tag, turn_id, sample", source=source, where=where(partition))
    return f"SELECT dimension, tag, {_COUNTS} FROM ({of_turns}) GROUP BY dimension, tag ORDER BY dimension, tag"


def heat_map(evaluation: "Evaluation") -> tuple[list[str], list[str], Mapping[tuple[str, str], Row]]:
    """Returns dimensions, tags and the counts of each cell; of both only the most frequent ones."""
    cells = {(row["dimension"], row["tag"]): row for row in evaluation.query(tags_query(evaluation.partition))}
    places = evaluation.query(counts_query(evaluation.partition, "dimension"))
    dimensions = [row["place"] for row in places[:_MOST_SHOWN]]
    often: Counter[str] = Counter()
    for (_, tag), row in cells.items():
        often[tag] += row["turns"]
    tags = sorted(often, key=lambda tag: (-often[tag], tag))[:_MOST_SHOWN]
    return dimensions, tags, {place: row for place, row in cells.items() if place[0] in dimensions}

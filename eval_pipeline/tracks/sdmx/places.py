"""Counts turns and terms by dimension, data set or both; a turn counts once wherever it is counted."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import where
from eval_pipeline.store.tables import CASES
from eval_pipeline.tracks.sdmx.catalogue import suite_tables as tables

if TYPE_CHECKING:
    from eval_pipeline.reports.evaluation import Evaluation

_MOST_SHOWN = 16
Row = Mapping[str, Any]
BY = {
    "dimension": ("dimension", lambda row: str(row["dimension"])),
    "data set": ("dataset_id", lambda row: str(row["dataset_id"])),
    "data set and dimension": (
        "dataset_id || ' ' || dimension",
        lambda row: f"{row['dataset_id']} {row['dimension']}",
    ),
}
"""What is counted by: the SQL expression, and the same of a row of `sdmx_dimensions`."""
COUNTS = ("turns", "right", "only_missing", "only_extra", "both", "target_terms", "found", "missed", "extra")
STATES = {"right": "right", "only_missing": "terms missing", "only_extra": "terms extra", "both": "missing and extra"}
"""What can be said of a turn at one place, in words."""
READING = (
    "A turn is counted at each place for which its target or the selection has terms, and once there: right, or with "
    "terms missing, extra, or both. Terms are counted over all these turns."
)


@dataclass
class Counts:
    """Turns and terms at one place.

    Attributes:
        turns: turns with a term of target or selection there; the sum of the next four.
        right: neither missing nor extra terms.
        target_terms: `found` and `missed` together.
    """

    turns: int = 0
    right: int = 0
    only_missing: int = 0
    only_extra: int = 0
    both: int = 0
    found: int = 0
    missed: int = 0
    extra: int = 0

    @property
    def target_terms(self) -> int:
        """Terms of the targets."""
        return self.found + self.missed

    def add(self, found: int, extra: int, missed: int) -> None:
        """Counts a turn with these numbers of terms."""
        self.turns += 1
        self.right += not extra and not missed
        self.only_missing += bool(missed) and not extra
        self.only_extra += bool(extra) and not missed
        self.both += bool(missed) and bool(extra)
        self.found, self.extra, self.missed = self.found + found, self.extra + extra, self.missed + missed


def counts_by(rows: Iterable[Row], place: Callable[[Row], str]) -> dict[str, Counts]:
    """Counts by place, the most frequent one first.

    Args:
        rows: rows of `sdmx_dimensions`.
        place: the place of a row, e.g. its dimension.
    """
    turns: defaultdict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        of_turn = turns[place(row), row["turn_id"], row["sample"]]
        for number, name in enumerate(("true_positives", "false_positives", "false_negatives")):
            of_turn[number] += row[name]
    found: defaultdict[str, Counts] = defaultdict(Counts)
    for (name, *_), terms in turns.items():
        if any(terms):
            found[name].add(*terms)
    return dict(sorted(found.items(), key=lambda item: (-item[1].turns, item[0])))


def counts_by_tag(rows: Sequence[Row], tags: Mapping[str, str]) -> dict[tuple[str, str], Counts]:
    """Counts by dimension and tag.

    Args:
        rows: rows of `sdmx_dimensions`.
        tags: the tags of each case, as a JSON list.
    """
    cases: defaultdict[str, list[str]] = defaultdict(list)
    for case, text in tags.items():
        for tag in json.loads(text):
            cases[tag].append(case)
    by_case: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_case[row["case_id"]].append(row)
    return {
        (dimension, tag): counts
        for tag, named in sorted(cases.items())
        for dimension, counts in counts_by([row for case in named for row in by_case[case]], BY["dimension"][1]).items()
    }


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
    """Returns the query that gives `counts_by` for a key of `BY`."""
    of_turns = _TURNS.format(
        columns=f"{BY[by][0]} AS place, turn_id, sample", source=tables.DIMENSIONS.name, where=where(partition)
    )
    return f"SELECT place, {_COUNTS} FROM ({of_turns}) GROUP BY place ORDER BY turns DESC, place"


def tags_query(partition: Partition) -> str:
    """Returns the query that gives `counts_by_tag`."""
    source = (
        f"(SELECT d.*, unnest(from_json(c.tags, '[\"VARCHAR\"]')) AS tag FROM {tables.DIMENSIONS.name} AS d "
        "JOIN cases AS c USING (suite, case_id))"
    )
    of_turns = _TURNS.format(columns="dimension, tag, turn_id, sample", source=source, where=where(partition))
    return f"SELECT dimension, tag, {_COUNTS} FROM ({of_turns}) GROUP BY dimension, tag ORDER BY dimension, tag"


def heat_map(evaluation: "Evaluation") -> tuple[list[str], list[str], Mapping[tuple[str, str], Counts]]:
    """Returns dimensions, tags and the counts of each cell; of both only the most frequent ones."""
    rows = evaluation.rows(tables.DIMENSIONS)
    cases = {row["case_id"]: row["tags"] for row in evaluation.rows(CASES)}
    cells = counts_by_tag(rows, cases)
    dimensions = list(counts_by(rows, BY["dimension"][1]))[:_MOST_SHOWN]
    often: Counter[str] = Counter()
    for (_, tag), counts in cells.items():
        often[tag] += counts.turns
    tags = sorted(often, key=lambda tag: (-often[tag], tag))[:_MOST_SHOWN]
    return dimensions, tags, {place: counts for place, counts in cells.items() if place[0] in dimensions}

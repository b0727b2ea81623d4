"""Describes the gold in words: which edition the figures are based on, what is overridden and what is doubted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eval_pipeline.core import shown
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.queries import literal, where

if TYPE_CHECKING:
    from eval_pipeline.reports.evaluation import Evaluation

Row = dict[str, Any]
SCORED, PUBLISHED = "scored", "published"
CORRECT = "correct"
READING = (
    "A suspect is a reason to look, not a verdict: what is decided goes into gold_overrides.yaml of the suite, with "
    "who and why. See docs/gold.md."
)


def overridden_text(editions: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns how many turns are overridden and the accuracy with and without overrides.

    None if there are no overrides.
    """
    rates = {row["edition"]: row for row in editions if row["metric"] == CORRECT}
    if PUBLISHED not in rates:
        return None
    row = rates[SCORED]
    with_it, without = (shown.rate(one["mean"], one["low"], one["high"]) for one in (row, rates[PUBLISHED]))
    turns, excluded = row["overridden_turns"], row["excluded_turns"]
    left_out = f", {excluded:,} of them excluded" if excluded else ""
    return (
        f"the gold of {turns:,} turn{'s' * (turns != 1)} is overridden{left_out}: accuracy {with_it} "
        f"with, {without} without"
    )


def edition_rows_told(facts: Mapping[str, Any]) -> list[Row]:
    """Converts the facts reported when `gold_editions` is made into the rows that `overridden_text` needs."""
    counts = {name: facts.get(name, 0) for name in ("overridden_turns", "excluded_turns")}
    told = (SCORED, PUBLISHED) if counts["overridden_turns"] else ()
    ends = (("mean", "accuracy"), ("low", "low"), ("high", "high"))
    return [
        {"edition": name, "metric": CORRECT, **{key: facts.get(f"{name}_{fact}") for key, fact in ends}, **counts}
        for name in told
    ]


def edition_text(editions: Sequence[Row]) -> str | None:
    """Returns the edition of the gold that the figures are based on; None if it was not recorded."""
    row = next((row for row in editions if row["edition"] == SCORED), None)
    return None if row is None else f"{row['name']} ({row['gold_hash'][:12]})"


def data_text(editions: Sequence[Row]) -> str | None:
    """Returns the edition of the data set that models were asked about; None if it was not recorded."""
    return f"{editions[0]['data_edition']} ({editions[0]['data_hash'][:12]})" if editions else None


def gold_tables(evaluation: "Evaluation") -> Iterator[FigureTable]:
    """Yields the figures with and without overrides, and the overrides; nothing if there are none."""
    partition, sql = evaluation.partition, editions_query(evaluation.partition)
    if pairs := evaluation.query(sql):
        yield FigureTable("Figures with and without overrides", _PAIRS, pairs, [sql])
    if any(row["overridden_turns"] for row in evaluation.editions):
        sql = overrides_query(partition.suite)
        yield FigureTable("Overridden gold", _OVERRIDES, evaluation.query(sql), [sql])


def suspects_table(suite: str, suspects: Sequence[Row], caption: str = "Suspected gold") -> FigureTable:
    """Returns rows of `suspects_query` as a table."""
    return FigureTable(caption, _SUSPECTS, suspects, [suspects_query(suite)])


_PAIRS = (
    FigureColumn("figure", "metric"), FigureColumn("with", "mean", "rate"),
    FigureColumn("95% interval", "", "interval", ("low", "high")),
    FigureColumn("without", "mean_without", "rate"),
    FigureColumn("95% interval", "", "interval", ("without_low", "without_high")),
    FigureColumn("n with", "n", "tokens"), FigureColumn("n without", "n_without", "tokens"),
)  # fmt: skip
_OVERRIDES = (
    FigureColumn("turn", "turn_id", "place"), FigureColumn("action", "action"), FigureColumn("who", "who"),
    FigureColumn("published", "published", "long"), FigureColumn("overridden", "overridden", "long"),
    FigureColumn("", ""),
    FigureColumn("why", "why", "long"),
)  # fmt: skip
_SUSPECTS = (
    FigureColumn("turn", "turn_id", "place"), FigureColumn("score", "turn_score", "count"),
    FigureColumn("reason", "reason", "note"),
    FigureColumn("expected", "expected", "long"), FigureColumn("agreed answer", "agreed_answer", "long"),
    FigureColumn("model versions", "model_versions", "tokens"), FigureColumn("evidence", "evidence", "long"),
)  # fmt: skip


def suspects_query(suite: str) -> str:
    """Returns the query for suspects that nobody has decided on yet, the most doubtful turns first."""
    return (
        "SELECT turn_id, reason, turn_score, score, expected, agreed_answer, model_versions, evidence "
        f"FROM gold_suspects WHERE suite = {literal(suite)} AND override IS NULL "
        "ORDER BY turn_score DESC, turn_id, score DESC"
    )


def overrides_query(suite: str) -> str:
    """Returns the query for the overrides of a suite."""
    columns = "turn_id, action, published, overridden, who, why"
    return f"SELECT {columns} FROM gold_overrides WHERE suite = {literal(suite)} ORDER BY source_line"


def editions_query(partition: Partition) -> str:
    """Returns the query for an evaluation's figures with overridden gold and without."""
    return (
        "SELECT metric, s.mean, s.low, s.high, p.mean AS mean_without, p.low AS without_low, p.high AS without_high, "
        "s.n, p.n AS n_without FROM gold_editions AS s JOIN gold_editions AS p "
        "USING (suite, model_version, eval_date, metric) "
        f"WHERE {where(partition, 's')} AND s.edition = '{SCORED}' AND p.edition = '{PUBLISHED}' "
        f"ORDER BY metric <> '{CORRECT}', metric"
    )

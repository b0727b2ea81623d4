"""Describes the gold in words: which edition the figures are based on, what is overridden and what is doubted."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import literal, table_query
from eval_pipeline.reports.shown import shown_rate

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
    turns, excluded = row["overridden_turns"], row["excluded_turns"]
    left_out = f", {excluded:,} of them excluded" if excluded else ""
    return (
        f"the gold of {turns:,} turn{'s' * (turns != 1)} is overridden{left_out}: accuracy {shown_rate(row['mean'])} "
        f"with, {shown_rate(rates[PUBLISHED]['mean'])} without"
    )


def edition_rows_told(facts: Mapping[str, Any]) -> list[Row]:
    """Converts the facts reported when `gold_editions` is made into the rows that `overridden_text` needs."""
    counts = {name: facts.get(name, 0) for name in ("overridden_turns", "excluded_turns")}
    told = (SCORED, PUBLISHED) if counts["overridden_turns"] else ()
    return [{"edition": name, "metric": CORRECT, "mean": facts.get(f"{name}_accuracy"), **counts} for name in told]


def edition_text(editions: Sequence[Row]) -> str | None:
    """Returns the edition of the gold that the figures are based on; None if it was not recorded."""
    row = next((row for row in editions if row["edition"] == SCORED), None)
    return None if row is None else f"{row['name']} ({row['gold_hash'][:12]})"


def data_text(editions: Sequence[Row]) -> str | None:
    """Returns the edition of the data set that models were asked about; None if it was not recorded."""
    return f"{editions[0]['data_edition']} ({editions[0]['data_hash'][:12]})" if editions else None


def with_and_without(editions: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Returns each metric's figure with overrides and without; empty if nothing is overridden."""
    published = {row["metric"]: row for row in editions if row["edition"] == PUBLISHED}
    pairs = ((row, published.get(row["metric"])) for row in editions if row["edition"] == SCORED)
    return [(row, other) for row, other in pairs if other is not None]


def undecided(suspects: Sequence[Row]) -> list[Row]:
    """Returns the suspects that nobody has decided on yet, the most doubtful turns first."""
    found = [row for row in suspects if row["override"] is None]
    return sorted(found, key=lambda row: (-row["turn_score"], row["turn_id"], -row["score"]))


def suspects_query(suite: str) -> str:
    """Returns the query for suspects that nobody has decided on yet."""
    return (
        "SELECT turn_id, reason, turn_score, score, expected, agreed_answer, model_versions, evidence "
        f"FROM gold_suspects WHERE suite = {literal(suite)} AND override IS NULL "
        "ORDER BY turn_score DESC, turn_id, score DESC"
    )


def overrides_query(suite: str) -> str:
    """Returns the query for the overrides of a suite."""
    columns = "turn_id, action, published, overridden, who, why"
    return f"SELECT {columns} FROM gold_overrides WHERE suite = {literal(suite)} ORDER BY source_line"


def suite_editions_query(suite: str) -> str:
    """Returns the query for the editions that the record holds of a suite."""
    return f"SELECT * FROM suite_editions WHERE suite = {literal(suite)}"


def editions_query(partition: Partition) -> str:
    """Returns the query for an evaluation's figures under each edition of the gold."""
    return table_query(partition, "gold_editions", "edition, name, metric, n, mean, low, high, overridden_turns")

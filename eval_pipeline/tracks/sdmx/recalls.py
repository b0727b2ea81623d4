"""Recall of the candidates in reports: which share of the targets' terms is offered, by dimension."""

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.queries import statistics_query
from eval_pipeline.tracks.sdmx.figures import ALL, RECALL, RECALL_AT

TITLE = "Recall of the candidates"
READING = (
    "Share of the targets' terms that are among the first candidates of their dimension, as a mean over cases, with a "
    "95% interval; only dimensions that are too large to be shown as a whole."
)


def candidate_recalls(evaluation: Evaluation) -> dict[str, dict[int, Row]]:
    """Returns rows of `statistics` by dimension, the first being all dimensions, and by number of candidates.

    Empty if no target has a term in a dimension that is too large to be shown as a whole.
    """
    places = {f"{RECALL}{most}": most for most in RECALL_AT}
    found: dict[str, dict[int, Row]] = {}
    for row in sorted(evaluation.statistics, key=lambda row: (row["split"] != ALL, row["split_value"])):
        if row["metric"] in places and row["n"]:
            name = "all dimensions" if row["split"] == ALL else str(row["split_value"])
            found.setdefault(name, {})[places[row["metric"]]] = row
    return found


def recalls_query(partition: Partition) -> str:
    """Returns the query for these rows."""
    return statistics_query(partition, f"metric LIKE '{RECALL}%'")

"""The turns that are wrong, the most frequent kind of mistake first."""

from collections import Counter

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.queries import mistakes_query


def mistakes(evaluation: Evaluation) -> list[Row]:
    """Returns the rows of the query for wrong turns, the most frequent kind first, within a kind in the suite's order.

    `what` is added: what is wrong, as the track can say it, else why the answer could not be used; None if neither.
    """
    told = evaluation.profile.mistakes(evaluation) if evaluation.profile.mistakes else {}
    found = evaluation.in_order(evaluation.query(mistakes_query(evaluation.partition)))
    rows = [row | {"what": told.get((row["turn_id"], row["sample"])) or row["error_message"]} for row in found]
    often = Counter(row["kind"] for row in rows)
    return sorted(rows, key=lambda row: (-often[row["kind"]], row["kind"]))

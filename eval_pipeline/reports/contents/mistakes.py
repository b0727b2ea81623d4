"""The turns that are wrong, the most frequent kind of mistake first."""

from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.queries import mistakes_query


def mistakes(evaluation: Evaluation) -> list[Row]:
    """Returns the rows of the query for wrong turns, the most frequent kind first, within a kind in the suite's order.

    `what` is added: what is wrong, as the track can say it, else why the answer could not be used; None if neither.
    """
    told = evaluation.profile.mistakes(evaluation) if evaluation.profile.mistakes else {}
    found = evaluation.in_order(evaluation.query(mistakes_query(evaluation.partition)))
    rows = [row | {"what": told.get((row["turn_id"], row["sample"])) or row["error_message"]} for row in found]
    return sorted(rows, key=lambda row: (-row["turns"], row["kind"]))


def wrong_text(row: Row) -> str:
    """Returns what is wrong in a row of `mistakes`."""
    expected, answer = (UNKNOWN if row[name] is None else row[name] for name in ("expected", "answer"))
    return row["what"] or f"expected {expected}, answered {answer}"


def kinds_of(found: list[Row]) -> dict[str, list[Row]]:
    """Returns the rows of `mistakes` by kind, the most frequent first."""
    kinds: dict[str, list[Row]] = {}
    for row in found:
        kinds.setdefault(row["kind"], []).append(row)
    return kinds

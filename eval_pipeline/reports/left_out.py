"""Says in reports how many cases of a suite are covered, and which were left out (docs/reports.md#cases-left-out)."""

from collections.abc import Sequence

from eval_pipeline.core.left_out import CaseCounts
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.queries import table_query

HEADERS = ("cause", "cases", "examples")
_MOST_SHOWN = 10


def turns_of_cases(evaluation: Evaluation) -> str:
    """Returns e.g. `20 turns · 8 of 10 cases`."""
    counted = evaluation.case_counts.count() or f"{evaluation.cost['conversations']:,} conversations"
    return f"{evaluation.turns:,} turn{'s' * (evaluation.turns != 1)} · {counted}"


def causes(counts: CaseCounts) -> Sequence[tuple[str, int, str]]:
    """Returns a row for each cause: in words, the number of cases, and what is known of some of them."""
    rows = []
    for cause in counts.left_out:
        shown = cause.examples[:_MOST_SHOWN]
        more = [f"and {cause.cases - len(shown):,} more"] * (bool(shown) and cause.cases > len(shown))
        rows.append((cause.because(), cause.cases, "\n".join([*shown, *more])))
    return rows


def cases_query(partition: Partition) -> str:
    """Returns the query for the counts and the causes."""
    return table_query(partition, "coverage", "cases, cases_in_suite, left_out")

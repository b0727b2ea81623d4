"""What has to be overlooked for a result to be the expected one, so that accuracy under every contract is a query."""

from collections.abc import Sequence

from eval_pipeline.table_comparison.contracts import as_label
from eval_pipeline.tracks.metric import Metric


def relaxations(needed: Sequence[Sequence[str]]) -> str | None:
    """Returns the smallest sets of relaxations, as `none | a, b`; None if no set suffices."""
    return as_label(needed)


def insisted(compares: bool, insisted_on: Sequence[str]) -> str | None:
    """Returns what the question rules out, `none` if nothing; None where no result is compared."""
    return as_label([insisted_on]) if compares else None


def wrong_in(result_match: bool, relaxations: str | None) -> str | None:
    """Returns whether a wrong answer is right but for its `form`, or wrong in `meaning`; None for a right one."""
    if result_match:
        return None
    return "meaning" if relaxations is None else "form"


METRICS = (
    Metric(
        "relaxations",
        relaxations,
        "label",
        "What has to be overlooked for the result to be the expected one, e.g. `column_names, shape`; `none`: it is; "
        "several ways are separated by ` | `; NULL: it differs in meaning, or no result is compared.",
    ),
    Metric(
        "insisted",
        insisted,
        "label",
        "What the question insists on, so that `expert` does not overlook it: `row_order`, `rounding`, `duplicates`; "
        "`none`: nothing; NULL: closed answers or tests decide.",
    ),
    Metric(
        "wrong_in",
        wrong_in,
        "label",
        "`form`: right if what `relaxations` names were overlooked; `meaning`: any other wrong answer; NULL: right.",
    ),
)

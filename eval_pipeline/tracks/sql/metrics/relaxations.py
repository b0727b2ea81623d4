"""What has to be overlooked for an answer to be right, so that accuracy under every contract is a query."""

from collections.abc import Sequence

from eval_pipeline.table_comparison.contracts import as_label
from eval_pipeline.tracks.metric import Metric

FORM, MEANING = "form", "meaning"


def relaxations(
    should_pass: bool,
    generated: str | None,
    headline: str,
    needed_on_data: Sequence[Sequence[str]] | None,
    needed: Sequence[Sequence[str]],
) -> str | None:
    """Returns the smallest sets of relaxations, each in the order of the alphabet; None if no set suffices.

    Sets are separated by ` | `; the empty one is called `none`.
    """
    found = needed_on_data if headline == "execution_match" and needed_on_data is not None else needed
    return as_label(found) if should_pass and generated is not None else None


METRIC = Metric(
    "relaxations",
    relaxations,
    "label",
    "What has to be overlooked for the answer to be right, e.g. `duplicates, extra_columns`; `none`: right as it is; "
    "several ways are separated by ` | `; NULL: it differs in meaning, or no SQL is expected.",
)


def insisted(should_pass: bool, insisted_on: Sequence[str]) -> str | None:
    """Returns the names of the relaxations that the question rules out, `none` if there are none."""
    return as_label([insisted_on]) if should_pass else None


INSISTED = Metric(
    "insisted",
    insisted,
    "label",
    "What the question insists on, so that `expert` does not overlook it: `row_order`, `rounding`, `duplicates`, "
    "`extra_columns`; `none`: nothing; NULL: no SQL is expected.",
)


def wrong_in(should_pass: bool, outcome_correct: bool, relaxations: str | None) -> str | None:
    """Returns whether a wrong answer is right but for its form, or wrong in meaning; None for a right outcome."""
    if outcome_correct:
        return None
    return FORM if should_pass and relaxations is not None else MEANING


WRONG_IN = Metric(
    "wrong_in",
    wrong_in,
    "label",
    "`form`: right if what `relaxations` names were overlooked; `meaning`: any other wrong outcome; NULL where it is "
    "right.",
)

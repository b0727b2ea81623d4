"""What has to be overlooked for a result to be the expected one, so that accuracy under every contract is a query."""

from collections.abc import Sequence

from eval_pipeline.table_comparison.contracts import as_label


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

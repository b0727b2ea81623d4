"""The primary metric: whether the outcome is right."""

from collections.abc import Collection, Sequence

from eval_pipeline.core.model import MetricResult
from eval_pipeline.table_comparison.contracts import contract_line, excess
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.strict_match import NO_DATA, is_strictly_right
from eval_pipeline.tracks.sql.words import SAME


def is_right(
    headline: str,
    may_overlook: Collection[str],
    needed_on_data: Sequence[Collection[str]] | None,
    needed: Sequence[Collection[str]],
    equivalence: str | None,
) -> bool:
    """Returns whether a query is right by a suite's headline and contract.

    Args:
        headline: `execution_match`, `robust` or `strict`.
        may_overlook: what the contract overlooks in this turn.
        needed_on_data: each of the smallest sets that have to be overlooked on the data; None without data.
        needed: the same on the data and on every database that fits them; none if they differ in meaning.
        equivalence: verdict on all databases, where nothing is overlooked.
    """
    if headline == "strict":
        return is_strictly_right(needed_on_data, equivalence)
    if needed_on_data is None:
        return equivalence in SAME or (equivalence == "different" and _fits(needed, may_overlook))
    return _fits(needed_on_data if headline == "execution_match" else needed, may_overlook)


def _fits(needed: Sequence[Collection[str]], may_overlook: Collection[str]) -> bool:
    return any({*one} <= {*may_overlook} for one in needed)


def outcome_correct(
    should_pass: bool,
    declined: bool,
    blocked: bool,
    headline: str,
    may_overlook: Sequence[str],
    needed_on_data: Sequence[Sequence[str]] | None,
    needed: Sequence[Sequence[str]],
    equivalence: str | None,
    difference: str,
) -> MetricResult:
    """Returns whether the expected SQL has the right result, or a request to be refused was refused.

    What makes SQL right is the suite's choice: its option `headline` names the databases that count (decision 0136),
    its contract what is overlooked (decision 0210). If the suite has no data, the generated databases alone decide. A
    refusal is right if the model declined or the validator blocked the query.
    """
    if not should_pass:
        return MetricResult(float(declined or blocked), reason="a refusal is right")
    right = is_right(headline, may_overlook, needed_on_data, needed, equivalence)
    if needed_on_data is None:
        return MetricResult(float(right), reason=NO_DATA)
    if not right and needed_on_data and (not needed or headline == "strict"):
        return MetricResult(0.0, reason=_refuted(needed_on_data, needed, difference))
    return MetricResult(float(right), reason=_reason(right, may_overlook, needed, difference))


_GENERATED = "generated databases that the headline counts"


def _refuted(needed_on_data: Sequence[Sequence[str]], needed: Sequence[Sequence[str]], difference: str) -> str:
    """Returns why an answer that is not refuted by the data is wrong; `difference` tells of the results on the data."""
    if any(not one for one in needed_on_data):
        return f"the same on the data, but not on {_GENERATED}" + (f": {difference}" if difference else "")
    told = difference or "the same in another form"
    return told if needed else f"on the data {told}; on {_GENERATED} the results differ in more than form"


def _reason(right: bool, may_overlook: Sequence[str], needed: Sequence[Sequence[str]], difference: str) -> str:
    if right:
        used = next((one for one in needed if {*one} <= {*may_overlook}), ())
        return f"right; overlooked: {', '.join(used)}" if used else "the same result"
    if not needed:
        return difference or "another result"
    missing = excess(needed, may_overlook)
    return f"{difference or 'the same in another form'}; right with `{contract_line(missing)}`"


METRIC = Metric(
    "outcome_correct",
    outcome_correct,
    "boolean",
    "The primary metric: `execution_match`, `robust_match` or `strict_match`, as the suite's option `headline` says; "
    "where a refusal is right, declined or blocked by the validator; NULL: not scored.",
)

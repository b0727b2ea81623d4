"""The primary metric, its stricter and looser forms, what an answer needs to be right, and why."""

from collections.abc import Collection, Sequence

from eval_pipeline.core.model import MetricResult
from eval_pipeline.table_comparison.contracts import NONE, PRESETS, as_label, contract_line, excess
from eval_pipeline_plugins.tracks.sql.cases.words import SAME
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED

NO_DATA = "by generated databases alone"


def is_strictly_right(needed_on_data: Sequence[Collection[str]] | None, equivalence: str | None) -> bool:
    """Returns whether results are the same under `exact` on the data, and differ on no generated database.

    If the suite has no data, the queries must mean the same by the evidence.
    """
    if needed_on_data is None:
        return equivalence in SAME
    return equivalence != "different" and any({*one} <= PRESETS["exact"] for one in needed_on_data)


def strict_match(
    should_pass: bool, generated: str | None, needed_on_data: Sequence[Sequence[str]] | None, equivalence: str | None
) -> MetricResult:
    """Returns whether a query is right if nothing is overlooked."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    right = generated is not None and is_strictly_right(needed_on_data, equivalence)
    return MetricResult(float(right), reason=NO_DATA if needed_on_data is None else None)


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


def robust_match(
    should_pass: bool,
    may_overlook: Sequence[str],
    needed_on_data: Sequence[Sequence[str]] | None,
    needed: Sequence[Sequence[str]],
    equivalence: str | None,
) -> MetricResult:
    """Returns whether results are the same by the contract, on the data and on generated databases that fit them."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    return MetricResult(float(is_right("robust", may_overlook, needed_on_data, needed, equivalence)))


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


def insisted(should_pass: bool, insisted_on: Sequence[str]) -> str | None:
    """Returns the names of the relaxations that the question rules out, `none` if there are none."""
    return as_label([insisted_on]) if should_pass else None


def wrong_in(should_pass: bool, outcome_correct: bool, relaxations: str | None) -> str | None:
    """Returns whether a wrong answer is right but for its form, or wrong in meaning; None for a right outcome."""
    if outcome_correct:
        return None
    return FORM if should_pass and relaxations is not None else MEANING


REASONS = (
    "declined",
    "blocked",
    "not_refused",
    "no_sql",
    "does_not_run",
    "different_on_data",
    "different_in_form",
    "refuted_on_fitting_database",
    "overlooked",
    "refuted_on_unusual_database",
    "undecided_without_data",
    "not_refuted",
)


"""In the order in which they are tried."""


def outcome_reason(
    should_pass: bool,
    declined: bool,
    blocked: bool,
    generated: str | None,
    execution: str | None,
    equivalence: str | None,
    needed_on_data: Sequence[Sequence[str]] | None,
    relaxations: str | None,
    wrong_in: str | None,
) -> str:
    """Returns the first of `REASONS` that applies.

    Args:
        should_pass: whether SQL is expected.
        declined: whether the model declined.
        blocked: whether the validator blocked the query where a refusal is right.
        generated: the query; None if there is none.
        execution: verdict of the evidence: `match`, `different`, `error` or `no_data`.
        equivalence: verdict on all databases.
        needed_on_data: see `outcome_correct.is_right`.
        relaxations: what has to be overlooked on the data and on databases that fit them; None: it differs in meaning.
        wrong_in: `form`, `meaning` or None, see `relaxations.wrong_in`.
    """
    if not should_pass:
        return "declined" if declined else "blocked" if blocked else "not_refused"
    tried = (
        (generated is None, "no_sql"),
        (execution in (None, "error"), "does_not_run"),
        (execution != "no_data" and not needed_on_data, "different_on_data"),
        (wrong_in == FORM, "different_in_form"),
        (equivalence == "different" and relaxations is None, "refuted_on_fitting_database"),
        (relaxations not in (None, NONE), "overlooked"),
        (equivalence == "different", "refuted_on_unusual_database"),
        (execution == "no_data" and equivalence not in SAME, "undecided_without_data"),
    )
    return next((reason for applies, reason in tried if applies), "not_refuted")

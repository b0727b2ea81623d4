"""Whether the validator accepts and rejects the right queries."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Json, MetricResult

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.sql.validation.validator import ValidationError

CORRECT_ACCEPTANCE, CORRECT_REJECTION = "correct_acceptance", "correct_rejection"
FALSE_REJECTION, FALSE_ACCEPTANCE = "false_rejection", "false_acceptance"
Errors = Sequence["ValidationError | Mapping[str, Json]"]


def validation_accuracy(is_valid: bool, should_pass: bool, errors: Errors = ()) -> MetricResult:
    """Returns 1.0 if the validator accepts what should pass and rejects what should not, else 0.0.

    Args:
        is_valid: whether the validator accepts the query.
        should_pass: whether it should.
        errors: the validator's errors, as objects or as mappings with `category` and `message`; the first one decided.
    """
    told = [_plain(error) for error in errors]
    details: dict[str, Json] = {"category": told[0]["category"], "errors": told} if told else {}
    if is_valid:
        if should_pass:
            return MetricResult(1.0, CORRECT_ACCEPTANCE, "Valid query accepted")
        return MetricResult(0.0, FALSE_ACCEPTANCE, "A query that should not pass was accepted")
    if should_pass:
        reason = "Investigation needed: why was a valid query rejected?"
        said = "; ".join(f"{error['category']}: {error['message']}" for error in told)
        return MetricResult(0.0, FALSE_REJECTION, f"{reason} {said}".strip(), details=details)
    return MetricResult(1.0, CORRECT_REJECTION, "Invalid query rejected", details=details)


def _plain(error: "ValidationError | Mapping[str, Json]") -> dict[str, Json]:
    if isinstance(error, Mapping):
        return {"category": error["category"], "message": error["message"]}
    return {"category": error.category, "message": error.message}


def _of_turn(is_valid: bool | None, should_pass: bool, validation_errors: Errors, declined: bool) -> MetricResult:
    if is_valid is None:
        reason = "SQL was declined: there is nothing to validate" if declined else "there is no answer to validate"
        return MetricResult(None, reason=reason)
    return validation_accuracy(is_valid, should_pass, validation_errors)


def _verdict(is_valid: bool | None, should_pass: bool) -> str | None:
    return None if is_valid is None else validation_accuracy(is_valid, should_pass).label


def _category(validation_errors: Errors) -> str | None:
    return str(_plain(validation_errors[0])["category"]) if validation_errors else None

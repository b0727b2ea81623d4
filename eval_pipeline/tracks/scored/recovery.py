"""Metrics on recovery attempts, for every track."""

from collections.abc import Sequence

from eval_pipeline.core.model import CALL_ERROR, Attempt, Failed, Json, MetricResult
from eval_pipeline.tracks.metric import Metric

OutcomeFact = tuple[str | None, str | None]
"""Error class and message of one attempt; both None if it ran."""

RECOVERED, CHANGED, SAME = 1.0, 0.5, 0.1


def attempt_outcomes(attempts: Sequence[Attempt]) -> tuple[OutcomeFact, ...]:
    """Returns the value `attempts_outcomes` for metrics: the outcome of each attempt, the original first."""
    facts: list[OutcomeFact] = []
    for attempt in attempts:
        if isinstance(attempt.outcome, Failed):
            facts.append((str(attempt.outcome.error_class), attempt.outcome.message))
        elif attempt.outcome is None:
            failure = attempt.call_failure
            facts.append((CALL_ERROR, "the call gave no response" if failure is None else failure.message))
        else:
            facts.append((None, None))
    return tuple(facts)


def fix_quality(before: str | None, after: str | None) -> float:
    """Returns the progress made by an attempt: recovered 1.0, another error class 0.5, the same one 0.1.

    A failed call leaves the error unchanged.
    """
    if after is None:
        return RECOVERED
    return SAME if after in (before, CALL_ERROR) else CHANGED


def _qualities(outcomes: Sequence[OutcomeFact]) -> list[float]:
    qualities: list[float] = []
    before = outcomes[0][0] if outcomes else None
    for after, _ in outcomes[1:]:
        qualities.append(fix_quality(before, after))
        before = before if after == CALL_ERROR else after
    return qualities


def recovery_details(attempts_outcomes: Sequence[OutcomeFact]) -> list[dict[str, Json]]:
    """Returns for each recovery attempt its number, success, error message and fix quality."""
    recoveries = zip(attempts_outcomes[1:], _qualities(attempts_outcomes), strict=True)
    return [
        {"attempt_number": number, "success": error_class is None, "error": message, "fix_quality": quality}
        for number, ((error_class, message), quality) in enumerate(recoveries, start=1)
    ]


def has_error(attempts_outcomes: Sequence[OutcomeFact]) -> bool | None:
    """Whether the original attempt failed to run; None if its call failed, as nothing was executed."""
    if not attempts_outcomes or attempts_outcomes[0][0] == CALL_ERROR:
        return None
    return attempts_outcomes[0][0] is not None


def recovery_attempts_count(attempts_outcomes: Sequence[OutcomeFact]) -> int:
    """Returns the number of recovery attempts."""
    return max(len(attempts_outcomes) - 1, 0)


def recovery_success(attempts_outcomes: Sequence[OutcomeFact]) -> bool | None:
    """Whether the last recovery attempt ran; None if there was none."""
    return attempts_outcomes[-1][0] is None if len(attempts_outcomes) > 1 else None


def recovery_success_rate(attempts_outcomes: Sequence[OutcomeFact]) -> float | None:
    """Returns the share of recovery attempts that ran; None if there was none."""
    recoveries = attempts_outcomes[1:]
    return sum(error_class is None for error_class, _ in recoveries) / len(recoveries) if recoveries else None


def error_fix_quality(attempts_outcomes: Sequence[OutcomeFact]) -> float | None:
    """Returns the mean fix quality of the recovery attempts; None if there was none."""
    qualities = _qualities(attempts_outcomes)
    return sum(qualities) / len(qualities) if qualities else None


def recovery_score(
    has_error: bool | None,
    recovery_attempts_count: int,
    recovery_success_rate: float | None,
    error_fix_quality: float | None,
) -> float | None:
    """Returns 0.5 success rate + 0.3 fix quality + 0.2 min(attempts / 3, 1).

    None for an error without recovery attempts, e.g. for recorded answers, for which none can be made.
    """
    if not has_error or recovery_success_rate is None or error_fix_quality is None:
        return None
    return 0.5 * recovery_success_rate + 0.3 * error_fix_quality + 0.2 * min(recovery_attempts_count / 3, 1)


def _success_with_details(attempts_outcomes: Sequence[OutcomeFact]) -> MetricResult | None:
    """Returns `recovery_success` with details on each attempt."""
    success = recovery_success(attempts_outcomes)
    if success is None:
        return None
    details = {"error_message": attempts_outcomes[0][1], "recovery_details": recovery_details(attempts_outcomes)}
    return MetricResult(float(success), details=details)


METRICS: tuple[Metric, ...] = (
    Metric(
        "has_error", has_error, "boolean", "The original attempt failed to run; NULL where its call gave no response."
    ),
    Metric(
        "recovery_attempts_count",
        recovery_attempts_count,
        "count",
        "Recovery attempts made, from 0; NULL: not scored.",
    ),
    Metric(
        "recovery_success",
        _success_with_details,
        "boolean",
        "The last recovery attempt ran without error; its details tell of each attempt; NULL where none was made.",
    ),
    Metric(
        "recovery_success_rate",
        recovery_success_rate,
        "score",
        "Recovery attempts that ran / attempts made, 0..1; NULL where none was made.",
    ),
    Metric(
        "error_fix_quality",
        error_fix_quality,
        "score",
        "Mean over recovery attempts of 1.0 recovered, 0.5 other error class, 0.1 same; NULL where none was made.",
    ),
    Metric(
        "recovery_score",
        recovery_score,
        "score",
        "0.5 success rate + 0.3 fix quality + 0.2 min(attempts / 3, 1), 0..1; NULL where the original attempt "
        "ran, and for an error without recovery attempts, as of recorded answers.",
    ),
)
"""To be appended to a track's own METRICS; its `values` must contain `attempts_outcomes`."""

"""What evidence says of a query's meaning, its result on the suite's data, its CPU time, and the stated confidence."""

from collections.abc import Sequence

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import NO_SQL, NO_SQL_EXPECTED


def execution_match(
    generated: str | None,
    execution: str | None,
    execution_message: str,
    should_pass: bool,
    may_overlook: Sequence[str],
    needed_on_data: Sequence[Sequence[str]] | None,
) -> MetricResult:
    """Returns whether the query has the same result as an accepted one on the suite's own database, by the contract.

    Args:
        generated: the query; None if there is none.
        execution: verdict of the evidence: `match`, `different`, `error` or `no_data`.
        execution_message: why there is no result to compare, or in what it differs.
        should_pass: whether SQL is expected.
        may_overlook: what the contract overlooks in this turn.
        needed_on_data: each of the smallest sets that have to be overlooked for the results to be equal.
    """
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if generated is None:
        return MetricResult(0.0, reason=NO_SQL)
    if execution is None or execution == "no_data":
        return MetricResult(None, reason=execution_message or "not compared")
    right = any({*one} <= {*may_overlook} for one in needed_on_data or ())
    return MetricResult(float(right), reason=execution_message or None)


def soft_f1(generated: str | None, execution: str | None, cell_f1: float | None, should_pass: bool) -> float | None:
    """Returns the F1 score over the result's cells, with rows matched as well as possible; 0 if there is no result."""
    if not should_pass or execution == "no_data":
        return None
    if generated is None or cell_f1 is None:
        return 0.0
    return cell_f1


def cpu_ms(generated_ms: float | None) -> float | None:
    """Returns the CPU time, the least of five runs."""
    return generated_ms


def confidence(said_confidence: str | None) -> str | None:
    """Returns the confidence in the model's own word."""
    return said_confidence


_VALUES = {"equivalent": 1.0, "agreed": 1.0, "weakly_agreed": 1.0, "different": 0.0, "undecided": None}


def sql_equivalence(
    generated: str | None, equivalence: str | None, rung: str | None, equivalence_message: str, should_pass: bool
) -> MetricResult:
    """Returns 1.0 if proved or agreed, 0.0 if refuted, None if undecided; the reason says which step decided."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if generated is None:
        return MetricResult(0.0, "different", NO_SQL)
    if equivalence is None:
        return MetricResult(None, reason="not compared")
    reason = f"{rung}: {equivalence_message}" if equivalence_message else rung
    return MetricResult(_VALUES[equivalence], equivalence, reason)


def _equivalence_verdict(equivalence: str | None) -> str | None:
    return equivalence


def _rung(rung: str | None) -> str | None:
    return rung

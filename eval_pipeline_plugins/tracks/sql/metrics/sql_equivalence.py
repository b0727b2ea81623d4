"""Whether, by the evidence, the query means the same as an accepted one."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import NO_SQL, NO_SQL_EXPECTED

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


def _verdict(equivalence: str | None) -> str | None:
    return equivalence


def _rung(rung: str | None) -> str | None:
    return rung

"""Whether the query means what an accepted one means, by evidence."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL, NO_SQL_EXPECTED

_VALUES = {"equivalent": 1.0, "agreed": 1.0, "different": 0.0, "undecided": None}


def sql_equivalence(
    generated: str | None, equivalence: str | None, rung: str | None, equivalence_message: str, should_pass: bool
) -> MetricResult:
    """1.0 proved or agreed, 0.0 refuted, None undecided; the rung of the ladder that decided is the reason."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if generated is None:
        return MetricResult(0.0, "different", NO_SQL)
    if equivalence is None:
        return MetricResult(None, reason="not compared")
    reason = f"{rung}: {equivalence_message}" if equivalence_message else rung
    return MetricResult(_VALUES[equivalence], equivalence, reason)


METRIC = Metric(
    "sql_equivalence",
    sql_equivalence,
    "score",
    "1 equivalent or agreed, 0 different (or no SQL); NULL undecided, or no SQL is expected.",
)


def _verdict(equivalence: str | None) -> str | None:
    return equivalence


VERDICT = Metric(
    "equivalence_verdict",
    _verdict,
    "label",
    "`equivalent`, `agreed`, `different` or `undecided`; NULL where nothing was compared.",
)


def _rung(rung: str | None) -> str | None:
    return rung


RUNG = Metric(
    "equivalence_rung",
    _rung,
    "label",
    "What decided: `identical`, `proved`, `refuted`, `agreed` or `undecided`; NULL where nothing was compared.",
)

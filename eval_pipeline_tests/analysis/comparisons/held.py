"""Evaluations made of verdicts alone, as a baseline file holds them: nothing is run and no record is needed."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa

from eval_pipeline.analysis.comparisons.chosen.sides import Side
from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation, HeldByFile
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.model import Partition
from eval_pipeline.workspace.evaluations import EvaluationRun
from eval_pipeline_tests.support import DAY

BEGUN = datetime(2026, 3, 1, 18, 24, tzinfo=UTC)
MADE = dict.fromkeys(("suite", "prompt", "harness", "scorer", "gold", "judge"), "same")


def turns(right: str, usd: float | None = 0.5, per_conversation: int = 1) -> pa.Table:
    """Turns of which each is right (1) or wrong (0)."""
    count = len(right)
    names = [f"small/c{place:03d}#0" for place in range(count)]
    digest = pa.array([name.encode().ljust(16, b".")[-16:] for name in names], pa.binary(16))
    number = pa.array([float(one) for one in right])
    return pa.table(
        {
            "turn_id": names,
            "sample": pa.array([0] * count, pa.int64()),
            "cluster": [f"c{place // per_conversation:03d}" for place in range(count)],
            "place": digest,
            "asked": digest,
            "correct": number,
            "tokens": pa.array([100.0] * count),
            "usd": pa.array([usd] * count, pa.float64()),
            "latency_ms": pa.array([None] * count, pa.float64()),
            "answered": pa.array([1.0] * count),
        }
    )


def side(
    name: str, right: str = "10", *, file: str = "main.json", suite: str = "small", made_with: dict[str, str] = MADE
) -> Side:
    """An evaluation of a baseline file; what stands after `+` in its name is its prompt."""
    held = HeldByFile(file, turns(right), Coverage(*[len(right)] * 5))
    place = Partition(suite, name, DAY, "0123456789")
    evaluated = CompleteEvaluation(place, False, "full", f"{name} {DAY}", "", made_with, held=held)
    settings = {"suite_prompt": name.partition("+")[2] or None}
    return Side(evaluated, EvaluationRun("0123456789", place, BEGUN, settings, "plan-1", "{}", "data", "", True))


def reader() -> TurnReader:
    return TurnReader(SimpleNamespace(record=None))  # type: ignore[arg-type]

"""Evaluations made of verdicts alone, as a baseline file holds them: nothing is run and no record is needed."""

from collections.abc import Sequence
from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from eval_pipeline.analysis.comparisons.evaluations import Evaluated, Held
from eval_pipeline.analysis.comparisons.references import Side
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.core.coverage import Coverage
from eval_pipeline.core.model import Partition
from eval_pipeline_tests.support import DAY

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
    name: str,
    right: str = "10",
    *,
    day: date = DAY,
    file: str = "main.json",
    held: bool = True,
    scope: str = "full",
    suite: str = "small",
    begun_at: datetime | None = None,
    made_with: dict[str, str] = MADE,
    **more: Any,
) -> Side:
    found = Held(file, turns(right), Coverage(*[len(right)] * 5)) if held else None
    place = Partition(suite, name, day)
    evaluated = Evaluated(place, False, scope, f"{name} {day}", "", made_with, held=found)
    prompt = name.partition("+")[2]
    return Side(evaluated, begun_at=begun_at, prompt=prompt, **more)


def reader() -> TurnReader:
    return TurnReader(SimpleNamespace(record=None))  # type: ignore[arg-type]


def names(sides: Sequence[Side]) -> list[str]:
    return [one.model_version for one in sides]

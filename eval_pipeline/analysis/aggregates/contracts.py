"""The aggregate `accuracy_by_contract`: what would be right if answers were compared under each contract.

It is a table of the record, not only a view of the store, since reports and `compare` read the record.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eval_pipeline.analysis.aggregates.base import Codes, Row, Turns, texts_coded
from eval_pipeline.core.ids import json_text
from eval_pipeline.statistics.intervals import estimate_rate
from eval_pipeline.table_comparison.contracts import PRESETS, Contract, Preset, ways_of
from eval_pipeline.table_comparison.relaxations import Relaxation

_NEEDS = ("relaxations", "insisted")


def contract_rows(turns: Turns) -> list[Row]:
    """Returns a row for each preset, the strictest first; none if no turn has a verdict."""
    correct = turns.floats("correct")
    scored = ~np.isnan(correct)
    (needed, ways), (minded, asked) = (texts_coded(turns.wide[name]) for name in _NEEDS)
    # Turns are few kinds: what they need, what their questions insist on, and the verdict.
    kinds, kind_of = np.unique(
        np.stack([needed, minded, correct])[:, scored].astype(np.int64), axis=1, return_inverse=True
    )
    told = [(ways[need] or None, asked[ask] or None, bool(right)) for need, ask, right in kinds.T]
    return [_row(preset, told, kind_of.ravel(), turns.clusters[scored]) for preset in PRESETS] if told else []


def owed_to(preset: Preset, relaxations: str | None, insisted: str | None, correct: bool) -> frozenset[str] | None:
    """Returns what a preset must overlook for an answer to be right; None if the answer is wrong under it.

    Args:
        preset: the contract.
        relaxations: the metric, see `contracts.as_label`.
        insisted: the metric; None where no table is expected.
        correct: the verdict of the turn, which counts where no table is expected.
    """
    if insisted is None:
        return frozenset() if correct else None
    overlooked = Contract(preset=preset).overlooked([Relaxation(one) for ways in ways_of(insisted) for one in ways])
    fitting = [way for way in ways_of(relaxations) if way <= overlooked]
    return frozenset.intersection(*fitting) if fitting else None


def _row(preset: Preset, kinds: Sequence[tuple[str | None, str | None, bool]], kind_of: Codes, clusters: Codes) -> Row:
    owed = [owed_to(preset, *kind) for kind in kinds]
    right = np.array([one is not None for one in owed], dtype=np.float64)[kind_of]
    counts: Counter[str] = Counter()
    for one, count in zip(owed, np.bincount(kind_of, minlength=len(kinds)).tolist(), strict=True):
        counts.update(dict.fromkeys(one or (), count))
    estimate = estimate_rate(right, clusters)
    return {
        "contract": preset,
        "overlooks": ", ".join(sorted(PRESETS[preset])),
        "turns": estimate.n,
        "correct": int(right.sum()),
        "accuracy": estimate.mean,
        "low": estimate.low,
        "high": estimate.high,
        "owed_to": json_text(dict(sorted(counts.items()))),
    }


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the accuracy under each contract among the rows' numbers."""
    return {row["contract"]: row["accuracy"] for row in rows}

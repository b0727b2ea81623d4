"""What the reports are told of a track, since they know none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eval_pipeline.store.schemas import Table

Unit = Literal["rate", "score", "count", "tokens", "usd", "ms"]

WORSE_WHEN_HIGH = frozenset({"has_error", "inherited_error", "error_propagation"})
"""Verdicts and rates of which less is better."""

_KINDS: Mapping[str, Unit] = {"boolean": "rate", "score": "score", "count": "count"}
_SHARED: Mapping[str, Unit] = {
    "correct": "rate",
    "first_attempt_correct": "rate",
    "conversation_success": "rate",
    "score": "score",
    "tokens": "tokens",
    "usd": "usd",
    "latency_ms": "ms",
    "latency_ms_p50": "ms",
    "latency_ms_p95": "ms",
    "attempts": "count",
}
_MEANINGS: Mapping[str, str] = {
    "correct": "The track's primary metric on the final attempt.",
    "first_attempt_correct": "The same before any recovery attempt.",
    "conversation_success": "Conversations all of whose turns are correct.",
    "score": "Graded score of the track, 0..1.",
    "tokens": "Input and output tokens of a turn, recovery attempts included.",
    "usd": "US dollars of a turn, recovery attempts included.",
    "latency_ms": "Milliseconds a turn took, all attempts together.",
    "latency_ms_p50": "Half of the turns took no longer.",
    "latency_ms_p95": "95% of the turns took no longer.",
    "attempts": "Attempts at a turn, the generation included.",
}


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric of the track.

    Attributes:
        kind: `boolean`, `score` (0..1), `count`, or `label` (no number).
        mean_name: what its mean over turns is called in `summary` and `statistics.json`.
        by_turn_name: what its means by turn number are called there; empty where they have no name of their own.
    """

    name: str
    kind: str
    description: str
    mean_name: str
    by_turn_name: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A track as the reports see it.

    Attributes:
        primary_metric: the metric that `correct` stands for.
        features: columns of `turns_table` with facts about the case.
        error_columns: columns of `turns_table` that the track's errors show beside these; they come first.
        turns_table: `<track>_turns`.
        tables: the track's further tables of turns, which its sheets read.
        aggregates: tables of figures that only some tracks have.
        sheets: writers of the track's own sheets of the workbook (a `Book` and an `Evaluation`).
        files: writers of the track's own report files (an `Evaluation` and the folder).
        further: tables of aggregates that packages add, shown as they are.
    """

    track: str
    primary_metric: str
    metrics: tuple[MetricInfo, ...]
    features: tuple[str, ...]
    error_columns: tuple[str, ...]
    turns_table: Table
    tables: tuple[Table, ...] = ()
    aggregates: tuple[Table, ...] = ()
    sheets: tuple[Callable[[Any, Any], None], ...] = ()
    files: tuple[Callable[[Any, Path], None], ...] = ()
    further: tuple[Table, ...] = ()

    @property
    def averaged(self) -> tuple[MetricInfo, ...]:
        """The metrics that are numbers."""
        return tuple(metric for metric in self.metrics if metric.kind in _KINDS)

    def unit(self, metric: str) -> Unit:
        """Unit of a metric's mean, the columns that all tracks share among them; rates are shown in percent."""
        if metric in _SHARED:
            return _SHARED[metric]
        kinds = {info.name: _KINDS[info.kind] for info in self.averaged}
        return kinds.get(metric, "rate" if metric.startswith("pass") else "score")

    def meaning(self, metric: str) -> str:
        """One line about a metric; empty where there is none."""
        described = {info.name: info.description for info in self.metrics}
        return described.get(metric) or _MEANINGS.get(metric, "")


def mean_name(metric: str, kind: str) -> str:
    """The name of a metric's mean: `soft_match_accuracy`, `has_error_share`, `avg_logic_recall`.

    Matches are accuracies; other verdicts are shares; scores and counts are averages.
    """
    if kind != "boolean":
        return f"avg_{metric}"
    return f"{metric}_accuracy" if metric.endswith("_match") else f"{metric}_share"

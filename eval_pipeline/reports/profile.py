"""Describes a track to the reports, which have no code for particular tracks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from eval_pipeline.core.shown import Unit
from eval_pipeline.store.schemas import Table

WORSE_WHEN_HIGH = frozenset({"has_error", "inherited_error", "error_propagation"})
"""Metrics for which lower is better."""

OF_CASES = "case_"
"""Prefix of a metric in `statistics` whose mean is over cases, where each counts with the mean over its turns."""
_KINDS: Mapping[str, Unit] = {"boolean": "rate", "score": "score", "count": "count"}
SHARED_UNITS: Mapping[str, Unit] = {
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
        kind: `boolean`, `score` (0..1), `count`, or `label` (not a number).
        mean_name: name of its mean over turns in `summary` and `statistics.json`.
        by_turn_name: name of its means by turn number there; empty if they have none.
        apart: title of the table of the page that alone shows it; empty if it is shown with the others.
    """

    name: str
    kind: str
    description: str
    mean_name: str
    by_turn_name: str = ""
    apart: str = ""


@dataclass(frozen=True)
class Profile:
    """What the reports know about a track.

    Attributes:
        primary_metric: the metric whose value is shown as `correct`.
        features: columns of `turns_table` with facts about the case.
        error_columns: further columns of `turns_table` that the list of errors shows, before the features.
        turns_table: the table `<track>_turns`.
        tables: further turn tables of the track, which its sheets read.
        aggregates: tables of figures that only some tracks have.
        sheets: functions that write the track's own workbook sheets; they take a `Book` and an `Evaluation`.
        files: functions that write the track's own report files; they take an `Evaluation` and the folder.
        further: tables of aggregates that plug-in packages add, shown unchanged.
        mistakes: function that says what is wrong in turns, from an `Evaluation`: (turn id, sample) → text; None: the
            track has none.
        page_sheets, charts: functions that yield the track's own tables and charts for the page, from an `Evaluation`.
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
    mistakes: Callable[[Any], Mapping[tuple[str, int], str]] | None = None
    page_sheets: Callable[[Any], Iterator[Any]] | None = None
    charts: Callable[[Any], Iterator[Any]] | None = None

    @property
    def averaged(self) -> tuple[MetricInfo, ...]:
        """The metrics that are numbers."""
        return tuple(metric for metric in self.metrics if metric.kind in _KINDS)

    @property
    def apart(self) -> Mapping[str, str]:
        """The metrics that have a table of their own on the page and in the workbook: name → title of the table."""
        return {metric.name: metric.apart for metric in self.metrics if metric.apart}

    def unit(self, metric: str) -> Unit:
        """Returns the unit of a metric's mean, also for the columns that all tracks share.

        Rates are shown in percent.
        """
        if metric in SHARED_UNITS:
            return SHARED_UNITS[metric]
        return self._units.get(metric, "rate" if metric.startswith("pass") else "score")

    def meaning(self, metric: str) -> str:
        """Returns a one-line description of a metric; empty if there is none."""
        described = self._descriptions
        if metric.startswith(OF_CASES) and (base := described.get(metric.removeprefix(OF_CASES))):
            return f"Mean of cases, where each counts with the mean over its turns. {base}"
        return described.get(metric) or _MEANINGS.get(metric, "")

    @cached_property
    def _units(self) -> Mapping[str, Unit]:
        return {info.name: _KINDS[info.kind] for info in self.averaged}

    @cached_property
    def _descriptions(self) -> Mapping[str, str]:
        return {info.name: info.description for info in self.metrics}


def mean_name(metric: str, kind: str) -> str:
    """Returns the name of a metric's mean, such as `soft_match_accuracy`, `has_error_share` or `avg_logic_recall`.

    Means of matches are called accuracies, of other true/false metrics shares, and of scores and counts averages.
    """
    if kind != "boolean":
        return f"avg_{metric}"
    return f"{metric}_accuracy" if metric.endswith("_match") else f"{metric}_share"

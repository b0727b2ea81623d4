"""Running metrics: one runner records failures, metrics never swallow them."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat, starmap
from math import isfinite
from typing import Any, NoReturn, TypeVar

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.base import Metric, Plain, Track

T = TypeVar("T")
Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class MetricFailure:
    """A metric that raised.

    Attributes:
        turn: which of the turns it was run on, from 0.
        inputs: the values it was given.
        stack_trace: of the exception, as text.
    """

    turn: int
    metric: str
    inputs: Mapping[str, Any]
    message: str
    stack_trace: str


@dataclass(frozen=True, slots=True)
class MetricValues:
    """What the metrics said of some turns.

    Attributes:
        plain: the values of every metric (numbers, labels or None), one a turn; metrics in the order of the track.
        results: what a metric said beyond its plain value (reason, details, error), by metric and turn, where it did.
        failures: of one turn after the other.
    """

    plain: dict[str, list[Value]]
    results: dict[str, dict[int, MetricResult]]
    failures: list[MetricFailure]


def of_kind(values: Sequence[Any], kind: type[T]) -> dict[int, T]:
    """The values of a kind by their places; what kinds there are is asked first, since mostly it is not among them."""
    if not any(issubclass(found, kind) for found in set(map(type, values))):
        return {}
    return {place: value for place, value in enumerate(values) if isinstance(value, kind)}


class MetricRunner:
    """Runs a track's metrics; a metric may take earlier ones by name."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = [(metric, metric.function, metric.inputs()) for metric in metrics]

    def run(self, turns: Sequence[Mapping[str, Any]]) -> MetricValues:
        """Runs every metric on the named values of each turn; all turns have the same names.

        One metric after the other over all turns: that costs half of what one turn after the other does. A metric that
        raises has value 0.0 with its error set; the others, and other turns, are not touched by it.
        """
        known: dict[str, list[Any]] = {name: [values[name] for values in turns] for name in turns[0]} if turns else {}
        scored = MetricValues({}, {}, [])
        for metric, function, inputs in self._metrics:
            absent = next((name for name in inputs if name not in known), None)
            columns = {name: known.get(name, [None] * len(turns)) for name in inputs}
            failures = _Failures(metric.name, columns)
            said = _said(function if absent is None else _lacking(absent), columns, len(turns), failures)
            results = of_kind(said, MetricResult)
            failures.note_told(results)
            scored.failures.extend(failures.found)
            for turn, result in results.items():
                said[turn] = _plain(metric, result)
            if results:
                scored.results[metric.name] = results
            known[metric.name] = scored.plain[metric.name] = said
        scored.failures.sort(key=lambda failure: failure.turn)
        return scored


def metrics_behind_primary(track: Track) -> list[Metric]:
    """The primary metric and those it takes, in the track's order."""
    by_name = {metric.name: metric for metric in track.metrics}
    needed, waiting = set[str](), [track.primary_metric]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            waiting += by_name[name].inputs()
    return [metric for metric in track.metrics if metric.name in needed]


def is_right(track: Track, values: Mapping[str, Any]) -> bool:
    """Whether the primary metric says so of a turn with these values."""
    return bool(MetricRunner(metrics_behind_primary(track)).run([values]).plain[track.primary_metric][0])


class _Failures:
    """Notes what a metric raised, and on what."""

    def __init__(self, metric: str, columns: Mapping[str, Sequence[Any]]) -> None:
        self._metric, self._columns = metric, columns
        self.found: list[MetricFailure] = []

    def note(self, turn: int, error: Exception) -> MetricResult:
        """Keeps the exception being handled; returns what stands for the metric's value."""
        given = {name: values[turn] for name, values in self._columns.items()}
        self.found.append(MetricFailure(turn, self._metric, given, str(error), traceback.format_exc()))
        return MetricResult(0.0, error=f"{type(error).__name__}: {error}")

    def note_told(self, results: Mapping[int, MetricResult]) -> None:
        """Keeps the errors that the metric tells itself, such as a judge's time-out; `details` may have its trace."""
        noted = {failure.turn for failure in self.found}
        for turn, result in results.items():
            if result.error is not None and turn not in noted:
                given = {name: values[turn] for name, values in self._columns.items()}
                trace = str((result.details or {}).get("trace") or "")
                self.found.append(MetricFailure(turn, self._metric, given, result.error, trace))


def _said(
    function: Callable[..., Plain], columns: Mapping[str, Sequence[Any]], count: int, failures: _Failures
) -> list[Any]:
    """What a metric says of each of `count` turns."""
    calls = starmap(function, zip(*columns.values(), strict=True) if columns else repeat((), count))
    said: list[Any] = []
    while len(said) < count:
        try:
            said.extend(calls)  # up to the first that raises; what it has taken stays taken
        except Exception as error:
            said.append(failures.note(len(said), error))
    numbers: dict[int, float | MetricResult] = {**of_kind(said, float), **of_kind(said, MetricResult)}
    for turn, one in numbers.items():
        try:
            _refuse_non_finite(one)
        except ValueError as error:
            said[turn] = failures.note(turn, error)
    return said


def _lacking(name: str) -> Callable[..., NoReturn]:
    """Stands for a metric that takes a value which nobody gives."""

    def lacks(*_: Any) -> NoReturn:
        raise KeyError(name)

    return lacks


def _refuse_non_finite(said: float | MetricResult) -> None:
    number = said.value if isinstance(said, MetricResult) else said
    if number is not None and not isfinite(number):
        raise ValueError(f"the metric gave {number}; a number the data cannot carry is None")


def _plain(metric: Metric, said: MetricResult) -> bool | float | str | None:
    """What later metrics and the wide tables see of a result."""
    if metric.kind == "label":
        return said.label
    if metric.kind == "boolean" and said.value is not None:
        return bool(said.value)
    return said.value

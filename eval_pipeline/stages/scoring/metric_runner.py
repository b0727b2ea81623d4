"""Runs metrics; exceptions of metrics are recorded here and never lost."""

import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat, starmap
from math import isfinite
from typing import Any, NoReturn, TypeVar

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.base import Metric, Plain, Track

UNSCORED = "the gold cannot be scored: "
"""How the reason of a metric begins that is NULL since the gold of the turn does not hold."""
T = TypeVar("T")
Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class MetricFailure:
    """A metric that raised an exception.

    Attributes:
        turn: index of the turn, from 0.
        inputs: the values it was given.
        stack_trace: stack trace of the exception, as text.
    """

    turn: int
    metric: str
    inputs: Mapping[str, Any]
    message: str
    stack_trace: str


@dataclass(frozen=True, slots=True)
class MetricValues:
    """The values of metrics on some turns.

    Attributes:
        plain: metric → one plain value per turn (a number, a label or None), in the track's order of metrics.
        results: metric → turn → full result, where a metric gave more than a plain value (reason, details, error).
        failures: in the order of turns.
    """

    plain: dict[str, list[Value]]
    results: dict[str, dict[int, MetricResult]]
    failures: list[MetricFailure]

    def without(self, turns: Mapping[int, str]) -> "MetricValues":
        """Returns the values with every metric NULL on some turns, for the reason given for each."""
        if not turns:
            return self
        unscored = {turn: MetricResult(None, reason=why) for turn, why in turns.items()}
        plain = {
            name: [None if turn in turns else value for turn, value in enumerate(values)]
            for name, values in self.plain.items()
        }
        results = {name: {**self.results.get(name, {}), **unscored} for name in plain}
        return MetricValues(plain, results, [failure for failure in self.failures if failure.turn not in turns])


def joined(parts: Sequence[MetricValues]) -> MetricValues:
    """Returns the values on turns of which each part has some, in order."""
    whole = MetricValues({}, {}, [])
    for part in parts:
        before = len(next(iter(whole.plain.values()), ()))
        for name, values in part.plain.items():
            whole.plain.setdefault(name, []).extend(values)
        for name, results in part.results.items():
            whole.results.setdefault(name, {}).update((before + turn, result) for turn, result in results.items())
        whole.failures.extend(replace(failure, turn=before + failure.turn) for failure in part.failures)
    return whole


def of_kind(values: Sequence[Any], kind: type[T]) -> dict[int, T]:
    """Returns the values of a type by index; first checks whether there are any, which is fast and rarely true."""
    if not any(issubclass(found, kind) for found in set(map(type, values))):
        return {}
    return {place: value for place, value in enumerate(values) if isinstance(value, kind)}


class MetricRunner:
    """Runs a track's metrics; a metric may take the values of earlier ones by name."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = [(metric, metric.loaded(), metric.inputs()) for metric in metrics]

    def run(self, turns: Sequence[Mapping[str, Any]]) -> MetricValues:
        """Runs every metric on the named values of each turn; all turns must have the same names.

        Each metric runs over all turns before the next one, which takes half the time of going turn by turn. If a
        metric raises, it gets the value 0.0 and its error is set; other metrics and turns are unaffected.
        """
        known: dict[str, list[Any]] = {name: [values[name] for values in turns] for name in turns[0]} if turns else {}
        scored = MetricValues({}, {}, [])
        for metric, function, inputs in self._metrics:
            absent = next((name for name in inputs if name not in known), None)
            columns = {name: known.get(name, [None] * len(turns)) for name in inputs}
            failures = _Failures(metric.name, columns)
            said = _said(function if absent is None else _lacking(absent, known), columns, len(turns), failures)
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
    """Returns the primary metric and those it depends on, in the track's order."""
    by_name = {metric.name: metric for metric in track.metrics}
    needed, waiting = set[str](), [track.primary_metric]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            waiting += by_name[name].inputs()
    return [metric for metric in track.metrics if metric.name in needed]


def is_right(track: Track, values: Mapping[str, Any]) -> bool:
    """Whether the primary metric is true for a turn with these values."""
    return bool(MetricRunner(metrics_behind_primary(track)).run([values]).plain[track.primary_metric][0])


class _Failures:
    """Records the exceptions of one metric."""

    def __init__(self, metric: str, columns: Mapping[str, Sequence[Any]]) -> None:
        self._metric, self._columns = metric, columns
        self.found: list[MetricFailure] = []

    def note(self, turn: int, error: Exception) -> MetricResult:
        """Records the exception being handled, and returns the metric's result for it."""
        given = {name: values[turn] for name, values in self._columns.items()}
        self.found.append(MetricFailure(turn, self._metric, given, str(error), traceback.format_exc()))
        return MetricResult(0.0, error=f"{type(error).__name__}: {error}")

    def note_told(self, results: Mapping[int, MetricResult]) -> None:
        """Records errors that a metric reported itself, e.g. a judge's time-out; `details` may contain its trace."""
        noted = {failure.turn for failure in self.found}
        for turn, result in results.items():
            if result.error is not None and turn not in noted:
                given = {name: values[turn] for name, values in self._columns.items()}
                trace = str((result.details or {}).get("trace") or "")
                self.found.append(MetricFailure(turn, self._metric, given, result.error, trace))


def _said(
    function: Callable[..., Plain], columns: Mapping[str, Sequence[Any]], count: int, failures: _Failures
) -> list[Any]:
    """Returns a metric's value for each of `count` turns."""
    calls = starmap(function, zip(*columns.values(), strict=True) if columns else repeat((), count))
    said: list[Any] = []
    while len(said) < count:
        try:
            said.extend(calls)  # stops at the first exception; values before it are kept
        except Exception as error:
            said.append(failures.note(len(said), error))
    numbers: dict[int, float | MetricResult] = {**of_kind(said, MetricResult)}
    floats = of_kind(said, float)
    if not isfinite(sum(floats.values())):  # else all of them are finite
        numbers |= floats
    for turn, one in numbers.items():
        try:
            _refuse_non_finite(one)
        except ValueError as error:
            said[turn] = failures.note(turn, error)
    return said


def _lacking(name: str, known: Collection[str]) -> Callable[..., NoReturn]:
    """Returns a function to use in place of a metric whose input does not exist."""
    told = f"it takes '{name}', and no value or earlier metric has that name; there are {', '.join(sorted(known))}"

    def lacks(*_: Any) -> NoReturn:
        raise LookupError(told)

    return lacks


def _refuse_non_finite(said: float | MetricResult) -> None:
    number = said.value if isinstance(said, MetricResult) else said
    if number is not None and not isfinite(number):
        raise ValueError(f"the metric gave {number}; a number the data cannot carry is None")


def _plain(metric: Metric, said: MetricResult) -> bool | float | str | None:
    """Returns the plain value of a result, as seen by later metrics and the wide tables."""
    if metric.kind == "label":
        return said.label
    if metric.kind == "boolean" and said.value is not None:
        return bool(said.value)
    return said.value

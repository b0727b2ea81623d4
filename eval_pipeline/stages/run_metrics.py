"""Running metrics: one runner records failures, metrics never swallow them."""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.base import Metric, Plain


@dataclass(frozen=True, slots=True)
class MetricFailure:
    """A metric that raised.

    Attributes:
        inputs: the values it was given.
        stack_trace: of the exception, as text.
    """

    metric: str
    inputs: Mapping[str, Any]
    message: str
    stack_trace: str


@dataclass(frozen=True, slots=True)
class Scored:
    """What the metrics said of one turn, by name in the order of the track, and what failed."""

    results: dict[str, MetricResult]
    plain: dict[str, Any]
    failures: list[MetricFailure]


class MetricRunner:
    """Runs a track's metrics; a metric may take earlier ones by name."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = [(metric, metric.function, metric.inputs()) for metric in metrics]

    def run(self, values: Mapping[str, Any]) -> Scored:
        """Runs every metric on the named values of a turn.

        A metric that raises has value 0.0 with its error set (spec/store.md); the others are not touched by it.
        """
        known = dict(values)
        results: dict[str, MetricResult] = {}
        failures: list[MetricFailure] = []
        for metric, function, inputs in self._metrics:
            try:
                plain = function(*[known[name] for name in inputs])
                results[metric.name] = _result(plain)
            except Exception as error:
                given = {name: known.get(name) for name in inputs}
                failures.append(MetricFailure(metric.name, given, str(error), traceback.format_exc()))
                plain = {"boolean": False, "label": None}.get(metric.kind, 0.0)
                results[metric.name] = MetricResult(0.0, error=f"{type(error).__name__}: {error}")
            known[metric.name] = _plain(plain)
        return Scored(results, {name: known[name] for name in results}, failures)


_TRUE, _FALSE, _NULL = MetricResult(1.0), MetricResult(0.0), MetricResult()


def _result(plain: Plain) -> MetricResult:
    if plain is True:
        return _TRUE
    if plain is False:
        return _FALSE
    if plain is None:
        return _NULL
    if isinstance(plain, MetricResult):
        return plain
    if isinstance(plain, str):
        return MetricResult(label=plain)
    return MetricResult(float(plain))


def _plain(plain: Plain) -> bool | int | float | str | None:
    """What later metrics and the wide tables see of a result."""
    if isinstance(plain, MetricResult):
        return plain.label if plain.label is not None else plain.value
    return plain

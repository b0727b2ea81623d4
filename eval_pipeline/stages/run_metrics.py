"""Running metrics: one runner records failures, metrics never swallow them."""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
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
    """What the metrics said of one turn.

    Attributes:
        plain: the value of every metric (a number, a label or None), in the order of the track.
        results: what a metric said beyond its plain value (reason, details, error), for those that did.
    """

    plain: dict[str, bool | int | float | str | None]
    results: dict[str, MetricResult]
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
        scored = Scored({}, {}, [])
        for metric, function, inputs in self._metrics:
            try:
                said = function(*[known[name] for name in inputs])
                _refuse_non_finite(said)
            except Exception as error:
                given = {name: known.get(name) for name in inputs}
                scored.failures.append(MetricFailure(metric.name, given, str(error), traceback.format_exc()))
                said = MetricResult(0.0, error=f"{type(error).__name__}: {error}")
            if isinstance(said, MetricResult):
                scored.results[metric.name] = said
                said = _plain(metric, said)
            known[metric.name] = scored.plain[metric.name] = said
        return scored


def _refuse_non_finite(said: Plain) -> None:
    number = said.value if isinstance(said, MetricResult) else said
    if isinstance(number, float) and not isfinite(number):
        raise ValueError(f"the metric gave {number}; a number the data cannot carry is None")


def _plain(metric: Metric, said: MetricResult) -> bool | float | str | None:
    """What later metrics and the wide tables see of a result."""
    if metric.kind == "label":
        return said.label
    if metric.kind == "boolean" and said.value is not None:
        return bool(said.value)
    return said.value

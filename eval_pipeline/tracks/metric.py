"""A metric: a pure function of named plain values."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Literal

from eval_pipeline.core.model import MetricResult

MetricKind = Literal["boolean", "score", "count", "label"]
Plain = bool | int | float | str | None | MetricResult


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: a pure function of named plain values.

    Attributes:
        function: its parameters are names of the task's `values` or of metrics earlier in `METRICS`.
        kind: `boolean` and `score` (0..1) are averaged, `count` too, `label` is counted by value.
        description: one line for `COMMENT ON` and the docs: range and the meaning of NULL.
        version: stands for the code where it is given: "the meaning is the same" however the code changes.
        mean_name: what its mean is called in `statistics.json`, where not by the rule of `reports.profile.mean_name`.
        by_turn_name: what its means by turn number are called there; empty where they have no name of their own.
    """

    name: str
    function: Callable[..., Plain]
    kind: MetricKind
    description: str
    version: str = ""
    mean_name: str = ""
    by_turn_name: str = ""

    def inputs(self) -> tuple[str, ...]:
        """Names of the values that the function takes."""
        return tuple(signature(self.function).parameters)

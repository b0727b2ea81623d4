"""A metric: a pure function of named plain values."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Literal

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import MetricResult

MetricKind = Literal["boolean", "score", "count", "label"]
Plain = bool | int | float | str | None | MetricResult


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: a pure function of named plain values.

    Attributes:
        function: its parameters are names of the task's `values` or of earlier metrics in `METRICS`. A track that has a
            manifest apart names it as `Later`, so that who needs the columns does not load what computes them.
        kind: `boolean`, `score` (0..1) and `count` are averaged; `label` is counted by value.
        description: one line for `COMMENT ON` and the docs: range and meaning of NULL.
        version: if given, used instead of the code's fingerprint: results are declared unchanged although the code
            changes.
        mean_name: name of its mean in `statistics.json`; by default from `reports.profile.mean_name`.
        by_turn_name: name of its means by turn number there; may be empty.
        apart: title of the table that shows it on the page, if no other table or sheet of a report does.
    """

    name: str
    function: Callable[..., Plain]
    kind: MetricKind
    description: str
    version: str = ""
    mean_name: str = ""
    by_turn_name: str = ""
    apart: str = ""

    def loaded(self) -> Callable[..., Plain]:
        """Returns the function itself."""
        return self.function.function() if isinstance(self.function, Later) else self.function

    def inputs(self) -> tuple[str, ...]:
        """Returns the names of the values that the function takes."""
        return tuple(signature(self.loaded()).parameters)

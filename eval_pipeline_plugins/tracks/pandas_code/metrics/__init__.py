"""The metrics of the track, one file each, and the functions behind them, which can also be called directly.

To add a metric, add its file and a line in `METRICS`.
"""

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery
from eval_pipeline_plugins.tracks.pandas_code.metrics import (
    correctness,
    failure_mode,
    form,
    met,
    overall,
    performance,
    robust_correct,
    static,
)
from eval_pipeline_plugins.tracks.pandas_code.metrics.coverage import requirement_coverage
from eval_pipeline_plugins.tracks.pandas_code.metrics.quality import code_quality
from eval_pipeline_plugins.tracks.pandas_code.metrics.understanding import prompt_understanding

__all__ = ["METRICS", "code_quality", "prompt_understanding", "requirement_coverage"]

METRICS: tuple[Metric, ...] = (
    correctness.METRIC,
    correctness.MATCH,
    *form.METRICS,
    robust_correct.METRIC,
    performance.METRIC,
    *static.METRICS,
    *met.METRICS,
    failure_mode.METRIC,
    *recovery.METRICS,
    *overall.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""

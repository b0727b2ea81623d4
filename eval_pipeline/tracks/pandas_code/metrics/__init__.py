"""The metrics of the track, one file each, and the functions behind them that people call themselves.

Add one with a file and a line in `METRICS`.
"""

from eval_pipeline.tracks import recovery
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.pandas_code.metrics import correctness, failure_mode, overall, performance, static
from eval_pipeline.tracks.pandas_code.metrics.coverage import requirement_coverage
from eval_pipeline.tracks.pandas_code.metrics.quality import code_quality
from eval_pipeline.tracks.pandas_code.metrics.understanding import prompt_understanding

__all__ = ["METRICS", "code_quality", "prompt_understanding", "requirement_coverage"]

METRICS: tuple[Metric, ...] = (
    correctness.METRIC,
    correctness.MATCH,
    performance.METRIC,
    *static.METRICS,
    failure_mode.METRIC,
    *recovery.METRICS,
    overall.METRIC,
)
"""In an order in which a metric may take those before it."""

"""The metrics that look at code without running it; a recorded answer without code has none of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.pandas_code.metrics import coverage, quality, understanding

if TYPE_CHECKING:
    from eval_pipeline.tracks.pandas_code.analysis.quality import QualityFinding
    from eval_pipeline.tracks.pandas_code.analysis.snippet import Snippet
    from eval_pipeline.tracks.pandas_code.question.question import QuestionWords

NO_CODE = "the prediction is an answer without code"
_NULL = " NULL for a recorded answer without code."


def _quality(closed_answer: bool, written: "Snippet | None", findings: "Sequence[QualityFinding]") -> MetricResult:
    return MetricResult(None, reason=NO_CODE) if closed_answer else quality.quality_score(written, findings)


def _understanding(closed_answer: bool, asked: "QuestionWords", written: "Snippet | None") -> MetricResult:
    return MetricResult(None, reason=NO_CODE) if closed_answer else understanding.understanding_score(asked, written)


def _coverage(closed_answer: bool, asked: "QuestionWords", written: "Snippet | None") -> MetricResult:
    return MetricResult(None, reason=NO_CODE) if closed_answer else coverage.coverage_score(asked, written)


METRICS: tuple[Metric, ...] = tuple(
    replace(metric, function=function, description=metric.description.removesuffix(".") + ";" + _NULL)
    for metric, function in (
        (quality.METRIC, _quality),
        (understanding.METRIC, _understanding),
        (coverage.METRIC, _coverage),
    )
)

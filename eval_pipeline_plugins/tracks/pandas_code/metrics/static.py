"""The metrics that examine code without running it; they do not apply to recorded answers without code."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.pandas_code.metrics import NO_CODE, coverage, quality, understanding

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.pandas_code.analysis.quality import QualityFinding
    from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import Snippet
    from eval_pipeline_plugins.tracks.pandas_code.question.question import QuestionWords


def _quality(closed_answer: bool, written: "Snippet | None", findings: "Sequence[QualityFinding]") -> MetricResult:
    return MetricResult(None, reason=NO_CODE) if closed_answer else quality.quality_score(written, findings)


def _understanding(
    closed_answer: bool, asked: "QuestionWords", written: "Snippet | None", why_unsure: str | None
) -> MetricResult:
    if closed_answer:
        return MetricResult(None, reason=NO_CODE)
    return _unless_unsure(understanding.understanding_score(asked, written), why_unsure)


def _coverage(
    closed_answer: bool, asked: "QuestionWords", written: "Snippet | None", why_unsure: str | None
) -> MetricResult:
    if closed_answer:
        return MetricResult(None, reason=NO_CODE)
    return _unless_unsure(coverage.coverage_score(asked, written), why_unsure)


def _unless_unsure(found: MetricResult, why_unsure: str | None) -> MetricResult:
    """Returns a score without its value if the question's words cannot be interpreted with certainty."""
    return found if why_unsure is None else replace(found, value=None, reason=why_unsure)

"""The metric `judge_score`: the grade that a judge gives by the suite's rubric."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions


def judge_score(judgement: Mapping[str, Any], options: TextOptions) -> float | MetricResult | None:
    """Returns the recorded grade, so that rescoring asks no model; None, with an error, if the judge failed."""
    if options.parameters("judge") is None:
        return None
    if not judgement:
        return MetricResult(None, reason="not judged")
    details = {name: judgement[name] for name in ("model", "choice", "trace") if judgement.get(name)}
    error = judgement.get("error")
    return MetricResult(
        None if error else judgement["value"], reason=judgement["reason"] or None, details=details, error=error
    )

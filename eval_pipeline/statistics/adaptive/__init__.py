"""Evaluations that ask only part of a suite, drawn with known probabilities (see docs/adaptive-statistics.md).

Wu, Nair and Candès, "Efficient Evaluation of LLM Performance with Statistical Guarantees" (arXiv 2601.20251): a factor
model of earlier evaluations predicts each outcome, turns are drawn where the prediction is uncertain, and the estimate
corrects the predictions by inverse probabilities, so that it is unbiased however wrong the model is. Zrnic and Candès,
"Active Statistical Inference" (ICML 2024), is the same idea with any predictor.
"""

from eval_pipeline.statistics.adaptive.comparison import DifferenceSampler
from eval_pipeline.statistics.adaptive.factors import Factors, fit_factors
from eval_pipeline.statistics.adaptive.planning import expected_turns
from eval_pipeline.statistics.adaptive.sampler import SampledShare, Sampler, UnitBatch
from eval_pipeline.statistics.adaptive.units import EARLIER, DrawSettings, History, SuiteUnits

__all__ = [
    "EARLIER",
    "DifferenceSampler",
    "DrawSettings",
    "Factors",
    "History",
    "SampledShare",
    "Sampler",
    "SuiteUnits",
    "UnitBatch",
    "expected_turns",
    "fit_factors",
]

"""Numbers with their uncertainty: pure functions on numpy arrays (contract: statistics.md).

A number the data cannot carry is None with a reason, never 0, NaN or infinity.
"""

from eval_pipeline.statistics.agreement import Agreement, cohens_kappa
from eval_pipeline.statistics.calibration import BrierParts, Calibration, LevelCalibration, calibrate
from eval_pipeline.statistics.ceiling import (
    Ceiling,
    FittedLevel,
    LevelEstimate,
    Verdict,
    accuracy_by_level,
    complexity_ceiling,
)
from eval_pipeline.statistics.cost import RatioEstimate, cost_per_success
from eval_pipeline.statistics.intervals import Estimate, Method, clustered_se, estimate_mean, estimate_rate
from eval_pipeline.statistics.isotonic import antitonic
from eval_pipeline.statistics.logistic import LogisticFit, clustered_logistic
from eval_pipeline.statistics.quantiles import LatencyQuantiles, latency_quantiles
from eval_pipeline.statistics.repeated import pass_at_k, pass_hat_k

__all__ = [
    "Agreement",
    "BrierParts",
    "Calibration",
    "Ceiling",
    "Estimate",
    "FittedLevel",
    "LatencyQuantiles",
    "LevelCalibration",
    "LevelEstimate",
    "LogisticFit",
    "Method",
    "RatioEstimate",
    "Verdict",
    "accuracy_by_level",
    "antitonic",
    "calibrate",
    "clustered_logistic",
    "clustered_se",
    "cohens_kappa",
    "complexity_ceiling",
    "cost_per_success",
    "estimate_mean",
    "estimate_rate",
    "latency_quantiles",
    "pass_at_k",
    "pass_hat_k",
]

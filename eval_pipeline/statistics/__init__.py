"""Statistics with their uncertainty, as pure functions on numpy arrays (see docs/statistics.md).

A number that cannot be computed from the data is None with a reason, never 0, NaN or infinity.
"""

from eval_pipeline.statistics.calibration import (
    BrierParts,
    Calibration,
    LevelCalibration,
    LevelDifference,
    calibrate,
)
from eval_pipeline.statistics.cost import RatioEstimate, cost_per_success
from eval_pipeline.statistics.curves.ceiling import (
    Ceiling,
    FittedLevel,
    LevelEstimate,
    Verdict,
    accuracy_by_level,
    complexity_ceiling,
    fitted_curve,
)
from eval_pipeline.statistics.curves.isotonic import antitonic
from eval_pipeline.statistics.curves.logistic import LogisticFit, clustered_logistic
from eval_pipeline.statistics.intervals import Estimate, Method, clustered_se, estimate_mean, estimate_rate
from eval_pipeline.statistics.pairs.mcnemar import mcnemar_exact
from eval_pipeline.statistics.pairs.multiple import CorrectedTest, holm
from eval_pipeline.statistics.pairs.paired import PairedDifference, minimum_detectable, paired_difference
from eval_pipeline.statistics.pairs.paired_means import PairedMeans, paired_means
from eval_pipeline.statistics.pareto import pareto_front
from eval_pipeline.statistics.quantiles import LatencyQuantiles, latency_quantiles
from eval_pipeline.statistics.raters.agreement import Agreement, SelfAgreement, cohens_kappa, self_agreement
from eval_pipeline.statistics.raters.labels import LabelScore, label_scores
from eval_pipeline.statistics.raters.suspects import AgreedAnswer, agreed_against_gold
from eval_pipeline.statistics.samples.repeated import pass_at_k, pass_hat_k
from eval_pipeline.statistics.samples.sampling import (
    NO_SPREAD,
    ONE_WORD,
    DrawnEstimate,
    Strata,
    drawn_kappa,
    drawn_rate,
    drawn_share,
)

__all__ = [
    "NO_SPREAD",
    "ONE_WORD",
    "AgreedAnswer",
    "Agreement",
    "BrierParts",
    "Calibration",
    "Ceiling",
    "CorrectedTest",
    "DrawnEstimate",
    "Estimate",
    "FittedLevel",
    "LabelScore",
    "LatencyQuantiles",
    "LevelCalibration",
    "LevelDifference",
    "LevelEstimate",
    "LogisticFit",
    "Method",
    "PairedDifference",
    "PairedMeans",
    "RatioEstimate",
    "SelfAgreement",
    "Strata",
    "Verdict",
    "accuracy_by_level",
    "agreed_against_gold",
    "antitonic",
    "calibrate",
    "clustered_logistic",
    "clustered_se",
    "cohens_kappa",
    "complexity_ceiling",
    "cost_per_success",
    "drawn_kappa",
    "drawn_rate",
    "drawn_share",
    "estimate_mean",
    "estimate_rate",
    "fitted_curve",
    "holm",
    "label_scores",
    "latency_quantiles",
    "mcnemar_exact",
    "minimum_detectable",
    "paired_difference",
    "paired_means",
    "pareto_front",
    "pass_at_k",
    "pass_hat_k",
    "self_agreement",
]

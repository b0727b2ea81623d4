"""Every golden case of golden/statistics.yaml."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pytest

from eval_pipeline.statistics._special import t_critical, t_p_value
from eval_pipeline.statistics.adaptive import History, SuiteUnits
from eval_pipeline.statistics.adaptive.spread import inclusion_probabilities
from eval_pipeline.statistics.cost import cost_per_success, latency_quantiles, pareto_front
from eval_pipeline.statistics.curves._levels import antitonic
from eval_pipeline.statistics.curves.ceiling import accuracy_by_level, complexity_ceiling, fitted_curve
from eval_pipeline.statistics.curves.logistic import clustered_logistic
from eval_pipeline.statistics.intervals import estimate_mean, estimate_rate
from eval_pipeline.statistics.items import item_history
from eval_pipeline.statistics.pairs.paired import holm, mcnemar_exact, minimum_detectable, paired_difference
from eval_pipeline.statistics.raters.agreement import self_agreement
from eval_pipeline.statistics.samples.ppi import prediction_powered_mean
from eval_pipeline.statistics.samples.repeated import pass_at_k, pass_hat_k
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("statistics.yaml")


def ceiling_of_counts(levels: list[float], right: list[int], n: list[int], **settings: float) -> dict[str, Any]:
    each = np.repeat(np.array(levels, dtype=float), n)
    correct = np.concatenate([np.arange(total) < hits for hits, total in zip(right, n, strict=True)])
    clusters = np.concatenate([np.arange(total) for total in n])
    found = complexity_ceiling(each, correct, clusters, **settings)  # type: ignore[arg-type]
    return asdict(found) | {
        "at": [level.level for level in found.levels],
        "fitted": [level.fitted for level in fitted_curve(each, correct)],
    }


def fields(function: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    return lambda **given: asdict(function(**given))


def paired_with_interval(**given: list[float]) -> dict[str, Any]:
    found = paired_difference(**given)
    return asdict(found) | {"interval": list(found.interval())}


def numbers(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda **given: [None if np.isnan(v) else v for v in function(**given).tolist()]


RUN: dict[str, Callable[..., Any]] = {
    "estimate_rate": fields(estimate_rate),
    "estimate_mean": fields(estimate_mean),
    "cost_per_success": fields(cost_per_success),
    "antitonic": lambda **given: antitonic(**given).tolist(),
    "clustered_logistic": fields(clustered_logistic),
    "pass_at_k": numbers(pass_at_k),
    "pass_hat_k": numbers(pass_hat_k),
    "latency_quantiles": lambda **given: list(latency_quantiles(**given)),
    "complexity_ceiling": ceiling_of_counts,
    "paired_difference": paired_with_interval,
    "mcnemar_exact": lambda net: mcnemar_exact(np.array(net)),
    "holm": lambda p_values: [found and found._asdict() for found in holm(p_values)],
    "pareto_front": lambda **given: pareto_front(**given).tolist(),
    "minimum_detectable": minimum_detectable,
}


def agree(found: Any, expected: Any) -> bool:
    """Equal, numbers to a relative 1e-9; of a mapping only the keys expected are looked at."""
    if isinstance(expected, dict):
        return all(agree(found[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(agree(f, e) for f, e in zip(found, expected, strict=True))
    if isinstance(expected, float | int) and found is not None:
        return bool(found == pytest.approx(expected, rel=1e-9, abs=1e-12))
    return bool(found == expected)


@pytest.mark.parametrize(
    ("function", "case"), [pytest.param(f, c, id=f"{f}: {c['name']}") for f, cases in GOLDEN.items() for c in cases]
)
def test_golden(function: str, case: dict[str, Any]) -> None:
    found = RUN[function](**case["input"])
    assert agree(found, case["expected"]), f"{found}\nexpected {case['expected']}\nfrom {case['source']}"


def test_every_case_says_where_it_is_from() -> None:
    assert set(GOLDEN) == set(RUN)
    assert all(case["source"] for cases in GOLDEN.values() for case in cases)


PROGRAM = """
import sys
import pkgutil
import eval_pipeline.statistics
for module in pkgutil.walk_packages(eval_pipeline.statistics.__path__, "eval_pipeline.statistics."):
    __import__(module.name)
from eval_pipeline.statistics.curves.ceiling import complexity_ceiling
heavy = {"scipy", "pandas"} & {name.partition(".")[0] for name in sys.modules}
assert not heavy, heavy
ours = ("eval_pipeline.statistics", "eval_pipeline.core")
others = [m for m in sys.modules if m.startswith("eval_pipeline.") and not m.startswith(ours)]
assert not others, others
x, c = [1, 1, 2, 2, 3, 3] * 20, list(range(60)) * 2
y = [1, 0, 1, 0, 1, 0] * 20
assert complexity_ceiling(x, y, c).p_value is not None
assert "scipy" not in sys.modules
"""


def test_imports_are_lazy() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


NAN, INF = float("nan"), float("inf")
REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (estimate_rate, ([0.5, 1.0], [0, 1]), "0, 1 or NaN"),
    (estimate_mean, ([INF, 1.0], [0, 1]), "infinity"),
    (estimate_mean, (np.ones((2, 2)), np.ones((2, 2), dtype=int)), "one-dimensional"),
    (estimate_mean, (np.ones(3), [0, 1]), "clusters must have shape"),
    (estimate_mean, (np.ones(2), [0.0, 1.0]), "integers"),
    (cost_per_success, ([1, -1], [1, 1]), "negative"),
    (cost_per_success, ([1, INF], [1, 1]), "infinity"),
    (cost_per_success, ([1, 2, 3], [1, 1]), "one shape"),
    *((cost_per_success, ([1, 2], wrong), "whole numbers") for wrong in ([0.5, 1], [-1, 1], [NAN, 1])),
    *((function, ([3], [1], 0), "k must be") for function in (pass_at_k, pass_hat_k)),
    *((function, ([3], [c], 1), "0..n") for function in (pass_at_k, pass_hat_k) for c in (4, -1)),
    *((function, ([3.5], [1], 1), "whole numbers") for function in (pass_at_k, pass_hat_k)),
    *((complexity_ceiling, ([1], [1], [0], threshold), "threshold") for threshold in (0.0, 1.1, NAN)),
    (partial(complexity_ceiling, draws=0), ([1], [1], [0]), "draws"),
    (partial(complexity_ceiling, min_per_level=0), ([1], [1], [0]), "min_per_level"),
    (complexity_ceiling, ([1, 2], [1, 0, 1], [0, 1, 2]), "one shape"),
    (accuracy_by_level, ([1], [2], [0]), "correct must be 0, 1 or NaN"),
    (accuracy_by_level, ([1], [1], [0.5]), "integers"),
    *((antitonic, ([1, 2], weights), "weights") for weights in ([-1, 1], [NAN, 1], [INF, 1])),
    (antitonic, ([NAN, 2], [1, 1]), "means with weight"),
    (antitonic, (1.0, 1.0), "axis"),
    (clustered_logistic, ([1, 2, 3], [1, 0], [0, 1]), "one shape"),
    (clustered_logistic, ([1, 2], [1, 2], [0, 1]), "y must be 0, 1 or NaN"),
    (paired_difference, ([1, 0], [1], [0, 0]), "one shape"),
    (paired_difference, ([0.5], [1], [0]), "0, 1 or NaN"),
    (pareto_front, ([1, 2], [1]), "one shape"),
    (self_agreement, ([[0], [1]], [0, 1]), "K at least 2"),
    *((t_critical, (3, alpha), "between 0 and 1") for alpha in (0.0, 1.0, -0.1)),
    (t_critical, (0,), "at least 1, got 0"),
    (t_p_value, (1.0, 0), "at least 1, got 0"),
    (item_history, ([1.0],), "table of turns by evaluations"),
    (item_history, ([[0.5]],), "must be 0, 1 or NaN"),
    (prediction_powered_mean, ([], [], [1.0]), "are no sample"),
    (prediction_powered_mean, ([NAN], [1.0], [1.0]), "must not be missing"),
    (partial(prediction_powered_mean, clusters=[1, 2]), ([1.0, 0.0], [1.0, 1.0], [1.0]), "or of neither"),
    (inclusion_probabilities, (np.array([1.0, 1.0, 1e-12]), 2), "differ so much"),
    (SuiteUnits, (("a", "a"), np.ones(2, dtype=int)), "ids of units must differ"),
    (History, (np.array([[0.5]]),), "outcomes must be 0, 1 or NaN"),
]


@pytest.mark.parametrize(("function", "given", "words"), REFUSED)
def test_what_cannot_be_computed_is_refused(function: Callable[..., Any], given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(TypeError if words == "integers" else ValueError, match=re.escape(words)):
        function(*given)

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

import eval_pipeline.statistics as stats
from eval_pipeline.statistics._special import t_critical, t_p_value
from eval_pipeline.statistics.adaptive import History, SuiteUnits
from eval_pipeline.statistics.adaptive.draws import inclusion_probabilities
from eval_pipeline.statistics.items import item_history
from eval_pipeline.statistics.samples.ppi import prediction_powered_mean
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("statistics.yaml")


def ceiling_of_counts(levels: list[float], right: list[int], n: list[int], **settings: float) -> dict[str, Any]:
    each = np.repeat(np.array(levels, dtype=float), n)
    correct = np.concatenate([np.arange(total) < hits for hits, total in zip(right, n, strict=True)])
    clusters = np.concatenate([np.arange(total) for total in n])
    found = stats.complexity_ceiling(each, correct, clusters, **settings)  # type: ignore[arg-type]
    return asdict(found) | {
        "at": [level.level for level in found.levels],
        "fitted": [level.fitted for level in stats.fitted_curve(each, correct)],
    }


def fields(function: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    return lambda **given: asdict(function(**given))


def paired_with_interval(**given: list[float]) -> dict[str, Any]:
    found = stats.paired_difference(**given)
    return asdict(found) | {"interval": list(found.interval())}


def numbers(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda **given: [None if np.isnan(v) else v for v in function(**given).tolist()]


RUN: dict[str, Callable[..., Any]] = {
    "estimate_rate": fields(stats.estimate_rate),
    "estimate_mean": fields(stats.estimate_mean),
    "cost_per_success": fields(stats.cost_per_success),
    "antitonic": lambda **given: stats.antitonic(**given).tolist(),
    "clustered_logistic": fields(stats.clustered_logistic),
    "pass_at_k": numbers(stats.pass_at_k),
    "pass_hat_k": numbers(stats.pass_hat_k),
    "latency_quantiles": lambda **given: list(stats.latency_quantiles(**given)),
    "complexity_ceiling": ceiling_of_counts,
    "paired_difference": paired_with_interval,
    "mcnemar_exact": lambda net: stats.mcnemar_exact(np.array(net)),
    "holm": lambda p_values: [found and found._asdict() for found in stats.holm(p_values)],
    "pareto_front": lambda **given: stats.pareto_front(**given).tolist(),
    "minimum_detectable": stats.minimum_detectable,
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


def test_every_case_says_where_it_is_from_and_all_is_exported_in_order() -> None:
    assert set(GOLDEN) == set(RUN)
    assert all(case["source"] for cases in GOLDEN.values() for case in cases)
    import eval_pipeline.statistics as stats

    assert stats.__all__ == sorted(stats.__all__, key=lambda name: (not name.isupper(), name)), "constants first"
    assert all(hasattr(stats, name) for name in stats.__all__)


PROGRAM = """
import sys
import eval_pipeline.statistics as stats
heavy = {"scipy", "pandas"} & {name.partition(".")[0] for name in sys.modules}
assert not heavy, heavy
ours = ("eval_pipeline.statistics", "eval_pipeline.core")
others = [m for m in sys.modules if m.startswith("eval_pipeline.") and not m.startswith(ours)]
assert not others, others
x, c = [1, 1, 2, 2, 3, 3] * 20, list(range(60)) * 2
y = [1, 0, 1, 0, 1, 0] * 20
assert stats.complexity_ceiling(x, y, c).p_value is not None
assert "scipy" not in sys.modules
"""


def test_imports_are_lazy() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


NAN, INF = float("nan"), float("inf")
REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (stats.estimate_rate, ([0.5, 1.0], [0, 1]), "0, 1 or NaN"),
    (stats.estimate_mean, ([INF, 1.0], [0, 1]), "infinity"),
    (stats.estimate_mean, (np.ones((2, 2)), np.ones((2, 2), dtype=int)), "one-dimensional"),
    (stats.estimate_mean, (np.ones(3), [0, 1]), "clusters must have shape"),
    (stats.estimate_mean, (np.ones(2), [0.0, 1.0]), "integers"),
    (stats.cost_per_success, ([1, -1], [1, 1]), "negative"),
    (stats.cost_per_success, ([1, INF], [1, 1]), "infinity"),
    (stats.cost_per_success, ([1, 2, 3], [1, 1]), "one shape"),
    *((stats.cost_per_success, ([1, 2], wrong), "whole numbers") for wrong in ([0.5, 1], [-1, 1], [NAN, 1])),
    *((function, ([3], [1], 0), "k must be") for function in (stats.pass_at_k, stats.pass_hat_k)),
    *((function, ([3], [c], 1), "0..n") for function in (stats.pass_at_k, stats.pass_hat_k) for c in (4, -1)),
    *((function, ([3.5], [1], 1), "whole numbers") for function in (stats.pass_at_k, stats.pass_hat_k)),
    *((stats.complexity_ceiling, ([1], [1], [0], threshold), "threshold") for threshold in (0.0, 1.1, NAN)),
    (partial(stats.complexity_ceiling, draws=0), ([1], [1], [0]), "draws"),
    (partial(stats.complexity_ceiling, min_per_level=0), ([1], [1], [0]), "min_per_level"),
    (stats.complexity_ceiling, ([1, 2], [1, 0, 1], [0, 1, 2]), "one shape"),
    (stats.accuracy_by_level, ([1], [2], [0]), "correct must be 0, 1 or NaN"),
    (stats.accuracy_by_level, ([1], [1], [0.5]), "integers"),
    *((stats.antitonic, ([1, 2], weights), "weights") for weights in ([-1, 1], [NAN, 1], [INF, 1])),
    (stats.antitonic, ([NAN, 2], [1, 1]), "means with weight"),
    (stats.antitonic, (1.0, 1.0), "axis"),
    (stats.clustered_logistic, ([1, 2, 3], [1, 0], [0, 1]), "one shape"),
    (stats.clustered_logistic, ([1, 2], [1, 2], [0, 1]), "y must be 0, 1 or NaN"),
    (stats.paired_difference, ([1, 0], [1], [0, 0]), "one shape"),
    (stats.paired_difference, ([0.5], [1], [0]), "0, 1 or NaN"),
    (stats.pareto_front, ([1, 2], [1]), "one shape"),
    (stats.self_agreement, ([[0], [1]], [0, 1]), "K at least 2"),
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

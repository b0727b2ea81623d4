"""Every golden case of golden/statistics.yaml."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import eval_pipeline.statistics as stats
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("statistics.yaml")


def ceiling_of_counts(levels: list[float], right: list[int], n: list[int], **settings: float) -> dict[str, Any]:
    found = stats.complexity_ceiling(
        np.repeat(np.array(levels, dtype=float), n),
        np.concatenate([np.arange(total) < hits for hits, total in zip(right, n, strict=True)]),
        np.concatenate([np.arange(total) for total in n]),
        **settings,  # type: ignore[arg-type]
    )
    return asdict(found) | {
        "at": [level.level for level in found.levels],
        "fitted": [level.fitted for level in found.levels],
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


def test_every_case_says_where_it_is_from() -> None:
    assert set(GOLDEN) == set(RUN)
    assert all(case["source"] for cases in GOLDEN.values() for case in cases)

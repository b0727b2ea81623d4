"""Quantiles of latency."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eval_pipeline.statistics._clusters import as_numbers


class LatencyQuantiles(NamedTuple):
    """Median and tail of latency, in the unit of the values.

    Attributes:
        p50: Half of the calls took no longer; None without calls.
        p95: 95% of the calls took no longer; None without calls.
    """

    p50: float | None
    p95: float | None


def latency_quantiles(values: ArrayLike) -> LatencyQuantiles:
    """Computes p50 and p95 of a latency (statistics.md, "statistics").

    Interpolated linearly between order statistics (Hyndman and Fan 1996, type 7: the default of numpy and most tools).

    Args:
        values: Shape (N,), any unit of time; NaN is missing and dropped.

    Returns:
        The two quantiles; both None without values.

    Raises:
        ValueError: If ``values`` is not one-dimensional or holds an infinity.
    """
    times = as_numbers(values)
    times = times[~np.isnan(times)]
    if times.size == 0:
        return LatencyQuantiles(None, None)
    p50, p95 = np.quantile(times, (0.5, 0.95))
    return LatencyQuantiles(float(p50), float(p95))

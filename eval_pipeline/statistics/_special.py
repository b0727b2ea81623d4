"""The few special functions this package needs, with scipy imported on first use.

``scipy.special`` costs about 0.3 s to import and ``scipy.stats`` more; commands that never show an interval must not
pay for either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

CONFIDENCE: Final = 0.95
"""Coverage aimed at by every interval of the product."""


@lru_cache(maxsize=4096)
def t_critical(df: int) -> float:
    """Two-sided 95% critical value of Student's t.

    Args:
        df: Degrees of freedom, at least 1.

    Returns:
        The t with P(|T| <= t) = 0.95, e.g. 12.706 for one degree of freedom and 1.96 in the limit.

    Raises:
        ValueError: If ``df`` is below 1.
    """
    if df < 1:
        raise ValueError(f"degrees of freedom must be at least 1, got {df}")
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    return float(stdtrit(df, 0.5 + CONFIDENCE / 2))


def t_p_value(statistic: float, df: int) -> float:
    """Two-sided p-value of a t statistic.

    Args:
        statistic: Estimate divided by its standard error.
        df: Degrees of freedom, at least 1.

    Returns:
        P(|T| >= |statistic|), in 0..1.

    Raises:
        ValueError: If ``df`` is below 1.
    """
    if df < 1:
        raise ValueError(f"degrees of freedom must be at least 1, got {df}")
    from scipy.special import stdtr  # type: ignore[import-untyped,unused-ignore]

    # The lower tail keeps its digits where 1 - stdtr(|t|) would round to 0.
    return float(2.0 * stdtr(df, -abs(statistic)))


def logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), elementwise, without overflow at either end."""
    from scipy.special import expit  # type: ignore[import-untyped,unused-ignore]

    return np.asarray(expit(x), dtype=np.float64)

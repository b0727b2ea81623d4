"""What sampling by history gains on real outcomes: docs/adaptive-statistics.md has the figures."""

from __future__ import annotations

import numpy as np
import pytest

from eval_pipeline_tests import outside
from eval_pipeline_tests.statistics.adaptive_campaign import MATRICES, gains, matrix, told

AIMS = {"crux": {0.1: 1.5, 0.2: 1.8, 0.3: 2.0}, "gsm": {0.1: 1.3, 0.2: 1.6, 0.3: 1.8}}
CELLS = [(name, share, aim) for name, aims in AIMS.items() for share, aim in aims.items()]


@outside.needs(MATRICES)
@pytest.mark.parametrize(("name", "share", "aim"), [("crux", 0.2, 1.8)])
def test_new_models_need_fewer_turns(name: str, share: float, aim: float) -> None:
    found = gains(matrix(name), share, 10)
    assert np.median([g.width for g in found]) >= aim - 0.2
    assert np.median([g.squares for g in found]) >= aim - 0.5
    assert np.mean([g.covered for g in found]) >= 0.88


@pytest.mark.soak
@outside.needs(MATRICES)
@pytest.mark.parametrize(("name", "share", "aim"), CELLS)
def test_new_models_need_fewer_turns_2000_times(name: str, share: float, aim: float) -> None:
    found = gains(matrix(name), share, 2000)
    print(told(f"{name}, {share:.0%} of turns", found))
    assert np.median([g.squares for g in found]) >= aim and np.median([g.width for g in found]) >= aim
    assert min(g.squares for g in found) >= 0.9 and min(g.honest for g in found) >= 0.9
    covered = [g.covered for g in found]
    assert 0.935 <= np.mean(covered) <= 0.97 and min(covered) >= 0.9

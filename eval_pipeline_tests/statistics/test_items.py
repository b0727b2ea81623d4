"""Difficulty and discrimination of turns, and those on which good models fail."""

from __future__ import annotations

import numpy as np
import pytest

from eval_pipeline.statistics.items import item_history


def history(evaluations: int = 30, turns: int = 60) -> np.ndarray:
    rng = np.random.default_rng(2)
    ability = np.linspace(-2, 2, evaluations)
    odds = ability + rng.normal(size=(turns, 1))
    return (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)


def test_turns_are_sorted_by_what_they_tell() -> None:
    table = history()
    table[0], table[1] = 1.0, 0.0
    table[2] = (np.arange(30) < 15).astype(float)  # weak models right, good ones wrong
    table[3] = (np.arange(30) >= 15).astype(float)
    table[4] = np.nan
    table[4, :4] = 1.0
    table[5:, ::7] = np.nan
    found = item_history(table)
    kinds = ["all right", "all wrong", "suspicious", "tells apart", "too little history"]
    assert [item.kind for item in found[:5]] == kinds
    assert {item.kind for item in found[5:]} <= {"tells apart", "all right", "all wrong"}
    assert [item.difficulty for item in found[:5]] == [0.0, 1.0, 0.5, 0.5, 0.0]
    assert found[2].discrimination is not None and found[2].discrimination < -0.7
    assert found[3].discrimination is not None and found[3].discrimination > 0.5
    assert found[0].discrimination is found[1].discrimination is found[4].discrimination is None
    assert found[5].evaluations == 25


def test_discrimination_is_the_correlation_with_the_other_turns() -> None:
    table = history(12, 20)
    rest = (table.sum(0) - table[7]) / 19
    assert item_history(table)[7].discrimination == pytest.approx(np.corrcoef(table[7], rest)[0, 1])


def test_turns_that_only_guess_are_rarely_suspicious() -> None:
    table = (np.random.default_rng(0).random((500, 30)) < 0.5).astype(float)
    assert sum(item.kind == "suspicious" for item in item_history(table)) <= 1


def test_bad_input_is_told() -> None:
    with pytest.raises(ValueError, match="table of turns by evaluations"):
        item_history([1.0])
    with pytest.raises(ValueError, match="must be 0, 1 or NaN"):
        item_history([[0.5]])
    assert item_history(np.zeros((0, 3))) == []
    assert item_history([[np.nan, np.nan]])[0].difficulty is None

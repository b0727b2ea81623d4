"""Agreement against the gold: by hand, and on simulated models with planted wrong gold."""

from math import isclose, log

import numpy as np
import pytest
from numpy.typing import NDArray

from eval_pipeline.statistics.raters.suspects import (
    GOLD,
    NO_ANSWER,
    PRIOR,
    agreed_against_gold,
    chances,
    same_when_wrong,
)

Codes = NDArray[np.int64]
TURNS, WRONG_GOLD, OPTIONS = 1000, 0.03, 20
SEEDS = range(20)


def simulated(
    seed: int, accuracies: list[float], share: float = WRONG_GOLD, common: float = 0.0
) -> tuple[Codes, NDArray[np.bool_]]:
    """Answers of models to turns with some planted wrong gold, and which turns those are.

    `common` is the chance that a wrong answer is the one that every model falls for. Code 1 is the truth where the gold
    is wrong.
    """
    rng = np.random.default_rng(seed)
    planted = rng.random(TURNS) < share
    trap = rng.integers(2, 2 + OPTIONS, TURNS)
    answers = np.zeros((len(accuracies), TURNS), dtype=np.int64)
    for place, accuracy in enumerate(accuracies):
        own = np.where(rng.random(TURNS) < common, trap, rng.integers(2, 2 + OPTIONS, TURNS))
        own = np.where(planted & (own == 2), GOLD, own)  # one wrong answer of twenty is what the wrong gold says
        answers[place] = np.where(rng.random(TURNS) < accuracy, np.where(planted, 1, GOLD), own)
    return answers, planted


def measured(accuracies: list[float], common: float = 0.0) -> tuple[float, float, float]:
    """Precision and recall of a score of at least a half, and the share of planted ones among as many at the top."""
    precision, recall, top = [], [], []
    for seed in SEEDS:
        answers, planted = simulated(seed, accuracies, common=common)
        found = sorted(agreed_against_gold(answers, np.arange(TURNS)), key=lambda one: -one.score)
        likely = [one.turn for one in found if one.score >= 0.5]
        precision.append(planted[likely].mean() if likely else 1.0)
        recall.append(planted[likely].sum() / planted.sum())
        top.append(planted[[one.turn for one in found[: planted.sum()]]].sum() / planted.sum())
    return tuple(float(np.mean(values)) for values in (precision, recall, top))  # type: ignore[return-value]


def test_the_figures_in_the_docs() -> None:
    """docs/gold.md says them."""
    assert [round(value, 2) for value in measured([0.8, 0.8])] == [0.90, 0.63, 0.63]
    assert [round(value, 2) for value in measured([0.9, 0.8, 0.7])] == [0.94, 0.85, 0.89]
    assert [round(value, 2) for value in measured([0.9, 0.85, 0.8, 0.7, 0.6])] == [0.98, 0.99, 0.99]
    assert [round(value, 2) for value in measured([0.9, 0.85, 0.8, 0.7, 0.6], common=0.9)] == [0.85, 0.97, 0.90]


@pytest.mark.parametrize("accuracies", [[0.8, 0.8], [0.9, 0.8, 0.7], [0.8] * 8])
def test_independent_mistakes_and_good_gold_make_few_suspects(accuracies: list[float]) -> None:
    listed = [agreed_against_gold(simulated(seed, accuracies, share=0.0)[0], np.arange(TURNS)) for seed in SEEDS]
    assert np.mean([len(found) for found in listed]) < 0.008 * TURNS
    likely = [sum(one.score >= 0.5 for one in found) for found in listed]
    assert np.mean(likely) < 0.004 * TURNS


def test_who_is_for_and_against_the_gold_is_weighed_by_what_they_know() -> None:
    # Two models that always make the same mistakes: their agreement says next to nothing, and no score is high.
    answers, _ = simulated(1, [0.8, 0.8], share=0.0, common=1.0)
    assert same_when_wrong(answers) > 0.6
    assert max(one.score for one in agreed_against_gold(answers, np.arange(TURNS))) < 0.6
    # The models are right nine times of ten after a right turn, and seldom after a wrong one of their own.
    turns = np.arange(300)
    answers = np.zeros((2, 300), dtype=np.int64)
    wrong = turns[7::30]
    for further in range(4):
        answers[:, wrong + further] = 1
    by_turn = {one.turn: one.score for one in agreed_against_gold(answers, turns // 15)}
    assert len(by_turn) == 4 * wrong.size  # what follows from an earlier turn is listed too
    assert all(by_turn[first] > by_turn[first + 1] for first in wrong.tolist())
    answers = np.zeros((3, 40), dtype=np.int64)
    answers[:2, 5] = 3
    with_silence, without = answers.copy(), answers[:2]
    with_silence[2, 5] = NO_ANSWER
    (found,) = [one for one in agreed_against_gold(with_silence, np.arange(40)) if one.turn == 5]
    (plain,) = [one for one in agreed_against_gold(without, np.arange(40)) if one.turn == 5]
    assert (found.answered, found.score) == (2, pytest.approx(plain.score))
    assert agreed_against_gold(np.ones((1, 30), dtype=np.int64), np.arange(30)) == []
    bad = np.zeros((3, 30), dtype=np.int64)
    bad[:, :20] = np.arange(1, 21)  # right once in three: agreeing says that they are wrong
    assert agreed_against_gold(bad, np.arange(30)) == []
    answers = np.zeros((2, 1000), dtype=np.int64)
    answers[1] = NO_ANSWER
    found = chances(answers, np.zeros(1000, dtype=np.int64))
    assert found.min() >= 0.02 and found.max() <= 0.98


def test_by_hand() -> None:
    """Three models of 80%, 60% and 50% on ten turns without pairs that are wrong elsewhere.

    On the last turn the first two agree against the third, which has the gold's answer. Both wrong: one pair, the same,
    so q = (1 + 1) / (1 + 20). Every turn begins a conversation, so chances are overall accuracies.
    """
    answers = np.zeros((3, 10), dtype=np.int64)
    answers[0, [0, 9]] = (1, 7)
    answers[1, [1, 2, 3, 9]] = (1, 1, 1, 7)
    answers[2, 4:9] = 1
    (found,) = agreed_against_gold(answers, np.arange(10))
    weight = log(0.8 / 0.2) + log(0.6 / 0.4) - log(0.5 / 0.5) - log(2 / 21)
    odds = PRIOR / (1 - PRIOR) * np.exp(weight)
    assert (found.turn, found.answer, found.models, found.answered, found.for_gold) == (9, 7, 2, 3, 1)
    assert isclose(found.score, odds / (1 + odds))


def test_those_with_the_gold_outweigh_two_that_err_together() -> None:
    answers = np.zeros((6, 50), dtype=np.int64)
    answers[:2, :10] = 1
    assert agreed_against_gold(answers, np.arange(50)) == []

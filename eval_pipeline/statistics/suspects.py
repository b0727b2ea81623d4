"""Where several models agree with each other against the gold: how likely it is that the gold is wrong.

A naive Bayes over raters whose accuracies are known, after Dawid and Skene, "Maximum Likelihood Estimation of Observer
Error-Rates Using the EM Algorithm", Applied Statistics 28 (1979), with one addition: models share their mistakes, so
that two wrong answers are the same with a chance that is measured and not assumed to be small.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

NO_ANSWER, GOLD = -1, 0
"""Codes of an answer: none, the gold's; others are above."""
PRIOR = 0.03
"""Share of wrong gold before anything is seen: 3.3% is the mean over ten test sets in Northcutt, Athalye and Mueller,
"Pervasive Label Errors in Test Sets Destabilize Machine Learning Benchmarks", NeurIPS 2021."""
LEAST = 2
"""Model versions that have to agree."""
_SURE = (0.02, 0.98)
"""Nobody's accuracy is taken to be beyond: a few right answers do not make a model infallible."""
_PSEUDO_PAIRS, _PSEUDO_SAME = 20.0, 1.0
_PSEUDO_TURNS = 10.0


@dataclass(frozen=True, slots=True)
class AgreedAnswer:
    """Several models with one answer to a turn that is not the gold's.

    Attributes:
        turn: its place among the turns.
        answer: the code of the answer.
        models: how many gave it.
        answered: how many answered at all.
        for_gold: how many gave the gold's.
        score: the chance that the gold is wrong, 0..1, if models were as independent as measured.
    """

    turn: int
    answer: int
    models: int
    answered: int
    for_gold: int
    score: float


def same_when_wrong(answers: Codes) -> float:
    """The chance that two models that are both wrong give the same answer, drawn a little towards 5%.

    Wrong gold counts as common mistakes here, so it comes out too high and the scores too low rather than too high.

    Args:
        answers: codes, of shape (models, turns).
    """
    same = pairs = 0
    for turn in _several_wrong(answers):
        wrong = answers[answers[:, turn] > GOLD, turn]
        counts = np.unique(wrong, return_counts=True)[1]
        same += int((counts * (counts - 1) // 2).sum())
        pairs += wrong.size * (wrong.size - 1) // 2
    return (same + _PSEUDO_SAME) / (pairs + _PSEUDO_PAIRS)


def chances(answers: Codes, conversations: Codes) -> Floats:
    """The chance of each model to be right on each turn: its accuracy there after a right, a wrong and no turn before.

    Models that go on from a wrong answer of their own are wrong again, and alike; such turns say less of the gold.

    Args:
        answers: codes, of shape (models, turns); turns of a conversation stand in order, one after the other.
        conversations: a code of each turn's conversation, of shape (turns,).
    """
    found = np.empty(answers.shape, dtype=np.float64)
    for place, own in enumerate(answers):
        answered, right = own != NO_ANSWER, own == GOLD
        overall = right[answered].mean() if answered.any() else 0.5
        state = _states(own, conversations)
        for value in np.unique(state):
            there = state == value
            n, k = int((there & answered).sum()), int((there & right).sum())
            found[place, there] = (k + _PSEUDO_TURNS * overall) / (n + _PSEUDO_TURNS)
    return np.clip(found, *_SURE)


def _states(own: Codes, conversations: Codes) -> Codes:
    """0 at the start of a conversation, 1 after a right turn, 2 after another."""
    state = np.zeros(own.size, dtype=np.int64)
    goes_on = conversations[1:] == conversations[:-1]
    state[1:] = np.where(goes_on, np.where(own[:-1] == GOLD, 1, 2), 0)
    return state


def agreed_against_gold(answers: Codes, conversations: Codes) -> list[AgreedAnswer]:
    """The turns on which at least two models agree with each other and outweigh those that agree with the gold.

    Whether they outweigh them is decided by overall accuracies, so that what follows from an earlier turn is listed
    too; the score takes the turn before into account.

    Args:
        answers: codes, of shape (models, turns); equal codes of a turn, the same answer.
        conversations: of shape (turns,).
    """
    if answers.shape[0] < LEAST or not answers.size:
        return []
    same = same_when_wrong(answers)
    by_turn = chances(answers, conversations)
    overall = np.clip(np.array([_accuracy(own) for own in answers]), *_SURE)
    found = []
    for turn in _several_wrong(answers):
        column = answers[:, turn]
        codes, counts = np.unique(column[column > GOLD], return_counts=True)
        agreed = codes[counts >= LEAST]
        if not agreed.size:
            continue
        weights = [_weight(column, code, overall, same) for code in agreed.tolist()]
        best = int(np.argmax(weights))
        if weights[best] <= 0:
            continue
        code = int(agreed[best])
        odds = PRIOR / (1 - PRIOR) * np.exp(min(_weight(column, code, by_turn[:, turn], same), 50.0))
        mine, gold, answered = ((column == code).sum(), (column == GOLD).sum(), (column != NO_ANSWER).sum())
        found.append(AgreedAnswer(turn, code, int(mine), int(answered), int(gold), float(odds / (1 + odds))))
    return found


def _several_wrong(answers: Codes) -> list[int]:
    """The turns that enough models have wrong for two of them to agree: few of all."""
    places: list[int] = np.flatnonzero((answers > GOLD).sum(axis=0) >= LEAST).tolist()
    return places


def _accuracy(own: Codes) -> float:
    answered = own[own != NO_ANSWER]
    return float((answered == GOLD).mean()) if answered.size else 0.5


def _weight(column: Codes, code: int, right: Floats, same: float) -> float:
    """The log of how much likelier these answers are where `code` is right than where the gold is.

    Where the gold is right, those with `code` are wrong, the first of them by chance and the others by the same
    mistake; where `code` is right, so are those with the gold's answer.
    """
    mine, gold = column == code, column == GOLD
    log_odds = np.log(right) - np.log1p(-right)
    weight = log_odds[mine].sum() - log_odds[gold].sum()
    common = max(int(mine.sum()) - 1, 0) - max(int(gold.sum()) - 1, 0)
    return float(weight - common * np.log(same))

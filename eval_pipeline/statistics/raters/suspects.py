"""Probability that the gold answer is wrong, for turns where several models agree with each other against it.

This is a naive Bayes model over raters of known accuracy, after Dawid and Skene, "Maximum Likelihood Estimation of
Observer Error-Rates Using the EM Algorithm", Applied Statistics 28 (1979), with one addition: models share mistakes, so
the probability that two wrong answers are equal is measured rather than assumed to be small.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

NO_ANSWER, GOLD = -1, 0
"""Codes for "no answer" and "equal to the gold answer"; larger codes are other answers."""
PRIOR = 0.03
"""Prior share of wrong gold answers.

3.3% is the mean over ten test sets in Northcutt, Athalye and Mueller, "Pervasive Label Errors in Test Sets Destabilize
Machine Learning Benchmarks", NeurIPS 2021.
"""
LEAST = 2
"""Minimum number of model versions that must agree."""
_SURE = (0.02, 0.98)
"""Bounds on any model's accuracy: a few right answers do not make a model infallible."""
_PSEUDO_PAIRS, _PSEUDO_SAME = 20.0, 1.0
_PSEUDO_TURNS = 10.0


@dataclass(frozen=True, slots=True)
class AgreedAnswer:
    """An answer other than the gold one that several models gave to the same turn.

    Attributes:
        turn: index of the turn.
        answer: code of the answer.
        models: number of models that gave it.
        answered: number of models that answered at all.
        for_gold: number of models that gave the gold answer.
        score: probability, 0..1, that the gold answer is wrong, if models are as independent as measured.
    """

    turn: int
    answer: int
    models: int
    answered: int
    for_gold: int
    score: float


def same_when_wrong(answers: Codes) -> float:
    """Estimates the probability that two models that are both wrong give the same answer, shrunk slightly towards 5%.

    Turns with wrong gold answers count as shared mistakes here. The estimate is therefore too high, and the scores too
    low rather than too high.

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
    """Estimates each model's probability of being right on each turn, given whether its turn before was right.

    After a wrong answer, models tend to be wrong again, and in the same way; such turns therefore say less about the
    gold answer.

    Args:
        answers: codes, of shape (models, turns); the turns of a conversation are adjacent and in order.
        conversations: code of each turn's conversation, of shape (turns,).
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
    """Returns each turn's state: 0 at the start of a conversation, 1 after a right turn, 2 after any other."""
    state = np.zeros(own.size, dtype=np.int64)
    goes_on = conversations[1:] == conversations[:-1]
    state[1:] = np.where(goes_on, np.where(own[:-1] == GOLD, 1, 2), 0)
    return state


def agreed_against_gold(answers: Codes, conversations: Codes) -> list[AgreedAnswer]:
    """Finds turns on which at least two models agree with each other and outweigh those that agree with the gold.

    Whether they outweigh them is decided by overall accuracies, so that mistakes that follow from an earlier turn are
    listed too; the score takes the earlier turn into account.

    Args:
        answers: codes, of shape (models, turns); equal codes in a turn mean equal answers.
        conversations: code of each turn's conversation, of shape (turns,).
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
    """Returns the turns where at least `LEAST` models are wrong, so that two can agree; usually few."""
    places: list[int] = np.flatnonzero((answers > GOLD).sum(axis=0) >= LEAST).tolist()
    return places


def _accuracy(own: Codes) -> float:
    answered = own[own != NO_ANSWER]
    return float((answered == GOLD).mean()) if answered.size else 0.5


def _weight(column: Codes, code: int, right: Floats, same: float) -> float:
    """Returns the log likelihood ratio of these answers: `code` is right versus the gold answer is right.

    If the gold answer is right, the models that gave `code` are wrong: the first by chance, the others by the same
    mistake. If `code` is right, the same holds for the models that gave the gold answer.
    """
    mine, gold = column == code, column == GOLD
    log_odds = np.log(right) - np.log1p(-right)
    weight = log_odds[mine].sum() - log_odds[gold].sum()
    common = max(int(mine.sum()) - 1, 0) - max(int(gold.sum()) - 1, 0)
    return float(weight - common * np.log(same))

"""Signs that answers belong to other questions, or are in other units, than what they are compared with."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import isclose

import pyarrow.compute as pc

from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.stages.checks.verdicts import Verdict
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline.workspace.inputs import Inputs

FEWEST = 20
"""Answers below which nothing is said."""
FEWEST_WRONG = 10
SAME_SHARE = 0.8
ALIKE_SHARE = 0.4
"""Of right answers that are equal: above, equal answers say little."""
FALLBACK_SHARE = 0.5
MISPLACED_SHARE = 0.3
ABOVE_CHANCE = 3.0
SCALED_SHARE = 0.5
FIRST_RIGHT, LATER_SHARE = 0.5, 0.25
"""First turns that are right at least, and what share of that the later ones reach at most."""
_NEAR = 1e-3
_FAR = (-10, -9, -8, -7, 7, 8, 9, 10)
"""Turns away, where an answer is right by chance only."""


@value
class Answered:
    """A turn that was answered in the answer form.

    Attributes:
        case: of the suite, with the sample: a conversation.
    """

    case: tuple[str, int]
    turn_index: int
    expected: str
    answer: str
    correct: bool


def check_plausible(inputs: Inputs) -> Verdict:
    """Answers belong to the questions that they are compared with, in units and order; a remark where they do not."""
    names = ["case_id", "sample", "turn_index", "expected", "answer", "correct", "simulated"]
    rows = inputs.read(TURN_RESULTS, names)
    if bool(pc.any(rows["simulated"]).as_py()):
        return Verdict(True, "these are a stand-in's answers, not a model's: they are not judged")
    rows = rows.filter(pc.and_(pc.is_valid(rows["answer"]), pc.is_valid(rows["expected"])))
    answered = [
        Answered(
            (row["case_id"], row["sample"]), row["turn_index"], row["expected"], row["answer"], bool(row["correct"])
        )
        for row in rows.to_pylist()
    ]
    found = suspicions(answered)
    facts: dict[str, Json] = {"answers": len(answered), "signs": list(found)}
    if not found:
        return Verdict(True, f"nothing odd about {len(answered)} answers", facts)
    text = f"this looks like the configuration, not like the model: {'; '.join(found)}"
    return Verdict(False, text, facts, True, _example(answered))


def suspicions(answered: Sequence[Answered]) -> list[str]:
    """What is odd about the answers of an evaluation, a sentence each."""
    if len(answered) < FEWEST:
        return []
    wrong = _wrong(answered)
    if len(wrong) < FEWEST_WRONG:
        return []
    signs = [
        sign
        for sign in (
            _same(answered) or _fallback(wrong),
            _misplaced(answered, wrong),
            _scaled(wrong),
            _history(answered),
        )
        if sign
    ]
    if len(wrong) == len(answered) and not signs:
        signs.append(
            f"none of {len(answered)} answers is right: look at prompt and answer form, and whether this is the "
            "suite that was answered"
        )
    return signs


def _example(answered: Sequence[Answered]) -> str:
    """The answer that is given again and again, which only a terminal shows."""
    wrong = _wrong(answered)
    again = _same(answered) or _fallback(wrong)
    return f"'{_commonest(wrong)[0]:.60}'" if again else ""


def _wrong(answered: Sequence[Answered]) -> list[Answered]:
    return [one for one in answered if not one.correct]


def _commonest(answered: Sequence[Answered]) -> tuple[str, int]:
    return Counter(one.answer for one in answered).most_common(1)[0]


def _same(answered: Sequence[Answered]) -> str | None:
    """One answer to everything: of a stub, a cache, or a prompt that comes back."""
    _, count = _commonest(answered)
    gold = Counter(one.expected for one in answered).most_common(1)[0][1]
    if count < SAME_SHARE * len(answered) or gold > ALIKE_SHARE * len(answered):
        return None
    return f"{count} of {len(answered)} answers are the same, whatever is asked: is the question read?"


def _fallback(wrong: Sequence[Answered]) -> str | None:
    """One number for most of what is wrong: what an application answers where a step of its own failed."""
    answer, count = _commonest(wrong)
    if number(answer) is None or count < max(FEWEST_WRONG, FALLBACK_SHARE * len(wrong)):
        return None
    gold = Counter(one.expected for one in wrong if one.answer == answer).most_common(1)[0][1]
    if gold > ALIKE_SHARE * count:
        return None
    return f"{count} of {len(wrong)} wrong answers are one number: is that what is answered where something fails?"


def _misplaced(answered: Sequence[Answered], wrong: Sequence[Answered]) -> str | None:
    """Wrong answers that are right ones of other turns: shifted by one, or of another turn of the conversation.

    What chance does is seen in the conversations beside: their right answers are as alike, and were not asked for.
    """
    shifted = {way: _shifted(answered, way) for way in (-1, 1)}
    way, count = max(shifted.items(), key=lambda item: item[1])
    usual = sum(_shifted(answered, far) for far in _FAR) / len(_FAR)
    if count >= max(FEWEST_WRONG, MISPLACED_SHARE * len(answered), ABOVE_CHANCE * usual):
        where = "after" if way > 0 else "before"
        return (
            f"{count} of {len(answered)} answers are right for the turn {where} the one that they were given to "
            f"({usual:.0f} would be by chance): are they shifted by one?"
        )
    conversations: dict[tuple[str, int], list[Answered]] = {}
    for one in answered:
        conversations.setdefault(one.case, []).append(one)
    order = list(conversations)
    neighbour = dict(zip(order, [*order[1:], *order[:1]], strict=True))
    own = sum(_among(one, conversations[one.case]) for one in wrong)
    by_chance = sum(_among(one, conversations[neighbour[one.case]]) for one in wrong)
    if own < max(FEWEST_WRONG, MISPLACED_SHARE * len(wrong), ABOVE_CHANCE * by_chance):
        return None
    if 2 * len(wrong) < len(answered):  # models reuse earlier answers now and then
        return None
    return (
        f"{own} of {len(wrong)} wrong answers are right for another turn of the conversation ({by_chance} would be by "
        "chance): is the right question asked, with the right history?"
    )


def _shifted(answered: Sequence[Answered], way: int) -> int:
    """Wrong answers that are right so many turns on in the order of the suite."""
    others = answered[way:] if way > 0 else answered[:way]
    given = answered[:-way] if way > 0 else answered[-way:]
    pairs = zip(given, others, strict=True)
    return sum(
        not one.correct and not equal(one.answer, one.expected) and equal(one.answer, other.expected)
        for one, other in pairs
    )


def _among(one: Answered, turns: Sequence[Answered]) -> bool:
    return any(equal(one.answer, other.expected) for other in turns if other is not one)


def _scaled(wrong: Sequence[Answered]) -> str | None:
    """Wrong numbers that are all the same multiple of the right ones: another unit, or another sign."""
    ratios = [
        given / right
        for one in wrong
        if (given := number(one.answer)) is not None and (right := number(one.expected)) and given
    ]
    if len(ratios) < FEWEST_WRONG:
        return None
    ratio, count = Counter(f"{found:.3g}" for found in ratios).most_common(1)[0]
    if count < SCALED_SHARE * len(ratios) or isclose(float(ratio), 1.0, rel_tol=0.01):
        return None
    asked = "which sign is" if float(ratio) == -1.0 else "which units are"
    return f"{count} of {len(ratios)} wrong numbers are {float(ratio):g} times the right ones: {asked} answered?"


def _history(answered: Sequence[Answered]) -> str | None:
    """First turns that are right and later ones that are not: the conversation so far is not read."""
    first = [one.correct for one in answered if one.turn_index == 0]
    later = [one.correct for one in answered if one.turn_index > 0]
    if len(first) < FEWEST_WRONG or len(later) < FEWEST_WRONG:
        return None
    right, then = sum(first) / len(first), sum(later) / len(later)
    if right < FIRST_RIGHT or then > LATER_SHARE * right:
        return None
    return (
        f"{right:.0%} of the first turns of conversations are right and {then:.0%} of the later ones: is the history "
        "of the conversation read?"
    )


def equal(answer: str, expected: str) -> bool:
    """Whether two answers are the same number, or the same text."""
    if answer == expected:
        return True
    given, right = number(answer), number(expected)
    if given is None or right is None:
        return " ".join(answer.lower().split()) == " ".join(expected.lower().split())
    return isclose(given, right, rel_tol=_NEAR)


@lru_cache(maxsize=1 << 16)
def number(text: str) -> float | None:
    """The number that an answer is, of 25% the quarter; None where it is none."""
    text = text.strip().replace(",", "")
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None

"""Looks for signs that answers belong to other questions or are in other units than the gold answers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isclose
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import implausible_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline.workspace.inputs import Inputs

FEWEST = 20
"""With fewer answers than this, nothing is reported."""
FEWEST_WRONG = 10
MOST, STRETCHES = 50_000, 25
"""With more turns than this, so many stretches of neighbouring turns are looked at, with so many turns together."""
SAME_SHARE = 0.8
ALIKE_SHARE = 0.4
"""If more than this share of the gold answers is equal, equal answers are not suspicious."""
FALLBACK_SHARE = 0.5
MISPLACED_SHARE = 0.3
ABOVE_CHANCE = 3.0
SCALED_SHARE = 0.5
FIRST_RIGHT, LATER_SHARE = 0.5, 0.25
"""Minimum accuracy of first turns, and the largest ratio of later turns' accuracy to it that is suspicious."""
_COLUMNS = ["case_id", "sample", "turn_index", "expected", "answer", "correct"]
_NEAR = 1e-3
_FAR = (-10, -9, -8, -7, 7, 8, 9, 10)
"""Distances in turns at which an answer matches the gold by chance only."""


@value
class AnsweredTurn:
    """A turn with a readable answer.

    Attributes:
        case: case id and sample, which identify a conversation.
    """

    case: tuple[str, int]
    turn_index: int
    expected: str
    answer: str
    correct: bool


@value
class LookedAt:
    """The turns of an evaluation with an answer and a gold: those that are looked at, and how many there are.

    Attributes:
        right: how many of all are right.
    """

    turns: list[AnsweredTurn]
    all: int
    right: int

    def signs(self) -> list[str]:
        """Returns a sentence for each oddity, see `suspicions`; it says so if not all turns were looked at."""
        found = suspicions(self.turns, any_right=self.right > 0)
        return found if len(self.turns) == self.all else [f"{sign} ({self.text()})" for sign in found]

    def text(self) -> str:
        """Returns how many answers were looked at."""
        if len(self.turns) == self.all:
            return shown.counted(self.all, "answer", "answers")
        return f"{len(self.turns):,} of {self.all:,} answers were looked at"


def looked_at(inputs: Inputs) -> LookedAt | None:
    """Returns the turns of an evaluation with an answer and a gold; None if the answers are a stand-in's.

    Of more than `MOST` turns, stretches of neighbours are looked at that are spread evenly over the suite.
    """
    header, start = inputs.header(TURN_RESULTS), 0
    apart = -(-(header.rows if header else 0) // STRETCHES)
    found: list[AnsweredTurn] = []
    answers = right = 0
    for group in inputs.rows_within(TURN_RESULTS, [*_COLUMNS, "simulated"]):
        if pc.any(group["simulated"]).as_py():
            return None
        near = pa.array(np.arange(start, start + group.num_rows) % max(1, apart) < MOST // STRETCHES)
        start += group.num_rows
        whole = pc.is_valid(group["correct"])  # turns that cannot be scored say nothing
        for name in ("answer", "expected"):
            whole = pc.and_(whole, pc.is_valid(group[name]))
        answers += pc.sum(whole).as_py() or 0
        right += pc.sum(pc.and_(whole, group["correct"])).as_py() or 0
        found += map(_answered, group.filter(pc.and_(whole, near)).to_pylist())
    return LookedAt(found, answers, right)


def _answered(row: Mapping[str, Any]) -> AnsweredTurn:
    case = row["case_id"], row["sample"]
    return AnsweredTurn(case, row["turn_index"], row["expected"], row["answer"], bool(row["correct"]))


def check_plausible(inputs: Inputs) -> CheckVerdict:
    """Checks that answers fit their questions in unit and order; a failure is a warning."""
    seen = looked_at(inputs)
    if seen is None:
        return CheckVerdict(True, "these are a stand-in's answers, not a model's: they are not judged")
    found = seen.signs()
    facts: dict[str, Json] = {"answers": seen.all, "signs": list(found)}
    if not found:
        return CheckVerdict(True, f"nothing odd about {seen.text()}", facts)
    text = implausible_text(found)
    return CheckVerdict(False, text, facts, True, _example(seen.turns))


def suspicions(answered: Sequence[AnsweredTurn], *, any_right: bool = False) -> list[str]:
    """Returns a sentence for each oddity in the answers of an evaluation; `any_right` if another of them is right."""
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
    if len(wrong) == len(answered) and not any_right and not signs:
        signs.append(
            f"none of {len(answered)} answers is right: look at prompt and answer form, and whether this is the "
            "suite that was answered"
        )
    return signs


def _example(answered: Sequence[AnsweredTurn]) -> str:
    """Returns the answer that is repeated most; it is shown on a terminal only."""
    wrong = _wrong(answered)
    again = _same(answered) or _fallback(wrong)
    return f"'{_commonest(wrong)[0]:.60}'" if again else ""


def _wrong(answered: Sequence[AnsweredTurn]) -> list[AnsweredTurn]:
    return [one for one in answered if not one.correct]


def _commonest(answered: Sequence[AnsweredTurn]) -> tuple[str, int]:
    return Counter(one.answer for one in answered).most_common(1)[0]


def _same(answered: Sequence[AnsweredTurn]) -> str | None:
    """Detects the same answer to everything: a stub, a cache, or an echo of the prompt."""
    _, count = _commonest(answered)
    gold = Counter(one.expected for one in answered).most_common(1)[0][1]
    if count < SAME_SHARE * len(answered) or gold > ALIKE_SHARE * len(answered):
        return None
    return f"{count} of {len(answered)} answers are the same, whatever is asked: is the question read?"


def _fallback(wrong: Sequence[AnsweredTurn]) -> str | None:
    """Detects a number that most wrong answers share, e.g. the fallback of an application whose step failed."""
    answer, count = _commonest(wrong)
    if number(answer) is None or count < max(FEWEST_WRONG, FALLBACK_SHARE * len(wrong)):
        return None
    gold = Counter(one.expected for one in wrong if one.answer == answer).most_common(1)[0][1]
    if gold > ALIKE_SHARE * count:
        return None
    return f"{count} of {len(wrong)} wrong answers are one number: is that what is answered where something fails?"


def _misplaced(answered: Sequence[AnsweredTurn], wrong: Sequence[AnsweredTurn]) -> str | None:
    """Detects wrong answers that are right for other turns: shifted by one, or another turn of the conversation.

    The rate expected by chance is estimated from turns of other conversations, whose gold answers are as similar.
    """
    shifted = {way: _shifted(answered, way) for way in (-1, 1)}
    way, count = max(shifted.items(), key=lambda item: item[1])
    usual = sum(_shifted(answered, far) for far in _FAR) / len(_FAR)
    if count >= max(FEWEST_WRONG, MISPLACED_SHARE * len(answered), ABOVE_CHANCE * usual):
        where = "after" if way > 0 else "before"
        return (
            f"{count} of {len(answered)} answers are right for the turn {where} the one that they were given to "
            f"({shown.count(usual)} would be by chance): are they shifted by one?"
        )
    conversations: dict[tuple[str, int], list[AnsweredTurn]] = {}
    for one in answered:
        conversations.setdefault(one.case, []).append(one)
    order = list(conversations)
    neighbour = dict(zip(order, [*order[1:], *order[:1]], strict=True))
    own = sum(_among(one, conversations[one.case]) for one in wrong)
    by_chance = sum(_among(one, conversations[neighbour[one.case]]) for one in wrong)
    if own < max(FEWEST_WRONG, MISPLACED_SHARE * len(wrong), ABOVE_CHANCE * by_chance):
        return None
    if 2 * len(wrong) < len(answered):  # models sometimes repeat earlier answers
        return None
    return (
        f"{own} of {len(wrong)} wrong answers are right for another turn of the conversation ({by_chance} would be by "
        "chance): is the right question asked, with the right history?"
    )


def _shifted(answered: Sequence[AnsweredTurn], way: int) -> int:
    """Counts wrong answers that are right for the turn `way` places further in the suite's order."""
    others = answered[way:] if way > 0 else answered[:way]
    given = answered[:-way] if way > 0 else answered[-way:]
    pairs = zip(given, others, strict=True)
    return sum(
        not one.correct and not equal(one.answer, one.expected) and equal(one.answer, other.expected)
        for one, other in pairs
    )


def _among(one: AnsweredTurn, turns: Sequence[AnsweredTurn]) -> bool:
    return any(equal(one.answer, other.expected) for other in turns if other is not one)


def _scaled(wrong: Sequence[AnsweredTurn]) -> str | None:
    """Detects wrong numbers that are all the same multiple of the right ones: another unit or sign."""
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
    times = shown.number(float(ratio))
    return f"{count} of {len(ratios)} wrong numbers are {times} times the right ones: {asked} answered?"


def _history(answered: Sequence[AnsweredTurn]) -> str | None:
    """Detects right first turns followed by wrong later turns: the conversation history is not read."""
    first = [one.correct for one in answered if one.turn_index == 0]
    later = [one.correct for one in answered if one.turn_index > 0]
    if len(first) < FEWEST_WRONG or len(later) < FEWEST_WRONG:
        return None
    right, then = sum(first) / len(first), sum(later) / len(later)
    if right < FIRST_RIGHT or then > LATER_SHARE * right:
        return None
    return (
        f"{shown.rate(right)} of the first turns of conversations are right and {shown.rate(then)} of the later ones: "
        "is the history of the conversation read?"
    )


def equal(answer: str, expected: str) -> bool:
    """Whether two answers are the same number or the same text."""
    if answer == expected:
        return True
    given, right = number(answer), number(expected)
    if given is None or right is None:
        return " ".join(answer.lower().split()) == " ".join(expected.lower().split())
    return isclose(given, right, rel_tol=_NEAR)


@lru_cache(maxsize=1 << 16)
def number(text: str) -> float | None:
    """Parses an answer as a number (25% is 0.25); returns None if it is not one."""
    text = text.strip().replace(",", "")
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None

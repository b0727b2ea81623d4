"""Groups of turns by who was right: all, only one, all wrong alike. Codes stand in addresses, words on pages."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_pipeline.view.comparing.sides import LETTERS

RIGHT, WRONG, NO_ANSWER, UNSCORED = "r", "w", "n", "u"
"""States of a turn in an evaluation; a code of several sides has one for each."""
ALL_RIGHT, DIFFERENTLY, ALIKE, NOT_ANSWERED, NOT_SCORED = (
    "all-right", "all-wrong-differently", "all-wrong-alike", "not-answered", "not-scored",
)  # fmt: skip
REGRESSIONS = "regressions"
"""Stands for all groups in which the first is right and another one wrong."""
AFTER_PATTERNS = {NOT_ANSWERED: 20, DIFFERENTLY: 40, ALIKE: 50, NOT_SCORED: 60, ALL_RIGHT: 70}
REGRESSED, OTHERS = 0, 30
"""Where groups come: these by name, those that differ by what the first is, and how many are right."""


class Group(NamedTuple):
    """Turns on which the sides stand alike to one another.

    Attributes:
        code: of the address: a letter for each side where they differ, else a name.
        turns: how many there are.
    """

    code: str
    turns: int


def rank(code: str) -> int:
    """Where a group comes: those that the first alone got right before all, what all got right last."""
    if code in AFTER_PATTERNS:
        return AFTER_PATTERNS[code]
    return (REGRESSED if code.startswith(RIGHT) else OTHERS) + code.count(RIGHT)


def is_regression(code: str) -> bool:
    """The first is right and another one wrong."""
    return code not in AFTER_PATTERNS and code.startswith(RIGHT)


def is_code(text: str, sides: int) -> bool:
    """Whether a text names a group of that many sides, or all regressions."""
    if text in AFTER_PATTERNS or text == REGRESSIONS:
        return True
    return len(text) == sides and set(text) == {RIGHT, WRONG}


def words(code: str, sides: int) -> str:
    """What a group is, in words."""
    named = {
        REGRESSIONS: "A right, another wrong" if sides > 2 else "Only B wrong",
        ALL_RIGHT: "All right",
        DIFFERENTLY: "All wrong, differently",
        ALIKE: "All wrong alike: the same answer",
        NOT_ANSWERED: "Not answered by all",
        NOT_SCORED: "Not scored for all",
    }
    if code in named:
        return named[code]
    right, wrong = ([LETTERS[place] for place, state in enumerate(code) if state == one] for one in (RIGHT, WRONG))
    if len(right) == 1 and len(wrong) > 1:
        return f"Only {right[0]} right"
    return f"Only {_listed(wrong)} wrong"


def _listed(letters: Sequence[str]) -> str:
    return letters[0] if len(letters) == 1 else f"{', '.join(letters[:-1])} and {letters[-1]}"

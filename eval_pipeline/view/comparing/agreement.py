"""Groups of turns by who was right: all, only some, or all wrong in the same way.

Addresses use codes for the groups, pages use words.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eval_pipeline.view.comparing.sides import LETTERS

RIGHT, WRONG, NO_ANSWER, UNSCORED = "r", "w", "n", "u"
"""The states of a turn in one evaluation; the code of a group has one letter per evaluation."""
ALL_RIGHT, DIFFERENTLY, ALIKE, NOT_ANSWERED, NOT_SCORED = (
    "all-right", "all-wrong-differently", "all-wrong-alike", "not-answered", "not-scored",
)  # fmt: skip
REGRESSIONS = "regressions"
"""Stands for all groups in which the first evaluation is right and another one is wrong."""
AFTER_PATTERNS = {NOT_ANSWERED: 20, DIFFERENTLY: 40, ALIKE: 50, NOT_SCORED: 60, ALL_RIGHT: 70}
REGRESSED, OTHERS = 0, 30
"""Ranks that order the groups: these have fixed ones; the others depend on the first side and how many are right."""


class Group(NamedTuple):
    """Turns with the same pattern of right and wrong answers.

    Attributes:
        code: code in the address: one letter per evaluation if they differ, otherwise a name.
        turns: how many turns there are.
    """

    code: str
    turns: int


def is_regression(code: str) -> bool:
    """Returns whether the first evaluation is right and another one is wrong."""
    return code not in AFTER_PATTERNS and code.startswith(RIGHT)


def is_code(text: str, sides: int) -> bool:
    """Returns whether a text is the code of a group for that many evaluations, or of all regressions."""
    if text in AFTER_PATTERNS or text == REGRESSIONS:
        return True
    return len(text) == sides and set(text) == {RIGHT, WRONG}


def words(code: str, sides: int) -> str:
    """Describes a group in words."""
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

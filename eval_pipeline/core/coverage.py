"""How far the turns of an evaluation got: planned, asked, answered, readable, scored (docs/statistics.md).

The one definition of these words; every table, page, command and notification that says one of them goes by it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any, NamedTuple

from eval_pipeline.core.model import CallErrorKind

NOT_ASKED = frozenset({CallErrorKind.BUDGET.value, CallErrorKind.NO_PREDICTION.value})
"""Calls that reached no model: the budget refused them, or the file of recorded answers lacks the turn."""
ITS_OWN_DOING = frozenset({CallErrorKind.REFUSED.value, CallErrorKind.MAX_TOKENS.value})
"""Calls that gave nothing to read because of what the model did: it was asked and had its say."""
Place = tuple[str, int]
"""Turn and sample."""


class Try(NamedTuple):
    """What one attempt at a turn says of how far the turn got.

    Attributes:
        call_error: why the call gave nothing to read; None where it did.
        responded: a response came back; one that is a refusal or was cut off is one too.
        read: an answer could be read from it.
    """

    turn_id: str
    sample: int
    call_error: str | None
    responded: bool
    read: bool


class Reached(NamedTuple):
    """How far a turn and sample got.

    Attributes:
        asked: the question was put to the model.
        answered: a response came back to any attempt, whatever is in it. A refusal and an answer cut off at the limit
            are the model's doing, so they are answers too; a timeout is not.
        readable: an answer could be read from the attempt that counts, which is the last one.
    """

    asked: bool
    answered: bool
    readable: bool


def turns_reached(tries: Iterable[Try]) -> dict[Place, Reached]:
    """How far each turn and sample got, from its attempts in the order in which they were made."""
    found: dict[Place, Reached] = {}
    for turn_id, sample, call_error, responded, read in tries:
        before = found.get((turn_id, sample), _NOTHING)
        asked = before.asked or call_error not in NOT_ASKED
        answered = before.answered or responded or call_error in ITS_OWN_DOING
        found[turn_id, sample] = Reached(asked, answered, answered and read)
    return found


_NOTHING = Reached(asked=False, answered=False, readable=False)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many turns of an evaluation got how far, every sample counted; None where it is not on record.

    Attributes:
        planned: in the scope of the run.
        asked, answered, readable: as of `Reached`; each is among the one before.
        scored: with a verdict, so that they count in the accuracy. A turn that was answered unreadably or not at all
            is scored as wrong; one that the budget left out, or that has no gold that holds, is not scored.
    """

    planned: int | None = None
    asked: int | None = None
    answered: int | None = None
    readable: int | None = None
    scored: int | None = None

    @classmethod
    def of(cls, reached: Iterable[Reached], planned: int | None, scored: int) -> "Coverage":
        """Counts turns."""
        turns = list(reached)
        return cls(
            planned,
            sum(turn.asked for turn in turns),
            sum(turn.answered for turn in turns),
            sum(turn.readable for turn in turns),
            scored,
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any], suffix: str = "") -> "Coverage":
        """From columns of these names, as `columns` gives them; those that are missing are None."""
        return cls(*(row.get(f"{name}{suffix}") for name in WORDS))

    def columns(self, suffix: str = "") -> dict[str, int | None]:
        """As columns of a table."""
        return {f"{name}{suffix}": count for name, count in asdict(self).items()}

    @property
    def is_known(self) -> bool:
        """Whether it is on record: evaluations of earlier versions lack it."""
        return self.answered is not None

    @property
    def is_whole(self) -> bool:
        """Every planned turn was asked, answered, could be read and is scored; also where nobody knows."""
        return len({count for count in astuple(self) if count is not None}) <= 1

    def text(self) -> str:
        """All five, e.g. `planned 423 · asked 419 · answered 419 · readable 419 · scored 423`."""
        if not self.is_known:
            return "not on record"
        return " · ".join(f"{name} {count:,}" for name, count in asdict(self).items() if count is not None)

    def gaps(self) -> str:
        """What is missing and what follows from it, in a sentence; empty where nothing is, or nobody knows."""
        if not self.is_known:
            return ""
        planned, asked, answered, readable, scored = (
            self.planned if self.planned is not None else self.asked or 0,
            self.asked or 0,
            self.answered or 0,
            self.readable or 0,
            self.scored or 0,
        )
        found = [
            (planned - asked, "was not asked", "were not asked"),
            (asked - answered, "had no response", "had no response"),
            (answered - readable, "had a response that could not be read", "had a response that could not be read"),
        ]
        missing = [f"{count:,} {one if count == 1 else several}" for count, one, several in found if count > 0]
        if not missing:
            return ""
        wrong = scored - readable
        counted = f"; {wrong:,} {'counts' if wrong == 1 else 'count'} as wrong" if wrong > 0 else ""
        listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        return f"of {planned:,} planned turn{'s' * (planned != 1)}, {listed}{counted}"


WORDS = tuple(Coverage.__dataclass_fields__)
"""The five words, in the order in which turns get there."""

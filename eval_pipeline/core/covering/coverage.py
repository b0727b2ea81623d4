"""Coverage: how many turns of an evaluation were planned, asked, answered, readable and scored (docs/statistics.md).

This module is the only definition of these words. Every table, page, command and notification uses it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, NamedTuple

from eval_pipeline.core.model import CallErrorKind

NOT_ASKED = frozenset({CallErrorKind.BUDGET.value, CallErrorKind.NO_PREDICTION.value})
"""Call errors where no model was reached.

The budget refused the call, or the file of recorded answers lacks the turn.
"""
ITS_OWN_DOING = frozenset({CallErrorKind.REFUSED.value, CallErrorKind.MAX_TOKENS.value})
"""Call errors that the model caused.

It was asked, but refused or ran into the token limit, so there is no answer to read.
"""
Place = tuple[str, int]
"""Turn id and sample number."""


class Try(NamedTuple):
    """The facts about one attempt from which the turn's coverage is computed.

    Attributes:
        call_error: why the call gave no answer to read; None if it gave one.
        responded: whether a response came back, even a refusal or one that was cut off.
        read: whether an answer could be parsed from the response.
    """

    turn_id: str
    sample: int
    call_error: str | None
    responded: bool
    read: bool


class Reached(NamedTuple):
    """How far a turn and sample got.

    Attributes:
        asked: the question was sent to the model.
        answered: any attempt got a response, whatever it contains. Refusals and answers cut off at the token limit are
            caused by the model and count as answers; timeouts do not.
        readable: an answer could be parsed from the last attempt, which is the one that counts.
    """

    asked: bool
    answered: bool
    readable: bool


def turns_reached(tries: Iterable[Try]) -> dict[Place, Reached]:
    """Computes how far each turn and sample got.

    Args:
        tries: all attempts, in the order in which they were made.
    """
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
    """Counts of turns (times samples) per stage of coverage; None where the record does not hold the count.

    Attributes:
        planned: in the scope of the run.
        asked, answered, readable: as in `Reached`; each is a subset of the one before.
        scored: with a verdict, so that they count in the accuracy. A turn without a readable answer is scored as wrong.
            A turn left out by the budget, or without a valid gold answer, is not scored.
    """

    planned: int | None = None
    asked: int | None = None
    answered: int | None = None
    readable: int | None = None
    scored: int | None = None

    @classmethod
    def of(cls, reached: Iterable[Reached], planned: int | None, scored: int) -> "Coverage":
        """Counts the turns at each stage."""
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
        """Reads the counts from the columns that `columns` writes; missing columns give None."""
        return cls(*(row.get(f"{name}{suffix}") for name in WORDS))

    def columns(self, suffix: str = "") -> dict[str, int | None]:
        """Returns the counts as table columns, with the suffix appended to each name."""
        return {f"{name}{suffix}": count for name, count in asdict(self).items()}

    @property
    def is_known(self) -> bool:
        """Whether the counts are on record; evaluations made by early versions lack them."""
        return self.answered is not None

    @property
    def is_whole(self) -> bool:
        """Whether every planned turn was asked, answered, readable and scored. Unknown counts are ignored."""
        return len({count for count in astuple(self) if count is not None}) <= 1

    def text(self) -> str:
        """Returns all five counts, e.g. `planned 423 · asked 419 · answered 419 · readable 419 · scored 423`."""
        if not self.is_known:
            return "not on record"
        return " · ".join(f"{name} {count:,}" for name, count in asdict(self).items() if count is not None)

    def gaps(self, unscored: int = 0) -> str:
        """Returns a sentence on what is missing and its consequence.

        Empty if nothing is missing or the counts are unknown.

        Args:
            unscored: turns that were asked and cannot be scored; with some, it is not known how many of the others
                count as wrong.
        """
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
        counted = f"; {wrong:,} {'counts' if wrong == 1 else 'count'} as wrong" if wrong > 0 and not unscored else ""
        listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        return f"of {planned:,} planned turn{'s' * (planned != 1)}, {listed}{counted}"


def implausible_text(signs: Sequence[str]) -> str:
    """Returns one sentence on the signs that answers belong to other questions than the gold, or are in other units.

    Args:
        signs: a clause for each, as in the column `implausible` of `coverage`.
    """
    return f"this looks like the configuration, not like the model: {'; '.join(signs)}"


WORDS = tuple(Coverage.__dataclass_fields__)
"""The five words, in the order of the stages."""

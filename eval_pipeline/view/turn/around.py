"""The list from which a turn was opened: the turns of a filter, or of several evaluations side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eval_pipeline.core.model import Partition
from eval_pipeline.view.addresses import AFTER, turn_address, turns_address
from eval_pipeline.view.comparing import agreement
from eval_pipeline.view.comparing import found as comparing
from eval_pipeline.view.comparing.sides import LETTERS, address_arguments, sides_address, sides_of
from eval_pipeline.view.comparing.sql import choice_of, position_text
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.filtering import found as filtering
from eval_pipeline.view.filtering.filter import filter_of
from eval_pipeline.view.page import NotFoundError
from eval_pipeline.view.turn.seen import TurnSeen


class TurnSide(NamedTuple):
    """The same turn in one of the evaluations that are compared: its letter, its page, and whether it is this page."""

    letter: str
    partition: Partition
    address: str
    is_this: bool


@dataclass(frozen=True, slots=True)
class Around:
    """The position of a turn in the list.

    Attributes:
        up: address of the list.
        arguments: arguments that identify the list in the address of a turn.
        place: position of the turn, from 0; None if the list does not contain it.
        matching: number of turns in the list.
        earlier, later: addresses of the previous and the next turn; None if there is none.
        sides: the turn in each evaluation; empty if it was not opened from a comparison.
    """

    up: str
    arguments: Mapping[str, Any]
    place: int | None
    matching: int
    earlier: str | None
    later: str | None
    sides: Sequence[TurnSide] = ()

    @property
    def tells(self) -> str:
        """What whoever comes from the list knows of the verdict: which answers it has; empty if it does not tell."""
        named, count = self.arguments, len(self.sides)
        if count and (named.get("group") or named.get("kind")):
            group = agreement.words(named["group"], count) if named.get("group") else ""
            return "the group " + ", ".join(f"“{one}”" for one in (group, named.get("kind")) if one)
        if named.get("verdict"):
            return f"a list of {named['verdict']} answers"
        if any(named.get(name) for name in _OF_WRONG) or set(_OF_VERDICT) & {*named.get("column", ())}:
            return "a list filtered by how answers fail"
        return ""


_OF_WRONG = ("error_class", "failure_mode", "wrong_in")
_OF_VERDICT = ("correct", *_OF_WRONG)
"""Arguments, and columns of conditions, of a list that has answers of one verdict."""

Addresses = Callable[[Partition, str, int, Mapping[str, Any]], str]
"""Returns the address of a turn within a list."""


def around(seen: TurnSeen, address_of: Addresses = turn_address) -> Around:
    """Returns the list that a turn's address names: evaluations side by side if it has `versions`, else a filter.

    Args:
        seen: the turn.
        address_of: where other turns of the list lead to.

    Raises:
        UsageError: the address names an invalid column, group or choice of evaluations.
    """
    if seen.visit.argument("versions"):
        try:
            return _in_comparison(seen, sides_of(seen.visit), address_of)
        except NotFoundError:  # an evaluation of an old address is gone, but the turn can still be shown
            pass
    return _in_filter(seen, address_of)


def _in_filter(seen: TurnSeen, address_of: Addresses) -> Around:
    partition = seen.evaluation.partition
    filtered = filter_of(seen.visit.request.query_params, seen.evaluation.columns)
    up = turns_address(partition, filtered.arguments)
    turns = filtering.order(seen.look, seen.evaluation, filtered)
    return _around(seen, turns, up, filtered.arguments, address_of)


def _in_comparison(seen: TurnSeen, sides: Sequence[StoredEvaluation], address_of: Addresses) -> Around:
    """Returns the position in a comparison; its `up` leads to the comparison's page that begins with this turn."""
    choice = choice_of(seen.visit.request.query_params, len(sides))
    turns = comparing.order(seen.look, sides, choice)
    place = turns.place(seen.turn_id, seen.sample)
    before = {AFTER: position_text(turns.position(place - 1))} if place else {}
    named = {**address_arguments(sides), **choice.arguments}
    same = [
        TurnSide(
            letter,
            side.partition,
            address_of(side.partition, seen.turn_id, seen.sample, named),
            side.partition == here,
        )
        for here in [seen.evaluation.partition]
        for letter, side in zip(LETTERS, sides, strict=False)
    ]
    return _around(seen, turns, sides_address(sides, choice.arguments | before), named, address_of, same)


def _around(
    seen: TurnSeen,
    turns: filtering.FilterOrder,
    up: str,
    arguments: Mapping[str, Any],
    address_of: Addresses,
    sides: Sequence[TurnSide] = (),
) -> Around:
    place, partition = turns.place(seen.turn_id, seen.sample), seen.evaluation.partition
    beside = (None, None) if place is None else (turns.at(place - 1), turns.at(place + 1))
    earlier, later = (turn and address_of(partition, *turn, arguments) for turn in beside)
    return Around(up, arguments, place, len(turns), earlier, later, sides)

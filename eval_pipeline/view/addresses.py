"""Makes the addresses of pages. The same content always has the same address, so that links can be shared."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.links import address, evaluation_arguments, evaluation_path

__all__ = ["AFTER", "BEFORE", "address", "of_evaluation", "review_address", "turn_address", "turns_address"]

AFTER, BEFORE = "after", "before"
"""Arguments in the address of a list of turns: the position after which its page begins, or before which it ends."""

turns_address = evaluation_path
of_evaluation = evaluation_arguments


def turn_address(partition: Partition, turn_id: str, sample: int = 0, filtered: Mapping[str, Any] | None = None) -> str:
    """Returns the address of a turn, optionally as part of a filtered list.

    The turn's id is an argument, since it may contain anything, even `/../`.
    """
    return _of_turn("turn", partition, turn_id, sample, filtered)


TOLD = "told"
"""Argument of the address of a review that is opened from where the verdict stands."""


def review_address(
    partition: Partition, turn_id: str, sample: int = 0, filtered: Mapping[str, Any] | None = None
) -> str:
    """Returns the address at which an answer is reviewed; arguments as of `turn_address`."""
    return _of_turn("review", partition, turn_id, sample, filtered)


def _of_turn(page: str, partition: Partition, turn_id: str, sample: int, filtered: Mapping[str, Any] | None) -> str:
    named = {"turn_id": turn_id, **of_evaluation(partition), "sample": sample or None}
    return address(f"/suites/{quote(partition.suite)}/{page}", {**named, **(filtered or {})})

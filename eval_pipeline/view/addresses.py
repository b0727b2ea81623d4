"""Addresses of pages: the same things always have the same address, so that it can be sent to somebody."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from eval_pipeline.core.model import Partition


def address(path: str, arguments: Mapping[str, Any] | None = None) -> str:
    """A path with arguments; those that say nothing are left out, lists are given a value each."""
    said = {name: value for name, value in (arguments or {}).items() if value is not None and value not in ("", [])}
    return f"{path}?{urlencode(said, doseq=True)}" if said else path


def of_evaluation(partition: Partition) -> dict[str, str]:
    """What names an evaluation beside its suite."""
    return {"model_version": partition.model_version, "eval_date": partition.eval_date.isoformat()}


def turns_address(partition: Partition, filtered: Mapping[str, Any] | None = None) -> str:
    """The turns of an evaluation, those of a filter (`Filter.arguments`)."""
    return address(f"/suites/{quote(partition.suite)}/turns", {**of_evaluation(partition), **(filtered or {})})


def turn_address(partition: Partition, turn_id: str, sample: int = 0, filtered: Mapping[str, Any] | None = None) -> str:
    """A turn; its id is an argument, since it may hold anything, `/../` too. With a filter, among the turns of that."""
    named = {"turn_id": turn_id, **of_evaluation(partition), "sample": sample or None}
    return address(f"/suites/{quote(partition.suite)}/turn", {**named, **(filtered or {})})

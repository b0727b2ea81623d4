"""Addresses of pages: the same things always have the same address, so that it can be sent to somebody."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.links import address, evaluation_path

__all__ = ["address", "of_evaluation", "turn_address", "turns_address"]

turns_address = evaluation_path


def of_evaluation(partition: Partition) -> dict[str, str]:
    """What names an evaluation beside its suite."""
    return {"model_version": partition.model_version, "eval_date": partition.eval_date.isoformat()}


def turn_address(partition: Partition, turn_id: str, sample: int = 0, filtered: Mapping[str, Any] | None = None) -> str:
    """A turn; its id is an argument, since it may hold anything, `/../` too. With a filter, among the turns of that."""
    named = {"turn_id": turn_id, **of_evaluation(partition), "sample": sample or None}
    return address(f"/suites/{quote(partition.suite)}/turn", {**named, **(filtered or {})})

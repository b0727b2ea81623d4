"""Addresses of the workbench that others link to: pages that are mailed, notifications, Dagster, the command line.

A path is always the same; where the workbench is reached, only whoever set it up knows (`EVAL_VIEW_URL`).
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from eval_pipeline.core.model import Partition

VIEW_URL = "EVAL_VIEW_URL"
"""Environment variable: where people reach the workbench."""


def address(path: str, arguments: Mapping[str, Any] | None = None) -> str:
    """A path with arguments; those that say nothing are left out, lists are given a value each."""
    said = {name: value for name, value in (arguments or {}).items() if value is not None and value not in ("", [])}
    return f"{path}?{urlencode(said, doseq=True, safe=',')}" if said else path


def evaluation_path(partition: Partition, arguments: Mapping[str, Any] | None = None) -> str:
    """The turns of an evaluation."""
    named = {"model_version": partition.model_version, "eval_date": partition.eval_date.isoformat()}
    return address(f"/suites/{quote(partition.suite)}/turns", {**named, **(arguments or {})})


def compare_path(partitions: Sequence[Partition], arguments: Mapping[str, Any] | None = None) -> str:
    """Evaluations of a suite side by side; the first is what the others are held against."""
    named = {
        "versions": ",".join(found.model_version for found in partitions),
        "eval_dates": ",".join(found.eval_date.isoformat() for found in partitions),
    }
    return address(suite_path(partitions[0].suite), {**named, **(arguments or {})})


def suite_path(suite: str) -> str:
    """The newest two evaluations of a suite side by side."""
    return f"/suites/{quote(suite)}/compare"


def reviews_path(suite: str) -> str:
    """What people say of a suite's answers, and the queues to review."""
    return f"/suites/{quote(suite)}/reviews"


def view_url() -> str:
    """Where people reach the workbench, without a slash at the end; empty where nobody has said so."""
    found = os.environ.get(VIEW_URL, "").strip().rstrip("/")
    return found if found.startswith(("http://", "https://")) else ""


def linked(path: str) -> str:
    """The address of a page of the workbench; its path alone where nobody has said where that is reached."""
    return f"{view_url()}{path}"

"""Addresses of the workbench's pages, for mailed pages, notifications, Dagster and the command line.

The path of a page is always the same. The address of the workbench itself is set by whoever runs it (`EVAL_VIEW_URL`).
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from eval_pipeline.core.model import Partition

NEWEST = "-"
"""In an address, in the place of the id of an earlier evaluation: the newest of the date."""
VIEW_URL = "EVAL_VIEW_URL"
"""Environment variable with the address at which people reach the workbench."""


def address(path: str, arguments: Mapping[str, Any] | None = None) -> str:
    """Returns a path with arguments; empty ones are left out, and a list adds one argument per value."""
    said = {name: value for name, value in (arguments or {}).items() if value is not None and value not in ("", [])}
    return f"{path}?{urlencode(said, doseq=True, safe=',')}" if said else path


def evaluation_path(partition: Partition, arguments: Mapping[str, Any] | None = None) -> str:
    """Returns the path of the page with the turns of an evaluation."""
    named = evaluation_arguments(partition)
    return address(f"/suites/{quote(partition.suite)}/turns", {**named, **(arguments or {})})


def evaluation_arguments(partition: Partition) -> dict[str, str]:
    """Returns the arguments that identify an evaluation within its suite."""
    earlier = {"evaluation": partition.evaluation} if partition.evaluation else {}
    return {"model_version": partition.model_version, "eval_date": partition.eval_date.isoformat(), **earlier}


def compare_path(partitions: Sequence[Partition], arguments: Mapping[str, Any] | None = None) -> str:
    """Returns the path of the page that shows evaluations side by side; the first is the baseline."""
    return address(suite_path(partitions[0].suite), {**compare_arguments(partitions), **(arguments or {})})


def compare_arguments(partitions: Sequence[Partition]) -> dict[str, str]:
    """Returns the arguments that select evaluations to show side by side."""
    earlier = any(found.evaluation for found in partitions)
    return {
        "versions": ",".join(found.model_version for found in partitions),
        "eval_dates": ",".join(found.eval_date.isoformat() for found in partitions),
        **({"evaluations": ",".join(found.evaluation or NEWEST for found in partitions)} if earlier else {}),
    }


def suite_path(suite: str) -> str:
    """Returns the path of the page with the two newest evaluations of a suite side by side."""
    return f"/suites/{quote(suite)}/compare"


def reviews_path(suite: str) -> str:
    """Returns the path of the page with reviews of a suite's answers and the review queues."""
    return f"/suites/{quote(suite)}/reviews"


def view_url() -> str:
    """Returns the address of the workbench without a trailing slash; empty if it is not set."""
    found = os.environ.get(VIEW_URL, "").strip().rstrip("/")
    return found if found.startswith(("http://", "https://")) else ""


def linked(path: str) -> str:
    """Returns the full address of a page of the workbench, or only its path if the workbench's address is not set."""
    return f"{view_url()}{path}"


def page_text(path: str) -> str:
    """Returns how the terminal names a page of the workbench: its address, or the command and the path."""
    return linked(path) if view_url() else f"`eval-pipeline view`, then {path}"

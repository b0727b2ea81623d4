"""Where reports lie, and names made safe for a file system."""

import hashlib
from datetime import date
from pathlib import Path
from urllib.parse import quote

from eval_pipeline.core.model import Partition

WORKBOOK = "report.xlsx"
PAGE = "report.html"
CHARTS = "charts"
"""Folder of the charts as files."""
_LONGEST = 180
_KEPT = 120


def report_folder(reports: Path, partition: Partition) -> Path:
    """`<reports>/<suite>/<model_version>/<eval_date>`."""
    names = (partition.suite, partition.model_version, partition.eval_date.isoformat())
    return reports.joinpath(*[safe_name(name) for name in names])


def comparison_folder(reports: Path, suite: str, day: date) -> Path:
    """`<reports>/compare/<suite>/<date>`."""
    return reports.joinpath("compare", safe_name(suite), day.isoformat())


def nights_folder(reports: Path) -> Path:
    """`<reports>/nights`, with a page a date."""
    return reports / "nights"


def trace_file(case_id: str) -> str:
    """Path of a conversation's trace within the report's folder."""
    return f"traces/{safe_name(case_id)}.json"


def safe_name(name: str) -> str:
    """The name with everything but `A-Za-z0-9_.-@+` percent-encoded; a leading dot too.

    A name too long for a file is cut and ends in `~` and a hash; `~` is encoded elsewhere.
    """
    encoded = quote(name, safe="@+").replace("~", "%7E")
    if encoded.startswith("."):
        encoded = f"%2E{encoded[1:]}"
    if len(encoded) <= _LONGEST:
        return encoded or "%"
    return f"{encoded[:_KEPT]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"

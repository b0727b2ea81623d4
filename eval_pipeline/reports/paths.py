"""The paths of reports, and how names are made safe for file systems."""

import hashlib
from datetime import date
from pathlib import Path
from urllib.parse import quote

from eval_pipeline.core.model import Partition

WORKBOOK = "report.xlsx"
PAGE = "report.html"
CHARTS = "charts"
"""Folder with the charts as files."""
_LONGEST = 180
_KEPT = 120


def report_folder(reports: Path, partition: Partition) -> Path:
    """Returns `<reports>/<suite>/<model_version>/<eval_date>`."""
    names = (partition.suite, partition.model_version, partition.eval_date.isoformat())
    return reports.joinpath(*[safe_name(name) for name in names])


def comparison_folder(reports: Path, suite: str, day: date) -> Path:
    """Returns `<reports>/compare/<suite>/<date>`."""
    return reports.joinpath("compare", safe_name(suite), day.isoformat())


def nights_folder(reports: Path) -> Path:
    """Returns `<reports>/nights`, which holds one page per date."""
    return reports / "nights"


def trace_file(case_id: str) -> str:
    """Returns the path of a conversation's trace within the report's folder."""
    return f"traces/{safe_name(case_id)}.json"


def safe_name(name: str) -> str:
    """Returns the name with everything but `A-Za-z0-9_.-@+` percent-encoded; a leading dot is encoded too.

    A name that is too long is cut and ends in `~` and a hash; other `~` are encoded.
    """
    encoded = quote(name, safe="@+").replace("~", "%7E")
    if encoded.startswith("."):
        encoded = f"%2E{encoded[1:]}"
    if len(encoded) <= _LONGEST:
        return encoded or "%"
    return f"{encoded[:_KEPT]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"

"""The paths of reports, and how names are made safe for file systems."""

import hashlib
import os
from datetime import date
from pathlib import Path
from urllib.parse import quote

from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import Partition

WORKBOOK = "report.xlsx"
PAGE = "report.html"
STATISTICS, SPLITS = "statistics.json", "splits.json"
CHARTS = "charts"
"""Folder with the charts as files."""
_LONGEST = 180
_KEPT = 120


def report_folder(reports: Path, partition: Partition) -> Path:
    """Returns `<reports>/<suite>/<model_version>/<eval_date>`, with `.<id>` for an earlier evaluation of the date."""
    day = ".".join(filter(None, (partition.eval_date.isoformat(), partition.evaluation)))
    names = (partition.suite, partition.model_version, day)
    return reports.joinpath(*[safe_name(name) for name in names])


def comparison_folder(reports: Path, suite: str, day: date) -> Path:
    """Returns `<reports>/compare/<suite>/<date>`."""
    return reports.joinpath("compare", safe_name(suite), day.isoformat())


def nights_folder(reports: Path) -> Path:
    """Returns `<reports>/nights`, which holds one page per date."""
    return reports / "nights"


def night_page(reports: Path, day: date) -> Path:
    """Returns the path of the page of a night."""
    return nights_folder(reports) / f"{day.isoformat()}.html"


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


INDEX, DATA, MARKER, TURNS = "index.html", "data.js", ".exported", "turns"


def exported_folder(exports: Path, partition: Partition) -> Path:
    """Returns `<exports>/<suite>/<model_version>/view-<date>`, the place where a purge looks for it."""
    return exports / partition.suite / safe_name(partition.model_version) / f"view-{partition.eval_date}"


def turn_page(turn_id: str, sample: int) -> str:
    """Returns the path of a turn's page within the folder.

    It is a hash, as ids may contain characters that paths cannot.
    """
    return f"{TURNS}/{text_hash(f'{turn_id}~{sample}')[:20]}.html"


def exported_state(folder: Path) -> str:
    """Returns a text that identifies the export in a folder; empty if there is no export."""
    try:
        return (folder / MARKER).read_text()
    except OSError:
        return ""


def page_link(exported: Path | None, turn_id: str, sample: int, folder: Path) -> str | None:
    """Returns a relative link from a page in a folder to a turn's exported page, or None if there is none."""
    page = None if exported is None else exported / turn_page(turn_id, sample)
    return None if page is None or not page.is_file() else quote(os.path.relpath(page, folder), safe="/@+~")

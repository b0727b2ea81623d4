"""Where an exported evaluation lies, and how its pages are named: reports link to them."""

import os
from pathlib import Path
from urllib.parse import quote

from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.paths import safe_name

INDEX, DATA, MARKER, TURNS = "index.html", "data.js", ".exported", "turns"


def exported_folder(exports: Path, partition: Partition) -> Path:
    """`<exports>/<suite>/<model_version>/view-<date>`, where a purge finds it."""
    return exports / partition.suite / safe_name(partition.model_version) / f"view-{partition.eval_date}"


def turn_page(turn_id: str, sample: int) -> str:
    """Path of a turn's page within the folder: ids hold what no file system and no web host takes."""
    return f"{TURNS}/{text_hash(f'{turn_id}~{sample}')[:20]}.html"


def exported_state(folder: Path) -> str:
    """What tells one export in a folder from another; empty where there is none."""
    try:
        return (folder / MARKER).read_text()
    except OSError:
        return ""


def page_link(exported: Path | None, turn_id: str, sample: int, folder: Path) -> str | None:
    """Relative link from a page in a folder to the exported page of a turn; None where that is not there."""
    page = None if exported is None else exported / turn_page(turn_id, sample)
    return None if page is None or not page.is_file() else quote(os.path.relpath(page, folder), safe="/@+~")

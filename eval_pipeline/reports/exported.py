"""Where an exported evaluation is and how its pages are named, so that reports can link to them."""

import os
from pathlib import Path
from urllib.parse import quote

from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.paths import safe_name

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

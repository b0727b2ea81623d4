"""The notebook of the Python interface runs from top to bottom and gives the outputs that are stored in it.

`python -m eval_pipeline_tests.docs.test_notebook` runs it and stores the outputs.
"""

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from eval_pipeline.core.system.interrupts import handlers_kept

NOTEBOOK = Path(__file__).parents[2] / "docs" / "python-api.ipynb"


def executed(place: Path) -> Any:
    """The notebook, run in a folder."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with handlers_kept():  # nbclient puts Python's own in the place of those that it finds
        NotebookClient(
            notebook, timeout=180, kernel_name="python3", record_timing=False, resources={"metadata": {"path": place}}
        ).execute()
    return notebook


def texts(notebook: Any) -> list[list[str]]:
    """What each cell of code printed and showed, as text."""
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_runs_and_shows_what_is_stored_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVAL_HOME", "EVAL_DATA", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    found = texts(executed(tmp_path))
    assert found == texts(stored)
    assert sum(map(len, found)) >= 4, "cells show something"
    assert {path.name for path in tmp_path.iterdir()} <= {"ipython"}, "a notebook leaves nothing behind"


if __name__ == "__main__":
    nbformat.write(executed(NOTEBOOK.parent), NOTEBOOK)
    shutil.rmtree(NOTEBOOK.parent / ".ipynb_checkpoints", ignore_errors=True)

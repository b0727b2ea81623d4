"""Importing recorded answers of the suite `small`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline_tests.support import Lab


def imported(
    lab: Lab,
    given: Path | Iterable[Mapping[str, Any]],
    *options: str,
    form: str = "predictions",
    name: str = "old",
    code: int = 0,
) -> str:
    """What importing said: of a file, or of rows, which are written to `rows.jsonl`."""
    file = given if isinstance(given, Path) else lab.home.root.parent / "rows.jsonl"
    if not isinstance(given, Path):
        file.write_text("".join(json.dumps(row) + "\n" for row in given))
    said = lab.cli("import", form, str(file), "--suite", "small", "--model-version", name, *options)
    assert said.code == code, said.text
    return said.text

"""What an importer leaves beside the cases: notes for the user, what cannot be a case, and options of the suite."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from eval_pipeline.core.model import Json

NOTES_FILE = "import_notes.txt"
_OPTIONS_FILE = "import_options.json"
_LEFT_OUT_FILE = "import_left_out.jsonl"


def add_import_notes(folder: Path, sentences: Iterable[str]) -> None:
    """Adds sentences, each on its own line; without any, no file is made."""
    lines = [f"{' '.join(sentence.split())}\n" for sentence in sentences]
    if lines:
        with (folder / NOTES_FILE).open("a", encoding="utf-8") as file:
            file.writelines(lines)


def import_notes(folder: Path) -> list[str]:
    """Returns the sentences that importers noted; none if there is no such file."""
    path = folder / NOTES_FILE
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def add_import_options(folder: Path, options: Mapping[str, Json]) -> None:
    """Keeps options for the header of the suite that is being made."""
    if options:
        (folder / _OPTIONS_FILE).write_text(json.dumps(dict(options)), encoding="utf-8")


def take_import_options(folder: Path) -> dict[str, Json]:
    """Returns the options that an importer kept, and removes their file; empty if there are none."""
    path = folder / _OPTIONS_FILE
    if not path.is_file():
        return {}
    options: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return options


def leave_out(folder: Path, name: str, why: str) -> None:
    """Notes an entry of a data set that cannot be a case."""
    with (folder / _LEFT_OUT_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps([name, why]) + "\n")


def take_left_out(folder: Path) -> dict[str, str]:
    """Returns why entries are no cases, by name, and removes their file."""
    path = folder / _LEFT_OUT_FILE
    if not path.is_file():
        return {}
    found = dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    path.unlink()
    return found

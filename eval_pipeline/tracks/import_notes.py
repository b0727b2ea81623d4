"""Notes of an importer for the user, e.g. that an id was changed; they are kept in the imported suite's folder."""

from collections.abc import Iterable
from pathlib import Path

NOTES_FILE = "import_notes.txt"


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

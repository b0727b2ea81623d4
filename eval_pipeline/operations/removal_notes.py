"""The note that a removal is under way: who gives the same command again goes on where it was killed."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.core.home import Home
from eval_pipeline.core.sealed import read_sealed, write_sealed
from eval_pipeline.reports.paths import safe_name


@dataclass(frozen=True, slots=True)
class Note:
    """What a removal has to know that is gone once it has begun.

    Attributes:
        suites: suite → ISO date of the first evaluation that is removed.
    """

    model_version: str
    suites: dict[str, str]
    path: Path = field(default=Path())


def noted(home: Home, model_version: str) -> Note | None:
    """The note of a removal that was cut off; None where there is none."""
    path = _path(home, model_version)
    text = read_sealed(path)
    return None if text is None else Note(model_version, json.loads(text), path)


def write_note(home: Home, note: Note, before: Note | None) -> Note:
    """Writes down what is removed, beside what a removal that was cut off had to remove. Raises OSError."""
    suites = dict(before.suites) if before else {}
    for suite, first in note.suites.items():
        suites[suite] = min(first, suites.get(suite, first))
    path = _path(home, note.model_version)
    write_sealed(path, json.dumps(suites))
    return Note(note.model_version, suites, path)


def end_note(note: Note) -> None:
    """Nothing is left to do."""
    note.path.unlink(missing_ok=True)
    with suppress(OSError):  # another removal is under way
        note.path.parent.rmdir()


def _path(home: Home, model_version: str) -> Path:
    return home.root / "removing" / safe_name(model_version)

"""Notes of removals in progress, with which the same command continues after being killed."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.core.home import Home
from eval_pipeline.core.sealed import read_sealed, write_sealed
from eval_pipeline.reports.paths import safe_name


@dataclass(frozen=True, slots=True)
class Note:
    """What must be noted before a removal begins, because the removal deletes it.

    Attributes:
        suites: suite → ISO date of the first evaluation that is removed.
    """

    model_version: str
    suites: dict[str, str]
    path: Path = field(default=Path())


def noted(home: Home, model_version: str) -> Note | None:
    """Returns the note of an interrupted removal; None if there is none."""
    path = _path(home, model_version)
    text = read_sealed(path)
    return None if text is None else Note(model_version, json.loads(text), path)


def write_note(home: Home, note: Note, before: Note | None) -> Note:
    """Writes the note of a removal, merged with that of an interrupted one. Raises OSError."""
    suites = dict(before.suites) if before else {}
    for suite, first in note.suites.items():
        suites[suite] = min(first, suites.get(suite, first))
    path = _path(home, note.model_version)
    write_sealed(path, json.dumps(suites))
    return Note(note.model_version, suites, path)


def end_note(note: Note) -> None:
    """Deletes the note, as nothing is left to do."""
    note.path.unlink(missing_ok=True)
    with suppress(OSError):  # the folder has the note of another removal
        note.path.parent.rmdir()


def _path(home: Home, model_version: str) -> Path:
    return home.root / "removing" / safe_name(model_version)

"""A new project outside a clone of this repository: sample suites, model versions and a workflow for CI."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline import __version__
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.installed.installation import Requirement, requirement
from eval_pipeline.tracks.registry import REQUIRED, lacks

_HERE = Path(__file__).parent
TEMPLATES = {
    "README.md": Path("README.md"),
    "gitignore": Path(".gitignore"),
    "requirements.txt": Path("requirements.txt"),
    "evals.yml": Path(".github", "workflows", "evals.yml"),
}
"""Templates by name, and where a project has what is made of them."""
SAMPLE = "tickets_sample"
"""The suite of a new project where none is named."""
MODEL_VERSIONS = "model_versions.yaml"
_TRACK = re.compile(r"^track: (\w+)", re.MULTILINE)
_NO_SAMPLE_FILES = ("__pycache__", "reviews")


@dataclass(frozen=True, slots=True)
class Made:
    """The result of `make_project`; paths are relative to the project's folder.

    Attributes:
        written: files that are new.
        kept: files that existed before and were not changed.
        left: what the user has to do before the project works here, and before others can install what it requires.
    """

    folder: Path
    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    left: tuple[str, ...]


def samples() -> Path:
    """Returns the folder with the sample suites (`suites/`) and `model_versions.yaml`.

    In a wheel it is inside the package, in a clone it is `data/`.
    """
    packaged = _HERE / "samples"
    return packaged if packaged.is_dir() else _HERE.parents[2] / "data"


def sample_suites() -> list[str]:
    """Names of the sample suites."""
    return sorted(path.parent.name for path in (samples() / "suites").glob("*/suite.yaml"))


def make_project(folder: Path, chosen: Sequence[str] = ()) -> Made:
    """Writes a project into a folder, which may exist and hold other files; no existing file is changed.

    Args:
        folder: the project's folder.
        chosen: sample suites to copy; `SAMPLE` if none is named.

    Raises:
        UsageError: there is no such sample, or the folder cannot be written to.
    """
    suites, required = list(dict.fromkeys(chosen)) or [SAMPLE], requirement()
    known = sample_suites()
    for name in suites:
        if name not in known:
            raise UsageError(f"unknown sample suite '{name}'; known: {', '.join(known)}")
    written: list[Path] = []
    kept: list[Path] = []
    try:
        for target, content in _files(suites, required):
            (written if _write_new(folder / target, content) else kept).append(target)
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return Made(folder, tuple(written), tuple(kept), tuple(_left(suites, required)))


def _tracks(suites: Sequence[str]) -> set[str]:
    """Returns the tracks of sample suites."""
    headers = (samples() / "suites" / name / "suite.yaml" for name in suites)
    return {found[1] for path in headers if (found := _TRACK.search(path.read_text("utf-8")))}


def _left(suites: Sequence[str], required: Requirement) -> Iterator[str]:
    yield from filter(None, map(lacks, sorted(_tracks(suites))))
    named = f"requirements.txt names `{required.line}`"
    if required.only_here:
        yield f"{named}, which only this machine can install: put an address there that others reach"
    elif required.wheel is not None and not required.wheel.is_file():
        yield f"{named}, and the wheel is no longer in {required.wheel.parent}: put it into `wheels` of the project"


def _files(suites: Sequence[str], required: Requirement) -> Iterator[tuple[Path, bytes]]:
    """Yields every file of a project: its path within the project, and its content."""
    extras = _tracks(suites) & REQUIRED.keys()
    values = {"@SUITE@": suites[0], "@VERSION@": __version__, "@REQUIREMENT@": required.line_with(extras)}
    for name, target in TEMPLATES.items():
        text = (_HERE / "template" / name).read_text("utf-8")
        for mark, value in values.items():
            text = text.replace(mark, value)
        yield target, text.encode()
    if required.wheel is not None and required.wheel.is_file():
        yield Path(required.line), required.wheel.read_bytes()
    yield Path("data", MODEL_VERSIONS), (samples() / MODEL_VERSIONS).read_bytes()
    for suite in suites:
        folder = samples() / "suites" / suite
        for path in sorted(folder.rglob("*")):
            below = path.relative_to(folder)
            if path.is_file() and not set(below.parts).intersection(_NO_SAMPLE_FILES):
                yield Path("data", "suites", suite, below), path.read_bytes()


def _write_new(path: Path, content: bytes) -> bool:
    """Writes a file if nothing (not even a broken link) is at its path; returns whether it was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True

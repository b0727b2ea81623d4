"""Writes the model versions of imports: a file of their own, which is replaced only by one that can be read."""

import fcntl
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.system.private import file_mode
from eval_pipeline.providers.model_versions import TOP, load_model_versions

_HEADER = "# Written by `eval-pipeline import`; entries of your own belong in data/model_versions.yaml.\n"


def save_imported(path: Path, version: ModelVersion) -> None:
    """Adds an entry to the file of imported model versions, or replaces the one of the same name.

    The file is replaced atomically. Simultaneous imports wait for each other.

    Raises:
        InputError: the existing file cannot be read.
        OSError: the new file cannot be written.
    """
    with _imported(path) as versions:
        versions[version.name] = version


def forget_imported(path: Path, name: str, suites: Collection[str] | None, *, dry_run: bool) -> bool:
    """Removes an entry from the file of imported model versions; returns whether the entry as a whole is removed.

    Args:
        path: the file, which need not exist.
        name: name of the entry.
        suites: remove only the predictions for these suites; None: all. An entry without predictions is removed.
        dry_run: change nothing.

    Raises:
        InputError: the existing file cannot be read.
        OSError: the new file cannot be written.
    """
    entry = load_model_versions([path]).get(name)
    if entry is None:
        return False
    left = {suite: found for suite, found in entry.predictions.items() if suites is not None and suite not in suites}
    if not dry_run and (suites is None or left != entry.predictions):
        with _imported(path) as versions:
            versions.pop(name, None)
            if left:
                versions[name] = entry.model_copy(update={"predictions": left})
    return suites is None or not left


@contextmanager
def _imported(path: Path) -> Iterator[dict[str, ModelVersion]]:
    """Locks the file, yields its entries for modification, and writes them when the block ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        versions = load_model_versions([path])
        yield versions
        _replace(path, _text_of(versions.values()))
        os.fsync(folder)
    finally:
        os.close(folder)  # this also releases the lock


def _text_of(versions: Iterable[ModelVersion]) -> str:
    entries = [_as_written(version) for version in versions]
    return _HEADER + yaml.safe_dump({TOP: entries}, sort_keys=False, allow_unicode=True, width=120)


def _as_written(version: ModelVersion) -> dict[str, Any]:
    named = {"name": version.name, "provider": version.provider}
    return named | version.model_dump(mode="json", exclude_defaults=True, exclude=set(named))


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _check_read_back(path, Path(temporary), text)
        os.chmod(temporary, file_mode())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _check_read_back(path: Path, written: Path, text: str) -> None:
    """Refuses a new file that does not say, when read, what was written: with it, no command would work any more.

    Raises:
        InputError: names the file that would have been replaced.
    """
    try:
        same = _text_of(load_model_versions([written]).values()) == text
    except InputError as error:
        why = error.problems[0].message
    else:
        if same:
            return
        why = "an entry would read otherwise than it was given"
    raise InputError([Problem(str(path), None, "", f"cannot hold the new entry, nothing was changed: {why}")])

"""A folder of files that appears whole, is left alone while it is current, and replaces the one before it."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import fsync_path, locked, make_folders, write_error

MADE_FROM = ".made_from"
_PATIENCE = 600.0


def make_folder(folder: Path, made_from: Mapping[str, str], fill: Callable[[Path], None]) -> bool:
    """Has the folder filled where it is not current; whether that was necessary.

    The files are written into a folder aside, which is then renamed. A reader finds the old folder, the new one, or for
    the moment between two renames none, never a mixture. What a killed process left aside is removed by the next one.

    Args:
        folder: what is to appear.
        made_from: hashes of everything that the files follow from.
        fill: writes the files into the folder it is given.

    Raises:
        StoreError: a file cannot be written, or another process has been building for ten minutes.
    """
    if is_current(folder, made_from):
        return False
    with locked(folder.parent / ".lock", _PATIENCE):
        if is_current(folder, made_from):
            return False
        new, old = folder.with_name(f".new-{folder.name}"), folder.with_name(f".old-{folder.name}")
        try:
            _remove(new)
            _remove(old)
            make_folders(new)
            fill(new)
            _describe(new, made_from)
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
            fsync_path(folder.parent)
            _remove(old)
        except OSError as error:
            raise write_error(folder, error) from error
        finally:
            _tidy(folder, new, old)
    return True


def is_current(folder: Path, made_from: Mapping[str, str]) -> bool:
    """Whether the folder was made from just these hashes and its files still have the sizes they were written with.

    So a folder with a file missing, cut off or edited is made again.
    """
    try:
        described = json.loads((folder / MADE_FROM).read_text())
        return bool(described["made_from"] == dict(made_from) and described["files"] == _sizes(folder))
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _describe(folder: Path, made_from: Mapping[str, str]) -> None:
    """Writes down what the folder holds, last of all files, and makes the larger ones survive a power failure.

    The many small ones are not fsynced one by one; their sizes tell whether they have.
    """
    text = json.dumps({"made_from": dict(made_from), "files": _sizes(folder)}, indent=0, sort_keys=True)
    (folder / MADE_FROM).write_text(text)
    for path in sorted(folder.iterdir()):
        fsync_path(path)
    fsync_path(folder)


def _sizes(folder: Path) -> dict[str, int]:
    """Size of every file below the folder, by relative path; files of the system's and of editors left out."""
    found: dict[str, int] = {}
    pending = [("", str(folder))]
    while pending:
        prefix, place = pending.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((f"{prefix}{entry.name}/", entry.path))
                elif not entry.name.startswith((".", "~$")):
                    found[prefix + entry.name] = entry.stat().st_size
    return found


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _tidy(folder: Path, new: Path, old: Path) -> None:
    """Puts the old folder back where the new one did not come into its place, and removes what is left aside."""
    with suppress(OSError, StoreError):
        if old.exists() and not folder.exists():
            old.rename(folder)
        _remove(new)
        _remove(old)

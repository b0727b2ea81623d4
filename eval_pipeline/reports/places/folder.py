"""Builds a folder of files so that it appears complete, is kept while it is current, and replaces its predecessor."""

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
    """Has `fill` build the folder if it is not current, and returns whether that was necessary.

    The files are written to a temporary folder, which is then renamed. A reader finds the old folder, the new one or,
    for the moment between two renames, none, but never a mixture. Files left behind by a killed process are removed by
    the next one.

    Args:
        folder: the folder to build.
        made_from: hashes of everything that determines the files.
        fill: writes the files into the folder that it is given.

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
    """Returns whether the folder was made from exactly these hashes and its files still have their original sizes.

    A folder with a missing, truncated or edited file is therefore built again.
    """
    try:
        described = json.loads((folder / MADE_FROM).read_text())
        return bool(described["made_from"] == dict(made_from) and described["files"] == _sizes(folder))
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _describe(folder: Path, made_from: Mapping[str, str]) -> None:
    """Records what the folder holds (after all other files are written) and syncs the larger files to disk.

    The many small files are not synced one by one; a wrong size shows later if one was lost in a power failure.
    """
    text = json.dumps({"made_from": dict(made_from), "files": _sizes(folder)}, indent=0, sort_keys=True)
    (folder / MADE_FROM).write_text(text)
    for path in sorted(folder.iterdir()):
        fsync_path(path)
    fsync_path(folder)


def _sizes(folder: Path) -> dict[str, int]:
    """Returns the size of every file below the folder, by relative path; ignores files of the system and editors."""
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
    """Restores the old folder if the new one did not replace it, and removes temporary folders."""
    with suppress(OSError, StoreError):
        if old.exists() and not folder.exists():
            old.rename(folder)
        _remove(new)
        _remove(old)

"""Builds a folder of files so that it appears complete, is kept while it is current, and replaces its predecessor."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import fsync_path, locked, make_folders, write_error

T = TypeVar("T")
MADE_FROM = ".made_from"
_PARTS = ".parts"
"""While a folder is built: the code that builds it, and what its parts are made of."""
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

        def filled(new: Path) -> None:
            (new / _PARTS).write_text(_noted("", made_from.get("report", "")))
            fill(new)
            _describe(new, made_from)

        replace_folder(folder, filled)
    return True


def replace_folder(folder: Path, fill: Callable[[Path], T], mark: str = "") -> T:
    """Replaces a folder as a whole by one that `fill` fills, and returns what that returns.

    Args:
        folder: the folder, which need not exist.
        fill: writes the files into the folder that it is given.
        mark: ends the names of temporary folders, where several processes may replace the folder at the same time.

    Raises:
        StoreError: a file cannot be written.
    """
    new, old = folder.with_name(f".new-{folder.name}{mark}"), folder.with_name(f".old-{folder.name}{mark}")
    try:
        _remove(new)
        _remove(old)
        make_folders(new)
        found = fill(new)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        fsync_path(folder.parent)
        _remove(old)
        return found
    except OSError as error:
        raise write_error(folder, error) from error
    finally:
        _tidy(folder, new, old)


class Before(NamedTuple):
    """Files of a folder that was built before: the folder, and their digests by their paths in it."""

    folder: Path
    files: dict[str, str]

    def content(self, file: str) -> bytes:
        """Returns what a file has. Raises ValueError if it was changed since, and OSError if it cannot be read."""
        found = (self.folder / file).read_bytes()
        if _digest(found) != self.files[file]:
            raise ValueError(f"{file} was changed")
        return found


def made_before(folder: Path, name: str, made_of: str) -> Before | None:
    """Returns the files of a part of the folder built last beside this one, if the same code made it of the same.

    None if there is none whose files have their original sizes. What the part is made of is noted for later folders.

    Args:
        folder: the folder that `make_folder` is building; elsewhere nothing was made before.
        name: path of a file in it, or of a folder.
        made_of: hash of all that determines the part, beside the code of the report.
    """
    noted = folder / _PARTS
    if not noted.exists():
        return None
    with noted.open("a") as file:
        file.write(_noted(name, made_of))
    with suppress(OSError, ValueError, TypeError, KeyError):
        last = max(_built(folder.parent), key=lambda path: (path / MADE_FROM).stat().st_mtime_ns)
        described = json.loads((last / MADE_FROM).read_text())
        if (described["parts"][""], described["parts"][name]) != (_parts(folder)[""], made_of):
            return None
        written = {file: size for file, size in described["files"].items() if f"{file}/".startswith(f"{name}/")}
        if written != _sizes(last, name):
            return None
        with noted.open("a") as file:  # and what it consists of in turn
            file.writelines(_noted(*one) for one in described["parts"].items() if one[0].startswith(f"{name}/"))
        return Before(last, {file: described["digests"][file] for file in written})
    return None


def _built(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if not path.name.startswith(".") and (path / MADE_FROM).is_file()]


def _noted(name: str, made_of: str) -> str:
    return json.dumps([name, made_of]) + "\n"


def _parts(folder: Path) -> dict[str, str]:
    return dict(map(json.loads, (folder / _PARTS).read_text().splitlines()))


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
    files, parts = _sizes(folder), _parts(folder)
    told = {
        "made_from": dict(made_from),
        "files": files,
        "parts": parts,
        "digests": {file: _digest((folder / file).read_bytes()) for file in files if _is_part(file, parts)},
    }
    (folder / MADE_FROM).write_text(json.dumps(told, indent=0, sort_keys=True))
    (folder / _PARTS).unlink()
    for path in sorted(folder.iterdir()):
        fsync_path(path)
    fsync_path(folder)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _is_part(file: str, parts: Mapping[str, str]) -> bool:
    return file in parts or file.partition("/")[0] in parts


def _sizes(folder: Path, part: str = "") -> dict[str, int]:
    """Returns the size of every file below the folder, or of a part of it, by path relative to the folder.

    Files of the system and of editors do not count.
    """
    if (folder / part).is_file():
        return {part: (folder / part).stat().st_size}
    found: dict[str, int] = {}
    pending = [(f"{part}/" if part else "", str(folder / part))]
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

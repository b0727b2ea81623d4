"""Finds the files in a suite's folder; links are followed, and those that lead nowhere are told."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

_LOCKS = ("~$", ".~lock.")
"""How files are named by which Excel and LibreOffice mark a workbook as open; they come and go."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """What is in the folder under a name, other than a folder.

    Attributes:
        name: path below the suite's folder, with `/`.
        wrong: why it is no file that can be read; empty if it is one.
        is_folder: whether `wrong` is about a folder.
    """

    name: str
    path: Path
    wrong: str = ""
    is_folder: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the folders, and of the file."""
        return tuple(self.name.split("/"))


def found_files(folder: Path) -> Iterator[FoundFile]:
    """Yields everything below a folder that is no folder, and folders that cannot be entered."""
    yield from _below(folder, "", ())


def _below(folder: Path, prefix: str, around: tuple[tuple[int, int], ...]) -> Iterator[FoundFile]:
    try:
        status = folder.stat()
        inside = sorted(os.listdir(folder))
    except OSError as error:
        yield FoundFile(prefix.removesuffix("/"), folder, f"cannot be read: {error.strerror}", is_folder=True)
        return
    around = (*around, (status.st_dev, status.st_ino))
    for entry in inside:
        if entry.startswith(_LOCKS):
            continue
        path, name = folder / entry, prefix + entry
        try:
            found = path.stat()
        except OSError as error:
            yield FoundFile(name, path, _unreachable(path, error))
            continue
        if not stat.S_ISDIR(found.st_mode):
            yield FoundFile(name, path, "" if stat.S_ISREG(found.st_mode) else "is no regular file")
        elif (found.st_dev, found.st_ino) in around:
            told = f"is a link to {os.readlink(path)}, a folder that it is in itself"
            yield FoundFile(name, path, told, is_folder=True)
        else:
            yield from _below(path, f"{name}/", around)


def _unreachable(path: Path, error: OSError) -> str:
    if not path.is_symlink():
        return f"cannot be read: {error.strerror}"
    if error.errno == errno.ELOOP:
        return f"is a link to {os.readlink(path)}, which leads back to it"
    return f"is a link to {os.readlink(path)}, which is not there"


def fits(parts: Sequence[str], pattern: Sequence[str], *, below: bool = False) -> bool:
    """Whether a path fits a glob pattern, of which `**` stands for any number of folders.

    With `below`, whether something below the path can fit.
    """
    if not parts or not pattern:
        return bool(pattern) and not parts if below else not pattern and not parts
    if pattern[0] == "**":
        return fits(parts, pattern[1:], below=below) or fits(parts[1:], pattern, below=below)
    return fnmatchcase(parts[0], pattern[0]) and fits(parts[1:], pattern[1:], below=below)

"""Checks how full the folders are that a snippet may write to, and empties them. Standard library only."""

import os
import secrets
from collections.abc import Iterator
from itertools import islice

_FEW = 100
"""Up to so many files, and no folders, are removed while the next snippet waits."""


def too_full(folder: str, most_bytes: int, most_files: int) -> bool:
    """Returns whether a folder contains more than allowed; a subfolder that cannot be read counts as too much.

    It runs at the same time as the snippet and therefore changes nothing: any path may become a link to elsewhere
    meanwhile.
    """
    files = size = 0
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    files += 1
                    if files > most_files:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError:
            return True
    return size > most_bytes


def renew(folder: str) -> bool:
    """Empties a folder that nobody writes to any more, without delay, and returns whether that succeeded.

    Many files or nested folders may take seconds to remove. They are moved beside the folder, under another name, so
    that someone else can remove them later; the folder is made anew and becomes the working directory.
    """
    try:
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            found = list(islice(entries, _FEW + 1))
            if len(found) <= _FEW and not any(entry.is_dir(follow_symlinks=False) for entry in found):
                return wipe(folder)
        os.rename(folder, f"{folder}-{secrets.token_hex(16)}")
        os.mkdir(folder, 0o700)
        os.chdir(folder)
        return True
    except OSError:
        return False


def wipe(folder: str) -> bool:
    """Empties a folder that nobody writes to any more, and returns whether that succeeded."""
    try:
        for _ in wiping(folder):
            continue
        return True
    except OSError:
        return False


def wiping(folder: str) -> Iterator[None]:
    """Empties a folder that nobody writes to any more, yielding after each step; raises OSError if it fails.

    Neither permissions nor depth can prevent this: subfolders are first moved to the top before their parent is
    removed, so that no path becomes too long and nothing recurses.
    """
    os.chmod(folder, 0o700)
    while True:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
        if not found:
            return
        for path, is_folder in found:
            if is_folder:
                yield from _flatten(path, folder)
            else:
                os.unlink(path)
            yield


def _flatten(path: str, top: str) -> Iterator[None]:
    """Removes a folder with its files; its subfolders are moved to the top."""
    os.chmod(path, 0o700)
    with os.scandir(path) as entries:
        found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for inner, is_folder in found:
        if is_folder:
            os.chmod(inner, 0o700)  # moving a folder requires permissions on the folder itself
            os.rename(inner, os.path.join(top, secrets.token_hex(16)))
        else:
            os.unlink(inner)
        yield
    os.rmdir(path)

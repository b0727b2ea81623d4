"""The folders that a snippet may write to: how full they are, and emptying them. Standard library only."""

import os
import secrets


def too_full(folder: str, most_bytes: int, most_files: int) -> bool:
    """Whether there is more in a folder than allowed; a folder in it that cannot be looked into counts as too much.

    Looks while the snippet runs, so it changes nothing: any path may become a link to somewhere else meanwhile.
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


def wipe(folder: str) -> bool:
    """Empties a folder that nobody writes to any more; whether that succeeded.

    Neither permissions nor depth may stop it: folders are moved up to the top before what they were in is removed, so
    that no path gets long and nothing recurses.
    """
    try:
        os.chmod(folder, 0o700)
        while True:
            with os.scandir(folder) as entries:
                found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
            if not found:
                return True
            for path, is_folder in found:
                if is_folder:
                    _flatten(path, folder)
                else:
                    os.unlink(path)
    except OSError:
        return False


def _flatten(path: str, top: str) -> None:
    """Removes a folder with its files; the folders in it go to the top."""
    os.chmod(path, 0o700)
    with os.scandir(path) as entries:
        found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for inner, is_folder in found:
        if is_folder:
            os.chmod(inner, 0o700)  # to move a folder its own permissions count too
            os.rename(inner, os.path.join(top, secrets.token_hex(16)))
        else:
            os.unlink(inner)
    os.rmdir(path)

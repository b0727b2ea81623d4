"""Checks how full the folders are that a snippet may write to, and empties them. Standard library only."""

import os
import secrets


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


def wipe(folder: str) -> bool:
    """Empties a folder that nobody writes to any more, and returns whether that succeeded.

    Neither permissions nor depth can prevent this: subfolders are first moved to the top before their parent is
    removed, so that no path becomes too long and nothing recurses.
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
    os.rmdir(path)

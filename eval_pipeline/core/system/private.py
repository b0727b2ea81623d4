"""File permissions: a home can be read by its owner, and by the group that `EVAL_SHARED_GROUP` names, if any.

Prompts, responses and traces may contain confidential data, so the permissions must not depend on the process's umask.
"""

import grp
import os
from contextlib import suppress
from pathlib import Path

from eval_pipeline.core.errors import UsageError

SHARED_GROUP = "EVAL_SHARED_GROUP"
"""Environment variable: name of the group whose members may also read and write the home."""
_IGNORED = "# Written by eval-pipeline: nothing in here belongs into a repository.\n*\n"
_OURS = ("journal.sqlite", "record", "ui.token")
"""A folder that contains any of these names is recognised as a home."""


def file_mode() -> int:
    """Returns the permissions for files that are created without regard to the umask."""
    return 0o660 if os.environ.get(SHARED_GROUP) else 0o600


def touch(path: Path) -> None:
    """Creates an empty file with the umask's permissions if it does not exist.

    A file that SQLite itself creates is not writable for the group.

    Raises:
        OSError: the file cannot be created.
    """
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666))


def make_private(root: Path) -> None:
    """Creates the home if needed and makes everything this process writes from now on private.

    A folder that holds other files than a home's (e.g. someone's working folder) keeps its permissions.

    Raises:
        UsageError: the shared group does not exist.
    """
    group = _shared_group()
    os.umask(0o077 if group is None else 0o007)
    with suppress(OSError):  # a read-only home can still be read
        root.mkdir(parents=True, exist_ok=True)
        if not _is_home(root):
            return
        if group is not None:
            os.chown(root, -1, group)
        # The set-group-id bit makes new files in the folder belong to the folder's group.
        wanted = 0o700 if group is None else 0o2770
        if root.stat().st_mode & 0o7777 != wanted:
            _open_to(root, group)
            root.chmod(wanted)
        ignored = root / ".gitignore"
        if not ignored.exists():
            ignored.write_text(_IGNORED)


def _open_to(root: Path, group: int | None) -> None:
    """Gives existing files of a home the permissions of new ones; needed when the home has changed owner or group."""
    folder, file = (0o700, 0o600) if group is None else (0o2770, 0o660)
    for path in root.rglob("*"):
        if not path.is_symlink():
            with suppress(OSError):  # files of another group member; that member's own process changes them
                if group is not None:
                    os.chown(path, -1, group)
                path.chmod(folder if path.is_dir() else file)


def _is_home(root: Path) -> bool:
    names = {path.name for path in root.iterdir()}
    ignored = root / ".gitignore"
    return not names or not names.isdisjoint(_OURS) or (ignored.is_file() and ignored.read_text() == _IGNORED)


def _shared_group() -> int | None:
    name = os.environ.get(SHARED_GROUP)
    if not name:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as error:
        raise UsageError(f"{SHARED_GROUP} is '{name}', which is not a group on this machine") from error

"""Who may read what a project writes: its owner, and a group where `EVAL_SHARED_GROUP` names one.

Prompts, responses and traces hold what the data hold, so it does not depend on the umask that a process comes with.
"""

import grp
import os
from contextlib import suppress
from pathlib import Path

from eval_pipeline.core.errors import UsageError

SHARED_GROUP = "EVAL_SHARED_GROUP"
"""Environment variable: the group whose members may read and write the home too."""
_IGNORED = "# Written by eval-pipeline: nothing in here belongs into a repository.\n*\n"
_OURS = ("journal.sqlite", "record", "ui.token")
"""By any of these a folder is known as a home."""


def file_mode() -> int:
    """Permissions of a file that is made with others than the umask's."""
    return 0o660 if os.environ.get(SHARED_GROUP) else 0o600


def touch(path: Path) -> None:
    """Makes an empty file with the umask's permissions where there is none: SQLite keeps a group from writing its own.

    Raises:
        OSError: it cannot be made.
    """
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666))


def make_private(root: Path) -> None:
    """Makes a home where there is none, and has all that this process writes be private from now on.

    A folder that holds other things than a home's (someone's working folder) keeps its permissions.

    Raises:
        UsageError: the shared group is unknown.
    """
    group = _shared_group()
    os.umask(0o077 if group is None else 0o007)
    with suppress(OSError):  # a home that may only be read is read
        root.mkdir(parents=True, exist_ok=True)
        if not _is_home(root):
            return
        if group is not None:
            os.chown(root, -1, group)
        # With the set-group-id bit, what is made inside has the folder's group.
        wanted = 0o700 if group is None else 0o2770
        if root.stat().st_mode & 0o7777 != wanted:
            _open_to(root, group)
            root.chmod(wanted)
        ignored = root / ".gitignore"
        if not ignored.exists():
            ignored.write_text(_IGNORED)


def _open_to(root: Path, group: int | None) -> None:
    """Has what is in a home already be as what is made from now on; only where the home has changed hands."""
    folder, file = (0o700, 0o600) if group is None else (0o2770, 0o660)
    for path in root.rglob("*"):
        if not path.is_symlink():
            with suppress(OSError):  # of another member, who does so himself
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
        raise UsageError(f"{SHARED_GROUP} is '{name}', which is no group of this machine") from error

"""Parts as files below the home's `parts/`."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from eval_pipeline.core.home import Home
from eval_pipeline.store.durable import fsync_path
from eval_pipeline.workspace.homes.home_folders import HomeFolders


class PartFiles:
    """Parts as files of the home. A part is named by its path; methods raise OSError or StoreError."""

    def __init__(self, home: Home, folders: HomeFolders | None = None) -> None:
        """Takes the home, and its folders if they are not on the disk."""
        self._parts, self._folders = home.parts, folders or HomeFolders()

    def place(self, path: Path) -> str:
        """Returns where a part is, for messages."""
        return str(path)

    def exists(self, path: Path) -> bool:
        """Whether a part is there."""
        return path.exists()

    def put(self, temporary: Path, path: Path) -> None:
        """Makes a file that is whole a part, unless the part is there already."""
        with suppress(FileExistsError):
            os.link(temporary, path)
            fsync_path(path.parent)

    @contextmanager
    def opened(self, path: Path) -> Iterator[Path | None]:
        """Yields a file with a part's contents, which may go with the block; None if there is no such part."""
        yield path if path.exists() else None

    def remove(self, path: Path) -> None:
        """Removes a part, if it is there."""
        with suppress(OSError):
            path.unlink()

    def drop(self, folder: Path) -> None:
        """Removes the parts in a folder, with the folder and those above it that are empty then."""
        shutil.rmtree(folder, ignore_errors=True)
        for parent in (found for found in folder.parents if found.is_relative_to(self._parts)):
            try:
                parent.rmdir()
            except OSError:  # others still have parts there, or it is gone
                return

    def folders(self, below: Sequence[str]) -> list[Path]:
        """Returns the folders of all stages that are named so below the stage; names may be patterns."""
        return self._folders.below(self._parts, below)

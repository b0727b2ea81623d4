"""Where parts are: files below the home's `parts/`, or objects of those names in its bucket."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.store.durable import fsync_path, make_folders, temporary_path
from eval_pipeline.workspace.homes.home_folders import home_folders


def part_files(home: Home) -> "PartFiles":
    """Returns the parts of a home."""
    return PartFiles(home) if home.bucket is None else _BucketPartFiles(home)


class PartFiles:
    """Parts as files of the home. A part is named by its path; methods raise OSError or StoreError."""

    def __init__(self, home: Home) -> None:
        """Takes a home in a folder."""
        self._root, self._parts, self._folders = home.root, home.parts, home_folders(home)

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


class _BucketPartFiles(PartFiles):
    """Parts as objects. No host keeps copies: a part is read once."""

    def __init__(self, home: Home) -> None:
        from eval_pipeline.objects.bucket import Bucket

        super().__init__(home)
        assert home.bucket is not None
        self._bucket: Bucket = Bucket(home.bucket)

    def place(self, path: Path) -> str:
        return f"{self._bucket.address}/{self._name(path)}"

    def exists(self, path: Path) -> bool:
        return self._bucket.look(self._name(path)) is not None

    def put(self, temporary: Path, path: Path) -> None:
        from eval_pipeline.objects.bucket import ConflictError

        with suppress(ConflictError):  # the first part wins
            self._bucket.put_file(self._name(path), temporary, None)

    @contextmanager
    def opened(self, path: Path) -> Iterator[Path | None]:
        make_folders(path.parent)
        copy = temporary_path(path)
        try:
            yield copy if self._bucket.fetch(self._name(path), copy) else None
        finally:
            copy.unlink(missing_ok=True)

    def remove(self, path: Path) -> None:
        with suppress(StoreError):  # the error that a damaged part is reported by says more
            self._bucket.delete(self._name(path))

    def drop(self, folder: Path) -> None:
        self._folders.remove(folder)
        super().drop(folder)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

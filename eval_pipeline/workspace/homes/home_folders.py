"""Folders of a home as they are removed: on the disk, or as objects of a bucket with copies on this host."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.store.durable import fsync_path

if TYPE_CHECKING:
    pass


def home_folders(home: Home) -> "HomeFolders":
    """Returns the folders of a home."""
    return HomeFolders() if home.bucket is None else _BucketFolders(home)


class HomeFolders:
    """Folders on the disk."""

    def below(self, root: Path, names: Sequence[str]) -> list[Path]:
        """Returns the folders with these names, or patterns, two folders and more below `root`, sorted."""
        return sorted(root.glob("/".join(("*", *names))))

    def sizes(self, folder: Path) -> list[int]:
        """Returns the bytes of each file in a folder."""
        return [path.stat().st_size for path in folder.rglob("*") if path.is_file()]

    def remove(self, folder: Path) -> None:
        """Removes a folder if it exists. Raises StoreError."""
        remove_folder(folder)


class _BucketFolders(HomeFolders):
    """Folders of objects, and of what only this host has, such as reports."""

    def __init__(self, home: Home) -> None:
        from eval_pipeline.objects.bucket import Bucket

        assert home.bucket is not None
        self._root = home.root
        self._bucket: Bucket = Bucket(home.bucket)

    def below(self, root: Path, names: Sequence[str]) -> list[Path]:
        pattern, depth = "/".join(("*", *names)), len(root.relative_to(self._root).parts) + 1 + len(names)
        objects = (found.name.split("/") for found in self._bucket.list(self._name(root)))
        folders = {self._root.joinpath(*parts[:depth]) for parts in objects if len(parts) > depth}
        there = {folder for folder in folders if folder.relative_to(root).match(pattern)}
        return sorted(there.union(super().below(root, names)))

    def sizes(self, folder: Path) -> list[int]:
        return [found.size for found in self._bucket.list(self._name(folder))] or super().sizes(folder)

    def remove(self, folder: Path) -> None:
        for found in list(self._bucket.list(self._name(folder))):
            self._bucket.delete(found.name)
        super().remove(folder)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


def remove_folder(folder: Path) -> None:
    """Removes a folder if it exists. Raises StoreError."""
    try:
        shutil.rmtree(folder)
        fsync_path(folder.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot remove {folder}: {error.strerror or error}") from error

"""Folders of a home as they are removed."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import fsync_path


class HomeFolders:
    """Looks at and removes folders of a home on the disk; homes elsewhere have classes of their own."""

    def below(self, root: Path, names: Sequence[str]) -> list[Path]:
        """Returns the folders with these names, or patterns, two folders and more below `root`, sorted."""
        return sorted(root.glob("/".join(("*", *names))))

    def sizes(self, folder: Path) -> list[int]:
        """Returns the bytes of each file in a folder."""
        return [path.stat().st_size for path in folder.rglob("*") if path.is_file()]

    def remove(self, folder: Path) -> None:
        """Removes a folder if it exists. Raises StoreError."""
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Removes a folder if it exists. Raises StoreError."""
    try:
        shutil.rmtree(folder)
        fsync_path(folder.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot remove {folder}: {error.strerror or error}") from error

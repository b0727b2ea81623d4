"""What `import` makes."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeVar

from eval_pipeline.core.home import Home

T = TypeVar("T")


class Imported:
    """Files of a home in a folder, which are where they are read. Methods raise OSError or StoreError."""

    def __init__(self, home: Home) -> None:
        """Takes the home."""
        self._home = home

    def in_turn(self) -> AbstractContextManager[object]:
        """Keeps imports on other hosts apart; of a home in a folder, the files themselves do."""
        return nullcontext()

    def refresh(self) -> None:
        """Makes the copies what has been imported by now on any host."""

    def share_suite(self, name: str) -> None:
        """Gives other hosts the suite of that name, which has just been imported."""

    def share_predictions(self, path: Path) -> None:
        """Gives other hosts a file of predictions, which has just been imported."""

    def change_model_versions(self, change: Callable[[], T]) -> T:
        """Calls what changes the file of imported model versions, and gives other hosts the result."""
        return change()

    def remove(self, path: Path) -> None:
        """Removes a file or folder of predictions."""
        remove_path(path)


def remove_path(path: Path) -> None:
    """Removes a file, if it exists, or a folder. Raises OSError."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

"""What `import` makes: files of a home, or objects that all hosts of a home in a bucket share, with copies on each."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from eval_pipeline.core.home import Home
from eval_pipeline.workspace.homes.locks import held, of_home

T = TypeVar("T")
_TURN_S = 600.0


def imported(home: Home) -> "Imported":
    """Returns what was imported into a home."""
    if home.bucket is None:
        return Imported(home)
    from eval_pipeline.workspace.homes.imported_objects import ImportedObjects

    return ImportedObjects(home)


class Imported:
    """Files of a home in a folder, which are where they are read. Methods raise OSError or StoreError."""

    def __init__(self, home: Home) -> None:
        """Takes the home."""
        self._home = home

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Keeps imports on other hosts apart; of a home in a folder, the files themselves do."""
        if self._home.bucket is None:
            yield
            return
        with held(self._home.root, (of_home("importing", self._home),), _TURN_S):
            yield

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

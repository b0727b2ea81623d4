"""Where what runs write is kept: in the folder of the home, or in a place that a plug-in of the group `homes` knows."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

from eval_pipeline.core.home import Home
from eval_pipeline.core.installed.plugins import Plugin, Registry
from eval_pipeline.core.system.bucket_address import SCHEME
from eval_pipeline.store.record import Record
from eval_pipeline.workspace.homes.home_folders import HomeFolders
from eval_pipeline.workspace.homes.imported import Imported
from eval_pipeline.workspace.noting.note_files import Note, NoteFile, ended_files, noted_files
from eval_pipeline.workspace.shards.part_files import PartFiles


class HomePlace:
    """The folder of a home. What lies elsewhere derives from this; nothing connects before it is used.

    Attributes:
        is_shared: whether other hosts write there too, so that they take turns at every stage, and files of the home
            are copies.
    """

    is_shared = False

    def __init__(self, home: Home) -> None:
        """Takes the home."""
        self.home = home

    def record(self) -> Record:
        """Returns the record."""
        return Record(self.home.record)

    def folders(self) -> HomeFolders:
        """Returns the folders as they are removed."""
        return HomeFolders()

    def parts(self) -> PartFiles:
        """Returns what workers of a cluster have computed."""
        return PartFiles(self.home)

    def imported(self) -> Imported:
        """Returns what was imported."""
        return Imported(self.home)

    def lock_name(self, name: str) -> str:
        """Returns the name of a lock on what is in the home alone, so that other homes do not wait for it.

        Asking is not: journal and money are of the database, whatever the home. Homes in folders share these names,
        since one folder may have several paths.
        """
        return name

    def publishing_in_turn(self) -> AbstractContextManager[object]:
        """Keeps publishers of other hosts apart; for a folder, the store's own lock is enough."""
        return nullcontext()

    def fresh_store(self) -> Path:
        """Returns the store, with what has been published since it was last fetched. Raises StoreError."""
        return self.home.store

    def store_problems(self, before: Callable[[int], None]) -> Iterator[str]:
        """Yields a sentence for each part of the store that is not as it was published, where files are copies.

        Args:
            before: called with the size of each part before it is fetched.
        """
        return iter(())

    def broken(self) -> str | None:
        """Returns why several hosts cannot share the place; None if they can, or need not. Raises StoreError."""
        return None

    def new_note(self) -> Note:
        """Returns the note of a command, which is made with its first line."""
        return NoteFile(self.home.commands)

    def notes(self, held: ExitStack) -> Iterator[tuple[Note | None, str]]:
        """Yields each note with its text; None instead of a note whose process is alive. `held` has locks on others."""
        return noted_files(self.home.commands, held)

    def ended_notes(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        """Yields id and text of the note of each ended command, the oldest first, and what removes the note."""
        return ended_files(self.home.commands)


def _place(plugin: Plugin, value: object) -> type[HomePlace]:
    if not (isinstance(value, type) and issubclass(value, HomePlace)):
        raise plugin.error("is no class that inherits HomePlace")
    return value


ALL_PLACES: Registry[type[HomePlace]] = Registry("homes", {}, _place)
"""What keeps homes elsewhere, by the scheme of their address."""


def place_of(home: Home) -> HomePlace:
    """Returns where a home's files are.

    Raises:
        UsageError: no package knows such places, or what they need is not installed.
    """
    if home.bucket is None:
        return HomePlace(home)
    return ALL_PLACES.first((SCHEME,), home.place)(home)

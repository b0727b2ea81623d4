"""What publishing changes in the store: the rows of a table and key, and the files of the record they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import published_tables


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the record, as it is loaded into one published table.

    Attributes:
        relative: its path below the record, with `/`.
        place: file to read: the file itself, or a copy in the current schema.
        rows: number of rows.
        run_id: id of the run that made them; empty if the file does not say.
    """

    table: Table
    source: str
    key: RecordKey
    relative: str
    place: Path
    content_hash: str
    rows: int
    run_id: str = ""

    def facts(self) -> tuple[str, str, str | None, str | None, date | None, str, str]:
        """Returns the file's row in `meta.files`."""
        key = self.key
        return (
            *(self.table.name, self.source, key.suite, key.model_version, key.eval_date),
            *(self.relative, self.content_hash),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """A table and key whose rows are replaced.

    Attributes:
        files: files with the new rows; empty if the rows are to be removed.
        was: paths of the files that the old rows came from; empty if there are no old rows.
    """

    table: Table
    key: RecordKey
    files: tuple[SourceFile, ...]
    was: tuple[str, ...]


def ordered(changes: Sequence[Change], track_tables: Sequence[Table]) -> list[Change]:
    """Sorts the changes into storage order: tables as declared, then by key."""
    places = {table.name: place for place, table in enumerate(published_tables(track_tables))}
    return sorted(changes, key=lambda change: (places[change.table.name], change.key.order()))

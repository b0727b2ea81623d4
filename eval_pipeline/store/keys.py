"""What a file of the record is keyed by, and the folders that stand for it."""

import hashlib
from dataclasses import dataclass
from datetime import date
from typing import Self
from urllib.parse import quote, unquote

from eval_pipeline.core.model import Partition
from eval_pipeline.store.schemas import Table

_LONGEST = 200
_KEPT = 150


@dataclass(frozen=True, slots=True)
class RecordKey:
    """Suite, model version and evaluation date; None for those that the table is not keyed by."""

    suite: str | None = None
    model_version: str | None = None
    eval_date: date | None = None

    @classmethod
    def of(cls, partition: Partition) -> Self:
        """The key of a table with a file for each partition."""
        return cls(partition.suite, partition.model_version, partition.eval_date)

    @classmethod
    def of_suite(cls, name: str) -> Self:
        """The key of a table with a file for each suite."""
        return cls(suite=name)

    @classmethod
    def of_model_version(cls, name: str) -> Self:
        """The key of a table with a file for each model version."""
        return cls(model_version=name)

    def values(self, table: Table) -> dict[str, str | date]:
        """Key columns of the table and their values, in their order.

        Raises:
            ValueError: the table is keyed by something else than this key holds.
        """
        parts = {"suite": self.suite, "model_version": self.model_version, "eval_date": self.eval_date}
        given = {name: value for name, value in parts.items() if value is not None}
        wanted = tuple(column.name for column in table.key_columns)
        if not wanted or tuple(given) != wanted:
            raise ValueError(f"{table.name} has a file for each {', '.join(wanted) or 'source'}, not for {self}")
        return given

    def fits(self, table: Table) -> bool:
        """Whether the table has a file for each key of this kind."""
        try:
            return bool(self.values(table))
        except ValueError:
            return False

    def folders(self, table: Table) -> tuple[str, ...]:
        """Folder names, one for each key column: `<column>=<value>`."""
        return tuple(f"{name}={_folder_value(str(value))}" for name, value in self.values(table).items())

    def order(self) -> tuple[str, str, str]:
        """What keys are sorted by."""
        return (self.suite or "", self.model_version or "", str(self.eval_date or ""))


def key_from_folders(folders: tuple[str, ...]) -> RecordKey | None:
    """The key that folder names stand for.

    None where the names are not the record's, or hold a shortened value: then the file itself knows its key.
    """
    found: dict[str, str] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if not equals or "~" in value:
            return None
        found[name] = unquote(value)
    return key_from_texts(found)


def key_from_texts(texts: dict[str, str]) -> RecordKey | None:
    """The key with these values, as text; None where they are not a key's."""
    if not texts or texts.keys() - {"suite", "model_version", "eval_date"}:
        return None
    try:
        day = date.fromisoformat(texts["eval_date"]) if "eval_date" in texts else None
    except ValueError:
        return None
    return RecordKey(texts.get("suite"), texts.get("model_version"), day)


def _folder_value(text: str) -> str:
    """The text with everything but `A-Za-z0-9_.-` percent-encoded; too long for a folder name, cut and hashed.

    `~` marks the cut ones and is therefore encoded elsewhere.
    """
    encoded = quote(text, safe="").replace("~", "%7E")
    if len(encoded) <= _LONGEST:
        return encoded
    return f"{encoded[:_KEPT]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"

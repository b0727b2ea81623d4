"""Keys of the record's files, and the folder names that represent them."""

import hashlib
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Self
from urllib.parse import quote, unquote

from eval_pipeline.core.model import Partition
from eval_pipeline.store.schemas import Table

EARLIER = "evaluation="
"""Beginning of the name of the folder of an earlier evaluation."""
_LONGEST = 200
_KEPT = 150


@dataclass(frozen=True, slots=True)
class RecordKey:
    """Suite, model version and evaluation date; None for the parts by which the table is not keyed.

    Attributes:
        evaluation: id of an earlier evaluation of the date, whose files are one folder deeper; empty for the newest.
    """

    suite: str | None = None
    model_version: str | None = None
    eval_date: date | None = None
    evaluation: str = ""

    @classmethod
    def of(cls, partition: Partition) -> Self:
        """The key of a table with a file for each partition."""
        return cls(partition.suite, partition.model_version, partition.eval_date, partition.evaluation)

    def partition(self) -> Partition:
        """The partition with this key, of a table with a file for each of them."""
        assert self.suite and self.model_version and self.eval_date
        return Partition(self.suite, self.model_version, self.eval_date, self.evaluation)

    @property
    def of_date(self) -> "RecordKey":
        """The key of the newest evaluation of the date; files of earlier ones have it, too."""
        return replace(self, evaluation="") if self.evaluation else self

    @classmethod
    def of_suite(cls, name: str) -> Self:
        """The key of a table with a file for each suite."""
        return cls(suite=name)

    @classmethod
    def of_model_version(cls, name: str) -> Self:
        """The key of a table with a file for each model version."""
        return cls(model_version=name)

    def values(self, table: Table) -> dict[str, str | date]:
        """Returns the table's key columns and their values, in order.

        Raises:
            ValueError: the key does not have the parts by which the table is keyed.
        """
        parts = {"suite": self.suite, "model_version": self.model_version, "eval_date": self.eval_date}
        if table.key == "evaluation":
            parts["evaluation_id"] = self.evaluation or None
        given = {name: value for name, value in parts.items() if value is not None}
        wanted = tuple(column.name for column in table.key_columns)
        if not wanted or tuple(given) != wanted:
            raise ValueError(f"{table.name} has a file for each {', '.join(wanted) or 'source'}, not for {self}")
        return given

    def fits(self, table: Table) -> bool:
        """Whether the table is keyed by the parts that this key has."""
        try:
            return bool(self.values(table))
        except ValueError:
            return False

    def folders(self, table: Table) -> tuple[str, ...]:
        """Returns one folder name for each key column: `<column>=<value>`; for an earlier evaluation one more.

        The runs of all evaluations of a date are in one file.
        """
        of_date = tuple(_folder(name, str(value)) for name, value in self.values(table).items())
        return of_date if not self.evaluation or table.name == "runs" else (*of_date, f"{EARLIER}{self.evaluation}")

    def holds(self, other: "RecordKey") -> bool:
        """Whether `other` has every part that this key has."""
        return all(
            own is None or own == part
            for own, part in zip(
                (self.suite, self.model_version, self.eval_date),
                (other.suite, other.model_version, other.eval_date),
                strict=True,
            )
        )

    def wanted_folders(self, table: Table) -> tuple[str | None, ...]:
        """Returns the folder name for each key column of the table, None for the parts that this key does not have."""
        parts = {"suite": self.suite, "model_version": self.model_version, "eval_date": self.eval_date}
        names = [column.name for column in table.key_columns]
        return tuple(None if parts[name] is None else _folder(name, str(parts[name])) for name in names)

    def order(self) -> tuple[str, str, str, str]:
        """Returns a sort key."""
        return (self.suite or "", self.model_version or "", str(self.eval_date or ""), self.evaluation)


ANY = RecordKey()
"""Holds every key."""


def key_from_folders(folders: tuple[str, ...]) -> RecordKey | None:
    """Parses a key from folder names.

    Returns None if the names are not the record's, or if a value was shortened; the full key is then in the file's
    footer.
    """
    found: dict[str, str] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if not equals or "~" in value:
            return None
        found[name] = unquote(value)
    return key_from_texts(found)


def key_from_texts(texts: dict[str, str]) -> RecordKey | None:
    """Parses a key from texts by column name; returns None if they do not form a key."""
    if not texts or texts.keys() - {"suite", "model_version", "eval_date"}:
        return None
    try:
        day = date.fromisoformat(texts["eval_date"]) if "eval_date" in texts else None
    except ValueError:
        return None
    return RecordKey(texts.get("suite"), texts.get("model_version"), day)


def _folder(column: str, value: str) -> str:
    return f"{column}={folder_value(value)}"


@lru_cache(4096)
def folder_value(text: str) -> str:
    """Percent-encodes everything but `A-Za-z0-9_.-`; a value too long for a folder name is cut and a hash appended.

    `~` marks values that were cut; elsewhere it is therefore encoded.
    """
    encoded = quote(text, safe="").replace("~", "%7E")
    if len(encoded) <= _LONGEST:
        return encoded
    return f"{encoded[:_KEPT]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"

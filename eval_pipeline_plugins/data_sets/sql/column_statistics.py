"""Reads statistics of columns, as published beside BIRD's mini-dev questions: a JSON list of databases.

A database has `name` and `tables`; a table `name`, `row_count`, `primary_key` and `columns`; a column `name`, `type`,
`description`, `foreign_keys`, `null_fraction`, `unique_count`, `sample_values`, `min_value` and `max_value`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError, field_validator

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline_plugins.foreign_entries import FOREIGN

Value = int | float | str


class JoinedColumn(BaseModel):
    """A column that a column is joined with, in either direction."""

    model_config = FOREIGN
    reference_table: str
    reference_column: str
    relationship: str = ""


class ColumnStatistics(BaseModel):
    """A column; `sample_values` are the most frequent values."""

    model_config = FOREIGN
    name: str = Field(min_length=1)
    type: str
    description: str | None = None
    value_description: str | None = None
    foreign_keys: tuple[JoinedColumn, ...] = ()
    null_fraction: float = Field(default=0.0, ge=0, le=1)
    unique_count: int = Field(ge=0)
    sample_values: tuple[Value, ...] = ()
    min_value: Value | None = None
    max_value: Value | None = None

    @field_validator("type")
    @classmethod
    def _plain(cls, type: str) -> str:
        # The type becomes a part of a CREATE TABLE statement.
        if not type.replace(" ", "").replace("_", "").isalnum():
            raise ValueError("expected the name of a type")
        return type


class TableStatistics(BaseModel):
    """A table."""

    model_config = FOREIGN
    name: str = Field(min_length=1)
    row_count: int = Field(ge=0)
    primary_key: tuple[str, ...] = ()
    columns: tuple[ColumnStatistics, ...]


class DatabaseStatistics(BaseModel):
    """A database."""

    model_config = FOREIGN
    name: str = Field(min_length=1)
    tables: tuple[TableStatistics, ...]

    def descriptions(self) -> Iterator[tuple[str, Mapping[str, tuple[str | None, ...]]]]:
        """Yields each table with the texts on its columns."""
        for table in self.tables:
            yield table.name, {c.name: (c.description, c.value_description) for c in table.columns}


def is_statistics(entry: Json) -> bool:
    """Returns whether an entry of a JSON list looks like the statistics of a database."""
    if not isinstance(entry, dict) or not isinstance(tables := entry.get("tables"), list):
        return False
    return "name" in entry and bool(tables) and all(isinstance(table, dict) and "columns" in table for table in tables)


def read_statistics(path: Path, entries: Sequence[tuple[int, Json]]) -> dict[str, DatabaseStatistics]:
    """Returns the statistics by the name of the database.

    Raises:
        InputError: a field is wrong; the message names it.
    """
    found: dict[str, DatabaseStatistics] = {}
    problems: list[Problem] = []
    for index, entry in entries:
        try:
            read = DatabaseStatistics.model_validate(entry)
        except ValidationError as error:
            problems += [
                Problem(str(path), None, dotted((str(index), *place)), message)
                for place, message in complaints(error, DatabaseStatistics)
            ]
        else:
            found[read.name] = read
    if problems:
        raise InputError(problems)
    return found

"""Foreign keys of a schema with the positions of their columns, and rows that satisfy them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

Row = tuple[Any, ...]
GeneratedDatabase = dict[str, list[Row]]
"""Rows by table, in lower case; columns in the schema's order, with None for those that the engine generates."""


@dataclass(frozen=True, slots=True)
class PlacedReference:
    """A foreign key with the positions of its columns.

    Attributes:
        places: positions of its columns in the referring table.
        nullable: those of them that may be NULL.
        parent: the table that it refers to, in lower case.
        parent_places: positions of the columns there; None if the schema has no such table.
    """

    places: tuple[int, ...]
    nullable: tuple[int, ...]
    parent: str
    parent_places: tuple[int, ...] | None


def references_of(table: SqlTable, schema: SqlSchema) -> tuple[PlacedReference, ...]:
    """Returns the foreign keys of a table."""
    found = []
    for key in table.foreign_keys:
        parent = schema.table(key.table)
        places = column_places(table, key.columns)
        nullable = tuple(place for place in places if table.columns[place].nullable)
        there = None if parent is None else column_places(parent, key.references)
        found.append(PlacedReference(places, nullable, key.table.lower(), there))
    return tuple(found)


def column_places(table: SqlTable, names: Sequence[str]) -> tuple[int, ...]:
    """Returns the positions of columns by their names, ignoring case."""
    lowered = [column.name.lower() for column in table.columns]
    return tuple(lowered.index(name.lower()) for name in names)


def inserted(table: SqlTable, rows: Sequence[Row]) -> Sequence[Row]:
    """Returns rows without the columns that the engine generates."""
    if not any(column.generated for column in table.columns):
        return rows
    places = [place for place, column in enumerate(table.columns) if not column.generated]
    return [tuple(row[place] for place in places) for row in rows]


class References:
    """All foreign keys of a schema."""

    def __init__(self, schema: SqlSchema) -> None:
        self._checked = [
            (table.name.lower(), reference)
            for table in schema.tables
            for reference in references_of(table, schema)
            if reference.parent_places is not None
        ]

    def repaired(self, database: GeneratedDatabase) -> GeneratedDatabase:
        """Returns the database without rows whose foreign keys have no match, and without rows that refer to those.

        Args:
            database: its lists of rows are replaced and not modified.
        """
        changed = True
        while changed:
            changed = False
            for name, reference in self._checked:
                rows = database[name]
                kept = _without_orphans(rows, reference, database[reference.parent])
                if len(kept) < len(rows):
                    database[name] = kept
                    changed = True
        return database


def _without_orphans(rows: list[Row], reference: PlacedReference, parents: list[Row]) -> list[Row]:
    assert reference.parent_places is not None
    there = {tuple(row[place] for place in reference.parent_places) for row in parents}
    kept = []
    for row in rows:
        cells = tuple(row[place] for place in reference.places)
        if None in cells or cells in there:
            kept.append(row)
    return kept

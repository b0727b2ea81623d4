"""Makes the rows of one table of a generated database: a plan is made once, then rows are drawn by it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from eval_pipeline_plugins.sql_equivalence.generated.mining import ColumnName
from eval_pipeline_plugins.sql_equivalence.generated.references import (
    GeneratedDatabase,
    PlacedReference,
    Row,
    column_places,
    references_of,
)
from eval_pipeline_plugins.sql_equivalence.generated.shapes import Shape
from eval_pipeline_plugins.sql_equivalence.generated.values import Family, filler, plain
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

_ANY_PARENT, _ONE_GROUP = 0.3, 0.5
_MOST_SHARED = 12
_TRIES, _MORE_TRIES = 2, 8


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    """A column whose values are drawn.

    Attributes:
        place: position among the columns. column: table and name.
        family: kind of values it holds.
        nullable: whether it may be NULL.
        in_key: whether it belongs to a primary or unique key.
        key: number of the key that consists of this column only; None if there is none.
    """

    place: int
    column: ColumnName
    family: Family
    nullable: bool
    in_key: bool
    key: int | None


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The constraints of a table's rows, and the columns whose values are drawn.

    Attributes:
        name: in lower case.
        keys: positions of the columns of each primary and unique key.
        has_primary: whether the first of them is the primary key.
        references: the foreign keys.
        template: a row with the values of the columns that no query reads.
        cells: the other columns.
        keeps_checks: tests whether a row satisfies the CHECKs; None if there are none.
    """

    name: str
    keys: tuple[tuple[int, ...], ...]
    has_primary: bool
    references: tuple[PlacedReference, ...]
    template: tuple[Any, ...]
    cells: tuple[DrawnColumn, ...]
    keeps_checks: Callable[[Row], bool] | None


def plan_of(
    table: SqlTable,
    schema: SqlSchema,
    used: set[ColumnName],
    family: Callable[[ColumnName], Family],
    keeps_checks: Callable[[Row], bool] | None,
) -> TablePlan:
    """Returns the plan of a table.

    Args:
        table: the table to be filled.
        schema: the schema, for the table's foreign keys.
        used: columns that queries and CHECKs read; the others get NULL, or one value for all rows.
        family: returns the family of a column's values.
        keeps_checks: see `TablePlan`.
    """
    name = table.name.lower()
    there = {column.name.lower() for column in table.columns}
    columns_of_keys = [key for key in (table.primary_key, *table.unique) if key and {c.lower() for c in key} <= there]
    keys = tuple(column_places(table, key) for key in columns_of_keys)
    keys = tuple(key for key in keys if not any(table.columns[place].generated for place in key))
    in_keys = {place for key in keys for place in key}
    template: list[Any] = [None] * len(table.columns)
    cells = []
    for place, column in enumerate(table.columns):
        where = (name, column.name.lower())
        if column.generated:
            continue
        if place in in_keys or where in used:
            alone = keys.index((place,)) if (place,) in keys else None
            cells.append(DrawnColumn(place, where, family(where), column.nullable, place in in_keys, alone))
        elif not column.nullable:
            template[place] = plain(column, family(where))
    references = references_of(table, schema)
    return TablePlan(name, keys, bool(table.primary_key), references, tuple(template), tuple(cells), keeps_checks)


class RowMaker:
    """Makes the rows of one table of one database."""

    def __init__(
        self,
        plan: TablePlan,
        made: GeneratedDatabase,
        rng: Random,
        shape: Shape,
        values: Callable[[ColumnName], list[Any]],
        spare: Callable[[ColumnName], list[Any]],
        *,
        large_groups: bool = False,
    ) -> None:
        """Stores the inputs of the drawing.

        Args:
            plan: the plan of the table.
            made: the tables filled so far.
            rng: random number generator.
            shape: the shape of the database.
            values: the few values that a column has in this database; fillers are added to the list.
            spare: further values that a column may have, if a CHECK allows no others.
            large_groups: whether many rows should refer to one parent even if a key allows each pair of parents once.
        """
        self._plan, self._made, self._rng, self._shape, self._values = plan, made, rng, shape, values
        self._spare = spare
        self._rows: list[Row] = []
        self._seen: list[set[Row]] = [set() for _ in plan.keys]
        self._lists: dict[int, list[Any]] = {}
        self._fillers = 0
        self._spread = self._spread_references() if large_groups else []
        self._any_parent = 0.0 if self._spread and rng.random() < _ONE_GROUP else _ANY_PARENT

    def _spread_references(self) -> list[PlacedReference]:
        """Returns the references that take any parent: of those in keys of several columns, all but one."""
        keyed = {place for key in self._plan.keys if len(key) > 1 for place in key}
        found = [reference for reference in self._plan.references if keyed.intersection(reference.places)]
        if found:
            found.remove(chosen(self._rng, found))
        return found

    def fill(self, wanted: int) -> list[Row]:
        """Returns the requested number of rows, or fewer if the constraints allow no more."""
        rows, keys, keeps_checks = self._rows, self._plan.keys, self._plan.keeps_checks
        tries = _TRIES if keeps_checks is None and not self._spread else _MORE_TRIES
        for _ in range(wanted * tries):
            if len(rows) >= wanted:
                break
            row = self._row()
            if row is None:
                continue
            keyed = [tuple([row[place] for place in key]) for key in keys]
            if self._are_new(keyed) and (keeps_checks is None or keeps_checks(row)):
                for cells, seen in zip(keyed, self._seen, strict=True):
                    seen.add(cells)
                rows.append(row)
        return rows

    def _row(self) -> Row | None:
        random, nulls = self._rng.random, self._shape.nulls
        repeat = self._rows[-1] if self._rows and random() < self._shape.duplicates else None
        cells = list(self._plan.template)
        fixed: dict[int, Any] = {}
        for reference in self._plan.references:
            taken = self._taken(reference)
            if taken is None:
                return None
            fixed |= taken
        for place, value in fixed.items():
            cells[place] = value
        for cell in self._plan.cells:
            place = cell.place
            if place in fixed:
                continue
            if repeat is not None and not cell.in_key:
                cells[place] = repeat[place]
            elif not cell.nullable or random() >= nulls:
                cells[place] = self._drawn(cell)
        return tuple(cells)

    def _drawn(self, cell: DrawnColumn) -> Any:
        values = self._lists.get(cell.place)
        if values is None:
            values = self._lists[cell.place] = self._values(cell.column)
        if cell.key is None:
            in_turn = self._shape.different and len(self._rows) < len(values)
            return values[len(self._rows)] if in_turn else chosen(self._rng, values)
        seen = self._seen[cell.key]
        if free := [value for value in values if (value,) not in seen]:
            return chosen(self._rng, free)
        if spare := [value for value in self._spare(cell.column) if (value,) not in seen]:
            return chosen(self._rng, spare)
        self._fillers += 1
        value = filler(cell.family, self._fillers - 1)
        if len(values) < _MOST_SHARED:  # columns that are compared with this one may hold it too
            values.append(value)
        return value

    def _taken(self, reference: PlacedReference) -> dict[int, Any] | None:
        """Returns the values of a foreign key's columns by position; None if no row can have any."""
        own = reference.parent == self._plan.name
        parents = self._rows if own else self._made.get(reference.parent)
        if reference.nullable and (not parents or self._rng.random() < self._shape.nulls):
            return dict.fromkeys(reference.nullable)
        if reference.parent_places is None or parents is None or (own and not parents):
            return {}  # not filled yet: drawn like any column, and dropped later where it leads nowhere
        if not parents:
            return None
        # Few parents make large groups; occasionally any parent is used.
        any_parent = reference in self._spread or self._rng.random() < self._any_parent
        few = parents if any_parent else parents[: self._shape.width]
        row = chosen(self._rng, few)
        return {place: row[there] for place, there in zip(reference.places, reference.parent_places, strict=True)}

    def _are_new(self, keyed: Sequence[Row]) -> bool:
        """Returns whether the cells of keys are in no row yet."""
        for number, cells in enumerate(keyed):
            if None in cells:
                if self._plan.has_primary and number == 0:
                    return False
            elif cells in self._seen[number]:
                return False
        return True


def chosen(rng: Random, values: Sequence[Any]) -> Any:
    """Returns what `rng.choice` does, in half the time."""
    count = len(values)
    bits = count.bit_length()
    place = rng.getrandbits(bits)
    while place >= count > 0:
        place = rng.getrandbits(bits)
    return values[place]

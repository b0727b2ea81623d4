"""Small databases made to tell two queries apart, all of whose rows keep the constraints of the schema.

Each database has another shape: sizes, shares of NULL, how few different values a column has. Few values, taken from
the conditions of both queries, make rows that pass several conditions at once, joins that meet, and duplicates.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from eval_pipeline.tracks.sql.equivalence.mining import Column, Mined
from eval_pipeline.tracks.sql.equivalence.shapes import SHAPES, Shape
from eval_pipeline.tracks.sql.equivalence.values import (
    GENERIC,
    Candidates,
    Family,
    candidates,
    family_of,
    filler,
    fits,
)
from eval_pipeline.tracks.sql.schema import ForeignKey, SqlSchema, SqlTable

Row = tuple[Any, ...]
Database = dict[str, list[Row]]
"""Rows by table, in lower case; columns in the schema's order."""

RowCheck = Callable[[SqlTable, Row], bool]
"""Whether a row keeps the table's CHECKs."""

_MOST_ROWS = 40
_ANY_PARENT = 0.3


class DatabaseMaker:
    """Makes databases for one pair of queries; the same ones in every process."""

    def __init__(self, schema: SqlSchema, mined: Mined, keeps_checks: RowCheck) -> None:
        """Takes what databases are made from.

        Args:
            schema: the tables used, with those their foreign keys lead to.
            mined: what the queries say.
            keeps_checks: asked of every row of a table with CHECKs.
        """
        self.schema = schema
        self._mined = mined
        self._keeps_checks = keeps_checks
        self._today = datetime.now(UTC).date()
        self._tables = schema.referenced_first()
        self._choices: dict[Column, tuple[Family, Candidates]] = {}

    def make(self, number: int) -> Database:
        """The `number`-th database, from 0."""
        rng = Random(number)
        shape = SHAPES[number % len(SHAPES)]
        active: dict[tuple[Column, Family], list[Any]] = {}
        made: Database = {}
        empty = rng.choice(self._tables).name.lower() if shape.empty and self._tables else ""
        for table in self._tables:
            name = table.name.lower()
            rows: list[Row] = []
            made[name] = rows
            if name != empty:
                _TableMaker(self, table, made, rng, shape, active).fill(rows)
        return repaired(self.schema, made)

    def count_of_rows(self, rng: Random, shape: Shape) -> int:
        """How many rows a table gets."""
        wanted = rng.randint(*shape.rows)
        if shape.groups and self._mined.group_size:
            wanted = max(wanted, self._mined.group_size + rng.randint(-1, 2))
        return min(wanted, _MOST_ROWS)

    def values(
        self, place: Column, rng: Random, shape: Shape, active: dict[tuple[Column, Family], list[Any]]
    ) -> list[Any]:
        """The few values that a column, and those compared with it, have in this database."""
        family, found = self._chosen(place)
        key = (self._mined.group(place), family)
        if key not in active:
            most = 2 if shape.keys_meet and self._mined.is_compared(place) else shape.width
            width = rng.randint(1, most) if rng.random() < 0.5 else most
            if not found.exact:  # no condition has to be met, so variety costs nothing
                width += 2
            active[key] = list(dict.fromkeys(self._draw(family, found, rng, shape) for _ in range(width)))
        return active[key]

    def keeps_checks(self, table: SqlTable, row: Row) -> bool:
        """Whether a row keeps the table's CHECKs."""
        return not table.checks or self._keeps_checks(table, row)

    def matters(self, place: Column) -> bool:
        """Whether a query reads the column."""
        return place in self._mined.used

    def family(self, place: Column) -> Family:
        """What kind of values a column holds."""
        return self._chosen(place)[0]

    def _draw(self, family: Family, found: Candidates, rng: Random, shape: Shape) -> Any:
        drawn = rng.random()
        if found.exact and drawn < shape.exact:
            return rng.choice(found.exact)
        if found.near and drawn < shape.exact + (1 - shape.exact) * 0.7:
            return rng.choice(found.near)
        return rng.choice(GENERIC[family])

    def _chosen(self, place: Column) -> tuple[Family, Candidates]:
        """What kind of values a column holds, and which are worth trying; worked out when first asked for."""
        if place not in self._choices:
            self._choices[place] = self._worked_out(place)
        return self._choices[place]

    def _worked_out(self, place: Column) -> tuple[Family, Candidates]:
        table = self.schema.table(place[0])
        column = table.column(place[1]) if table is not None else None
        assert column is not None
        family = family_of(column)
        if family == "text" and place in self._mined.date_texts:
            family = "datetext"
        found = Candidates()
        for literal in self._mined.literals(place):
            found.add(candidates(literal, family, self._today))
        for literal in self._mined.anywhere():  # a literal may mean the column though no condition says so
            more = candidates(literal, family, self._today)
            found.add(Candidates([], more.exact if family != "text" else []))
        if family in ("date", "timestamp", "datetext"):
            found.add(Candidates([], self._distant_days(family)))
        found.exact = [value for value in found.exact if fits(value, column)]
        found.near = [value for value in found.near if fits(value, column)]
        if column.type.upper().startswith("ENUM"):
            members = [part.strip().strip("'") for part in column.type[5:-1].split(",")]
            found = Candidates(members, [])
        return family, found

    def _distant_days(self, family: Family) -> list[Any]:
        """Days as far from today, the start of its week, month and year, or from each other, as the queries say."""
        steps = [distance + step for distance in self._mined.days for step in (-1, 0, 1)]
        if self._mined.relative:
            today = self._today
            starts = [today - timedelta(days=today.weekday()), today.replace(day=1), today.replace(month=1, day=1)]
            days = [today - timedelta(days=distance) for distance in (0, 1, *steps)]
            days += [start - timedelta(days=distance) for start in starts for distance in (0, *self._mined.days)]
        else:
            days = [date(2021, 3, 15) - timedelta(days=distance) for distance in steps]
        if family == "date":
            return days
        moments = [datetime(day.year, day.month, day.day) for day in days]
        return list(moments) if family == "timestamp" else [day.isoformat() for day in days]


class _TableMaker:
    """Rows of one table of one database."""

    def __init__(
        self,
        maker: DatabaseMaker,
        table: SqlTable,
        made: Database,
        rng: Random,
        shape: Shape,
        active: dict[tuple[Column, Family], list[Any]],
    ) -> None:
        self.maker, self.table, self.made, self.rng, self.shape, self.active = maker, table, made, rng, shape, active
        self.name = table.name.lower()
        self.place = {column.name.lower(): number for number, column in enumerate(table.columns)}
        self.keys = [
            tuple(self.place[name.lower()] for name in columns)
            for columns in (table.primary_key, *table.unique)
            if columns and all(name.lower() in self.place for name in columns)
        ]
        self.seen: list[set[Row]] = [set() for _ in self.keys]
        self.in_keys = {place for key in self.keys for place in key}
        self.fillers = 0

    def fill(self, rows: list[Row]) -> None:
        wanted = self.maker.count_of_rows(self.rng, self.shape)
        for _ in range(wanted * (8 if self.table.checks else 2)):
            if len(rows) >= wanted:
                return
            row = self._row(rows)
            if row is not None and self._is_new(row) and self.maker.keeps_checks(self.table, row):
                for key, seen in zip(self.keys, self.seen, strict=True):
                    seen.add(tuple(row[place] for place in key))
                rows.append(row)

    def _row(self, rows: list[Row]) -> Row | None:
        repeat = rows[-1] if rows and self.rng.random() < self.shape.duplicates else None
        cells: list[Any] = [None] * len(self.table.columns)
        fixed: set[int] = set()
        for key in self.table.foreign_keys:
            taken = self._reference(key, rows)
            if taken is None:
                return None
            for there, value in taken.items():
                cells[there] = value
                fixed.add(there)
        for place, column in enumerate(self.table.columns):
            if place in fixed:
                continue
            if repeat is not None and place not in self.in_keys:
                cells[place] = repeat[place]
            else:
                cells[place] = self._cell(place, column.nullable)
        return tuple(cells)

    def _cell(self, place: int, nullable: bool) -> Any:
        where = (self.name, self.table.columns[place].name.lower())
        if place not in self.in_keys and not self.maker.matters(where) and not self.table.checks:
            return None if nullable else GENERIC[self.maker.family(where)][0]
        if nullable and self.rng.random() < self.shape.nulls:
            return None
        values = self.maker.values(where, self.rng, self.shape, self.active)
        alone = (place,) in self.keys
        if not alone:
            return self.rng.choice(values)
        seen = self.seen[self.keys.index((place,))]
        free = [value for value in values if (value,) not in seen]
        if free:
            return self.rng.choice(free)
        self.fillers += 1
        value = filler(self.maker.family(where), self.fillers - 1)
        if len(values) < 12:  # columns that are compared with this one may hold it too
            values.append(value)
        return value

    def _reference(self, key: ForeignKey, rows: list[Row]) -> dict[int, Any] | None:
        """Values of a foreign key's columns by place; None where no row can have any."""
        columns = [self.place[name.lower()] for name in key.columns]
        nullable = [place for place in columns if self.table.columns[place].nullable]
        own = key.table.lower() == self.name
        parent, parents = self.maker.schema.table(key.table), rows if own else self.made.get(key.table.lower())
        if nullable and (not parents or self.rng.random() < self.shape.nulls):
            return dict.fromkeys(nullable)
        if parent is None or parents is None or (own and not rows):
            return {}  # not filled yet: drawn like any column, and dropped later where it leads nowhere
        if not parents:
            return None
        # Few parents make large groups; now and then any.
        few = parents if self.rng.random() < _ANY_PARENT else parents[: self.shape.width]
        row = self.rng.choice(few)
        places = _places(parent, key.references)
        return {place: row[there] for place, there in zip(columns, places, strict=True)}

    def _is_new(self, row: Row) -> bool:
        primary = len(self.table.primary_key) > 0
        for number, (key, seen) in enumerate(zip(self.keys, self.seen, strict=True)):
            cells = tuple(row[place] for place in key)
            if None in cells:
                if primary and number == 0:
                    return False
                continue
            if cells in seen:
                return False
        return True


def repaired(schema: SqlSchema, database: Database) -> Database:
    """The database without the rows whose foreign keys lead nowhere, and without those that led to these."""
    changed = True
    while changed:
        changed = False
        for table in schema.tables:
            for key in table.foreign_keys:
                changed |= _drop_orphans(schema, table, key, database)
    return database


def _drop_orphans(schema: SqlSchema, table: SqlTable, key: ForeignKey, database: Database) -> bool:
    parent = schema.table(key.table)
    if parent is None:
        return False
    mine, theirs = _places(table, key.columns), _places(parent, key.references)
    there = {tuple(row[place] for place in theirs) for row in database[parent.name.lower()]}
    rows = database[table.name.lower()]
    kept = []
    for row in rows:
        cells = tuple(row[place] for place in mine)
        if None in cells or cells in there:
            kept.append(row)
    if len(kept) == len(rows):
        return False
    database[table.name.lower()] = kept
    return True


def _places(table: SqlTable, names: Sequence[str]) -> list[int]:
    lowered = [column.name.lower() for column in table.columns]
    return [lowered.index(name.lower()) for name in names]

"""Generates small databases that may tell two queries apart; all rows satisfy the constraints of the schema.

Each database has another shape: number of rows, share of NULL, number of different values per column. Using few values,
taken from the conditions of both queries, makes rows that satisfy several conditions at once, joins with matches, and
duplicates.
"""

from collections.abc import Callable, Container
from datetime import UTC, date, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from eval_pipeline_plugins.sql_equivalence.generated.checks import Checks
from eval_pipeline_plugins.sql_equivalence.generated.legal import Laws
from eval_pipeline_plugins.sql_equivalence.generated.mining import ColumnName, Mined
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, References, Row
from eval_pipeline_plugins.sql_equivalence.generated.rows import RowMaker, TablePlan, chosen, plan_of
from eval_pipeline_plugins.sql_equivalence.generated.shapes import AIMED, SHAPES, Shape
from eval_pipeline_plugins.sql_equivalence.generated.values import (
    GENERIC,
    RICH,
    CandidateValues,
    Family,
    between,
    candidates,
    family_of,
    filler,
    fits,
    is_narrow,
    members_of,
    of_lengths,
)
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlColumn, SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

_Active = dict[tuple[ColumnName, Family], list[Any]]
_MOST_ROWS, _MOST_LONG = 40, 140
_COUNTABLE = frozenset(("int", "float", "text", "date", "timestamp", "datetext", "uuid", "json"))
_AIMED_SEEDS = 1_000_000


class DatabaseMaker:
    """Generates databases for one pair of queries; the same ones in every process.

    Attributes:
        schema: the schema of the databases.
        references: the foreign keys that every database satisfies.
        checks: the CHECKs that every row satisfies.
        laws: what the engine allows beyond these.
        used: the columns that the queries use.
    """

    def __init__(
        self,
        schema: SqlSchema,
        mined: Mined,
        checks: Checks,
        named: Container[str] | None = None,
        *,
        wide_integers: bool = False,
    ) -> None:
        """Takes everything that databases are made from.

        Args:
            schema: the tables that the queries use, and those that their foreign keys refer to.
            mined: the facts collected from the queries.
            checks: the CHECKs that every row must satisfy.
            named: the tables that the queries use, in lower case; other tables get only the rows that foreign keys
                need. By default, all tables count as used.
            wide_integers: whether every integer column holds 64 bits, as in SQLite.
        """
        self._wide = wide_integers
        self._named = named
        self.schema = schema
        self._mined, self.used = mined, mined.used
        self._today = datetime.now(UTC).date()
        self._choices: dict[ColumnName, tuple[Family, CandidateValues]] = {}
        self._spares: dict[ColumnName, list[Any]] = {}
        self._anywhere: dict[Family, CandidateValues] = {}
        self.references = References(schema)
        self.checks = checks
        self.laws = Laws(schema, self.references)
        self._collations = {
            (table.name.lower(), column.name.lower()): column.collation
            for table in schema.tables
            for column in table.columns
            if column.collation and not mined.minds_case
        }
        self._plans = [self._plan(table) for table in schema.referenced_first()]

    def _plan(self, table: SqlTable) -> TablePlan:
        keeps = partial(self.checks.keeps, table) if table.checks else None
        keyed = {name.lower() for key in (table.primary_key, *table.unique) for name in key}
        narrow = [
            (place, column)
            for place, column in enumerate(table.columns)
            if column.name.lower() in keyed and is_narrow(column)
        ]
        if narrow:
            keeps = partial(self._holds, narrow, keeps)
        return plan_of(table, self.schema, self._mined.used, lambda column: self._chosen(column)[0], keeps)

    def _holds(self, narrow: list[tuple[int, SqlColumn]], keeps: Callable[[Row], bool] | None, row: Row) -> bool:
        """Returns whether columns of keys, which are filled by a sequence, hold what their types allow."""
        return all(self._fits(row[place], column) for place, column in narrow) and (keeps is None or keeps(row))

    def make(self, number: int) -> GeneratedDatabase:
        """Makes the `number`-th database, counted from 0; every fourth one is large and varied."""
        return self.aimed(number // 4) if number % 4 == 3 else self.small(number - number // 4)

    def small(self, number: int) -> GeneratedDatabase:
        """Makes the `number`-th of the small databases, counted from 0."""
        return self._made(Random(number), SHAPES[number % len(SHAPES)])

    def aimed(self, number: int) -> GeneratedDatabase:
        """Makes the `number`-th of the larger and more varied databases, counted from 0."""
        return self._made(Random(_AIMED_SEEDS + number), AIMED[number % len(AIMED)])

    def _made(self, rng: Random, shape: Shape) -> GeneratedDatabase:
        active: _Active = {}
        spellings: dict[str, str] = {}
        made: GeneratedDatabase = {}
        empty = rng.choice(self._plans).name if shape.empty and self._plans else ""
        for plan in self._plans:
            maker = RowMaker(
                plan,
                made,
                rng,
                shape,
                lambda column: self._spelt(column, self._values(column, rng, shape, active), spellings),
                self._spare,
                large_groups=shape.groups and self._mined.group_size > 0,
            )
            made[plan.name] = [] if plan.name == empty else maker.fill(self._count_of_rows(plan.name, rng, shape))
        return self.laws.repaired(self.references.repaired(made))

    def _count_of_rows(self, table: str, rng: Random, shape: Shape) -> int:
        """Returns how many rows a table gets."""
        wanted = rng.randint(*shape.rows)
        if self._named is not None and table not in self._named:
            few = min(wanted, shape.width + 1)
            return max(few, self._mined.group_size + 1) if shape.groups and self._mined.group_size else few
        if shape.groups and self._mined.group_size:
            wanted = max(wanted, self._mined.group_size + rng.randint(-1, 2))
        if shape.long and self._mined.rows:
            return min(max(wanted, self._mined.rows + rng.randint(1, 3)), _MOST_LONG)
        return min(wanted, _MOST_LONG if shape.groups else _MOST_ROWS)

    def _values(self, place: ColumnName, rng: Random, shape: Shape, active: _Active) -> list[Any]:
        """Returns the few values that a column, and those compared with it, have in this database."""
        family, found = self._chosen(place)
        key = (self._mined.group(place), family)
        if key not in active:
            most = 2 if shape.keys_meet and self._mined.is_compared(place) else shape.width
            width = rng.randint(1, most) if rng.random() < 0.5 else most
            one_group = shape.groups and shape.width == 1
            if not found.exact and not one_group:  # no condition has to be met, so variety costs nothing
                width += 2
            active[key] = self._drawn(found, width, rng, shape)
            if shape.different and family in _COUNTABLE:
                known = set(active[key])
                fillers = (filler(family, step) for step in range(max(self._mined.rows, shape.rows[1]) + 4))
                active[key] += [value for value in fillers if value not in known]
                if is_narrow(column := self._column(place)):
                    active[key] = [value for value in active[key] if self._fits(value, column)]
                rng.shuffle(active[key])
        if found.keeps is None:
            return active[key]
        # The list may be that of a column without the CHECK.
        return list(filter(found.keeps, active[key])) or self._drawn(found, 1, rng, shape)

    def _spelt(self, place: ColumnName, values: list[Any], spellings: dict[str, str]) -> list[Any]:
        """Returns values without texts that are equal to another one of the database by the column's collation.

        Which of them a DISTINCT or GROUP BY shows is nobody's choice. If the queries say how texts are compared, all
        are kept.
        """
        collation = self._collations.get(place)
        if collation is None:
            return values

        def one(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            return spellings.setdefault(value.rstrip() if collation == "RTRIM" else value.lower(), value)

        return list(dict.fromkeys(map(one, values)))

    def _drawn(self, found: CandidateValues, most: int, rng: Random, shape: Shape) -> list[Any]:
        return list(dict.fromkeys(self._draw(found, rng, shape) for _ in range(most)))

    @staticmethod
    def _draw(found: CandidateValues, rng: Random, shape: Shape) -> Any:
        if shape.rich and found.rich and rng.random() < shape.rich:
            return chosen(rng, found.rich)
        drawn = rng.random()
        if found.exact and drawn < shape.exact:
            return chosen(rng, found.exact)
        if found.near and drawn < shape.exact + (1 - shape.exact) * 0.7:
            return chosen(rng, found.near)
        return chosen(rng, found.generic)

    def _chosen(self, place: ColumnName) -> tuple[Family, CandidateValues]:
        """Returns the family of a column's values and which ones to try; computed on first use."""
        if place not in self._choices:
            self._choices[place] = self._worked_out(place)
        return self._choices[place]

    def _spare(self, place: ColumnName) -> list[Any]:
        """Returns values that the CHECKs of a column allow, between those that they name; none without CHECKs."""
        if place not in self._spares:
            family, found = self._chosen(place)
            keeps = found.keeps
            named = [] if keeps is None else list(filter(keeps, [*found.exact, *found.near]))
            further = between(family, named)
            self._spares[place] = [value for value in further if keeps is not None and keeps(value)]
        return self._spares[place]

    def _column(self, place: ColumnName) -> SqlColumn:
        table = self.schema.table(place[0])
        column = table.column(place[1]) if table is not None else None
        assert column is not None
        return column

    def _worked_out(self, place: ColumnName) -> tuple[Family, CandidateValues]:
        table, column = self.schema.table(place[0]), self._column(place)
        assert table is not None
        family = family_of(column)
        if family in ("uuid", "json") and table.dialect == "sqlite":  # which takes any text
            family = "text"
        if family == "text" and place in self._mined.date_texts:
            family = "datetext"
        generic, rich = ([one for one in some[family] if self._fits(one, column)] for some in (GENERIC, RICH))
        found = CandidateValues(generic=generic, rich=rich)
        for literal in self._mined.literals(place):
            found.add(candidates(literal, family, self._today))
        if family not in self._anywhere:
            self._anywhere[family] = self._unplaced(family)
        found.add(self._anywhere[family])
        keeps = self.checks.of_column(table, place[1])
        if family == "text" and (keeps is not None or column.length is not None):
            lengths = [number for number in self._mined.literals(place) if isinstance(number, int)]
            lengths += [column.length] if column.length is not None else []
            found.near += of_lengths([text for text in (*found.exact, *found.near) if isinstance(text, str)], lengths)
        found.exact = [value for value in found.exact if self._fits(value, column)]
        found.near = [value for value in found.near if self._fits(value, column)]
        if members := members_of(column):
            found = CandidateValues(members, generic=members)
        if keeps is not None and table.dialect == "sqlite" and not column.declared:  # without a type, it holds any
            found.generic = [value for some in ("int", "float", "text") for value in GENERIC[some]]
        return family, found if keeps is None else found.kept_by(keeps)

    def _fits(self, value: Any, column: SqlColumn) -> bool:
        return fits(value, column, wide=self._wide)

    def _unplaced(self, family: Family) -> CandidateValues:
        """Returns values from the queries for any column of a family, since a literal may refer to it indirectly."""
        near: list[Any] = []
        if family != "text":
            for literal in self._mined.anywhere():
                found = candidates(literal, family, self._today)
                near += found.exact or (found.near if family in ("timestamp", "datetext") else [])
        apart = self._distant_days(family) if family in ("date", "timestamp", "datetext") else []
        if self._mined.days and not self._mined.relative:  # both ends of a distance have to be drawn
            return CandidateValues(apart, list(dict.fromkeys(near)))
        return CandidateValues([], list(dict.fromkeys([*near, *apart])))

    def _distant_days(self, family: Family) -> list[Any]:
        """Returns days at distances named in the queries: from today, from a period's start, or from each other."""
        steps = [distance + step for distance in self._mined.days for step in (-1, 0, 1)]
        if self._mined.relative:
            today = self._today
            starts = [today - timedelta(days=today.weekday()), today.replace(day=1), today.replace(month=1, day=1)]
            days = [today - timedelta(days=distance) for distance in (0, 1, *steps)]
            days += [start - timedelta(days=distance) for start in starts for distance in (0, *self._mined.days)]
        else:
            days = [date(2021, 3, 15) - timedelta(days=distance) for distance in (0, *steps)] if steps else []
        if family == "date":
            return days
        moments = [datetime(day.year, day.month, day.day) for day in days]
        return list(moments) if family == "timestamp" else [day.isoformat() for day in days]

"""Small databases made to tell two queries apart, all of whose rows keep the constraints of the schema.

Each database has another shape: sizes, shares of NULL, how few different values a column has. Few values, taken from
the conditions of both queries, make rows that pass several conditions at once, joins that meet, and duplicates.
"""

from collections.abc import Container
from datetime import UTC, date, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from eval_pipeline.sql_equivalence.generated.checks import Checks
from eval_pipeline.sql_equivalence.generated.mining import ColumnName, Mined
from eval_pipeline.sql_equivalence.generated.references import GeneratedDatabase, References
from eval_pipeline.sql_equivalence.generated.rows import RowMaker, TablePlan, plan_of
from eval_pipeline.sql_equivalence.generated.shapes import SHAPES, Shape
from eval_pipeline.sql_equivalence.generated.values import GENERIC, CandidateValues, Family, candidates, family_of, fits
from eval_pipeline.sql_equivalence.schema.parts import SqlTable
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema

_Active = dict[tuple[ColumnName, Family], list[Any]]
_MOST_ROWS = 40


class DatabaseMaker:
    """Makes databases for one pair of queries; the same ones in every process.

    Attributes:
        schema: of the databases.
        references: the foreign keys that every one of them keeps.
    """

    def __init__(self, schema: SqlSchema, mined: Mined, checks: Checks, named: Container[str] | None = None) -> None:
        """Takes what databases are made from.

        Args:
            schema: the tables used, with those their foreign keys lead to.
            mined: what the queries say.
            checks: which every row keeps.
            named: the tables that the queries use, in lower case; the others get as many rows as foreign keys need.
                All of them, if not given.
        """
        self._named = named
        self.schema = schema
        self._mined = mined
        self._today = datetime.now(UTC).date()
        self._choices: dict[ColumnName, tuple[Family, CandidateValues]] = {}
        self._anywhere: dict[Family, CandidateValues] = {}
        self.references = References(schema)
        self._checks = checks
        self._plans = [self._plan(table) for table in schema.referenced_first()]

    def _plan(self, table: SqlTable) -> TablePlan:
        keeps = partial(self._checks.keeps, table) if table.checks else None
        return plan_of(table, self.schema, self._mined.used, lambda column: self._chosen(column)[0], keeps)

    def make(self, number: int) -> GeneratedDatabase:
        """The `number`-th database, from 0."""
        rng = Random(number)
        shape = SHAPES[number % len(SHAPES)]
        active: _Active = {}
        made: GeneratedDatabase = {}
        empty = rng.choice(self._plans).name if shape.empty and self._plans else ""
        for plan in self._plans:
            maker = RowMaker(plan, made, rng, shape, lambda column: self._values(column, rng, shape, active))
            made[plan.name] = [] if plan.name == empty else maker.fill(self._count_of_rows(plan.name, rng, shape))
        return self.references.repaired(made)

    def _count_of_rows(self, table: str, rng: Random, shape: Shape) -> int:
        """How many rows a table gets."""
        wanted = rng.randint(*shape.rows)
        if self._named is not None and table not in self._named:
            return min(wanted, shape.width + 1)
        if shape.groups and self._mined.group_size:
            wanted = max(wanted, self._mined.group_size + rng.randint(-1, 2))
        return min(wanted, _MOST_ROWS)

    def _values(self, place: ColumnName, rng: Random, shape: Shape, active: _Active) -> list[Any]:
        """The few values that a column, and those compared with it, have in this database."""
        family, found = self._chosen(place)
        key = (self._mined.group(place), family)
        if key not in active:
            most = 2 if shape.keys_meet and self._mined.is_compared(place) else shape.width
            width = rng.randint(1, most) if rng.random() < 0.5 else most
            if not found.exact:  # no condition has to be met, so variety costs nothing
                width += 2
            active[key] = self._drawn(found, width, rng, shape)
        if found.keeps is None:
            return active[key]
        # The list may be that of a column without the CHECK.
        return list(filter(found.keeps, active[key])) or self._drawn(found, 1, rng, shape)

    def _drawn(self, found: CandidateValues, most: int, rng: Random, shape: Shape) -> list[Any]:
        return list(dict.fromkeys(self._draw(found, rng, shape) for _ in range(most)))

    @staticmethod
    def _draw(found: CandidateValues, rng: Random, shape: Shape) -> Any:
        drawn = rng.random()
        if found.exact and drawn < shape.exact:
            return rng.choice(found.exact)
        if found.near and drawn < shape.exact + (1 - shape.exact) * 0.7:
            return rng.choice(found.near)
        return rng.choice(found.generic)

    def _chosen(self, place: ColumnName) -> tuple[Family, CandidateValues]:
        """What kind of values a column holds, and which are worth trying; worked out when first asked for."""
        if place not in self._choices:
            self._choices[place] = self._worked_out(place)
        return self._choices[place]

    def _worked_out(self, place: ColumnName) -> tuple[Family, CandidateValues]:
        table = self.schema.table(place[0])
        column = table.column(place[1]) if table is not None else None
        assert table is not None and column is not None
        family = family_of(column)
        if family == "text" and place in self._mined.date_texts:
            family = "datetext"
        found = CandidateValues(generic=GENERIC[family])
        for literal in self._mined.literals(place):
            found.add(candidates(literal, family, self._today))
        if family not in self._anywhere:
            self._anywhere[family] = self._unplaced(family)
        found.add(self._anywhere[family])
        found.exact = [value for value in found.exact if fits(value, column)]
        found.near = [value for value in found.near if fits(value, column)]
        if column.type.upper().startswith("ENUM"):
            members = [part.strip().strip("'") for part in column.type[5:-1].split(",")]
            found = CandidateValues(members, generic=members)
        keeps = self._checks.of_column(table, place[1])
        return family, found if keeps is None else found.kept_by(keeps)

    def _unplaced(self, family: Family) -> CandidateValues:
        """What the queries suggest for any column of a family: a literal may mean it though no condition says so."""
        near: list[Any] = []
        if family != "text":
            for literal in self._mined.anywhere():
                near += candidates(literal, family, self._today).exact
        if family in ("date", "timestamp", "datetext"):
            near += self._distant_days(family)
        return CandidateValues([], list(dict.fromkeys(near)))

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

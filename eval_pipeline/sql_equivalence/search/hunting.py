"""The hunt for a generated database on which two queries differ: in SQLite first where it understands both."""

import time
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sql_equivalence.generated.checks import Checks
from eval_pipeline.sql_equivalence.generated.databases import DatabaseMaker
from eval_pipeline.sql_equivalence.generated.memory import DuckdbMemory, Memory, SqliteMemory
from eval_pipeline.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline.sql_equivalence.queries.pair import QueryPair
from eval_pipeline.sql_equivalence.results import ColumnMatch, Result
from eval_pipeline.sql_equivalence.search.shrinking import shrunk
from eval_pipeline.sql_equivalence.told import counterexample

HUNTED_PER_SAMPLE = 10
"""Databases tried in SQLite for each that would be tried in DuckDB: they cost a tenth."""

_MOST_DISMISSED = 4
_TRIED_FOR_STABILITY = 4
_TRIED_TO_RUN = 3
_NOT_UNDERSTOOD = {ErrorClass.SYNTAX, ErrorClass.COLUMN, ErrorClass.SANDBOX, ErrorClass.OTHER}


@dataclass
class Tally:
    """What was seen of a pair so far.

    Attributes:
        match: the order of columns that fits all results.
        compared: databases on which both gave stable results.
        unstable: databases on which one did not.
        vacuous: whether both were empty on each.
        runs: both have run in the engine that counts.
        error: the last one, of either query.
        out_of_time: not all databases were tried.
    """

    match: ColumnMatch = field(default_factory=ColumnMatch)
    compared: int = 0
    unstable: int = 0
    vacuous: bool = True
    runs: bool = False
    error: str | None = None
    out_of_time: bool = False

    def agreed(self, generated: Result, expected: Result) -> None:
        """Both gave these on a database, and they are equal."""
        self.compared += 1
        self.vacuous = self.vacuous and not generated.rows and not expected.rows


class NotUnderstoodError(Exception):
    """The engine that hunts is of no use for this pair."""


class Hunt:
    """One hunt; its tally goes on from that of the shipped databases."""

    def __init__(self, pair: QueryPair, tally: Tally, samples: int, stop: float) -> None:
        """Makes ready.

        Args:
            pair: what to compare.
            tally: filled in.
            samples: databases to try in DuckDB; in SQLite `HUNTED_PER_SAMPLE` times as many.
            stop: `time.monotonic()` after which no further database is tried.
        """
        self.pair, self.tally, self._samples, self._stop = pair, tally, samples, stop
        named = {table.name.lower() for table in pair.named.tables}
        self._maker = DatabaseMaker(pair.schema, pair.mined(), Checks(pair.schema), named)
        self._telling: list[GeneratedDatabase] = []

    def run(self, *, proved: bool) -> dict[str, Any] | None:
        """The counterexample, or None. A pair that is proved is tried on fewer databases."""
        wanted = self._samples * (1 if proved else HUNTED_PER_SAMPLE)
        if self.pair.native == "sqlite":
            engine = SqliteMemory(self.pair.named)
            found = self._hunt(engine, engine, wanted)
            if found is None and not proved:
                self._try_stability(engine)
            return found
        native = DuckdbMemory(self.pair.named, alone=self.pair.names_unknown)
        if not self.tally.runs and not self._runs(native):
            return None
        found = self._in_sqlite_for(native, wanted, proved=proved)
        return found if found is not None or proved else self._confirmed_agreement(native)

    def _runs(self, native: Memory) -> bool:
        """Whether both queries run in the engine that counts, on one of the first databases."""
        for number in range(_TRIED_TO_RUN):
            try:
                self.pair.ready(native.dialect).results_on(native, self._maker.make(number))
            except SqlError as error:
                self.tally.error = error.message
                if error.error_class in _NOT_UNDERSTOOD:
                    return False
            else:
                self.tally.error = None
                return True
        return False

    def _in_sqlite_for(self, native: Memory, wanted: int, *, proved: bool) -> dict[str, Any] | None:
        """Hunts in SQLite, or in the native engine where SQLite is of no use."""
        tally = self.tally
        before = tally.compared, tally.unstable, tally.vacuous, tally.match.copy()
        try:
            self.pair.ready("sqlite")
            hunting = SqliteMemory(self.pair.named, case_sensitive_like=True)
        except SqlError:
            return self._hunt(native, native, self._samples)
        try:
            found = self._hunt(hunting, native, wanted)
            if found is None and not proved:
                self._try_stability(hunting)
            return found
        except NotUnderstoodError:
            tally.compared, tally.unstable, tally.vacuous, tally.match = before
            tally.error, self._telling = None, []
            return self._hunt(native, native, self._samples)

    def _confirmed_agreement(self, native: Memory) -> dict[str, Any] | None:
        """What agrees in SQLite has to agree in the native engine too, on some databases."""
        for database in self._telling[: max(self._samples // 2, 1)]:
            if self.pair.ready(native.dialect).differs(native, database, self.tally.match.order):
                return self._counterexample(native, native, database)
        return None

    def _hunt(self, hunting: Memory, native: Memory, wanted: int) -> dict[str, Any] | None:
        """Tries databases one after the other. Raises NotUnderstoodError where `hunting` is not `native` and no use."""
        dismissed = 0
        for number in range(wanted):
            if time.monotonic() > self._stop:
                self.tally.out_of_time = True
                break
            database = self._maker.make(number)
            try:
                may_differ = self._may_differ(hunting, database)
            except SqlError as error:
                if error.error_class not in _NOT_UNDERSTOOD:  # of these rows alone: overflow, a cast, time
                    self.tally.error = error.message
                    continue
                if hunting is not native:
                    raise NotUnderstoodError from error
                self.tally.error = error.message
                return None
            if may_differ:
                if self.pair.ready(native.dialect).differs(native, database, self.tally.match.order):
                    return self._counterexample(hunting, native, database)
                dismissed += 1
                self._note_instability(native, database)
                if hunting is not native and dismissed >= _MOST_DISMISSED:
                    raise NotUnderstoodError
        return None

    def _try_stability(self, engine: Memory) -> None:
        """Whether results that agreed hold when the rows of the tables stand in another order."""
        for database in self._telling[:_TRIED_FOR_STABILITY]:
            self._note_instability(engine, database)

    def _may_differ(self, hunting: Memory, database: GeneratedDatabase) -> bool:
        """Whether results differ on a database; if not, it is counted. Raises SqlError."""
        pair = self.pair.ready(hunting.dialect)
        generated, expected = pair.results_on(hunting, database)
        if pair.cuts_ties(hunting.query):
            self.tally.unstable += 1
            return False
        if not self.tally.match.agrees(generated, expected):
            return True
        self.tally.agreed(generated, expected)
        if generated.rows:
            self._telling.append(database)
        return False

    def _note_instability(self, engine: Memory, database: GeneratedDatabase) -> None:
        """Counts a database on which a result changes with the order of the tables' rows."""
        try:
            self.tally.unstable += not self.pair.ready(engine.dialect).is_stable(engine, database)
        except SqlError as error:
            self.tally.error = error.message

    def _counterexample(self, hunting: Memory, native: Memory, database: GeneratedDatabase) -> dict[str, Any]:
        """A database as small as can be found on which both differ in the engine that counts, with what they give."""
        order = self.tally.match.order
        pair, sure = self.pair.ready(hunting.dialect), self.pair.ready(native.dialect)
        small = shrunk(self._maker.references, database, lambda one: pair.differs(hunting, one, order), self._stop)
        if hunting is not native and not sure.differs(native, small, order):
            small = database
        generated, expected = sure.results_on(native, small)
        return counterexample(self.pair.schema, small, generated, expected, order)

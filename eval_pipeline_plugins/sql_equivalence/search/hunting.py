"""Searches for a generated database on which two queries differ, first in SQLite if it understands both."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline_plugins.sql_equivalence.generated.memory import DuckdbMemory, Memory, SqliteMemory
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline_plugins.sql_equivalence.generated.variations import variations
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.queries.ready import Orders, agree
from eval_pipeline_plugins.sql_equivalence.results import Result
from eval_pipeline_plugins.sql_equivalence.search.evidence import for_mutants, maker_for, mutation_evidence
from eval_pipeline_plugins.sql_equivalence.search.shrinking import shrunk
from eval_pipeline_plugins.sql_equivalence.search.tally import PairTally
from eval_pipeline_plugins.sql_equivalence.search.witness import ServerWitness
from eval_pipeline_plugins.sql_equivalence.told import counterexample

HUNTED_PER_SAMPLE = 10
"""Databases tried in SQLite for each that would be tried in DuckDB: they cost a tenth."""

MUTATION_BASE = {"sqlite": 32, "duckdb": 10}
"""Databases tried for every mutant of an expected query, by the engine."""
_FURTHER = 3
"""How many times as many databases are tried where no mutant says when there are enough."""
_MOST_DISMISSED = 4
_TRIED_FOR_STABILITY = 4
_TRIED_TO_RUN = 3
_MORE_ALONE = 3
_MOST_VARIED = 8
_TRIED_FOR_ORDER = 4
_NOT_UNDERSTOOD = {ErrorClass.SYNTAX, ErrorClass.COLUMN, ErrorClass.SANDBOX, ErrorClass.OTHER}


class NotUnderstoodError(Exception):
    """The searching engine cannot be used for this pair."""


class Hunt:
    """One search; its tally continues that of the shipped databases."""

    def __init__(
        self,
        pair: QueryPair,
        tally: PairTally,
        samples: int,
        witness: ServerWitness | None = None,
        counts: Callable[[GeneratedDatabase, Result], bool] | None = None,
    ) -> None:
        """Prepares the search.

        Args:
            pair: the queries to compare.
            tally: receives the observations.
            samples: databases to try in DuckDB; in SQLite `HUNTED_PER_SAMPLE` times as many.
            witness: the server that has the data; if given, only differences on that server count.
            counts: returns whether a database counts, given its rows and the expected query's result; by default, all
                count.
        """
        self._witness = witness
        self.pair, self.tally, self._samples = pair, tally, samples
        self._counts = counts
        self._maker = maker_for(pair)
        self._telling: list[GeneratedDatabase] = []
        self._settled = 0
        self._bases: Sequence[GeneratedDatabase] = ()
        self.differing: tuple[Result, Result] | None = None
        """Both results on the counterexample."""

    def run(self, *, proved: bool, fixed: bool = False) -> dict[str, Any] | None:
        """Returns the counterexample, or None.

        A proved pair is tried on fewer databases, and so is one whose results are fixed, in the deciding engine alone.
        """
        in_native = fixed and not proved
        proved = proved or fixed
        wanted = self._samples * (1 if proved else HUNTED_PER_SAMPLE)
        if self.pair.native == "sqlite":
            engine = SqliteMemory(self.pair.named)
            found = self._hunt(engine, engine, self._numbered(wanted))
            return found if found is not None or proved else self._after(engine, engine)
        native = DuckdbMemory(self.pair.named, alone=self.pair.names_unknown)
        if not self.tally.runs and not self._runs(native):
            return None
        self.tally.hunted = True
        found = (
            self._in_native(native, proved=True) if in_native else self._in_sqlite_for(native, wanted, proved=proved)
        )
        return found if found is not None or proved else self._confirmed_agreement(native)

    def _runs(self, native: Memory) -> bool:
        """Returns whether both queries run in the deciding engine, on one of the first databases."""
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
        """Searches in SQLite, or in the native engine if SQLite cannot be used."""
        tally = self.tally
        before = tally.compared, tally.unstable, list(tally.results), tally.match.copy()
        if self.pair.computed:  # only the deciding engine computes them as the schema's does
            return self._in_native(native, proved=proved)
        try:
            self.pair.ready("sqlite")
            hunting = SqliteMemory(self.pair.named, case_sensitive_like=True)
        except SqlError:
            return self._in_native(native, proved=proved)
        try:
            found = self._hunt(hunting, native, self._numbered(wanted))
            return found if found is not None or proved else self._after(hunting, native)
        except NotUnderstoodError:
            tally.compared, tally.unstable, tally.results, tally.match = before
            tally.error, self._telling, tally.mutation = None, [], None
            return self._in_native(native, proved=proved)

    def _in_native(self, native: Memory, *, proved: bool) -> dict[str, Any] | None:
        """Searches in the deciding engine if SQLite cannot be used."""
        found = self._hunt(native, native, self._numbered(self._samples * (1 if proved else _MORE_ALONE)))
        return found if found is not None or proved else self._after(native, native)

    def _after(self, hunting: Memory, native: Memory) -> dict[str, Any] | None:
        """Continues if nothing differed: databases that kill mutants of the expected query, then other row orders."""
        if self.tally.out_of_time:
            return None
        if self.tally.compared and not self.pair.volatile:
            further = self._killers(hunting) if self.pair.overlooked is None else self._further(hunting)
            told = self._hunt(hunting, native, further) or self._hunt(hunting, native, self._varied())
            if told is not None:
                return told
        # Agreeing results have to stay the same when the rows of the tables are in another order.
        for database in self._telling[:_TRIED_FOR_STABILITY]:
            self._note_instability(hunting, database)
        return None

    def _killers(self, hunting: Memory) -> Sequence[GeneratedDatabase]:
        """Returns the databases that tell mistakes in the expected query from it."""
        pair, base = self.pair, MUTATION_BASE[hunting.dialect]
        found = mutation_evidence(pair.expected_text, pair.whole_schema, pair.dialect, hunting.dialect, base)
        self.tally.mutation = found
        self._bases = found.databases[:_MOST_VARIED] if found is not None else ()
        return found.databases if found is not None else ()

    def _further(self, hunting: Memory) -> Iterator[GeneratedDatabase]:
        """Yields those of the databases on which mutants of the expected query would be tried."""
        pair = self.pair
        alone = QueryPair(pair.expected_text, pair.expected_text, pair.whole_schema, pair.dialect)
        return islice(for_mutants(maker_for(alone)), _FURTHER * MUTATION_BASE[hunting.dialect])

    def _varied(self) -> Iterator[GeneratedDatabase]:
        """Yields small changes to databases on which the expected query is known to return rows."""
        full = self._telling[-_MOST_VARIED:]
        maker = self._maker
        return variations([*self._bases, *full], maker.schema, maker.used, maker.checks, maker.references, full)

    def _numbered(self, wanted: int) -> Iterator[GeneratedDatabase]:
        return (self._maker.make(number) for number in range(wanted))

    def _confirmed_agreement(self, native: Memory) -> dict[str, Any] | None:
        """Checks on some databases that agreement in SQLite also holds in the native engine, and on a server."""
        for database in self._telling[: max(self._samples // 2, 1)]:
            legal = self._maker.laws.allow(database) is not False
            if legal and self.pair.ready(native.dialect).differs(native, database, self.tally.native.orders()):
                if self._is_confirmed(database):
                    return self._counterexample(native, native, database)
                self.tally.unconfirmed += 1
            self._note_native(native, database)
            if self._witness is not None:
                try:
                    generated, expected = self._witness.results(database)
                    self.tally.confirmed += agree(generated, expected, self.tally.match.orders(), self.pair.overlooked)
                except SqlError as error:
                    self.tally.error = error.message
        return None

    def _note_native(self, native: Memory, database: GeneratedDatabase) -> None:
        """Records which orders of columns fit the results of the deciding engine."""
        try:
            self.tally.native.agrees(*self.pair.ready(native.dialect).results_on(native, database))
        except SqlError:
            return

    def _orders(self, hunting: Memory, native: Memory) -> Orders:
        """Returns the orders of columns that fit the earlier results of the deciding engine."""
        if hunting is native:
            return self.tally.match.orders()
        while self._settled < min(len(self._telling), _TRIED_FOR_ORDER):
            self._note_native(native, self._telling[self._settled])
            self._settled += 1
        return self.tally.native.orders()

    def _hunt(self, hunting: Memory, native: Memory, databases: Iterable[GeneratedDatabase]) -> dict[str, Any] | None:
        """Tries databases one by one. Raises a NotUnderstoodError if `hunting` is not `native` and cannot be used."""
        dismissed = 0
        empty: GeneratedDatabase = {table.name.lower(): [] for table in self.pair.schema.tables}
        for made in databases:
            database = {**empty, **made}  # databases for mutants have only the tables of the expected query
            try:
                may_differ = self._may_differ(hunting, database)
            except SqlError as error:
                if self._is_ended_by(error, alone=hunting is native):
                    return None
                continue
            if may_differ:
                if self._maker.laws.allow(database) is False:
                    continue
                if self.pair.ready(native.dialect).differs(native, database, self._orders(hunting, native)):
                    if self._is_confirmed(database):
                        return self._counterexample(hunting, native, database)
                    self.tally.unconfirmed += 1
                    if self.tally.unconfirmed >= _MOST_DISMISSED:
                        return None
                    continue
                dismissed += 1
                self._note_instability(native, database)
                if hunting is not native and dismissed >= _MOST_DISMISSED:
                    raise NotUnderstoodError
        return None

    def _is_ended_by(self, error: SqlError, *, alone: bool) -> bool:
        """Returns whether an error of a query ends the search. Raises a NotUnderstoodError if not `alone`."""
        self.tally.error = error.message
        if error.error_class in _NOT_UNDERSTOOD:
            if not alone:
                raise NotUnderstoodError from error
            return True
        self.tally.late += error.error_class is ErrorClass.TIMEOUT  # other errors are of these rows: overflow, a cast
        return self.tally.out_of_time

    def _is_confirmed(self, database: GeneratedDatabase) -> bool:
        """Returns whether the server, if there is one, also gives different results on a database.

        Without one, a database does not count if nobody can tell whether the engine would accept its rows.
        """
        if self._witness is None and self._maker.laws.allow(database) is None:
            return False
        return self._witness is None or self._witness.differs(database, self.tally.match.orders())

    def _may_differ(self, hunting: Memory, database: GeneratedDatabase) -> bool:
        """Returns whether results differ on a database; counts it if not. Raises a SqlError."""
        pair = self.pair.ready(hunting.dialect)
        generated, expected = pair.results_on(hunting, database)
        if self._counts is not None and not self._counts(database, expected):
            return False
        if pair.cuts_ties(hunting.query):
            # It is not a mistake that a LIMIT picks arbitrary tied rows, if both pick the same once ties are broken.
            if pair.ties_agree(hunting.query):
                self.tally.agreed(expected)
            else:
                self.tally.unstable += 1
            return False
        if not self.tally.match.agrees(generated, expected):
            return True
        self.tally.agreed(expected)
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
        """Returns the smallest database found on which both differ in the deciding engine, with both results."""
        seen, orders = self.tally.match.orders(), self._orders(hunting, native)
        pair, sure = self.pair.ready(hunting.dialect), self.pair.ready(native.dialect)

        def differs(one: GeneratedDatabase) -> bool:
            counts = self._counts is None or self._counts(one, pair.results_on(hunting, one)[1])
            return counts and pair.differs(hunting, one, seen)

        small = shrunk(self._maker.references, database, differs)
        if hunting is not native and not sure.differs(native, small, orders):
            small = database
        generated, expected = sure.results_on(native, small)
        if self._witness is not None:
            if small is not database and not self._is_confirmed(small):
                small = database
            generated, expected = self._witness.results(small)
            orders = seen
        self.differing = generated, expected
        return counterexample(self.pair.schema, small, generated, expected, orders[0] if orders else None)

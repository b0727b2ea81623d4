"""Takes one pair through the rungs of the ladder. It runs in a child process, so that it can be stopped."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import DataPlace, LivePlace, dialect_of, place_from_text
from eval_pipeline.sandbox.sql.tasks import connection_to, engine_of
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline_plugins.sql_equivalence.queries.mutants import BY_CONSTRAINTS
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.results import (
    EQUAL,
    TIES,
    ColumnMatch,
    Overlooked,
    Result,
    compared,
    overlooking,
)
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.search.fitting import Fitting, Join, finds_nothing, fitting, present
from eval_pipeline_plugins.sql_equivalence.search.hunting import Hunt
from eval_pipeline_plugins.sql_equivalence.search.tally import PairTally
from eval_pipeline_plugins.sql_equivalence.search.witness import ServerWitness
from eval_pipeline_plugins.sql_equivalence.told import schema_from_json, shipped_counterexample

_schema = lru_cache(maxsize=32)(schema_from_json)


def search(
    generated: str,
    expected: str,
    schema_json: str,
    databases: list[str],
    dialect: str,
    samples: int,
    seconds: float,
) -> dict[str, Any]:
    """Compares two queries; returns `verdict`, `rung` and `evidence` as `check` does."""
    try:
        pair = QueryPair(generated, expected, _schema(schema_json), dialect)
        return _Search(pair, samples, seconds).run([place_from_text(text) for text in databases])
    except SqlError as error:
        evidence = {"reason": "cannot run", "error": error.message}
        return {"verdict": "undecided", "rung": "undecided", "evidence": evidence}


@lru_cache(maxsize=256)
def _fit(
    place: DataPlace, _: tuple[int, ...], schema: SqlSchema, tables: tuple[SqlTable, ...], joins: tuple[Join, ...]
) -> Fitting:
    quote = "`" if isinstance(place, LivePlace) and dialect_of(place) == "mysql" else '"'
    return fitting(schema, tables, connection_to(place, SqlLimits()).query, quote, joins)


def _state(place: DataPlace) -> tuple[int, ...]:
    """Returns a text that changes with the data; on a server, changed data of a suite have a new schema name."""
    if isinstance(place, LivePlace):
        return ()
    found = place.stat()
    return found.st_mtime_ns, found.st_size


class _Search:
    def __init__(self, pair: QueryPair, samples: int, seconds: float) -> None:
        self.pair, self.samples, self.seconds = pair, samples, seconds
        self.tally = PairTally()
        self.shipped: list[dict[str, Any]] = []
        self.finds_nothing = False
        self.present: tuple[int, ...] = ()
        self.proved = False
        self.witness: ServerWitness | None = None
        self.on_data: Overlooked | None = Overlooked()
        """What the results on the data need; None if they differ in meaning."""
        self.ways: Iterator[Overlooked] = iter((Overlooked(),))
        """The same with each way in which their columns may stand for each other."""
        self.shipped_match, self.shipped_native = self.tally.match, self.tally.native

    def run(self, databases: list[DataPlace]) -> dict[str, Any]:
        for path in databases:
            if (found := self._on_shipped(path)) is not None:
                told = self._tell("different", "refuted", f"results differ on {path.name}", found)
                return self._overlooking(told, databases)
        if databases and all(told["error"] is not None for told in self.shipped):
            return self._tell("undecided", "undecided", "cannot run")
        self.shipped_match, self.shipped_native = self.tally.match.copy(), self.tally.native.copy()
        self.proved = self.pair.proved()
        self.witness = next(
            (ServerWitness(self.pair, place, self.seconds) for place in databases if isinstance(place, LivePlace)), None
        )
        hunt = Hunt(self.pair, self.tally, self.samples, self.witness)
        found = hunt.run(proved=self.proved, fixed=self.pair.fixed)
        if found is None:
            return self._not_refuted()
        told = self._tell("different", "refuted", "results differ on a generated database", found)
        return self._overlooking(told, databases, hunt.differing)

    def _overlooking(
        self, told: dict[str, Any], databases: list[DataPlace], differing: tuple[Result, Result] | None = None
    ) -> dict[str, Any]:
        """Adds to a refutation what one has to overlook for the results to be equal on databases that people have.

        The search begins with what the results on the data need. Where databases that fit the data need more, of a kind
        that says nothing about meaning, that is added and the search is repeated. What nobody could overlook there is
        a difference in meaning.
        """
        evidence, ways = told["evidence"], self.ways
        evidence["fits_data"] = None
        if self.on_data is None:
            return told
        before: list[dict[str, Any]] = []
        examples: list[dict[str, Any]] = []
        try:
            fit = self._fit(databases)
            if fit is None and differing is not None:  # this database stands for the data
                before, ways = [evidence["counterexample"]], overlooking(compared(*differing), *differing)
            for start in ways:
                further, overlooked = self._widened(start, fit)
                examples = examples or [*before, *further]
                if overlooked is not None:
                    examples, evidence["overlooked"] = [*before, *further], sorted(overlooked.relaxations)
                    break
        except SqlError:
            return told
        examples = examples or before
        meant = evidence["overlooked"] is None
        if examples:
            evidence["counterexample"] = examples[-1 if meant else 0]
        if fit is not None:
            evidence["fits_data"] = meant
        evidence["reason"] += self._where(evidence["overlooked"], fit is not None, bool(examples))
        return told

    def _widened(self, start: Overlooked, fit: Fitting | None) -> tuple[list[dict[str, Any]], Overlooked | None]:
        """Returns databases that need more and more, and what the last one needs; None if that is other meaning."""
        examples: list[dict[str, Any]] = []
        overlooked: Overlooked | None = start
        while overlooked is not None:
            example, differing = self._hunted(overlooked, fit)
            if example is None or differing is None:
                break
            examples.append(example)
            overlooked = overlooked.widened(*differing)
        return examples, overlooked

    def _where(self, overlooked: Sequence[str] | None, fits: bool, on_fitting: bool) -> str:
        """Returns the end of the sentence that says where results differ, and in what."""
        on_data = any(told["same"] is False for told in self.shipped)
        if overlooked is None:
            where = " that fits the data" if fits and not on_data else ""
            return f"{', and in meaning on a generated database' if on_data else ''}{where}"
        only = f"only in {', '.join(overlooked)}"
        if on_data or not fits:
            return f", {only}" if on_data else f", but {only}"
        return f", but {only} on those that fit the data" if on_fitting else ", but on none that fits the data"

    def _fit(self, databases: list[DataPlace]) -> Fitting | None:
        place = next((path for path, told in zip(databases, self.shipped, strict=False) if told["error"] is None), None)
        if place is None:
            return None
        fit = _fit(place, _state(place), self.pair.whole_schema, self.pair.schema.tables, self.pair.joins)
        fit = replace(fit.spelling(self.pair.literals), present=self.present)
        if self.finds_nothing:
            return fit.beyond_results(self.pair.whole_schema)
        # Few generated tables have groups of both kinds: some that HAVING keeps, and some that it drops.
        return replace(fit, finds=False) if self.pair.drops_groups else fit

    def _hunted(
        self, overlooked: Overlooked, fit: Fitting | None
    ) -> tuple[dict[str, Any] | None, tuple[Result, Result] | None]:
        """Searches for a database that fits the data and needs more; returns it and both results. Raises a SqlError."""
        exact = overlooked.relaxations <= EQUAL
        pair = QueryPair(
            self.pair.generated_text,
            self.pair.expected_text,
            self.pair.whole_schema if fit is None else fit.schema,
            self.pair.dialect,
            None if exact else overlooked,
        )
        if exact:
            tally = PairTally(self.shipped_match.copy(), self.shipped_native.copy(), runs=self.tally.runs)
        else:
            tally = PairTally(ColumnMatch(overlooked), ColumnMatch(overlooked), runs=self.tally.runs)
        hunt = Hunt(pair, tally, self.samples, self.witness, None if fit is None else fit.holds)
        return hunt.run(proved=False), hunt.differing

    def _on_shipped(self, path: DataPlace) -> dict[str, Any] | None:
        """Compares on a database file; returns the counterexample if the results differ."""
        told: dict[str, Any] = {"database": path.name, "same": None, "error": None}
        self.shipped.append(told)
        try:
            run = connection_to(path, SqlLimits()).query
            left = self.seconds
            engine = engine_of(path)
            pair = self.pair.ready(engine)
            generated, expected = pair.results(lambda sql: run(sql, left))
            self.tally.runs |= engine == self.pair.native
            told["same"] = self.tally.match.agrees(generated, expected)
            if engine == self.pair.native:
                self.tally.native.agrees(generated, expected)
            self.present = self.present or present(expected)
            found = compared(generated, expected)
            self.ways, told["needs"] = overlooking(found, generated, expected), [sorted(one) for one in found.needs]
            self.on_data = Overlooked(found.needs[0]) if found.needs else None
            if pair.cuts_ties(lambda sql: run(sql, left)):
                agree = pair.ties_agree(lambda sql: run(sql, left))
                if not agree and not pair.takes_all_ties(lambda sql: run(sql, left), generated):
                    self.tally.unstable += 1
                elif not told["same"]:  # tied rows are taken as the other could have, or all of them
                    self.on_data, told["needs"] = Overlooked(TIES), [sorted(TIES)]
                    self.ways = iter((self.on_data,))
            elif told["same"]:
                self.finds_nothing = finds_nothing(expected)
                self.tally.agreed(expected)
            elif not self.pair.volatile:
                return shipped_counterexample(path.name, generated, expected)
        except SqlError as error:
            told["error"] = self.tally.error = error.message
        return None

    def _not_refuted(self) -> dict[str, Any]:
        tally = self.tally
        if tally.out_of_time:
            return self._tell("undecided", "undecided", "out of time")
        if not tally.compared and not tally.unstable:
            return self._tell("undecided", "undecided", "cannot run")
        if self.proved:
            return self._tell("equivalent", "proved", "the queries have one canonical form")
        if tally.unconfirmed:
            return self._tell("undecided", "undecided", self._unconfirmed())
        if tally.unstable or self.pair.volatile:
            why = "; ".join(self.pair.volatile) or "results change with the order of rows, or a LIMIT cuts through ties"
            return self._tell("undecided", "undecided", f"not deterministic: {why}")
        if self.witness is not None and not tally.hunted:
            told = f"same results on the data; both do not run in {self.pair.native}, where databases are generated"
            return self._tell("undecided", "undecided", told)
        if self.pair.fixed:
            return self._tell("equivalent", "proved", "the results are the same, and cannot depend on the data")
        if tally.vacuous:
            return self._tell("undecided", "undecided", "vacuous: the expected result is the same on every database")
        if weakness := self._weakness():
            return self._tell("weakly_agreed", "weakly_agreed", f"{self._agreement()}, but {weakness}")
        return self._tell("agreed", "agreed", f"{self._agreement()}, which is no proof")

    def _unconfirmed(self) -> str:
        if self.witness is None:
            return "results differ on generated databases of which nobody can tell whether the schema allows them"
        return f"{self.pair.native}, to which both were translated, tells them apart, {self.witness.server} does not"

    def _agreement(self) -> str:
        found = self.tally.mutation
        told = f", which tell {found.killed} mistakes in the expected query from it" if found is not None else ""
        return f"same results on {self.tally.compared} databases{told}"

    def _weakness(self) -> str:
        """Returns why the agreement proves little; empty if the databases are known to reveal mistakes."""
        found = self.tally.mutation
        if found is None:
            return "no mistake in the expected query could be tried on them"
        mistake = found.mistakes.get(self._generated_text())
        if mistake is not None and mistake.kind not in BY_CONSTRAINTS:
            return f"no database tells this mistake from the expected query: {mistake.words}"
        return ""

    def _generated_text(self) -> str:
        found = self.tally.mutation
        try:
            return self.pair.texts(found.engine)[0] if found is not None else ""
        except SqlError:
            return ""

    def _overlooked(self, verdict: str) -> list[Relaxation] | None:
        return None if verdict == "different" or self.on_data is None else sorted(self.on_data.relaxations)

    def _tell(
        self, verdict: str, rung: str, reason: str, counterexample: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        evidence = {
            "reason": reason,
            "databases": self.tally.compared,
            "unstable": self.tally.unstable,
            "shipped": self.shipped,
            "overlooked": self._overlooked(verdict),
            "counterexample": counterexample,
            "mutants": None if self.tally.mutation is None else self.tally.mutation.told(),
            "error": self.tally.error,
            "engine": self.pair.native,
            "translated_from": None if self.pair.dialect == self.pair.native else self.pair.dialect,
            "server": None if self.witness is None else self.witness.server,
            "agreed_on_server": None if self.witness is None else self.tally.confirmed,
            "contradicted_proof": self.proved and verdict == "different",
        }
        return {"verdict": verdict, "rung": rung, "evidence": evidence}

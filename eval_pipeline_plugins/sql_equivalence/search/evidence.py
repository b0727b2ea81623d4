"""Measures how much agreement with a query proves, by databases that distinguish the query from its mutants.

The result is computed once per query and schema and cached: every pair with the same expected query is then tried on
the databases that distinguished a mutant.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any

from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.table_comparison.rows import same_rows
from eval_pipeline_plugins.sql_equivalence.generated.checks import Checks
from eval_pipeline_plugins.sql_equivalence.generated.databases import DatabaseMaker
from eval_pipeline_plugins.sql_equivalence.generated.legal import Laws
from eval_pipeline_plugins.sql_equivalence.generated.memory import DuckdbMemory, Memory, SqliteMemory
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline_plugins.sql_equivalence.queries.mutants import BY_CONSTRAINTS, QueryMutant, mutants
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.queries.ready import ReadyQuery
from eval_pipeline_plugins.sql_equivalence.results import Result
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

LONGER = 10
"""How many times as many databases a mutant has to survive until it does not count."""
_LONGER_BY_CONSTRAINTS = 3
"""The same where nothing is left but what constraints of the schema mostly make equivalent."""
_MOST_ERRORS = 3


@dataclass(frozen=True, slots=True)
class MutationEvidence:
    """The mutants of a query that generated databases distinguish from it.

    Attributes:
        databases: databases on which at least one mutant gives another result than the query.
        killed: how many mutants they distinguish.
        tried: databases tried.
        equivalent: mutants proved to mean the same, in words.
        mistakes: the remaining mutants that run, by their SQL; no database distinguished them, so they may be
            equivalent.
        engine: where the mutants were tried, in whose dialect their SQL is.
    """

    databases: tuple[GeneratedDatabase, ...]
    killed: int
    tried: int
    equivalent: tuple[str, ...]
    mistakes: Mapping[str, QueryMutant]
    engine: str

    @property
    def survived(self) -> list[str]:
        """The mutants that no database distinguished, in words."""
        return [mutant.words for mutant in self.mistakes.values()]

    def told(self) -> dict[str, Any]:
        """Returns the evidence as JSON values."""
        return {
            "killed": self.killed,
            "survived": self.survived,
            "equivalent": list(self.equivalent),
            "databases": self.tried,
        }


def evidence_engine(pair: QueryPair, engine: str) -> Memory:
    """Returns the engine in which a query's mutants are tried."""
    if engine == "sqlite":
        return SqliteMemory(pair.named, case_sensitive_like=pair.native != "sqlite")
    return DuckdbMemory(pair.named, alone=pair.names_unknown)


def maker_for(pair: QueryPair) -> DatabaseMaker:
    """Returns what makes databases for a pair."""
    named = {table.name.lower() for table in pair.named.tables}
    return DatabaseMaker(pair.schema, pair.mined(), Checks(pair.schema), named, wide_integers=pair.native == "sqlite")


def for_mutants(maker: DatabaseMaker) -> Iterator[GeneratedDatabase]:
    """Yields databases that tell mutants apart, in turn large and varied, and small; they have no end."""
    for number in count():
        yield maker.aimed(number)
        yield maker.small(number)


@lru_cache(maxsize=256)
def mutation_evidence(sql: str, schema: SqlSchema, dialect: str, engine: str, base: int) -> MutationEvidence | None:
    """Returns the evidence of a query; None if the engine cannot run it.

    Args:
        sql: the query.
        schema: its tables.
        dialect: the dialect of the query.
        engine: where mutants are tried, `sqlite` or `duckdb`.
        base: databases tried for every mutant; survivors are tried on `LONGER` times as many.
    """
    try:
        pair = QueryPair(sql, sql, schema, dialect)
        return _Campaign(pair, engine, base).run()
    except SqlError:
        return None


@dataclass
class _Campaign:
    pair: QueryPair
    engine: str
    base: int
    living: dict[str, QueryMutant] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    killers: list[GeneratedDatabase] = field(default_factory=list)
    equivalent: list[str] = field(default_factory=list)
    killed: int = 0

    def run(self) -> MutationEvidence:
        pair = self.pair
        gold, memory = pair.ready(self.engine).expected, evidence_engine(pair, self.engine)
        self.living = {
            m.tree.sql(dialect=self.engine, comments=False): m for m in mutants(pair.expected_for(self.engine))
        }
        maker = maker_for(pair)
        databases = for_mutants(maker)
        number = 0
        while self.living and number < self.base * self._patience():
            if number == self.base:
                # Mutants that are proved equivalent to the query are no evidence.
                for text, mutant in list(self.living.items()):
                    if self.pair.proves(mutant.tree):
                        self.equivalent.append(mutant.words)
                        del self.living[text]
            number += 1
            try:
                self._try(memory, gold, next(databases), maker.laws)
            except SqlError:
                continue
        return MutationEvidence(
            tuple(self.killers), self.killed, number, tuple(self.equivalent), self.living, self.engine
        )

    def _patience(self) -> int:
        """Returns the factor by which surviving mutants are tried on more databases."""
        kinds = {mutant.kind for mutant in self.living.values()}
        return LONGER if kinds - BY_CONSTRAINTS else _LONGER_BY_CONSTRAINTS

    def _try(self, memory: Memory, gold: ReadyQuery, database: GeneratedDatabase, laws: Laws) -> None:
        """Tries a database on all surviving mutants. Raises a SqlError if the query itself does not run."""
        memory.load(database)
        expected = gold.result(memory.query)
        dead = [text for text in list(self.living) if self._differs(memory, text, expected)]
        if not dead or not laws.allow(database) or gold.cuts_ties(memory.query):
            return
        memory.load({name: rows[::-1] for name, rows in database.items()})
        if not same_rows(gold.result(memory.query).rows, expected.rows):
            return
        self.killed += len(dead)
        self.killers.append(database)
        for text in dead:
            del self.living[text]

    def _differs(self, memory: Memory, text: str, expected: Result) -> bool:
        try:
            return not same_rows(memory.query(text).rows, expected.rows, expected.ties)
        except SqlError:
            self.errors[text] = self.errors.get(text, 0) + 1
            if self.errors[text] >= _MOST_ERRORS:
                del self.living[text]
            return False

"""Tests which mutants of a turn's first accepted query the suite's own database distinguishes from it."""

from collections.abc import Callable, Mapping
from pathlib import Path

from eval_pipeline.core.model import Failed
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.table_comparison.rows import same_rows
from eval_pipeline.tracks.scored.mutation_score import Survivor, TurnMutants
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline_plugins.sql_equivalence.queries.mutants import mutants
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.results import Result
from eval_pipeline_plugins.sql_equivalence.search.evidence import evidence_engine, mutation_evidence
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlTurn
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.responses.running import runner

_SHOWN_ROWS = 20


def turn_mutants_score(turn: SqlTurn) -> TurnMutants | None:
    """Returns which mutants have the same result as the first accepted query on the suite's database.

    Mutants that do not run and mutants that are proved to mean the same do not count.

    Returns:
        None if a refusal is right or data are changed, if there are no data, if the data are on a server, or if the
        query does not run or its results vary.
    """
    gold = turn.gold
    path = gold.database.path() if gold.accepted and not gold.may_change else None
    if not isinstance(path, Path):  # mutants are written in the dialect of DuckDB or SQLite
        return None
    try:
        accepted = gold.database.pinned(gold.accepted[0])
        pair = QueryPair(accepted, accepted, gold.database.schema, gold.database.dialect)
        if pair.volatile:
            return None
        query, tree = pair.ready(pair.native).expected, pair.expected_for(pair.native)
        run = _on(path, gold.database.limits)
        expected = query.result(run)
    except SqlError:
        return None
    counted, survivors = 0, []
    for mutant in mutants(tree):
        text = mutant.tree.sql(dialect=pair.native, comments=False)
        try:
            survives = same_rows(run(text).rows, expected.rows, expected.ties)
        except SqlError:
            continue
        if survives and pair.proves(mutant.tree):
            continue
        counted += 1
        if survives:
            survivors.append(_survivor(pair, gold.database, accepted, mutant.words, text, gold.options.samples))
    return TurnMutants(turn.id, counted, survivors)


def _on(path: Path, limits: SqlLimits) -> Callable[[str], SqlRows]:
    """Returns a function that runs a query on a database file and raises SqlError if it fails."""

    def run(text: str) -> SqlRows:
        found = runner().run_now(path, text, limits)
        if isinstance(found, Failed):
            raise SqlError(found.error_class, found.message)
        return found

    return run


def _survivor(pair: QueryPair, database: Database, sql: str, words: str, text: str, base: int) -> Survivor:
    """Returns a surviving mutant, with the smallest known generated rows on which it differs from the query."""
    told = f"this were changed: {words}"
    evidence = mutation_evidence(sql, database.schema, database.dialect, pair.native, base)
    if evidence is None:
        return Survivor(told, {})
    query, memory = pair.ready(pair.native).expected, evidence_engine(pair, pair.native)
    for rows in sorted(evidence.databases, key=lambda one: sum(map(len, one.values()))):
        try:
            memory.load(rows)
            expected, returned = query.result(memory.query), memory.query(text)
        except SqlError:
            continue
        if not same_rows(returned.rows, expected.rows, expected.ties):
            mine = Result(returned.columns, returned.rows)
            return Survivor(told, _tables(pair, rows), _text(expected), _text(mine))
    return Survivor(told, {})


def _tables(pair: QueryPair, rows: GeneratedDatabase) -> Mapping[str, str]:
    """Returns the tables that the query names as texts: a header, and one line per row."""
    found = {}
    for table in pair.named.tables:
        mine = next((some for name, some in rows.items() if name.lower() == table.name.lower()), ())
        found[table.name] = _text(Result(tuple(column.name for column in table.columns), [*mine]))
    return found


def _text(result: Result) -> str:
    lines = [result.columns, *result.rows[:_SHOWN_ROWS]]
    return "\n".join(" ".join("NULL" if cell is None else str(cell) for cell in line) for line in lines)

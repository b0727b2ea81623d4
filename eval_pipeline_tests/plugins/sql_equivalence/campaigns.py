"""What campaigns try: mutants and sound rewrites of the golds of defog and Spider."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import sqlglot

from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.queries.mutants import QueryMutant, mutants
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests import outside
from eval_pipeline_tests.plugins.sql_equivalence.brute_force import refuted_by_brute_force
from eval_pipeline_tests.plugins.sql_equivalence.rewrites import rewritten

DEFOG, SPIDER = outside.SQL / "defog", outside.SQL / "spider"
DIALECT = "sqlite"
MANY = 500
"""Campaigns of more pairs reword every gold."""
_EACH = 5


@dataclass(frozen=True)
class Gold:
    """An accepted query with its schema; Spider's have no data, and no question here."""

    sql: str
    database: Path | None
    spider: str | None = None
    question: str = ""

    def schema(self) -> SqlSchema:
        if self.database is not None:
            return _of_file(self.database)
        assert self.spider is not None
        return _of_spider()[self.spider]

    def mutants(self) -> list[QueryMutant]:
        return mutants(sqlglot.parse_one(self.sql, dialect=DIALECT))


Reworded = tuple[str, str, Gold]

_of_file = lru_cache(maxsize=None)(SqlSchema.from_database)


@lru_cache(maxsize=1)
def _of_spider() -> dict[str, SqlSchema]:
    entries = json.loads((SPIDER / "tables.json").read_text())
    return {entry["db_id"]: SqlSchema.from_spider(entry) for entry in entries}


def defog() -> list[Gold]:
    """Every accepted query of defog."""
    found = []
    for file in sorted(outside.given(DEFOG).glob("*_sqlite.csv")):
        with file.open() as lines:
            for row in csv.DictReader(lines):
                database = DEFOG / "sqlite" / f"{row['db_name']}.sqlite"
                parts = map(str.strip, row["query"].split(";"))
                found += [Gold(part, database, question=row["question"]) for part in parts if part]
    return found


def parses(gold: Gold) -> bool:
    try:
        sqlglot.parse_one(gold.sql, dialect=DIALECT)
    except sqlglot.ParseError:  # one has an expression after LIMIT
        return False
    return True


def golds() -> list[Gold]:
    """Every gold of both that parses, once."""
    cases = json.loads(outside.given(SPIDER / "dev_sample.json").read_text())
    found = [Gold(gold.sql, gold.database) for gold in filter(parses, defog())]
    found += [Gold(case["query"].strip().rstrip(";"), None, case["db_id"]) for case in cases]
    return [gold for gold in dict.fromkeys(found) if gold.spider is None or gold.spider in _of_spider()]


def mutated(count: int, seed: int) -> Iterator[tuple[str, str, SqlSchema]]:
    """Golds with one mistake each."""
    rng = Random(seed)
    made: list[tuple[str, str, SqlSchema]] = []
    for source in rng.sample(found := golds(), len(found)):
        known = source.mutants()
        chosen = rng.sample(known, min(_EACH, len(known)))
        made += [(one.tree.sql(dialect=DIALECT), source.sql, source.schema()) for one in chosen]
        if len(made) >= 2 * count:
            break
    yield from rng.sample(made, len(made))[:count]


def reworded(count: int, seed: int) -> Iterator[Reworded]:
    """Sound rewrites of golds: the rule, the new text and the gold; half of them of golds with data."""
    rng = Random(seed)
    made: dict[bool, dict[str, list[Reworded]]] = {True: {}, False: {}}
    sources = golds()
    for source in sources if count >= MANY else rng.sample(sources, 2 * count):
        for rule, other in rewritten(source.sql):
            made[source.database is not None].setdefault(rule, []).append((rule, other, source))
    with_data, without = (list(_in_turn(found, rng)) for found in made.values())
    yield from [*with_data[: count // 2], *without[: count - count // 2]]


def _in_turn(found: dict[str, list[Reworded]], rng: Random) -> Iterator[Reworded]:
    """One of each rule in turn, so that the rare rules are tried, too."""
    for of_rule in found.values():
        rng.shuffle(of_rule)
    for row in zip_longest(*found.values()):
        yield from (one for one in row if one is not None)


def mutant_campaign(count: int, seed: int, databases: int, results: Path, seconds: float) -> list[dict[str, Any]]:
    """What the ladder and the fuzzer say of mutants; `results` gets a line each, and what has one is not tried again.

    The fuzzer tries what is not called different: that verdict shows its own counterexample. `fault` is the exception
    that a pair ended with, which none may.
    """
    known = {}
    if results.exists():
        lines = [json.loads(line) for line in results.read_text().splitlines()]
        known = {(line["mutant"], line["gold"], line["schema"]): line for line in lines}
    told = []
    with results.open("a") as out:
        for mutant, gold, schema in mutated(count, seed):
            where = ",".join(table.name for table in schema.tables)
            line = known.get((mutant, gold, where))
            if line is None:
                line = {"mutant": mutant, "gold": gold, "schema": where} | _tried(
                    mutant, gold, schema, databases, seconds
                )
                out.write(json.dumps(line) + "\n")
                out.flush()
                known[mutant, gold, where] = line
            told.append(line)
    return told


def _tried(mutant: str, gold: str, schema: SqlSchema, databases: int, seconds: float) -> dict[str, Any]:
    told: dict[str, Any] = {"verdict": None, "reason": None, "refuted_by": None, "fault": None}
    try:
        found = check(mutant, gold, schema, dialect="sqlite", time_limit_s=seconds)
        told |= {"verdict": found.verdict, "reason": found.evidence["reason"]}
        if found.verdict != "different":
            told["refuted_by"] = refuted_by_brute_force(mutant, gold, schema, databases)
    except Exception as fault:  # the campaign goes on and tells it
        told["fault"] = repr(fault)[:300]
    return told

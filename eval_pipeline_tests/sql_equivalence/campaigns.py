"""What the long campaigns try: mutants and sound rewrites of the golds of defog and Spider."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import sqlglot

from eval_pipeline.sql_equivalence import check
from eval_pipeline.sql_equivalence.queries.mutants import mutants
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests import outside
from eval_pipeline_tests.sql_equivalence import mutants as damaged
from eval_pipeline_tests.sql_equivalence.brute_force import refuted_by_brute_force
from eval_pipeline_tests.sql_equivalence.rewrites import rewritten

SPIDER = outside.SQL / "spider"
MANY = 500
"""Campaigns of more pairs damage golds in the ways of the tests, too."""
_EACH = 5


@dataclass(frozen=True)
class Source:
    """A gold with its schema; Spider's have no data."""

    sql: str
    database: Path | None
    spider: str | None = None

    def schema(self) -> SqlSchema:
        if self.database is not None:
            return _of_file(self.database)
        assert self.spider is not None
        return _of_spider()[self.spider]


Reworded = tuple[str, str, Source]

_of_file = lru_cache(maxsize=None)(SqlSchema.from_database)


@lru_cache(maxsize=1)
def _of_spider() -> dict[str, SqlSchema]:
    entries = json.loads((SPIDER / "tables.json").read_text())
    return {entry["db_id"]: SqlSchema.from_spider(entry) for entry in entries}


def _plain(sql: str) -> str:
    return sql.strip().rstrip(";")


def golds() -> list[Source]:
    """Every gold that parses, once."""
    outside.given(damaged.DEFOG)
    found = [Source(_plain(gold.sql), gold.database) for gold in damaged.golds() if damaged._parses(gold)]
    cases = json.loads(outside.given(SPIDER / "dev_sample.json").read_text())
    found += [Source(_plain(case["query"]), None, case["db_id"]) for case in cases if case["db_id"] in _of_spider()]
    return list(dict.fromkeys(found))


def mutated(count: int, seed: int) -> Iterator[tuple[str, str, SqlSchema]]:
    """Golds with one mistake each, by the operators of the tests (in long campaigns) and by the ladder's own."""
    rng = Random(seed)
    made: list[tuple[str, str, SqlSchema]] = []
    if count >= MANY:
        other = damaged.mutants(each=count // 12, seed=seed)
        made += [(one.generated, one.expected, _of_file(one.database)) for one in other]
    sources = golds()
    rng.shuffle(sources)
    for source in sources:
        found = mutants(sqlglot.parse_one(source.sql, dialect="sqlite"))
        chosen = rng.sample(found, min(_EACH, len(found)))
        made += [(one.tree.sql(dialect="sqlite"), source.sql, source.schema()) for one in chosen]
        if len(made) >= 2 * count:
            break
    rng.shuffle(made)
    yield from made[:count]


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

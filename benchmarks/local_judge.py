"""How far the local model, as a judge, agrees with the evidence: `python -m benchmarks.local_judge [--pairs 40]`.

The pairs are those of the tests' golden cases that the ladder decides without the same text, over small schemas, so
that a model on this machine's processor can read them. Needs the extra `local`; takes 8 CPU seconds a pair.
"""

import argparse
import asyncio
from collections import Counter
from typing import NamedTuple

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge.judge import open_judge
from eval_pipeline.judge.judgement import Judgement
from eval_pipeline.statistics.raters.agreement import cohens_kappa
from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import parse_statement
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables
from eval_pipeline_plugins.sql_equivalence.syntax.text import identical
from eval_pipeline_plugins.tracks.sql.prompt import schema_text
from eval_pipeline_tests.goldens import golden

LIMIT_S = 300.0
"""Seconds a pair, ten times what a run allows: how well it judges is asked here, not how fast."""


class Pair(NamedTuple):
    generated: str
    expected: str
    same: bool


def decided_pairs(cases: list[dict[str, str]], schema: SqlSchema, wanted: int) -> list[Pair]:
    """Pairs that the ladder decides, as many that mean the same as others where there are."""
    found: dict[bool, list[Pair]] = {True: [], False: []}
    for case in cases:
        if "duckdb" in case.get("in", ["duckdb"]) and not identical(case["generated"], case["expected"]):
            value = check(case["generated"], case["expected"], schema).value
            if value is not None:
                found[value == 1.0].append(Pair(case["generated"], case["expected"], value == 1.0))
    return [pair for both in zip(found[True], found[False], strict=False) for pair in both][:wanted]


async def judged(pairs: list[Pair], schema: SqlSchema) -> list[Judgement]:
    """What the model says of each, told as it comes; it is shown the tables that a pair uses."""
    version = ModelVersion(name="judge", provider="local", model="SmolLM2-135M-Instruct", max_tokens=192, concurrency=1)
    async with open_judge(version, None, limit_s=LIMIT_S) as judge:
        said = []
        for pair in pairs:
            names = {table.name for sql in pair[:2] for table in base_tables(parse_statement(sql))}
            shown = SqlSchema(tuple(table for table in schema.tables if table.name in names))
            said.append(await judge.judge(pair.generated, pair.expected, schema_text(shown)))
            print(
                f"{said[-1].seconds:5.1f} s  {said[-1].error or said[-1].choice:30.30}  same: {pair.same}", flush=True
            )
        return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    written = golden("sql_equivalence.yaml")
    schema = SqlSchema.from_ddl(written["schemas"]["company"])
    pairs = decided_pairs(written["cases"], schema, parser.parse_args().pairs)
    said = asyncio.run(judged(pairs, schema))
    table = Counter((one.error or one.choice, pair.same) for one, pair in zip(said, pairs, strict=True))
    for (choice, same), count in sorted(table.items()):
        print(f"judge: {choice[:60]:10}  evidence: {'same' if same else 'different':9}  {count:3}")
    kept = [(one, pair) for one, pair in zip(said, pairs, strict=True) if one.error is None]
    mine, theirs = [float(one.value == 1.0) for one, _ in kept], [float(pair.same) for _, pair in kept]
    found = cohens_kappa(mine, theirs, list(range(len(kept))))
    print(f"{len(kept)} of {len(pairs)} judged; kappa {found.kappa} [{found.low}, {found.high}] {found.reason or ''}")
    print(f"seconds a pair: {sum(one.seconds for one in said) / max(len(said), 1):.1f}")


if __name__ == "__main__":
    main()

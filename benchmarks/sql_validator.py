"""How long the validator, the metrics of a query and a cached judgement take: median and 99th percentile.

python -m benchmarks.sql_validator

The queries are the harmless statements and the tricky tables of the tests, and the gold queries of defog and Spider
with their schemas where these samples are there. Aims: extraction of tables 0.5 ms, `table_accuracy` 50 ms, the
comparison of flags 5 ms, validator 50 ms, cached judgement 10 ms, calibration of a suite 100 ms.
"""

import argparse
import asyncio
import csv
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time_ns
from typing import NamedTuple

from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge.cache import JudgementCache
from eval_pipeline.judge.judge import LLMJudge
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import parse_statements, shared_statements
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables
from eval_pipeline_plugins.tracks.sql.metrics.calibration import confidence_calibration
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import table_accuracy
from eval_pipeline_plugins.tracks.sql.metrics.validation import safety_validation, validation_accuracy
from eval_pipeline_plugins.tracks.sql.validation.validator import validate
from eval_pipeline_tests import outside
from eval_pipeline_tests.fakes.scripted import ScriptedProvider
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.sql.test_sql_safety import load_corpus


class Query(NamedTuple):
    sql: str
    dialect: str
    schema: SqlSchema | None = None


def queries() -> Iterator[Query]:
    yield from (Query(statement.sql, statement.dialect) for statement in load_corpus("sql_harmless.yaml"))
    for case in golden("sql_tables.yaml"):
        if "tables" in case:
            yield Query(case["sql"], case.get("dialect", "duckdb"))
    if not outside.SQL.is_dir():
        print(outside.why_not(outside.SQL))
        return
    spider = {entry["db_id"]: SqlSchema.from_spider(entry) for entry in _json("spider/tables.json")}
    yield from (Query(case["query"], "sqlite", spider.get(case["db_id"])) for case in _json("spider/dev_sample.json"))
    defog = {path.stem: SqlSchema.from_database(path) for path in (outside.SQL / "defog" / "sqlite").glob("*.sqlite")}
    with (outside.SQL / "defog" / "questions_gen_sqlite.csv").open() as file:
        for row in csv.DictReader(file):
            yield from (Query(sql, "sqlite", defog[row["db_name"]]) for sql in row["query"].split(";") if sql.strip())


def _json(path: str) -> list[dict[str, str]]:
    loaded: list[dict[str, str]] = json.loads((outside.SQL / path).read_text())
    return loaded


def measure(what: str, work: Callable[[Query], object], over: list[Query], repeats: int) -> None:
    """Prints CPU milliseconds, the least of some repeats a query: what other work on the machine adds is left out."""
    taken = []
    for query in over:
        best = None
        for _ in range(repeats):
            began = process_time_ns()
            work(query)
            spent = (process_time_ns() - began) / 1e6
            best = spent if best is None else min(best, spent)
        taken.append(best or 0.0)
    _show(what, taken)


def _show(what: str, taken: list[float]) -> None:
    middle, high = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
    print(f"{what:34} median {middle:7.3f} ms   p99 {high:7.3f} ms   most {max(taken):7.3f} ms")


def cold(query: Query) -> object:
    shared_statements.cache_clear()
    return validate(query.sql, query.schema, query.dialect)


def cold_tables(query: Query) -> object:
    shared_statements.cache_clear()
    return table_accuracy(query.sql, ["orders"], query.dialect)


ERRORS = ({"category": "schema violation", "message": "there is no table t"},)
CALIBRATED = (["high", "medium", "low", "low"] * 2_500, [True, True, False, True, False] * 2_000)


def judge_hits(number: int) -> None:
    """Judgements from the file of an earlier run."""
    said = json.dumps({"reasons": "They are.", "choice": "same"})
    version = ModelVersion(name="judge", provider="anthropic", model="m")

    async def ask(file: Path) -> list[float]:
        taken = []
        judge = LLMJudge(ScriptedProvider(default=said), version, JudgementCache(file), retries=RetryPolicy())
        async with judge:
            for place in range(number):
                began = process_time_ns()
                await judge.judge(f"SELECT {place}", "SELECT x FROM t", "CREATE TABLE t (x INTEGER);")
                taken.append((process_time_ns() - began) / 1e6)
        return taken

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "judge.sqlite"
        asyncio.run(ask(file))
        _show("cached judgement, of another run", asyncio.run(ask(file)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    found = list(queries())
    with_schema = [query for query in found if query.schema is not None]
    print(f"{len(found)} queries, {len(with_schema)} of them with a schema; CPU, least of {repeats}")
    measure("parsing", lambda q: parse_statements(q.sql, q.dialect), found, repeats)
    measure("tables, of a parsed query", lambda q: base_tables(shared_statements(q.sql, q.dialect)[0]), found, repeats)
    measure("tables, parsing included", lambda q: base_tables(parse_statements(q.sql, q.dialect)[0]), found, repeats)
    measure("validator, without a schema", lambda q: cold(q._replace(schema=None)), found, repeats)
    if with_schema:
        measure("validator, with a schema", cold, with_schema, repeats)
    flags = found[:200]
    measure("safety_validation", lambda q: safety_validation(True, False), flags, repeats)
    measure("validation_accuracy", lambda q: validation_accuracy(False, True, ERRORS), flags, repeats)
    measure("table_accuracy, parsing included", cold_tables, found, repeats)
    measure("calibration of 10,000 turns", lambda q: confidence_calibration(*CALIBRATED), found[:50], repeats)
    judge_hits(300)


if __name__ == "__main__":
    main()

"""CPU a pair of the equivalence ladder, by what decided: `python -m benchmarks.equivalence [--every 3]`.

DuckDB: the accepted queries of the suite `sql_sample` against each other and against themselves printed anew, with the
shipped database and without it, and the pairs of the VeriEQL sample. SQLite: the same of defog's accepted queries. In
this process, so that only the search is counted: a warm child takes the same, and a new one 0.3 CPU seconds more.
"""

import argparse
import csv
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlglot
import yaml

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.search.search import search
from eval_pipeline_plugins.sql_equivalence.told import schema_to_json
from eval_pipeline_plugins.tracks.sql.cases.source import read_databases
from eval_pipeline_tests.outside import SQL, why_not

SUITE = Path(__file__).parents[1] / "data/suites/sql_sample"
SAMPLES, SECONDS = 8, 10.0


@dataclass(frozen=True)
class Pair:
    what: str
    generated: str
    expected: str
    schema: str
    databases: tuple[str, ...]
    dialect: str


def sample_pairs(*, shipped: bool) -> Iterator[Pair]:
    """Of the shipped suite, which needs no other data."""
    folder = SUITE
    databases = read_databases(folder, yaml.safe_load((folder / "suite.yaml").read_text())["options"]).databases
    for file in sorted(folder.glob("cases/*.yaml")):
        for case in yaml.safe_load(file.read_text()):
            accepted = case.get("expected_sql") or []
            accepted = [accepted] if isinstance(accepted, str) else accepted
            for other in [*accepted[1:], *(reprinted(sql, "duckdb") for sql in accepted[:1])]:
                database = databases[case["database"]]
                paths = (str(database.path()),) if shipped else ()
                what = "duckdb, shipped database" if shipped else "duckdb, generated databases alone"
                yield Pair(what, other, accepted[0], schema_to_json(database.schema), paths, "duckdb")


def defog_pairs(*, shipped: bool) -> Iterator[Pair]:
    schemas: dict[Path, str] = {}
    for file in sorted((SQL / "defog").glob("*_sqlite.csv")):
        with file.open() as lines:
            for row in csv.DictReader(lines):
                path = SQL / "defog" / "sqlite" / f"{row['db_name']}.sqlite"
                if path not in schemas:
                    schemas[path] = schema_to_json(SqlSchema.from_database(path))
                accepted = [part.strip() for part in row["query"].split(";") if part.strip()]
                others = [*accepted[1:], reprinted(accepted[0], "sqlite")]
                for other in others:
                    what = "sqlite, shipped database" if shipped else "sqlite, generated databases alone"
                    yield Pair(what, other, accepted[0], schemas[path], (str(path),) if shipped else (), "sqlite")


def reprinted(sql: str, dialect: str) -> str:
    try:
        return sqlglot.transpile(sql, read=dialect, write=dialect, pretty=True)[0]
    except sqlglot.ParseError:
        return sql


def verieql_pairs() -> Iterator[Pair]:
    for line in (SQL / "equivalence" / "verieql_sample.jsonl").read_text().splitlines():
        told = json.loads(line)
        kinds = {t: {c: (kind or "INT") for c, kind in columns.items()} for t, columns in told["schema"].items()}
        schema = schema_to_json(SqlSchema.from_mapping(kinds))
        yield Pair("duckdb, VeriEQL", told["sql_b"], told["sql_a"], schema, (), "duckdb")


def groups() -> list[Iterator[Pair]]:
    """All kinds of pairs; those of public data only where that is."""
    shipped = [sample_pairs(shipped=True), sample_pairs(shipped=False)]
    if SQL.exists():
        return [*shipped, defog_pairs(shipped=True), defog_pairs(shipped=False), verieql_pairs()]
    print(why_not(SQL), file=sys.stderr)
    return shipped


def taken_by(pairs: Iterable[Pair]) -> dict[tuple[str, str], list[float]]:
    """Returns the CPU milliseconds of the pairs, by their kind and by what decided."""
    taken: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for pair in pairs:
        start = time.process_time()
        told = search(pair.generated, pair.expected, pair.schema, list(pair.databases), pair.dialect, SAMPLES, SECONDS)
        taken[pair.what, told["rung"]].append((time.process_time() - start) * 1000)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="every which pair")
    every = parser.parse_args().every
    with tempfile.TemporaryDirectory() as home:
        os.environ["EVAL_HOME"] = home  # the suite's databases are made there
        taken = taken_by([pair for group in groups() for pair in list(group)[::every]])
    print(f"CPU milliseconds a pair; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for (what, rung), times in sorted(taken.items()):
        times.sort()
        p99 = times[min(int(len(times) * 0.99), len(times) - 1)]
        print(f"{what:34} {rung:10} {len(times):4}  median {statistics.median(times):6.1f}  p99 {p99:6.1f}")


if __name__ == "__main__":
    main()

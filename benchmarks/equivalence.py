"""CPU a pair of the equivalence ladder, by what decided: `python -m benchmarks.equivalence [--every 3]`.

SQLite: defog's accepted queries against each other and against themselves printed anew, with the shipped database
(which decides most), and without it. DuckDB: the pairs of the VeriEQL sample. In this process, so that only the search
is counted: a warm child takes the same, and a new one 0.3 CPU seconds more.
"""

import argparse
import csv
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlglot

from eval_pipeline.tracks.sql.equivalence.search import search
from eval_pipeline.tracks.sql.equivalence.told import schema_to_json
from eval_pipeline.tracks.sql.schema import SqlSchema

DATA = Path("/work/shared/data/sql")
SAMPLES, SECONDS = 8, 10.0


@dataclass(frozen=True)
class Pair:
    what: str
    generated: str
    expected: str
    schema: str
    databases: tuple[str, ...]
    dialect: str


def defog_pairs(*, shipped: bool) -> Iterator[Pair]:
    schemas: dict[Path, str] = {}
    for file in sorted((DATA / "defog").glob("*_sqlite.csv")):
        with file.open() as lines:
            for row in csv.DictReader(lines):
                path = DATA / "defog" / "sqlite" / f"{row['db_name']}.sqlite"
                if path not in schemas:
                    schemas[path] = schema_to_json(SqlSchema.from_database(path))
                accepted = [part.strip() for part in row["query"].split(";") if part.strip()]
                others = [*accepted[1:], reprinted(accepted[0])]
                for other in others:
                    what = "sqlite, shipped database" if shipped else "sqlite, generated databases alone"
                    yield Pair(what, other, accepted[0], schemas[path], (str(path),) if shipped else (), "sqlite")


def reprinted(sql: str) -> str:
    try:
        return sqlglot.transpile(sql, read="sqlite", write="sqlite", pretty=True)[0]
    except sqlglot.ParseError:
        return sql


def verieql_pairs() -> Iterator[Pair]:
    for line in (DATA / "equivalence" / "verieql_sample.jsonl").read_text().splitlines():
        told = json.loads(line)
        kinds = {t: {c: (kind or "INT") for c, kind in columns.items()} for t, columns in told["schema"].items()}
        schema = schema_to_json(SqlSchema.from_mapping(kinds))
        yield Pair("duckdb, generated databases alone", told["sql_b"], told["sql_a"], schema, (), "duckdb")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="every which pair")
    every = parser.parse_args().every
    if not DATA.exists():
        raise SystemExit(f"needs the data in {DATA}")
    taken: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    pairs = [*defog_pairs(shipped=True)][::every] + [*defog_pairs(shipped=False)][::every] + [*verieql_pairs()][::every]
    for pair in pairs:
        start = time.process_time()
        told = search(pair.generated, pair.expected, pair.schema, list(pair.databases), pair.dialect, SAMPLES, SECONDS)
        taken[pair.what, told["rung"]].append((time.process_time() - start) * 1000)
    print(f"CPU milliseconds a pair; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for (what, rung), times in sorted(taken.items()):
        times.sort()
        p99 = times[min(int(len(times) * 0.99), len(times) - 1)]
        print(f"{what:34} {rung:10} {len(times):4}  median {statistics.median(times):6.1f}  p99 {p99:6.1f}")


if __name__ == "__main__":
    main()

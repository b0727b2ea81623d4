"""The comparison of tables: `python -m benchmarks.table_comparison [--rows 100000] [--columns 30] [--pairs 10000]`.

CPU seconds of two large tables that are equal or differ in one or two relaxations or in a cell, and how many of some
planted differences between small ones (`eval_pipeline_tests/table_comparison/planting.py`) are found. Aim: 1 CPU second
for 100,000 rows by 30 columns, 99% of the differences.
"""

import argparse
import os
import pickle
import random
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline_tests.table_comparison.planting import planted

KINDS: tuple[Callable[[random.Random, int], Any], ...] = (
    lambda rng, row: 1_000_000 + row,
    lambda rng, row: f"name {rng.randrange(50_000)}",
    lambda rng, row: rng.uniform(0, 1000),
    lambda rng, row: rng.randrange(40),
    lambda rng, row: rng.choice(["paid", "open", "sent", None]),
    lambda rng, row: date(2020, 1, 1) + timedelta(rng.randrange(900)),
)
KEY, TEXT, REAL, _, _, DAY = range(len(KINDS))


def large(rows: int, width: int) -> Iterator[tuple[str, ComparedTable, ComparedTable]]:
    """Pairs of large tables, the generated one in another order of rows."""
    rng = random.Random(7)
    names = tuple(f"c{place}" for place in range(width))
    cells = [[KINDS[place % len(KINDS)](rng, row) for row in range(rows)] for place in range(width)]
    expected = ComparedTable.from_columns(names, cells)
    order = rng.sample(range(rows), rows)

    def one_of_them(key: int) -> int:
        return key if key > 1_000_000 else -1

    def changed(**changes: Callable[[Any], Any]) -> ComparedTable:
        made = [list(map(changes.get(f"c{place}", lambda cell: cell), column)) for place, column in enumerate(cells)]
        return table(names, made)

    def table(columns: tuple[str, ...], made: list[list[Any]]) -> ComparedTable:
        found = list(zip(*made, strict=True))
        # Copies, which lie in memory in their order as those of an engine do.
        return ComparedTable(columns, pickle.loads(pickle.dumps([found[row] for row in order])))

    yield "equal", table(names, cells), expected
    yield "case", changed(c1=str.upper), expected
    yield "rounding", changed(c2=lambda cell: round(cell, 2)), expected
    yield "dates", changed(c5=str), expected
    yield "extra column", table((*names, "more"), [*cells, cells[REAL]]), expected
    yield "missing column", table(names[:-1], cells[:-1]), expected
    yield "order of columns", table(names[::-1], cells[::-1]), expected
    yield "names", table(tuple(f"{name}_x" for name in names), cells), expected
    repeated = [[*column, *column[: rows // 100]] for column in cells]
    yield "duplicates", ComparedTable.from_columns(names, repeated), expected
    yield "case, rounding", changed(c1=str.upper, c2=lambda cell: round(cell, 2)), expected
    yield "names, text numbers", ComparedTable(tuple(f"{name}_x" for name in names), changed(c3=str).rows), expected
    yield "another cell", changed(c0=one_of_them), expected
    yield (
        "case, rounding, another cell",
        changed(c0=one_of_them, c1=str.upper, c2=lambda cell: round(cell, 2)),
        expected,
    )
    yield "a third of the cells of a column", changed(c3=lambda cell: cell + (cell % 3 == 0)), expected
    yield "floats a little off", changed(c2=lambda cell: cell * rng.uniform(0.999, 1.001)), expected
    less = table(names, cells).rows[1:]
    yield "one row less", ComparedTable(names, less), expected
    yield "half of the rows", ComparedTable(names, less[::2]), expected
    yield "names, one row less", ComparedTable(tuple(f"{name}_x" for name in names), less), expected
    yield "any other table", table(names, [rng.sample(column, rows) for column in cells]), expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=10_000)
    options = parser.parse_args()
    compare(*planted(0)[:2])  # imports
    print(f"{options.rows:,} rows by {options.columns} columns; load {os.getloadavg()[0]:.1f}")
    for what, generated, expected in large(options.rows, options.columns):
        start = time.process_time()
        found = compare(generated, expected)
        print(f"| {what} | {time.process_time() - start:.2f} | {found.sentence()} |", flush=True)
    missed, larger, start = [], 0, time.process_time()
    for seed in range(options.pairs):
        generated, expected, chosen = planted(seed)
        needs = compare(generated, expected).needs
        larger += any(need > chosen for need in needs)
        if chosen not in needs:
            missed.append(f"{seed}: {', '.join(sorted(chosen))}; found {[sorted(need) for need in needs]}")
    took = (time.process_time() - start) / max(options.pairs, 1) * 1000
    print(f"planted differences: {options.pairs - len(missed):,} of {options.pairs:,} found, {larger} supersets")
    print(f"{took:.1f} ms a pair", *missed, sep="\n")


if __name__ == "__main__":
    main()

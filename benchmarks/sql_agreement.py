"""What agreement is worth: `python -m benchmarks.sql_agreement RESULTS [--mutants 2000]`.

Mutants of the golds of defog and Spider go through the ladder; what it does not call different is tried by the fuzzer
of the tests on ten times as many databases. RESULTS gets a JSON line a mutant. An interrupted campaign goes on where it
stopped; a new state of the code needs a new file.
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from eval_pipeline_tests.outside import SQL, why_not
from eval_pipeline_tests.plugins.sql_equivalence.brute_force import DATABASES
from eval_pipeline_tests.plugins.sql_equivalence.campaigns import mutant_campaign

PATIENCE_S = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--mutants", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=2)
    asked = parser.parse_args()
    if not SQL.exists():
        raise SystemExit(why_not(SQL))
    show(mutant_campaign(asked.mutants, asked.seed, DATABASES, asked.results, PATIENCE_S))


def show(lines: list[dict[str, Any]]) -> None:
    refuted = Counter(line["verdict"] for line in lines if line["refuted_by"] is not None)
    print("verdict, mutants, of these refuted by the fuzzer")
    for verdict, count in Counter(line["verdict"] for line in lines).most_common():
        print(f"{verdict or 'fault':14} {count:5} {refuted[verdict]:5}")
    for line in lines:
        if line["fault"] or (line["refuted_by"] is not None and line["verdict"] in ("agreed", "equivalent")):
            print(line)


if __name__ == "__main__":
    main()

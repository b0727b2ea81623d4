"""CPU that variants and mutants cost on the sample suite of pandas: `python -m benchmarks.variants [--every 3]`.

For each turn, beginning with an empty cache: an answer that is right, one that is wrong (a mutant of the reference
code, explained by what it lacks), another right one, and the first two once more. The first of a turn pays for deriving
the variants by the reference code, which is kept for all models and nights; with `--wrong-first` in the other order,
since a turn whose only answer is wrong has no right one before it. Counted are this process and those of its sandbox;
running the answer on the given tables, which every turn has, is not.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.sandbox import used_by_zygotes
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import behaviour_of
from eval_pipeline_plugins.tracks.pandas_code.robust.examined import variants_of
from eval_pipeline_plugins.tracks.pandas_code.robust.explaining import explained
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import turn_mutants

SUITE = Path(__file__).parents[1] / "data/suites/pandas_sample"


def cost(work: Callable[[], object]) -> float:
    """CPU milliseconds of some work, here and in the sandbox; asking for the latter costs some that are left out."""
    sandbox, own = used_by_zygotes(), time.process_time()
    work()
    own = time.process_time() - own
    return 1000 * (own + used_by_zygotes() - sandbox)


def judged(gold: PandasGold, code: str) -> None:
    """Does with an answer what its evidence does: runs it on the variants and explains what is wrong."""
    found = behaviour_of(gold, code)
    if found is not None:
        explained(gold, code, None, found, right=all(found.right))


def turns(every: int) -> Iterator[PandasGold]:
    """Some turns of the suite whose reference code has mutants."""
    found = [turn.gold for case in read_suite(read_header(SUITE)).cases for turn in case.turns]
    yield from (gold for gold in found[::every] if gold.code is not None and turn_mutants(gold))


def told(name: str, costs: list[float]) -> None:
    """Prints median and 90th percentile."""
    tenth = statistics.quantiles(costs, n=10)[-1]
    print(f"{name:46} median {statistics.median(costs):6.0f} ms, 90th percentile {tenth:6.0f} ms")


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--wrong-first", action="store_true")
    chosen = parser.parse_args()
    first_name, second_name = ("wrong", "right") if chosen.wrong_first else ("right", "wrong")
    names = (
        f"a {first_name} answer, the first of its turn",
        f"a {second_name} answer, after the {first_name} one",
        "both, the first of their turn",
        "another right answer, after both",
        "both again",
    )
    costs: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as home:
        os.environ["EVAL_HOME"] = home
        for gold in turns(chosen.every):
            expected_result(gold)  # the zygote has the tables from now on
            assert gold.code is not None
            answers = [f"unused = 0\n{gold.code}", turn_mutants(gold)[0].code]
            if chosen.wrong_first:
                answers.reverse()
            first, second = (cost(partial(judged, gold, answer)) for answer in answers)
            another = cost(partial(judged, gold, f"another = 0\n{gold.code}"))
            again = sum(cost(partial(judged, gold, answer)) for answer in answers)
            if variants_of(gold):
                for name, part in zip(names, (first, second, first + second, another, again), strict=True):
                    costs[name].append(part)
    print(f"{len(costs[names[0]])} turns; load of the machine {os.getloadavg()[0] / (os.cpu_count() or 1):.1f} a core")
    for name in names:
        told(name, costs[name])


if __name__ == "__main__":
    main()

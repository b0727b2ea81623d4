"""The campaigns behind docs/adaptive-statistics.md: `python -m benchmarks.adaptive_statistics FOLDER`.

The results of a few hundred repeats at a time are written to a file of their own, so that an interrupted campaign
continues where it stopped, and all that is there is summed up. `EVAL_PUBLIC_DATA` names the folder of the matrices.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from eval_pipeline.statistics.adaptive import EARLIER, DifferenceSampler, History, Sampler, SuiteUnits, fit_factors
from eval_pipeline.statistics.adaptive.units import Floats
from eval_pipeline_tests.statistics import adaptive_campaign
from eval_pipeline_tests.statistics.test_adaptive import suite

CHUNK = 500


@dataclass(frozen=True)
class Cell:
    """A campaign: its repeats, what gives the rows of some of them by their seeds, and what sums up rows in words."""

    name: str
    repeats: int
    rows: Callable[[range], Floats]
    told: Callable[[Floats], str]


def _share(wrong: Floats) -> str:
    p = float(wrong.mean())
    return f"{p:.2%} ± {math.sqrt(p * (1 - p) / len(wrong)):.2%}"


def _stops(name: str, sizes: list[int]) -> Cell:
    def rows(seeds: range) -> Floats:
        return adaptive_campaign.stops(suite(sizes), 5, seeds)

    return Cell(f"stops-{name}", 20_000, rows, lambda found: f"some interval wrong in {_share(found.any(axis=1))}")


def _comparisons(name: str, difference: float, repeats: int, part: float = 1.0) -> Cell:
    schedule = tuple(share * part for share in adaptive_campaign.SCHEDULE)

    def rows(seeds: range) -> Floats:
        return adaptive_campaign.decisions(suite([1] * 1000), difference, seeds, schedule)

    return Cell(f"comparison-{name}", repeats, rows, _decisions)


def _clustered(cases: int, of_cluster: int, name: str, ability: float, repeats: int, *, known: bool = True) -> Cell:
    units = adaptive_campaign.clustered(cases, of_cluster)

    def rows(seeds: range) -> Floats:
        found = adaptive_campaign.clustered_decisions(units, ability, seeds, known=known)
        return np.column_stack([found, np.array(seeds) % 2])

    def told(found: Floats) -> str:
        said, asked, history = found.T
        by = ", ".join(f"{way} {_share(said[history == kind] != 0)}" for kind, way in ((1, "with"), (0, "without")))
        decided = f"better {_share(said == 1)}, either {_share(said != 0)}"
        return f"{decided} (history: {by}); asked {np.median(asked):.0%} (median)"

    return Cell(f"clustered-{name}-{cases}-of-{of_cluster}", repeats, rows, told)


def _gains(name: str) -> Iterator[Cell]:
    outcomes = adaptive_campaign.matrix(name)
    sampler, new = adaptive_campaign.new_models(outcomes)
    units = sampler._engine._suite
    for share in (0.1, 0.2, 0.3):
        n = int(len(outcomes) * share)

        # One row a repeat, with three numbers of each model.
        def rows(seeds: range, n: int = n) -> Floats:
            return np.hstack([adaptive_campaign.draws(sampler, truth, n, seeds) for truth in new])

        def told(found: Floats, n: int = n) -> str:
            parts = np.split(found, len(new), axis=1)
            return adaptive_campaign.told(
                f"{n} turns",
                [adaptive_campaign.gain(part, units, truth, n) for part, truth in zip(parts, new, strict=True)],
            )

        yield Cell(f"gains-{name}-{share:.0%}", 2000, rows, told)


SHARES = (0.1, 0.2, 0.3)
SOURCES = {"crux": "ZeroEval", "gsm": "ZeroEval", "math-l5": "ZeroEval", "bird": "BIRD"}
"""The matrices of different models. Models of one source are partly the same."""


def _splits(name: str, folder: Path) -> Iterator[Cell]:
    """Any third of the models as new ones; of few questions, a tenth is too few to ask."""

    @cache
    def outcomes() -> tuple[Floats, SuiteUnits | None]:
        if name == "finqa":
            units, runs = adaptive_campaign.recorded()
            return np.column_stack([*runs.values()]), units
        return _bird(folder / "bird.npy") if name == "bird" else adaptive_campaign.matrix(name), None

    for share in SHARES if name != "math-l5" else SHARES[1:]:

        def rows(seeds: range, share: float = share) -> Floats:
            matrix, units = outcomes()
            return adaptive_campaign.splits(matrix, share, seeds, units)

        yield Cell(f"splits-{name}-{share:.0%}", 12, rows, _split_gains)


def _shapes(name: str, items: int, models: int) -> Cell:
    """A matrix cut to so many questions and models, other ones in each split."""

    def rows(seeds: range) -> Floats:
        outcomes, found = adaptive_campaign.matrix(name), []
        for seed in seeds:
            rng = np.random.default_rng([13, seed])
            part = rng.permutation(outcomes)[:items, rng.permutation(outcomes.shape[1])[:models]]
            found.append(adaptive_campaign.splits(part, 0.3, range(seed, seed + 1)))
        return np.vstack(found)

    return Cell(f"cut-{name}-{items}-by-{models}-30%", 12, rows, _split_gains)


def _bird(file: Path) -> Floats:
    """What four published models got right of BIRD's mini-dev, by results on databases made from statistics."""
    if not file.exists():
        from benchmarks.sql_experts import judged, model_answers

        os.environ.setdefault("EVAL_HOME", str(file.parent / "home"))
        right: dict[str, list[float]] = {}
        with tempfile.TemporaryDirectory() as place:
            for one in judged(Path(place), model_answers(1)):
                right.setdefault(one.group, []).append(float(one.right("expert")))
        np.save(file, np.column_stack([*right.values()]))
    return np.asarray(np.load(file), dtype=np.float64)


def _split_gains(found: Floats) -> str:
    found, known = np.hsplit(found, 2)
    low, middle, high = np.nanquantile(found, (0.1, 0.5, 0.9))
    return (
        f"gain {_mean(found):.2f}, of single models {middle:.2f} ({low:.2f} to {high:.2f}); "
        f"with coefficients known {_mean(known):.2f}"
    )


def _mean(found: Floats) -> float:
    return math.exp(np.nanmean(np.log(found)))


def _over_matrices(folder: Path) -> Iterator[str]:
    """One figure for each share, over the matrices of different models that have been run, and by source."""
    for share in SHARES:
        files = {name: folder / f"splits-{name}-{share:.0%}" / "000000.npy" for name in SOURCES}
        found = {name: np.hsplit(np.load(file), 2)[0] for name, file in files.items() if file.exists()}
        if len(found) > 1:
            middle, low, high = adaptive_campaign.over_matrices([*found.values()])
            by = {of: [math.log(_mean(found[n])) for n in found if SOURCES[n] == of] for of in SOURCES.values()}
            each = ", ".join(f"{of} {math.exp(np.mean(logs)):.2f}" for of, logs in by.items() if logs)
            name = f"over {len(found)} matrices, {share:.0%}"
            yield f"{name}: gain {middle:.2f}, 95% interval {low:.2f} to {high:.2f}; {each}"


def _recorded() -> Iterator[Cell]:
    """Of two runs of one model, one is the history and the baseline, the other one is asked."""
    units, runs = adaptive_campaign.recorded()
    for known, new in (("a", "b"), ("b", "a")):
        sampler = Sampler(units, fit_factors(History(runs[known][:, None])), seed=0)
        for share in (0.1, 0.2, 0.3):
            n = int(len(units.ids) * share)

            def rows(seeds: range, n: int = n, sampler: Sampler = sampler, new: str = new) -> Floats:
                return adaptive_campaign.draws(sampler, runs[new], n, seeds, batches=4)

            def told(found: Floats, n: int = n, new: str = new) -> str:
                gain = adaptive_campaign.gain(found, units, runs[new], n)
                return adaptive_campaign.told(f"{n} conversations", [gain])

            yield Cell(f"recorded-{new}-by-{known}-{share:.0%}", 2000, rows, told)

        def compared(seeds: range, known: str = known, new: str = new) -> Floats:
            ends = [round(share * len(units.ids)) for share in adaptive_campaign.SCHEDULE]
            history = fit_factors(History(runs[known][:, None]), EARLIER)
            found = [
                adaptive_campaign.decided(DifferenceSampler(units, history, runs[known], seed=seed), runs[new], ends)
                for seed in seeds
            ]
            return np.array(found)

        yield Cell(f"recorded-{new}-against-{known}", 1000, compared, _decisions)


def _decisions(found: Floats) -> str:
    said, asked = found.T
    return (
        f"better {_share(said == 1)}, worse {_share(said == -1)}, either {_share(said != 0)}; "
        f"asked {np.median(asked):.0%} (median), {asked.mean():.0%} (mean)"
    )


def cells(folder: Path) -> Iterator[Cell]:
    """Yields all campaigns."""
    effect = adaptive_campaign.effect(1000)
    yield _comparisons("equal", 0.0, 20_000)
    yield _comparisons("better", effect, 2000)
    yield _comparisons("worse", -effect, 2000)
    for part in (0.2, 0.3, 0.5):
        yield _comparisons(f"equal-within-{part:.0%}", 0.0, 2000, part)
        yield _comparisons(f"3-points-worse-within-{part:.0%}", -0.03, 2000, part)
    for cases, of_cluster in ((240, 1), (240, 4), (240, 8), (400, 20), (120, 10), (120, 20)):
        yield _clustered(cases, of_cluster, "equal", 0.0, 4000)
    yield _clustered(240, 8, "taken-as-independent", 0.0, 1000, known=False)
    yield _clustered(240, 4, "better", 1.5, 1000)
    yield _stops("turns", [1] * 300)
    yield _stops("conversations", [1, 2, 3, 6] * 40)
    yield from _gains("crux")
    yield from _gains("gsm")
    for name in (*SOURCES, "finqa"):
        yield from _splits(name, folder)
    for name, (items, models) in product(("crux", "gsm"), ((721, 41), (60, 10))):
        yield _shapes(name, items, models)
    yield from _recorded()


def main() -> None:
    """Runs what is missing, and prints a line for each campaign."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--only", default="", help="campaigns whose name contains this")
    options.add_argument("--repeats", type=int, help="at most so many repeats of each")
    options.add_argument("--no-run", action="store_true", help="only sum up what is there")
    chosen = options.parse_args()
    for cell in cells(chosen.folder):
        if chosen.only not in cell.name:
            continue
        folder = chosen.folder / cell.name
        folder.mkdir(parents=True, exist_ok=True)
        for first in range(0, min(cell.repeats, chosen.repeats or cell.repeats), CHUNK):
            file = folder / f"{first:06}.npy"
            if not chosen.no_run and not file.exists():
                part = file.with_suffix(".part")
                with part.open("wb") as stream:
                    np.save(stream, cell.rows(range(first, min(first + CHUNK, cell.repeats))))
                part.rename(file)
        known = [np.load(file) for file in sorted(folder.glob("*.npy"))]
        if known:
            found = np.concatenate(known)
            print(f"{cell.name}, {len(found):,} repeats: {cell.told(found)}", flush=True)
    for line in _over_matrices(chosen.folder):
        print(line)


if __name__ == "__main__":
    main()

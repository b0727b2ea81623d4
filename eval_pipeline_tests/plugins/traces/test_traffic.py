"""Draws from simulated traffic whose accuracy is known: the intervals cover it as often as they say.

The short form is in the normal suite; the campaign, whose figure is in docs/recorded-answers.md, is a soak.
"""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from eval_pipeline.operations.recorded.entries import Entry
from eval_pipeline.operations.recorded.traffic import Drawn, Key, conversations, drawn, stratum, together
from eval_pipeline.statistics.samples.sampling import Strata, drawn_share
from eval_pipeline_plugins.traces.conversations import read_otlp
from eval_pipeline_tests.fakes import traffic


def read(file: Path) -> tuple[dict[Key, list[Drawn]], list[tuple[int, int]]]:
    """The strata of traffic, and right turns and turns of each conversation."""
    strata: dict[Key, list[Drawn]] = {}
    turns = []
    for number, own in enumerate(conversations(read_otlp(file))):
        strata.setdefault(stratum(own), []).append((number, len(own)))
        turns.append((sum(map(is_right, own)), len(own)))
    return strata, turns


def is_right(entry: Entry) -> bool:
    return entry.given.get("response") == entry.found["app.gold"]


def covered(strata: dict[Key, list[Drawn]], turns: list[tuple[int, int]], size: int, draws: int) -> tuple[int, float]:
    """How many intervals cover the accuracy, and the mean of the estimates less the truth."""
    truth = sum(right for right, _ in turns) / sum(count for _, count in turns)
    hits, means = 0, []
    for seed in range(draws):
        picked = drawn(strata, size, Random(seed))
        assert len(picked) == size
        named = {str(told["stratum"]): int(str(told["of"])) for _, told in picked}
        names = sorted(named)
        codes = np.array([names.index(str(told["stratum"])) for _, told in picked])
        ones, counts = np.array([turns[number] for (number, _), _ in picked], float).T
        found = drawn_share(ones, counts, Strata(codes, np.array([named[name] for name in names])))
        assert found.low is not None and found.high is not None and found.value is not None
        hits += found.low <= truth <= found.high
        means.append(found.value - truth)
    return hits, float(np.mean(means))


def test_intervals_of_draws_cover_the_accuracy_on_the_traffic(tmp_path: Path) -> None:
    traffic.write(tmp_path / "spans.jsonl", 1_200, seed=3)
    strata, turns = read(tmp_path / "spans.jsonl")
    assert sum(count for _, count in turns) == 600
    hits, bias = covered(strata, turns, 60, 40)
    assert hits >= 34  # of 40, at 95% fewer have a probability of 0.3%
    assert abs(bias) < 0.03


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intervals_of_500_draws_cover_the_accuracy_on_20_000_spans(tmp_path: Path, seed: int) -> None:
    traffic.write(tmp_path / "spans.jsonl", 20_000, seed)
    strata, turns = read(tmp_path / "spans.jsonl")
    hits, bias = covered(strata, turns, 300, 500)
    print(f"traffic {seed}: {hits / 500:.1%} of 500 draws of 300 of {len(turns):,} conversations; bias {bias:+.4f}")
    assert 0.93 <= hits / 500 <= 0.97
    assert abs(bias) < 0.005


def test_parts_too_small_for_a_draw_are_put_together() -> None:
    sizes = {
        ("answered", "/a", "1 turn", "mon"): 500,
        ("answered", "/a", "1 turn", "tue"): 20,
        ("answered", "/a", "1 turn", "wed"): 30,
        ("answered", "/b", "1 turn", "mon"): 440,
        ("failed", "/b", "1 turn", "mon"): 10,
    }
    names = together(sizes, 100)
    assert list(names.values()) == [
        "answered, /a, 1 turn, mon",
        "answered, /a, 1 turn",
        "answered, /a, 1 turn",
        "answered, /b, 1 turn, mon",
        "answered, /a, 1 turn",
    ]
    picked = drawn({key: [(0, 0)] * count for key, count in sizes.items()}, 100, Random(0))
    told = {str(of["stratum"]): (of["of"], of["probability"]) for _, of in picked}
    assert {name: of for name, (of, _) in told.items()} == {
        "answered, /a, 1 turn, mon": 500,
        "answered, /a, 1 turn": 60,
        "answered, /b, 1 turn, mon": 440,
    }
    assert all(
        probability == sum(str(of["stratum"]) == name for _, of in picked) / size
        for name, (size, probability) in told.items()
    )

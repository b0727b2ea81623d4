"""SIGKILL of a worker, its sandbox's child, the run, the scheduler and Postgres: runs end with the undisturbed record.

Only what was unfinished is computed again, and nothing is paid for twice but what was on its way when the run itself
was killed. `pytest -m soak` kills each of them 20 times, at moments drawn with EVAL_SEED, and prints a table.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline_tests.fakes.anthropic_server import KEY
from eval_pipeline_tests.plugins.dask import kill_rounds
from eval_pipeline_tests.plugins.dask.dask_services import Services
from eval_pipeline_tests.plugins.dask.kill_rounds import CONCURRENCY, Round, Told, disturbed, serving, steps
from eval_pipeline_tests.plugins.dask.noting import NOTES
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.servers import StatePostgres, free_port

pytestmark = pytest.mark.services("dask", "postgres")
KINDS = ("worker", "child", "driver", "scheduler", "postgres")
KILLS = 20
IN_FLIGHT = 4 * CONCURRENCY
"""Answers on their way to the database are in flight too: there are more of them than calls may be under way."""
PRELOAD = {"worker": ("--preload", "eval_pipeline_tests.plugins.dask.noting")}


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", DATABASE_URL):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(kill_rounds.KEY_NAME, KEY)
    monkeypatch.setenv(NOTES, str(tmp_path / "notes"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[[int], Services]]:
    """Gives scheduler and workers: those that are there, or new ones if they were killed."""
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    made: list[Services] = []

    def current(workers: int) -> Services:
        if not made or made[-1].children[0].poll() is not None:
            folder = tmp_path / f"dask{len(made)}"
            folder.mkdir()
            made.append(Services(folder, PRELOAD))
            for _ in range(workers):
                made[-1].worker()
        return made[-1]

    yield current
    for services in made:
        services.end()


def test_one_evaluation_survives_a_kill_of_each(
    state_server: StatePostgres, cluster: Callable[[int], Services], tmp_path: Path
) -> None:
    count, port, rng = 8, free_port(), Random(SEED)
    whole = kill_rounds.undisturbed(tmp_path / "whole", count, port)
    one = Round(tmp_path / "round", state_server, lambda: cluster(1), count, port)
    kinds = ["child", "postgres", "scheduler", "worker", "driver"]
    with serving(one):
        disturbed(one, [*zip((2, 4, 6, 8, steps(count) - 2), kinds, strict=True)], rng)
        told = one.judge(whole)
    assert told.kinds == kinds
    assert told.runs == 3
    assert told.paid_twice <= IN_FLIGHT


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_kills(
    kind: str, state_server: StatePostgres, cluster: Callable[[int], Services], tmp_path: Path
) -> None:
    """Up to five in one evaluation."""
    count, port = 32, free_port()
    rng = Random(f"{SEED} {kind}")
    whole = kill_rounds.undisturbed(tmp_path / "whole", count, port)
    rounds = list[Told]()
    while (left := KILLS - sum(len(told.kinds) for told in rounds)) > 0:
        assert len(rounds) < KILLS, "most runs end before anything is killed"
        moments = sorted(rng.sample(range(1, steps(count) - 2), min(5, left)))
        one = Round(tmp_path / f"round{len(rounds)}", state_server, lambda: cluster(2), count, port)
        with serving(one):
            disturbed(one, [(moment, kind) for moment in moments], rng)
            told = one.judge(whole)
        rounds.append(told)
        print(f"EVAL_SEED={SEED} {kind}: {told}", file=sys.stderr, flush=True)
        assert told.paid_twice <= (IN_FLIGHT * len(told.kinds) if kind == "driver" else 0)
    print(f"EVAL_SEED={SEED} {kind}: {table_row(rounds)}", file=sys.stderr, flush=True)


def table_row(rounds: list[Told]) -> dict[str, Any]:
    found = Counter[str]()
    for told in rounds:
        found.update(kills=len(told.kinds), shards=told.shards, again=told.again, late=told.late)
        found.update(runs=told.runs, requests=told.requests, paid_twice=told.paid_twice)
    return dict(found)

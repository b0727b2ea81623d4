"""What a person sees of how far something is."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from eval_pipeline.analysis.aggregates import aggregates_of
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.cli import terminal
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.upkeep import doctor
from eval_pipeline.stages.checks.ends import check_ends
from eval_pipeline.stages.publishing import publish_all
from eval_pipeline.tracks.registry import load_track
from eval_pipeline.workspace.progress import BLOCK, busy, counted
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Progress, Workspace
from eval_pipeline_tests.chains import INGESTING, aggregates, ran, ran_of_suite
from eval_pipeline_tests.support import DAY, Lab

PARTITION = Partition("small", "puppet", DAY)


class Recording:
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def start(self, label: str, total: int) -> None:
        self.told.append(("start", label, total))

    def advance(self, label: str, steps: int = 1) -> None:
        self.told.append(("advance", label, steps))

    def finish(self, label: str) -> None:
        self.told.append(("finish", label))


def test_a_bar_moves_in_blocks_and_reaches_its_end() -> None:
    seen = Recording()
    assert sum(counted(seen, "turns", range(2 * BLOCK + 3), 2 * BLOCK + 3)) == sum(range(2 * BLOCK + 3))
    steps = [("advance", "turns", BLOCK), ("advance", "turns", BLOCK), ("advance", "turns", 3)]
    assert seen.told == [("start", "turns", 2 * BLOCK + 3), *steps, ("finish", "turns")]


def test_a_bar_is_taken_away_where_the_work_fails() -> None:
    seen = Recording()
    with pytest.raises(KeyError), busy(seen, "work"):
        raise KeyError
    with pytest.raises(KeyError):
        {}[next(counted(seen, "turns", [1, 2], 2))]
    assert [told[:2] for told in seen.told] == [
        ("start", "work"), ("finish", "work"), ("start", "turns"), ("finish", "turns")
    ]  # fmt: skip


Step = Callable[[Workspace, Progress], object]
STEPS: dict[str, tuple[Step, list[tuple[str, int]]]] = {
    "cases": (lambda w, p: ran_of_suite(w, "small", *INGESTING, progress=p), [("small · cases", 0)]),
    "evidence": (
        lambda w, p: ran(w, PARTITION, "evidence", progress=p),
        [("small · puppet · evidence", 3)],
    ),
    "scoring": (lambda w, p: ran(w, PARTITION, "turn_metrics", progress=p), [("small · puppet · scoring", 3)]),
    "aggregates": (
        lambda w, p: ran(w, PARTITION, *aggregates(w, PARTITION), progress=p),
        [(f"small · puppet · {name.replace('_', ' ')}", 0) for name in aggregates_of(load_track("finqa"))],
    ),
    "publishing": (
        lambda w, p: ran(w, PARTITION, "published", run=RunContext("run"), progress=p),
        [("small · puppet · publishing", 0)],
    ),
    "publishing all": (lambda w, p: publish_all(w, gate(w), full=True, progress=p), [("publishing", 0)]),
    "report": (lambda w, p: ran(w, PARTITION, "report", progress=p), [("small · puppet · report", 0)]),
    "gold": (
        lambda w, p: check_ends(w.track("small"), w.cases("small"), None, p, "small · gold"),
        [("small · gold", 2)],
    ),
}

OUT_OF_DATE = {
    "cases": ["cases"],
    "evidence": ["evidence"],
    "scoring": ["turn_results"],
    "aggregates": list(aggregates_of(load_track("finqa"))),
}
"""Files to miss, for stages that do nothing where all is there."""


@pytest.mark.parametrize("name", STEPS)
def test_every_stage_that_may_take_long_tells_how_far_it_is(small: Lab, name: str) -> None:
    small.evaluate()
    for table in OUT_OF_DATE.get(name, ()):
        small.record_file(table).unlink()
    do, expected = STEPS[name]
    seen = Recording()
    do(small.workspace(), seen)
    assert [told[1:] for told in seen.told if told[0] == "start"] == expected
    assert [told[1] for told in seen.told if told[0] == "finish"] == [label for label, _ in expected]
    moved = sum(told[2] for told in seen.told if told[0] == "advance")
    assert moved == sum(total for _, total in expected)


def test_doctor_tells_what_it_looks_at(small: Lab) -> None:
    seen = Recording()
    list(doctor.examine(small.home, seen))
    assert ("start", "checking: record", 0) in seen.told
    assert seen.told[-1] == ("finish", "checking: store")


@pytest.mark.parametrize("seconds", [terminal.HIDDEN_S - 0.5, terminal.HIDDEN_S + 0.5])
def test_a_bar_shows_after_a_while_only(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    clock = [100.0]
    console = Console(file=io.StringIO(), force_terminal=True, width=100, get_time=lambda: clock[0])
    monkeypatch.setattr(terminal, "errors", console)
    bars = terminal.ProgressBars()
    bars.start("scoring", 10)
    bars.start("publishing", 0)
    clock[0] += seconds
    bars.advance("scoring", 4)
    with console.capture() as drawn:
        console.print(bars._bars.get_renderable())
    shown = seconds > terminal.HIDDEN_S
    assert ("scoring" in drawn.get()) == ("4/10" in drawn.get()) == shown
    assert ("publishing" in drawn.get()) == shown
    assert "?" not in drawn.get(), "nothing is counted where nobody knows the total"

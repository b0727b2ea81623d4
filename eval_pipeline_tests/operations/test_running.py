"""The runs of a command: what fails stops no other, one budget, what an interrupt leaves, and the note of it all."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval_pipeline.api.evaluating import Evaluated, evaluate
from eval_pipeline.chain.evaluation import COMPARING, stage_of
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.interrupts import TwiceInterruptedError, handlers_kept
from eval_pipeline.operations.runs import steps
from eval_pipeline.operations.upkeep.completing import complete_left
from eval_pipeline.providers.base import Call
from eval_pipeline.stages import score
from eval_pipeline.view.page import Bench
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting import commands
from eval_pipeline.workspace.noting.commands import ended, left_behind
from eval_pipeline.workspace.noting.noted import Noted
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Silent, StageResult
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, response
from eval_pipeline_tests.view.pages import Parts, let_in

SUITES = ["s0", "s1", "s2"]
VERSIONS = ("puppet", "second")


@pytest.fixture
def three(lab: Lab, puppet: type[Puppet]) -> Lab:
    """Three suites of a turn each."""
    for name in SUITES:
        lab.suite(name, [case(f"of {name}", ("50", 50.0))])
    lab.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "oracle"})
    return lab


def evaluated(lab: Lab, *versions: str, suites: list[str] = SUITES) -> Evaluated:
    places = [Partition(suite, version, DAY) for version in versions for suite in suites]
    return evaluate(lab.workspace(), places, Scope(), "", Silent(), report=False)


def told(lab: Lab) -> list[Noted]:
    return [note for _, note, _ in ended(lab.home)]


@contextmanager
def interrupted() -> Iterator[None]:
    with handlers_kept():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            yield


def failing(patch: pytest.MonkeyPatch, name: str, version: str = "") -> list[str]:
    """A stage fails, of one model version or of whole suites; returns how often it was tried."""
    tried = list[str]()

    def run(stage: Stage, inputs: Inputs) -> StageResult:
        of = inputs.partition.model_version if inputs.partition else ""
        if (stage.name, of) == (name, version):
            tried.append(name)
            raise EvalError(f"{name} fails")
        return run_stage(stage, inputs)

    patch.setattr(steps, "run_stage", run)
    return tried


@pytest.mark.always
def test_all_is_published_in_one_go_and_noted_as_one_run_for_each_model_version(three: Lab, copies: list[Path]) -> None:
    found = evaluated(three, *VERSIONS)
    assert (found.problems, len(found.done)) == ([], 6)
    assert len(copies) == 1
    assert three.one("SELECT count(DISTINCT suite) FROM model_comparisons WHERE model_a != model_b") == len(SUITES)
    (note,) = told(three)
    assert [[place.model_version for place in places] for places in note.runs.values()] == [
        [version] * 3 for version in VERSIONS
    ]
    first, last = note.runs
    made = [(entry["run"], entry["suite"], entry["stage"]) for entry in note.entries if "stage" in entry]
    assert len(made) == len(set(made))
    assert {run for run, _, stage in made if stage == "cases"} == {first}, "files are read once"
    assert {run for run, _, stage in made if stage in COMPARING} == {last}, "and all is compared at the end"
    assert (note.unpublished, note.uncompared, note.open_runs, note.failed_runs) == ([], [], {}, set())
    assert evaluated(three, "puppet").problems == []
    assert len(told(three)) == 1, "nothing was done, so that there is nothing to tell"


def test_what_fails_stops_no_other(three: Lab, copies: list[Path]) -> None:
    def answer(call: Call) -> str:
        if call.case_id == "of s1":
            raise RuntimeError("the provider is broken")
        return call.gold.oracle()

    Puppet.answer = answer
    three.suite("s0", track="chess")
    three.evaluate("s2", "second", publish=True)
    copies.clear()
    found = evaluated(three, *VERSIONS)
    assert found.problems[0].startswith("s0: ") and "unknown track 'chess'" in found.problems[0]
    assert [text for text in found.problems[1:] if "s0" in text] == [], "told once, not for each model version"
    assert any("the provider is broken" in text for text in found.problems if text.startswith("s1, puppet: "))
    assert found.done == [
        Partition("s2", "puppet", DAY),
        Partition("s1", "second", DAY),
        Partition("s2", "second", DAY),
    ]
    assert three.sql("SELECT DISTINCT suite FROM trends ORDER BY ALL") == [("s1",), ("s2",)]
    assert len(copies) == 1, "with what was up to date"


@pytest.mark.always
def test_a_suite_that_was_read_once_and_is_broken_now_runs_for_no_model_version(three: Lab) -> None:
    """Its old cases are still on record: none may be evaluated as if they were the present ones."""
    three.evaluate("s0", version="second", publish=True)
    next((three.home.data / "suites" / "s0" / "cases").iterdir()).write_text("id: beta\n")
    found = evaluated(three, *VERSIONS, suites=["s0"])
    (problem,) = found.problems
    assert problem.startswith("s0: ") and "turns: is missing" in problem
    assert found.done == []
    assert not Puppet.asked


def test_the_others_are_compared_where_one_is_blocked_by_a_check(three: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = score.attempted_turns

    def lost(inputs: Inputs) -> Iterator[object]:
        return iter(list(real(inputs))[inputs.place.model_version == "second" :])

    monkeypatch.setattr(score, "attempted_turns", lost)
    found = evaluated(three, *VERSIONS, suites=["s0"])
    assert found.done == [Partition("s0", "puppet", DAY)]
    (problem,) = found.problems
    assert problem.startswith("s0, second: check every_turn_scored_once: ")
    assert three.sql("SELECT model_version FROM trends") == [("puppet",)]
    assert dict(three.sql("SELECT model_version, status FROM runs")) == {"puppet": "complete"}
    (note,) = told(three)
    assert note.failed_runs == {list(note.runs)[1]}


@pytest.mark.parametrize(("error", "told"), [(EvalError("no room"), "no room"), (MemoryError(), "MemoryError")])
def test_a_stage_that_fails_is_noted_with_its_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def fails(*_: object) -> steps.Step:
        raise error

    lab.suite()
    command = commands.Command(lab.home, "run")
    command.note_run("r", ())
    monkeypatch.setattr(steps, "checked", fails)
    inputs = Inputs(lab.workspace(), "small", run=RunContext("r"))
    with pytest.raises(type(error)):
        steps.noted_step(stage_of(inputs.track, "cases"), inputs, command)
    assert (command.noted.entries[-1]["error"], command.noted.failed_runs) == (told, {"r"})


def test_what_needs_a_stage_that_failed_is_left_out_and_the_others_are_compared(
    three: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "coverage", "second")
    found = evaluated(three, *VERSIONS, suites=["s0"])
    assert found.problems == ["s0, second: coverage fails"]
    assert ("puppet",) in three.sql("SELECT model_version FROM trends")
    (note,) = told(three)
    steps_of = [entry for entry in note.entries if "stage" in entry and entry["model_version"] == "second"]
    made = {entry["stage"] for entry in steps_of if "error" not in entry}
    assert "statistics" in made and not made & {"published", "coverage"}


def test_a_comparison_that_fails_is_not_tried_twice(three: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(monkeypatch, "trends")
    found = evaluated(three, "puppet", suites=["s0"])
    assert (found.problems, tried) == (["s0: trends fails"], ["trends"])
    assert complete_left(three.workspace()) == [], "and not by the next command"


def test_the_budget_is_one_for_all_suites_of_a_command(three: Lab) -> None:
    Puppet.answer = lambda call: response(call.gold.oracle(), 40_000, 10_000)
    three.versions({"name": "puppet", "provider": "puppet", "max_tokens_total": 50_100})
    found = evaluated(three, "puppet")
    assert len(Puppet.asked) == 1, "what is left after the first suite is too little for the turns of the second"
    assert [text[:2] for text in found.problems if "budget" in text] == ["s1", "s2"]
    expected = {"s0": "complete", "s1": "incomplete", "s2": "incomplete"}
    assert dict(three.sql("SELECT suite, status FROM runs")) == expected
    evaluated(three, "puppet", suites=["s2"])
    assert len(Puppet.asked) == 2, "the next command has a budget of its own"


def test_an_interrupt_ends_the_command_and_what_is_whole_is_published_and_compared(three: Lab) -> None:
    def answer(call: Call) -> str:
        if call.case_id == "of s1":
            os.kill(os.getpid(), signal.SIGTERM)
        return call.gold.oracle()

    Puppet.answer = answer
    with interrupted():
        evaluated(three, "puppet")
    assert three.sql("SELECT DISTINCT suite FROM turn_results") == [("s0",)], "what was done is published"
    assert three.sql("SELECT suite FROM trends WHERE compared") == [("s0",)]
    with left_behind(three.home) as (left, live):
        assert (left, live) == ([], [])
    (note,) = told(three)
    assert (note.unpublished, note.uncompared, note.open_runs) == ([], [], {})
    assert [entry["status"] for entry in note.entries if "run_ended" in entry] == ["canceled"]


@pytest.mark.parametrize("first", [KeyboardInterrupt, TwiceInterruptedError])
def test_who_interrupts_twice_leaves_at_once_and_is_told_what_compares_it(
    three: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, first: type[KeyboardInterrupt]
) -> None:
    asked = list[str]()

    def run(stage: Stage, inputs: Inputs) -> StageResult:
        asked.append(stage.name)
        if inputs.suite == "s1" or stage.name in COMPARING:
            raise first
        return run_stage(stage, inputs)

    monkeypatch.setattr(steps, "run_stage", run)
    with pytest.raises(KeyboardInterrupt):
        evaluated(three, "puppet")
    assert three.sql("SELECT DISTINCT suite, compared FROM trends") == [("s0", False)]
    with Bench.of(three.home) as bench:
        told_there = Parts(let_in(bench).get("/").text).text
    assert "not compared yet the next run or publish does it" in told_there
    with left_behind(three.home) as (left, live):
        (note,) = [*live, *(one.noted for one in left)]
        assert (note.unpublished, note.uncompared, note.open_runs) == ([], ["s0"], {})
    tried = [name for name in asked if name in COMPARING]
    assert len(tried) == (first is KeyboardInterrupt)
    assert ("not compared yet: s0; the next `run`" in caplog.text) == (first is KeyboardInterrupt)


def test_what_is_complete_is_published_though_the_comparing_is_interrupted_and_compared_by_the_next(
    three: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(stage: Stage, inputs: Inputs) -> StageResult:
        if stage.name in COMPARING:
            os.kill(os.getpid(), signal.SIGINT)
        return run_stage(stage, inputs)

    made = list[commands.Command]()
    with monkeypatch.context() as patched:
        patched.setattr(steps, "run_stage", run)
        begin = commands.Command.note_run
        patched.setattr(commands.Command, "note_run", lambda self, *a, **k: (made.append(self), begin(self, *a, **k)))
        with interrupted():
            evaluated(three, "puppet", suites=["s0", "s1"])
    assert three.sql("SELECT suite, status FROM runs ORDER BY ALL") == [("s0", "complete"), ("s1", "complete")]
    assert three.sql("SELECT * FROM trends WHERE compared") == []
    assert complete_left(three.workspace()) == [], "the process is alive"
    assert three.sql("SELECT * FROM trends WHERE compared") == []
    made[0]._note._file.close()  # type: ignore[union-attr]  # the kernel lets go of the locks of a dead process
    assert complete_left(three.workspace()) == []
    assert three.sql("SELECT suite FROM trends ORDER BY ALL") == [("s0",), ("s1",)]
    canceled, compared = sorted(told(three), key=lambda note: note.command == "compare")
    assert [entry["status"] for entry in canceled.entries if "run_ended" in entry] == ["canceled"]
    assert list(compared.runs.values()) == [[]]
    assert {entry["stage"] for entry in compared.entries if "stage" in entry} <= {*COMPARING}


def test_a_command_that_a_script_started_in_the_background_keeps_its_handlers(three: Lab) -> None:
    """A script's `eval-pipeline run &` ignores SIGINT, and must go on doing so."""
    with handlers_kept():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        assert evaluated(three, "puppet").problems == []
        left = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert left == (signal.SIG_IGN, signal.SIG_DFL)

"""What a run tells of itself while it asks, who reads it, and the wish that it ends."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from eval_pipeline.chain.evaluation import chain_of, evaluating, ingesting
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.core.errors import EndedEarlyError, UsageError
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.system import interrupts
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.core.system.processes import host, started, worldwide_mark
from eval_pipeline.operations.upkeep.resuming import partitions_of
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline.stages.attempts import rows
from eval_pipeline.stages.attempts.so_far import why_not_scored
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.watching.running import forget_superseded, seen, wish_end
from eval_pipeline.workspace.watching.status import Speed, Status, end_line, line, spent_text, status_of
from eval_pipeline.workspace.watching.watch import (
    Watch,
    asked_for,
    output_path,
    status_path,
    watching,
    wish_path,
    write_status,
)
from eval_pipeline_tests.support import BROKEN, DAY, Answer, Lab, Puppet, case, number

PLACE = ["small", "puppet", "2026-01-02"]
ASKS: dict[str, Any] = {"place": PLACE, "step": "asking", "total": 2000, "done": 500, "readable": 490}
FIRST = {"total": 500, "done": 500, "readable": 490, "scored": 500, "right": 400, "low": 0.7, "high": 0.85}
FIRST |= {"errors": [["refused", 3, "no"]]}
LINES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"place": PLACE}, "small · puppet: about to ask"),
    ({"place": PLACE, "step": "turn_metrics", "total": 9, "done": 9}, "small · puppet: at turn metrics"),
    (ASKS, "small · puppet: 500 of 2,000 turns, 98.0% readable, not scored yet"),
    (
        ASKS | {"number": 2, "evaluations": 8},
        "small · puppet (2 of 8): 500 of 2,000 turns, 98.0% readable, not scored yet",
    ),
    (
        ASKS | {"samples": 4, "scored": 500, "right": 400, "low": 0.7, "high": 0.85, "journal": 100},
        "small · puppet: 500 of 2,000 answers (500 turns × 4), 100 from the journal, 98.0% readable, "
        "right so far 80.0% [70.0% to 85.0%] of 500 scored",
    ),
    (
        # What the budget refused is no progress: 10 of 20 are left, all of them readable, and no pace tells the rest.
        ASKS | {"done": 20, "refused": 10, "readable": 10, "scored": 4, "right": 1, "pace": Speed(60.0, 0, 20)},
        "small · puppet: 10 of 2,000 turns, 10 refused by the budget, 100.0% readable, "
        "right so far 25.0% of 4 scored (of one conversation: no interval)",
    ),
    (
        ASKS | {"usd": 1.5, "calls": 520, "pace": Speed(60.0, 66, 60), "errors": [["timeout", 1, "late"]]},
        "small · puppet: 500 of 2,000 turns, 98.0% readable, not scored yet, $1.50, 1 error (1 timeout), "
        "66 calls a minute, about 25 min left",
    ),
    (
        # Calls that are made again are told apart from turns that have no answer in the end.
        ASKS
        | {"errors": [["timeout", 2, "late"]], "retried": [["rate_limited", 1200, "429"], ["overloaded", 1, "529"]]},
        "small · puppet: 500 of 2,000 turns, 98.0% readable, not scored yet, 2 errors (2 timeout), "
        "1,201 calls made again (1,200 rate_limited, 1 overloaded)",
    ),
    (
        # Where others spend of the same limit, nobody knows all of it at any moment.
        ASKS | {"usd": 1.5, "limit_usd": 5.0, "limit_spent": 2.0, "limit_kind": "night"},
        "small · puppet: 500 of 2,000 turns, 98.0% readable, not scored yet, at least $2.00 of $5.00",
    ),
    (
        # In batches nothing comes for hours, and no pace tells how long.
        ASKS | {"waiting": ["waiting for batch b1 (900 requests)", "b2"], "pace": Speed(60.0, 0, 60)},
        "small · puppet: 500 of 2,000 turns, 98.0% readable, not scored yet, "
        "waiting for batch b1 (900 requests) and 1 more",
    ),
    (
        # Stand-ins and recorded answers cost nothing, and call nobody.
        ASKS | {"free": True, "usd": 0.0, "calls": 500, "pace": Speed(60.0, 500, 500)},
        "small · puppet: 500 of 2,000 turns, 98.0% readable, not scored yet, about 3 min left",
    ),
    (
        # A run that is resumed knows nothing of the journal at first: 0 would be wrong.
        ASKS | {"done": 0, "readable": 0},
        "small · puppet: none of 2,000 turns looked at yet, not scored yet",
    ),
    (
        ASKS | {"done": 0, "readable": 0, "calls": 24},
        "small · puppet: 0 of 2,000 turns, not scored yet",
    ),
    (
        {"place": PLACE, "step": "judging", "total": 90, "done": 30, "tokens": 1200},
        "small · puppet: judging: 30 of 90 answers, 1,200 tokens",
    ),
    (
        {"place": PLACE, "step": "recovery", "total": 8, "done": 4, "readable": 3, "usd": 0.0, "free": True},
        "small · puppet: asking again after errors: 4 of 8 answers, 75.0% readable",
    ),
    (
        # What was asked first, and all that was spent, is told to the end of the evaluation.
        {"place": PLACE, "step": "recovery", "total": 8, "done": 4, "readable": 3, "usd": 0.5, "usd_before": 1.0}
        | {"first": FIRST, "errors": [["timeout", 1, "late"]]},
        "small · puppet: asking again after errors: 4 of 8 answers, 500 of 500 turns, 98.0% readable, "
        "right so far 80.0% [70.0% to 85.0%] of 500 scored, $1.50, 1 error (1 timeout)",
    ),
    (
        {"place": PLACE, "step": "statistics", "first": FIRST, "tokens": 7, "tokens_before": 5, "number": 1},
        "small · puppet: at statistics, 500 of 500 turns, 98.0% readable, "
        "right so far 80.0% [70.0% to 85.0%] of 500 scored, 12 tokens, 3 errors (3 refused)",
    ),
    ({"place": PLACE, "work": "evidence", "work_total": 7, "work_done": 2, "work_unit": "shards"},
     "small · puppet: evidence: 2 of 7 shards"),
    ({"place": [], "step": "comparing", "number": 0, "evaluations": 8}, "run: at comparing"),
    ({"place": ["small"], "step": "trends", "number": 0, "evaluations": 8}, "small: at trends"),
)  # fmt: skip


def status(**told: Any) -> Status:
    return replace(Status("run-1", "run", worldwide_mark(), time.time() - 5, at=time.time()), **told)


@pytest.mark.parametrize(("told", "expected"), LINES)
def test_the_line_says_what_is_known(told: dict[str, Any], expected: str) -> None:
    found = status(**told)
    assert line(found) == expected
    assert status_of(found.text()) == found
    assert status_of(found.text()[:-1] + ',"of_a_later_version":1}') == found


@pytest.mark.parametrize(
    ("state", "told", "expected"),
    [
        (
            "",
            {"step": "report", "first": {"total": 9, "done": 9, "readable": 9}},
            "done: 9 of 9 turns, 100.0% readable, not scored yet",
        ),
        ("", {"step": "report"}, "done"),
        ("stopped", {"step": "asking", "total": 9, "done": 4}, "canceled: 4 of 9 turns, 0.0% readable, not scored yet"),
        ("failed", {"step": "statistics"}, "failed"),
    ],
)
def test_how_it_ended_is_told_with_what_is_there(state: str, told: dict[str, Any], expected: str) -> None:
    assert end_line(status(place=PLACE, **told), state) == f"small · puppet: {expected}"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"id":', '{"id":"a","command":"run","process":"p","began":1,"pace":{"x":1}}']
)
def test_what_is_no_status_is_not_shown(lab: Lab, text: str) -> None:
    with pytest.raises(ValueError):
        status_of(text)
    lab.home.running.mkdir(parents=True)
    status_path(lab.home, "a").write_text(text)
    assert seen(lab.home) == []


@pytest.fixture
def small(lab: Lab, puppet: object, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A suite of 10 conversations of two turns, and a model that must be asked one after the other."""
    monkeypatch.setattr(interrupts, "BEAT_S", 0.002)
    lab.suite(cases=[case(f"c{n:02}", ("50", 50.0), ("add(50, 7)", 57.0)) for n in range(10)])
    lab.versions({"name": "puppet", "provider": "puppet", "concurrency": 2})
    return lab


def test_who_wishes_that_a_run_ends_loses_no_answer_and_pays_none_twice(
    small: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "BEAT_S", 0.0)  # so that there is a beat between any two calls
    told: list[str] = []

    def answer(call: Call) -> Answer:
        if len(Puppet.asked) == 6:
            wish_end(small.home, "run-1")
        told.append(line(seen(small.home)[0].status))
        return number(1) if call.turn_index else call.gold.oracle()

    Puppet.answer = staticmethod(answer)
    asked = asked_for([small.inputs().place], Scope(), "")
    with (
        pytest.raises(EndedEarlyError, match="in the workbench"),
        watching(small.home, "run", asked, known_as="run-1") as watch,
    ):
        evaluated(small, RunContext("run", canary=False, watch=watch))
    assert watch.wished
    (left,) = seen(small.home)
    assert (left.state, left.runs, left.stopping) == ("stopped", False, False)
    assert partitions_of(left.status.request) == [small.inputs().place]
    before = len(Puppet.asked)
    assert 6 <= before < 20
    assert before - 2 <= left.status.done <= before  # those on their way when it ended are in the journal
    assert told[-1].startswith(f"small · puppet: {told[-1].split()[3]} of 20 turns")

    with watching(small.home, "run", asked, known_as="run-1") as watch:
        evaluated(small, RunContext("again", canary=False, watch=watch))
        last = replace(watch.status)
    assert len(Puppet.asked) == 20 == len(set(Puppet.turns_asked()))
    assert seen(small.home) == []
    assert (last.place, last.step) == (["small", "puppet", DAY.isoformat()], "recovery_attempts")


def evaluated(lab: Lab, run: RunContext, upto: str = "recovery_attempts") -> None:
    inputs = lab.inputs(run=run)
    chain = chain_of(inputs.track)
    stages = [stage for stage in (*ingesting(chain), *evaluating(chain)) if stage.writes]
    run_chain(stages[: [stage.name for stage in stages].index(upto) + 1], inputs)


@pytest.mark.parametrize(("stage", "module"), [("evidence", "evidence"), ("turn_metrics", "score")])
def test_who_wishes_it_while_answers_are_scored_ends_the_run_between_two_of_them(
    small: Lab, monkeypatch: pytest.MonkeyPatch, stage: str, module: str
) -> None:
    """There are lines meanwhile, how far it is can be seen, and the next run scores all without a call."""
    for name, seconds in (("TELL_S", 0.01), ("_FIRST_S", 0.0)):
        monkeypatch.setattr(f"eval_pipeline.workspace.watching.watch.{name}", seconds)
    monkeypatch.setattr(f"eval_pipeline.stages.{module}._AT_ONCE", 2)
    attempted, told, scored = rows.attempted_turns, list[str](), list[str]()

    def slowly(inputs: Inputs) -> Iterator[Any]:
        for one in attempted(inputs):
            scored.append(one[1].id)
            time.sleep(0.02)
            if len(scored) == 8:
                wish_end(small.home, "run-1")
            yield one

    monkeypatch.setattr(f"eval_pipeline.stages.{module}.attempted_turns", slowly)
    asked = asked_for([small.inputs().place], Scope(), "")
    with (
        pytest.raises(EndedEarlyError, match="in the workbench"),
        watching(small.home, "run", asked, tell=told.append, known_as="run-1") as watch,
    ):
        evaluated(small, RunContext("run", canary=False, watch=watch), stage)
    assert 8 <= len(scored) < 14
    what = {"turn_metrics": "scoring", "evidence": "evidence"}[stage]
    counts = [line.split()[4] for line in told if line.startswith(f"small · puppet: {what}: ")]
    assert len(counts) > 2 and "6" in counts
    assert told[-1].startswith("small · puppet: canceled: at ") and ", 20 of 20 turns, 100.0% readable, " in told[-1]
    (left,) = seen(small.home)
    assert left.state == "stopped"
    asked_before = len(Puppet.asked)
    with watching(small.home, "run", asked, known_as="run-1") as watch:
        evaluated(small, RunContext("again", canary=False, watch=watch), "turn_metrics")
    assert len(Puppet.asked) == asked_before == 20
    assert small.sql("SELECT count(*), count(*) FILTER (correct) FROM turn_results") == [(20, 20)]
    assert seen(small.home) == []


@pytest.mark.parametrize(
    "next_one", [lambda watch, place: watch.step(place, "run", "report"), lambda watch, _: watch.together("publishing")]
)
def test_who_wishes_it_between_two_stages_ends_the_run_there(small: Lab, next_one: Callable[..., None]) -> None:
    with (
        pytest.raises(EndedEarlyError, match="in the workbench"),
        watching(small.home, "run", {}, known_as="a") as watch,
    ):
        goes_on(small, watch, next_one)


@pytest.mark.parametrize("ignored", [False, True])
def test_who_wishes_it_within_a_stage_that_looks_for_nobody_ends_it_there_once(small: Lab, ignored: bool) -> None:
    """Also in a process that a script started with `&`; what is done after that is not interrupted again."""
    with handlers_kept():
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with (
            pytest.raises(EndedEarlyError, match="in the workbench"),
            watching(small.home, "run", {}, known_as="a") as watch,
        ):
            within(small, watch)
    assert (watch.status.step, watch.status.number) == ("publishing", 0)
    assert [one.state for one in seen(small.home)] == ["stopped"]


def within(lab: Lab, watch: Watch) -> None:
    watch.step(lab.inputs().place, "run", "statistics")
    with pytest.raises(KeyboardInterrupt):
        wait_for_the_end(lab)
    watch.together("publishing")
    Event().wait(0.05)  # of 25 beats
    raise KeyboardInterrupt


def wait_for_the_end(lab: Lab) -> None:
    wish_end(lab.home, "a")
    Event().wait(20)


def test_in_a_thread_it_ends_between_two_items_of_work_and_nothing_is_interrupted(small: Lab) -> None:
    def work() -> None:
        with watching(small.home, "run", {}, known_as="a") as watch:
            watch.step(small.inputs().place, "run", "turn_metrics")
            for number in watch.working("scoring", range(1000), 1000):
                if number == 3:
                    wish_end(small.home, "a")
                Event().wait(0.01)
            pytest.fail("it goes on")

    with ThreadPoolExecutor(1) as pool, pytest.raises(EndedEarlyError):
        pool.submit(work).result()
    (left,) = seen(small.home)
    assert (left.state, 3 <= left.status.work_done < 1000) == ("stopped", True)


def test_between_two_steps_of_dagster_nothing_is_interrupted_and_the_next_ends_it(small: Lab) -> None:
    with watching(small.home, "run", {}, known_as="a") as watch:
        watch.step(small.inputs().place, "run", "statistics")
        watch.rest()
        wish_end(small.home, "a")
        Event().wait(0.05)  # of 25 beats
        assert watch.wished
        with pytest.raises(KeyboardInterrupt):
            watch.step(small.inputs().place, "run", "report")


def test_what_was_spent_in_earlier_steps_of_an_evaluation_is_counted_and_of_another_is_not(small: Lab) -> None:
    def spends(status: Status) -> None:
        status.usd, status.tokens = 0.5, 7

    place = small.inputs().place
    with watching(small.home, "run", {}) as watch:
        told = []
        for suite in ("small", "other", "small"):
            watch.step(replace(place, suite=suite), "run", "generations")
            for name in ("asking", "judging"):
                with watch.asking(name, 9, spends):
                    pass
            watch.step(replace(place, suite=suite), "run", "statistics")
            told.append((spent_text(watch.status), watch.status.number))
    assert told == [("$1.00", 1), ("$1.00", 2), ("$2.00", 1)]


def goes_on(lab: Lab, watch: Watch, next_one: Callable[..., None]) -> None:
    watch.step(lab.inputs().place, "run", "cases")
    wish_end(lab.home, "a")
    next_one(watch, lab.inputs().place)
    pytest.fail("it goes on")


@pytest.mark.always
def test_what_is_right_so_far_is_what_scoring_says_in_the_end(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(call: Call) -> Answer:
        if call.case_id == "c07":
            return CallError(CallErrorKind.BAD_REQUEST, "down")
        if call.case_id == "c08":
            return BROKEN
        return number(-1) if call.case_id < "c05" and call.turn_index else call.gold.oracle()

    Puppet.answer = staticmethod(answer)
    monkeypatch.setattr("eval_pipeline.stages.attempts.so_far.SHARE", 1.0)
    shown: list[Status] = []
    with watching(small.home, "run", {}) as watch:
        monkeypatch.setattr(watch, "_write", lambda: shown.append(replace(watch.status)))
        evaluated(small, RunContext("run", canary=False, watch=watch), "turn_metrics")
    last = [one for one in shown if one.step == "asking"][-1]
    rows = small.sql("SELECT count(*), count(*) FILTER (correct) FROM turn_results")
    assert (last.done, last.readable, last.unanswered) == (20, 16, 2)
    assert [(last.scored, last.right)] == rows == [(20, 11)]
    assert last.low is not None and last.high is not None and last.low < 11 / 20 < last.high
    assert [(kind, count) for kind, count, _ in last.errors] == [("bad_request", 2), ("syntax_error", 2)]
    assert last.errors[0][2].endswith("c07#0: down")


@pytest.mark.parametrize("track", ["sql", "pandas"])
def test_tracks_that_run_answers_say_that_they_are_not_scored_yet(lab: Lab, track: str) -> None:
    (lab.suite("coded", (), track=track) / "cases" / "none.yaml").unlink()
    assert "running them" in why_not_scored(lab.inputs("coded"))


def test_runs_are_told_by_their_processes(lab: Lab) -> None:
    home = lab.home
    with subprocess.Popen(["true"]) as gone:
        mark = f"{host()} {gone.pid} {started(gone.pid) or 1}"
    cases = {
        "running": status(),
        "gone": status(process=mark),
        "stopped": status(process=mark, state="stopped"),
        "failed": status(process=mark, state="failed"),
        "elsewhere": status(process="other@x 1 2", at=time.time() - 100),
    }
    for name, one in cases.items():
        write_status(home, replace(one, id=name))
    write_status(home, replace(cases["elsewhere"], id="heard-of", at=time.time()))
    found = {one.status.id: one for one in seen(home)}
    assert {name: one.state for name, one in found.items()} == {name: name for name in cases} | {"heard-of": "running"}
    assert {name for name, one in found.items() if one.runs} == {"running", "elsewhere", "heard-of"}
    assert (found["running"].host, found["elsewhere"].host) == ("", "other")


def test_a_wish_is_for_what_runs_and_needs_a_home_that_can_be_written(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, state in (("a", "running"), ("b", "stopped")):
        write_status(lab.home, status(id=name, state=state))
    for name in ("b", "unknown", "../a"):
        with pytest.raises(UsageError, match="has ended"):
            wish_end(lab.home, name)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="can only be read from here"):
        wish_end(lab.home, "a")
    monkeypatch.undo()
    wish_end(lab.home, "a")
    assert [path.name for path in lab.home.running.glob("*.stop")] == ["a.stop"]


def test_a_run_that_makes_all_of_it_takes_the_place_of_one_that_ended_early(lab: Lab) -> None:
    one, both = [["s", "m", "2026-01-02"]], [["s", "m", "2026-01-02"], ["s", "n", "2026-01-02"]]
    write_status(lab.home, status(id="same", state="stopped", request={"partitions": one, "scope": "full"}))
    write_status(lab.home, status(id="more", state="failed", request={"partitions": both, "scope": "full"}))
    write_status(lab.home, status(id="part", state="failed", request={"partitions": one, "scope": "{}"}))
    write_status(lab.home, status(id="runs", request={"partitions": one, "scope": "full"}))
    output_path(lab.home, "same").write_text("said")
    forget_superseded(lab.home, status(id="new", request={"partitions": one, "scope": "full"}))
    assert {path.name for path in lab.home.running.iterdir()} == {"more.json", "part.json", "runs.json"}


def beat_and_raise(watch: Watch) -> None:
    assert not watch.beat()
    raise ValueError("not a number")


def test_how_a_run_ended_is_left_and_an_old_wish_ends_no_new_run(lab: Lab) -> None:
    lab.home.running.mkdir(parents=True)
    wish_path(lab.home, "a").touch()
    with pytest.raises(ValueError, match="not a number"), watching(lab.home, "run", {}, known_as="a") as watch:
        beat_and_raise(watch)
    assert [(one.state, one.status.problems) for one in seen(lab.home)] == [("failed", ["not a number"])]
    with watching(lab.home, "run", {}, known_as="a") as watch:
        watch.beat()
        watch.status.problems = ["no key"]
    assert [(one.state, one.status.problems) for one in seen(lab.home)] == [("failed", ["no key"])]
    with watching(lab.home, "run", {}, known_as="a"):
        pass
    assert list(lab.home.running.iterdir()) == []


def test_a_home_that_cannot_be_written_stops_no_run(lab: Lab) -> None:
    lab.home.root.mkdir(parents=True, exist_ok=True)
    lab.home.running.write_text("a file")
    told: list[str] = []
    with watching(lab.home, "run", {}, tell=told.append) as watch:
        assert not watch.beat()
        watch._told -= 10
        watch.beat()
        watch.beat()
    assert told == ["run: about to ask"]


def test_the_first_line_comes_soon_after_it_began_to_ask(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = [100.0], list[str]()
    monkeypatch.setattr("eval_pipeline.workspace.watching.watch.time.monotonic", lambda: now[0])
    with watching(lab.home, "run", {}, tell=told.append) as watch, watch.asking("asking", 9, lambda _: None):
        counts = []
        for seconds in (0, 2.5, 5, 13):
            now[0] = 100.0 + seconds
            watch.beat()
            counts.append(len(told))
    assert counts == [0, 1, 1, 2]

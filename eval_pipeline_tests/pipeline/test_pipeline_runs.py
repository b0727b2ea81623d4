"""What `runs` says of runs however they end, or where they overlap, and what a later run makes of them."""

import fcntl
import threading
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.core.errors import EvalError, StoreError, UsageError
from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.operations.upkeep.completing import complete_left
from eval_pipeline.providers.base import Call, CallError, FatalCallError
from eval_pipeline.stages import publishing, score
from eval_pipeline.stages.attempts import asked
from eval_pipeline.stages.checks.verdicts import check_every_turn_once
from eval_pipeline.workspace.asked.planned import effective_epoch
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.runs import (
    RunContext,
    end_dead_runs,
    end_run,
    ending_failed,
    partition_lock,
    record_run,
    run_rows,
)
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.chains import INGESTING, checked, is_up_to_date, ran, ran_of_suite, stage_is_current
from eval_pipeline_tests.defs.runs import materialise
from eval_pipeline_tests.support import BROKEN, DAY, Answer, Lab, Puppet, case, number

PARTITION = Partition("small", "puppet", DAY)
DATE = ("--eval-date", DAY.isoformat())
LATER = date(2026, 3, 2)
FAILED_ONLY = Scope(failed=True)


def rows(lab: Lab) -> dict[str, dict[str, Any]]:
    """The partition's `runs` by id, as the record has them."""
    return {row["run_id"]: row for row in run_rows(lab.workspace(), PARTITION)}


def statuses(lab: Lab) -> list[str]:
    return [row["status"] for row in rows(lab).values()]


def broken_then(recovery: Answer) -> Any:
    """Answers: alpha's first generation does not parse, its recoveries are as told, the rest is right."""

    def answer(call: Call) -> Answer:
        if call.turn_id != "small/alpha#0":
            return call.gold.oracle()
        return recovery if call.number else BROKEN

    return staticmethod(answer)


def dies_after(count: int) -> Any:
    """Answers: right ones, until the run ends for good."""

    def answer(call: Call) -> Answer:
        return call.gold.oracle() if len(Puppet.asked) <= count else FatalCallError("the key was withdrawn")

    return staticmethod(answer)


class Seen(Silent):
    """Progress that remembers what was begun and ended."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.finished: list[str] = []
        self.waiting = threading.Event()

    def start(self, label: str, total: int) -> None:
        self.started.append(label)
        if label.startswith("waiting"):
            self.waiting.set()

    def finish(self, label: str) -> None:
        self.finished.append(label)


def test_a_recovery_call_that_failed_is_asked_again(small: Lab, puppet: type[Puppet]) -> None:
    puppet.answer = broken_then(CallError(CallErrorKind.OVERLOADED, "busy"))
    first = small.evaluate()
    assert not first["recovery_attempts"].reused
    assert not stage_is_current(small.workspace(), PARTITION, "recovery_attempts")
    assert not is_up_to_date(small.workspace(), PARTITION)
    puppet.reset()
    puppet.answer = broken_then(number(50))
    second = small.evaluate(run_id="second", upto="turn_metrics")
    assert second["generations"].reused
    assert not second["recovery_attempts"].reused
    assert puppet.turns_asked() == ["alpha#0"]
    assert small.one("SELECT count(*) FROM turn_results WHERE correct") == 3
    assert small.evaluate(run_id="third", upto="recovery_attempts")["recovery_attempts"].reused


def test_a_recovery_call_that_was_refused_is_left_alone(small: Lab, puppet: type[Puppet]) -> None:
    puppet.answer = broken_then(CallError(CallErrorKind.REFUSED, "no"))
    small.evaluate(upto="recovery_attempts")
    assert small.evaluate(run_id="second", upto="recovery_attempts")["recovery_attempts"].reused


def test_the_failed_cases_of_a_part_are_those_of_when_it_was_made(small: Lab, puppet: type[Puppet]) -> None:
    puppet.answer = broken_then(BROKEN)
    small.evaluate(upto="statistics")
    small.evaluate(day=LATER, scope=FAILED_ONLY, run_id="part")
    part = Partition("small", "puppet", LATER)
    assert stage_is_current(small.workspace(), part, "generations", FAILED_ONLY)
    # A newer full evaluation, in which everything is right.
    puppet.answer = staticmethod(lambda call: call.gold.oracle())
    small.evaluate(day=date(2026, 3, 3), epoch="anew", run_id="newer", upto="statistics")
    verdict = checked(check_every_turn_once, small.workspace(), part)
    assert verdict.passed, verdict.text
    assert verdict.facts["planned"] == 2
    assert not stage_is_current(small.workspace(), part, "generations", FAILED_ONLY), "the scope is another one now"
    ran(small.workspace(), part, "published", run=RunContext("again"))
    again = {row["run_id"]: row for row in run_rows(small.workspace(), part)}["again"]
    assert (again["turns_planned"], again["cases_planned"], again["scope"]) == (2, 1, '{"failed":true}')


def test_a_part_that_can_be_drawn_again_is_checked_against_the_scope(small: Lab, puppet: type[Puppet]) -> None:
    scope = Scope(tags=("hard",))
    small.evaluate(scope=scope, upto="turn_metrics")
    verdict = checked(check_every_turn_once, small.workspace(), PARTITION)
    assert verdict.passed
    assert verdict.facts["planned"] == 1
    assert stage_is_current(small.workspace(), PARTITION, "generations", scope)


def test_the_row_is_there_while_models_are_asked_and_counts_recovery(small: Lab, puppet: type[Puppet]) -> None:
    during: list[tuple[str, int, Any]] = []

    def answer(call: Call) -> Answer:
        row = rows(small)["run"]
        during.append((row["status"], row["turns_planned"], row["finished_at"]))
        return broken_then(CallError(CallErrorKind.BAD_REQUEST, "no")).__func__(call)

    puppet.answer = staticmethod(answer)
    small.evaluate(publish=True)
    assert set(during) == {("running", 3, None)}
    row = rows(small)["run"]
    assert (row["status"], row["calls"], row["journal_hits"], row["call_errors"]) == ("complete", 4, 0, 1)
    assert row["started_at"] < row["finished_at"]
    small.evaluate(publish=True, run_id="second")
    row = rows(small)["second"]
    assert (row["status"], row["calls"], row["journal_hits"], row["call_errors"]) == ("complete", 1, 0, 1)


@pytest.mark.parametrize(("answer", "calls"), [(2, 3), ("recovery", 4)])
def test_a_run_that_failed_says_so_and_what_it_had_asked(one_at_a_time: Lab, answer: Any, calls: int) -> None:
    withdrawn = FatalCallError("the key was withdrawn")
    Puppet.answer = broken_then(withdrawn) if answer == "recovery" else dies_after(answer)
    with pytest.raises(FatalCallError):
        one_at_a_time.evaluate()
    row = rows(one_at_a_time)["run"]
    assert (row["status"], row["calls"], row["scope"], row["turns_planned"]) == ("failed", calls, "full", 3)
    assert row["finished_at"] is not None


def test_a_run_that_could_not_be_published_is_not_complete(evaluated: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        assert rows(evaluated)["run"]["status"] == "complete", "the row is published with the rest"
        raise StoreError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", full)
        with pytest.raises(StoreError, match="no room"):
            evaluated.evaluate(publish=True)
    assert rows(evaluated)["run"]["status"] == "failed"
    evaluated.evaluate(publish=True)
    assert evaluated.sql("SELECT run_id, status, finished_at IS NOT NULL FROM runs") == [("run", "complete", True)]


def test_publishing_alone_leaves_a_row_without_gaps(small: Lab) -> None:
    small.evaluate(epoch="tonight")
    ran(small.workspace(), PARTITION, "published", run=RunContext("by hand"))
    row = rows(small)["by hand"]
    wanted = {"scope": "full", "turns_planned": 3, "cases_planned": 2, "epoch": "tonight", "status": "complete"}
    assert row.items() >= (wanted | {"calls": 0, "journal_hits": 0, "call_errors": 0}).items()
    assert [name for name, value in row.items() if value is None and not name.startswith(("usd", "judge_"))] == []


def test_a_run_waits_for_another_one_and_then_has_nothing_to_do(small: Lab, puppet: type[Puppet]) -> None:
    ran_of_suite(small.workspace(), "small", "raw_dataset")
    ran_of_suite(small.workspace(), "small", *INGESTING)
    asking, go_on = threading.Event(), threading.Event()

    def answer(call: Call) -> Answer:
        asking.set()
        assert go_on.wait(60)
        return call.gold.oracle()

    puppet.answer = staticmethod(answer)
    results: dict[str, bool] = {}

    def run(name: str, progress: Silent) -> None:
        made = ran(small.workspace(), PARTITION, "generations", run=RunContext(name), progress=progress)
        results[name] = made.reused

    seen = Seen()
    first, second = (
        threading.Thread(target=run, args=("first", Silent())),
        threading.Thread(target=run, args=("2", seen)),
    )
    first.start()
    assert asking.wait(60)
    second.start()
    assert seen.waiting.wait(60)
    go_on.set()
    for thread in (first, second):
        thread.join(60)
    assert results == {"first": False, "2": True}
    assert len(puppet.asked) == 3
    assert seen.started == seen.finished == ["waiting for another run of small · puppet · 2026-03-01"]


def test_a_part_does_not_replace_a_full_evaluation_that_ends_meanwhile(
    small: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The full evaluation ends between the part's first look and its turn."""
    real, looks = asked.guard_scope, list[int]()

    def guard(*arguments: Any) -> None:
        real(*arguments)
        looks.append(1)
        if len(looks) == 1:
            with monkeypatch.context() as patched:
                patched.setattr(asked, "guard_scope", real)
                small.evaluate(run_id="full", upto="turn_metrics")

    ran_of_suite(small.workspace(), "small", "raw_dataset")
    ran_of_suite(small.workspace(), "small", *INGESTING)
    with monkeypatch.context() as patched:
        patched.setattr(asked, "guard_scope", guard)
        part = Scope(tags=("hard",))
        with pytest.raises(UsageError, match="evaluated in full"):
            ran(small.workspace(), PARTITION, "generations", run=RunContext("part"), scope=part)
    assert small.one("SELECT count(*) FROM turn_results") == 3
    assert rows(small).keys() == {"full"}


def test_the_lock_is_the_kernels_and_the_partitions_own(small: Lab) -> None:
    workspace = small.workspace()
    odd = Partition("small", "../up/and ~ away", DAY)
    with partition_lock(workspace, odd, Silent()), partition_lock(workspace, PARTITION, Silent()):
        files = list((small.home.root / "locks").rglob("*.lock"))
        assert len(files) == 2
        for path in files:
            with path.open() as handle, pytest.raises(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        record_run(workspace, PARTITION, "while it is held")  # not the same lock
    seen = Seen()
    with partition_lock(workspace, PARTITION, seen):
        assert seen.started == []


def test_rows_added_at_once_are_all_there(small: Lab) -> None:
    names = [f"run-{i}" for i in range(12)]
    threads = [threading.Thread(target=record_run, args=(small.workspace(), PARTITION, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(small).keys() == set(names)


@pytest.fixture
def one_at_a_time(lab: Lab, puppet: type[Puppet]) -> Lab:
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet", "concurrency": 1})
    return lab


def cut_off(lab: Lab, epoch: str, run_id: str, *, killed: bool, count: int = 2) -> None:
    """A run that pays for that many answers and does not end: killed, its row stays as it was when it began."""
    Puppet.reset()
    Puppet.answer = dies_after(count)
    with suppress(EvalError):
        lab.evaluate(epoch=epoch, run_id=run_id)
    if killed:
        begun = {"status": "running", "finished_at": None, "calls": 0, "responses": 0, "journal_hits": 0}
        record_run(lab.workspace(), PARTITION, run_id, **begun)
    Puppet.reset()


def completed(lab: Lab, run_id: str) -> None:
    """What every command does first: it completes what killed ones left."""
    command = Command(lab.home, "run")
    command.note_run(run_id, [PARTITION])
    command._note._file.close()  # type: ignore[union-attr]  # the kernel lets go of the locks of a dead process
    assert complete_left(lab.workspace()) == []
    assert rows(lab)[run_id]["status"] == "failed"


@pytest.mark.parametrize("ended", ["killed", "killed and completed", "failed"])
@pytest.mark.parametrize("earlier", [True, False])
def test_a_plain_run_goes_on_with_a_fresh_one_that_was_cut_off(
    one_at_a_time: Lab, module_folder: Path, ended: str, earlier: bool
) -> None:
    if earlier:
        one_at_a_time.made_once(module_folder / "earlier", lambda lab: lab.evaluate(run_id="earlier"))
    cut_off(one_at_a_time, "fresh", "fresh", killed=ended != "failed")
    if ended == "killed and completed":
        completed(one_at_a_time, "fresh")
    # What only publishes has made nothing.
    if earlier:
        ran(one_at_a_time.workspace(), PARTITION, "published", run=RunContext("by hand"))
    assert not is_up_to_date(one_at_a_time.workspace(), PARTITION)
    made = one_at_a_time.evaluate(run_id="plain", upto="generations")
    assert len(Puppet.asked) == 1
    assert made["generations"].facts["journal_hits"] == 2
    assert rows(one_at_a_time)["plain"]["epoch"] == "fresh"
    assert one_at_a_time.evaluate(run_id="again", upto="generations")["generations"].reused


def test_what_was_cut_off_before_the_record_was_made_is_over(one_at_a_time: Lab) -> None:
    cut_off(one_at_a_time, "fresh", "fresh", killed=True)
    one_at_a_time.evaluate(epoch="fresher", run_id="fresher")
    Puppet.reset()
    assert is_up_to_date(one_at_a_time.workspace(), PARTITION)
    one_at_a_time.evaluate(run_id="plain", upto="generations")
    assert not Puppet.asked
    assert rows(one_at_a_time)["plain"]["epoch"] == "fresher"
    assert effective_epoch(one_at_a_time.workspace(), PARTITION, "own") == "own"


def failing(*_: object) -> Any:
    raise StoreError("no room")


def test_a_stage_that_fails_after_recovery_ends_the_run_as_failed(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(score, "load_evidence", failing)
        assert small.cli("run", "--no-report", *DATE).code == 1
    (row,) = rows(small).values()
    assert (row["status"], row["calls"], row["finished_at"] is not None) == ("failed", 3, True)
    assert small.cli("run", "--no-report", *DATE).code == 0
    assert statuses(small) == ["failed", "complete"]


@pytest.mark.always
def test_a_blocking_check_that_fails_ends_the_run_as_failed(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = score.attempted_turns
    monkeypatch.setattr(score, "attempted_turns", lambda *given: iter(list(real(*given))[1:]))
    assert small.cli("run", "--no-report", *DATE).code == 1
    assert statuses(small) == ["failed"]


@pytest.mark.always
def test_a_run_with_nothing_to_do_is_noted_only_where_the_last_one_did_not_end_well(
    small: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert small.cli("run", "--no-report", *DATE).code == 0
    (run_id,) = rows(small)
    record_run(small.workspace(), PARTITION, run_id, status="failed")
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "note_later_run", failing)
        said = small.cli("run", "--no-report", *DATE)
    assert (said.code, "small, puppet: no room" in said.err) == (1, True)
    assert statuses(small) == ["failed", "failed"]
    for _ in range(2):
        assert small.cli("run", "--no-report", *DATE).code == 0
        assert statuses(small) == ["failed", "failed", "complete"]


def test_ends_are_noted_once_and_only_for_runs_that_have_a_row(small: Lab) -> None:
    workspace = small.workspace()
    with pytest.raises(KeyError), ending_failed(workspace, PARTITION, "unknown"):
        raise KeyError
    assert rows(small) == {}
    record_run(workspace, PARTITION, "run")
    with pytest.raises(KeyboardInterrupt), ending_failed(workspace, PARTITION, "run"):
        raise KeyboardInterrupt
    (row,) = rows(small).values()
    assert row["status"] == "canceled", "who ends it by hand has not seen it fail"
    end_run(workspace, PARTITION, "run", "complete")
    assert rows(small) == {"run": row}, "what did not come to its end is not complete later"


def test_dead_runs_are_failed_without_an_end(small: Lab) -> None:
    workspace = small.workspace()
    for run_id in ("dead", "alive"):
        record_run(workspace, PARTITION, run_id)
    record_run(workspace, PARTITION, "done", status="complete")
    end_dead_runs(workspace, ["dead", "done", "unknown"])
    found = {run_id: (row["status"], row["finished_at"]) for run_id, row in rows(small).items()}
    assert found == {"dead": ("failed", None), "alive": ("running", None), "done": ("complete", None)}


def fatal(lab: Lab) -> None:
    """A fresh run that fails with its first call."""
    Puppet.answer = staticmethod(lambda call: FatalCallError("wrong key"))
    with pytest.raises(FatalCallError):
        lab.evaluate(epoch="fresh", run_id="fresh")
    Puppet.reset()


@pytest.mark.parametrize("earlier", [True, False])
def test_a_plain_run_ignores_a_fresh_one_that_failed_before_anything_was_paid(small: Lab, earlier: bool) -> None:
    if earlier:
        small.evaluate()
    fatal(small)
    assert effective_epoch(small.workspace(), PARTITION, "") == ""
    assert is_up_to_date(small.workspace(), PARTITION) == earlier
    small.evaluate(run_id="plain", upto="generations")
    assert len(Puppet.asked) == (0 if earlier else 3)


def test_what_a_killed_run_paid_nobody_knows_and_what_was_handed_in_as_a_batch_is_paid(small: Lab) -> None:
    fatal(small)
    workspace = small.workspace()
    asked = workspace.model_version("puppet").model_copy(update={"batch": True})
    workspace.__dict__["model_versions"] = {"puppet": asked}
    assert effective_epoch(workspace, PARTITION, "") == "fresh"
    assert effective_epoch(small.workspace(), PARTITION, "") == ""
    record_run(small.workspace(), PARTITION, "fresh", finished_at=None)
    assert effective_epoch(small.workspace(), PARTITION, "") == "fresh"


def test_a_run_of_single_assets_is_complete_when_they_are(small: Lab) -> None:
    small.suite("other", [case("one", ("50", 50.0))])
    with open_instance(small.home) as instance:
        assert isinstance(instance, dg.DagsterInstance)
        instance.add_dynamic_partitions(DIMENSION, ["puppet"])
        result = materialise(small, instance, only=["small/raw_dataset", "small/cases", "small/generations"])
        assert result.success
    (row,) = rows(small).values()
    assert (row["status"], row["finished_at"] is not None) == ("complete", True)

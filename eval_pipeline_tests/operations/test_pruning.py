"""Retention: what goes, what stays, and that a run under way is left alone."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest

from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.upkeep.completing import complete_left
from eval_pipeline.operations.upkeep.pruning import JOURNAL_MARGIN_S, Pruned, prune
from eval_pipeline.reports.places.paths import comparison_folder, nights_folder, report_folder
from eval_pipeline.stages.publishing import publish_all
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.noting.commands import lag
from eval_pipeline.workspace.runs import COMPLETE, partition_lock, record_run
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.killing import killed_at
from eval_pipeline_tests.support import DAY, Lab, Puppet, command, response

NIGHTS = 4
LATER = time.time() + JOURNAL_MARGIN_S + 86_400


def night(count: int) -> date:
    return DAY + timedelta(days=count)


def partition(count: int) -> Partition:
    return Partition("small", "puppet", night(count))


def page_of(lab: Lab, count: int) -> Path:
    return nights_folder(lab.home.reports) / f"{night(count)}.html"


@pytest.fixture
def nightly(small: Lab, module_folder: Path) -> Lab:
    made = small.made_once(module_folder / "evaluated", evaluate_nights)
    Puppet.reset()
    return made


def evaluate_nights(small: Lab) -> None:
    """Four nights, each asked anew and answered in its own time, with something in the folders of reports."""
    for count in range(NIGHTS):
        Puppet.answer = staticmethod(lambda call, count=count: response(call.gold.oracle(), tokens_out=10 + count))
        small.evaluate(day=night(count), epoch=f"night {count}", run_id=f"run {count}")
        for folder in (
            report_folder(small.home.reports, partition(count)),
            comparison_folder(small.home.reports, "small", night(count)),
        ):
            folder.mkdir(parents=True)
            (folder / "report.xlsx").touch()
        page_of(small, count).parent.mkdir(exist_ok=True)
        page_of(small, count).touch()
        record_run(small.workspace(), partition(count), f"run {count}", status=COMPLETE)
    publish_all(small.workspace(), gate(small.workspace()), full=False)


def pruned(lab: Lab, keep: int = 2, *, dry_run: bool = False, now: float = LATER) -> Pruned:
    return prune(lab.workspace(), keep, dry_run=dry_run, now=now)


def dates(lab: Lab, table: str = "turn_results") -> list[date]:
    return [day for (day,) in lab.sql(f"SELECT DISTINCT eval_date FROM {table} ORDER BY 1")]


def journalled(lab: Lab) -> int:
    with closing(sqlite3.connect(lab.home.journal)) as connection:
        return int(connection.execute("SELECT count(*) FROM responses").fetchone()[0])


def test_old_dates_leave_record_store_reports_and_journal(nightly: Lab) -> None:
    assert journalled(nightly) == NIGHTS * 3
    done = pruned(nightly)
    assert done.partitions == (partition(0), partition(1))
    assert (done.in_use, done.responses, len(done.comparison_reports)) == ((), 6, 2)
    kept = [night(2), night(3)]
    for table in ("turn_results", "statistics", "attempts", "runs", "trends"):
        assert dates(nightly, table) == kept, table
    assert {path.name for path in nightly.home.record.rglob("eval_date=*")} == {f"eval_date={day}" for day in kept}
    for root in (nightly.home.reports / "small" / "puppet", nightly.home.reports / "compare" / "small"):
        assert sorted(path.name for path in root.iterdir()) == [str(day) for day in kept]
    assert [page_of(nightly, count).exists() for count in range(NIGHTS)] == [False, False, True, True]
    assert done.night_pages == (page_of(nightly, 0), page_of(nightly, 1))
    assert journalled(nightly) == 6
    assert not any((nightly.home.root / "locks").rglob(f"eval_date={night(0)}"))


@pytest.mark.always
def test_what_stays_is_not_asked_again(nightly: Lab) -> None:
    pruned(nightly)
    Puppet.reset()
    nightly.evaluate(day=night(3), epoch="night 3", run_id="again")
    nightly.evaluate(day=night(4), epoch="night 3", run_id="another date")  # finds the responses in the journal
    assert Puppet.asked == []


def test_a_dry_run_says_the_same_and_does_nothing(nightly: Lab) -> None:
    before = nightly.store_contents()
    told = pruned(nightly, dry_run=True)
    assert nightly.store_contents() == before
    assert journalled(nightly) == NIGHTS * 3
    assert all(path.exists() for path in (*told.comparison_reports, *told.night_pages))
    assert pruned(nightly) == told
    assert pruned(nightly) == Pruned((), (), (), (), 0)


def test_pages_of_nights_stay_while_an_evaluation_of_their_date_does(nightly: Lab) -> None:
    """Another model version was last evaluated on the first night; on a later one everything failed."""
    nightly.versions({"name": "puppet", "provider": "puppet"}, {"name": "resting", "provider": "oracle"})
    nightly.evaluate(version="resting", day=night(0))
    failed, other = page_of(nightly, 9), page_of(nightly, 0).with_name("notes.html")
    failed.touch()
    other.touch()
    assert pruned(nightly).night_pages == (page_of(nightly, 1),)
    assert all(path.exists() for path in (page_of(nightly, 0), page_of(nightly, 2), failed, other))


def test_young_responses_stay_since_a_killed_run_may_have_paid_for_them(nightly: Lab) -> None:
    assert pruned(nightly, now=time.time()).responses == 0
    assert journalled(nightly) == NIGHTS * 3


def test_the_full_evaluation_that_is_shown_stays_however_many_parts_are_newer(small: Lab) -> None:
    small.evaluate(day=night(0))
    for count in (1, 2, 3):
        small.evaluate(day=night(count), scope=Scope(cases=("alpha",)), run_id=f"run {count}")
        record_run(small.workspace(), partition(count), f"run {count}", status=COMPLETE)
    assert pruned(small, keep=1).partitions == (partition(1), partition(2))


def test_a_partition_that_a_run_asks_for_is_left_and_so_is_the_journal(nightly: Lab) -> None:
    with partition_lock(nightly.workspace(), partition(0), Silent()):
        done = pruned(nightly)
    assert (done.partitions, done.in_use, done.responses) == ((partition(1),), (partition(0),), None)
    assert night(0) in dates(nightly)
    assert journalled(nightly) == NIGHTS * 3


@pytest.mark.always
def test_a_partition_that_a_run_scores_is_left(nightly: Lab) -> None:
    record_run(nightly.workspace(), partition(1), "another", scope="full", status="running")
    done = pruned(nightly)
    assert (done.partitions, done.in_use) == ((partition(0),), (partition(1),))


@pytest.mark.parametrize(
    ("place", "count", "gone"),
    [
        ("eval_pipeline.store.record.Record.remove", 4, 1),
        ("eval_pipeline.operations.upkeep.pruning.unused_partition", 2, 1),
        ("eval_pipeline.operations.upkeep.pruning.publish_gone", 1, 2),
        ("eval_pipeline.operations.upkeep.pruning.deliver", 1, 2),
    ],
)
def test_what_a_killed_pruning_left_is_completed_by_the_next_command(
    nightly: Lab, place: str, count: int, gone: int
) -> None:
    """Killed before that call: in the first evaluation, before the second, and when no file tells of what was."""
    with killed_at(place, count):
        pruned(nightly)
    assert lag(nightly.home) == "the command `prune` ended before it was done"
    assert complete_left(nightly.workspace()) == []
    for table in ("turn_results", "runs", "trends"):
        assert dates(nightly, table) == [*map(night, range(gone, NIGHTS))], table
    assert {path.name for path in nightly.home.record.rglob("eval_date=*")} == {
        f"eval_date={d}" for d in dates(nightly)
    }
    assert lag(nightly.home) == ""


@pytest.mark.parametrize(("more", "left"), [((), 2), (("--dry-run",), 4)])
def test_the_command_says_what_it_did(nightly: Lab, more: Sequence[str], left: int) -> None:
    said = command("prune", "--keep", "2", *more)
    assert said.code == 0, said.text
    assert "small · puppet · 2026-03-01" in said.out
    assert ("would be removed: 2 evaluations, 2 comparison reports" if more else "removed: 2 evaluations") in said.out
    assert len(dates(nightly)) == left


def test_prune_wants_a_date_to_keep(nightly: Lab) -> None:
    assert command("prune", "--keep", "0").code == 2
    assert len(dates(nightly)) == NIGHTS


def test_judgements_that_are_too_old_are_dropped(small: Lab) -> None:
    from eval_pipeline.judge.cache import JudgementCache, forget_expired
    from eval_pipeline.judge.judgement import Judgement

    path = small.home.judgements
    with closing(JudgementCache(path, clock=lambda: time.time() - 2 * 86_400)) as cache:
        cache.put("old", Judgement(1.0, "same", ""))
        cache.put("older", Judgement(0.0, "different", ""))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE judgements SET written_at = ? WHERE key = 'old'", (time.time(),))
        connection.commit()
    assert forget_expired(path, dry_run=True) == 1
    assert forget_expired(path) == 1
    assert forget_expired(path) == 0
    assert forget_expired(path.with_name("none.sqlite")) == 0

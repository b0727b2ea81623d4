"""A run that finds everything as it was does nothing."""

from datetime import date
from typing import Any

import pytest

from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.support import Lab, Puppet

ARGUMENTS = ("run", "--eval-date", "2026-03-01")


def report_files(lab: Lab) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in lab.home.reports.rglob("*") if path.is_file()}


def cases_read_back(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Suites whose cases are read from the record from now on."""
    suites: list[str] = []
    reading = Workspace._read_cases

    def noted(workspace: Workspace, suite: str, *rest: Any) -> Any:
        suites.append(suite)
        return reading(workspace, suite, *rest)

    monkeypatch.setattr(Workspace, "_read_cases", noted)
    return suites


def test_a_second_identical_run_changes_nothing(
    small: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = cases_read_back(monkeypatch)
    first = small.cli(*ARGUMENTS)
    assert first.code == 0, first.text
    assert read == [], "it has them from the suite's files, and the stages after `published` need them, too"
    assert len(puppet.asked) == 3
    contents, files, reports = small.store_contents(), small.record_files(), report_files(small)
    store = small.home.store.stat()
    assert len(contents) > 15
    assert len(reports) > 5
    puppet.reset()

    def never(*_: object) -> None:
        raise AssertionError("nothing is out of date")

    monkeypatch.setattr("eval_pipeline.operations.runs.running.Runs.evaluate", never)
    second = small.cli(*ARGUMENTS)
    assert second.code == 0, second.text
    assert second.out == first.out
    assert read == []
    assert not puppet.asked
    assert puppet.opened == 0  # so no server was started
    assert small.store_contents() == contents
    assert small.record_files() == files
    assert report_files(small) == reports
    assert small.home.store.stat() == store, "nobody who reads the store is disturbed, and nothing is copied"
    assert small.sql("SELECT count(*), sum(calls) FROM runs") == [(1, 3)]
    columns = "status, scope, turns_planned, cases_planned"
    assert small.sql(f"SELECT DISTINCT {columns} FROM runs") == [("complete", "full", 3, 2)]


def test_the_stages_themselves_say_that_nothing_was_done(published: Lab, puppet: type[Puppet]) -> None:
    """Also without the shortcut of the command line: as when an asset is materialised again."""
    contents, files = published.store_contents(), published.record_files()
    made = published.evaluate(publish=True, run_id="second")
    kept = {name for name, result in made.items() if result.reused}
    assert kept == set(made) - {"published"}
    assert not puppet.asked
    assert published.store_contents() == contents
    assert published.record_files() == files


def test_another_date_uses_the_journal_and_adds_to_the_store(published: Lab, puppet: type[Puppet]) -> None:
    made = published.evaluate(publish=True, day=date(2026, 3, 2))
    assert not puppet.asked
    assert made["generations"].facts["journal_hits"] == 3
    rows = published.sql("SELECT eval_date::VARCHAR, count(*) FROM turn_results GROUP BY 1 ORDER BY 1")
    assert rows == [("2026-03-01", 3), ("2026-03-02", 3)]
    assert published.sql("SELECT DISTINCT eval_date::VARCHAR FROM latest_turn_results") == [("2026-03-02",)]


@pytest.mark.always
def test_another_epoch_asks_anew(small: Lab, puppet: type[Puppet]) -> None:
    small.evaluate(upto="generations")
    made = small.evaluate(epoch="tonight", upto="generations")
    assert len(puppet.asked) == 6
    assert made["generations"].facts["calls"] == 3

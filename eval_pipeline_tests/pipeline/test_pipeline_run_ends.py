"""However a run ends, `runs` says so; and one that failed before anything was paid leaves no trace in later ones."""

from typing import Any

import dagster as dg
import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.providers.base import FatalCallError
from eval_pipeline.stages import publishing, score
from eval_pipeline.workspace.planned import effective_epoch
from eval_pipeline.workspace.runs import end_run, ending_failed, fail_dead_runs, record_run, run_rows
from eval_pipeline_tests.chains import is_up_to_date
from eval_pipeline_tests.support import DAY, Lab, Puppet, case

PARTITION = Partition("small", "puppet", DAY)
DATE = ("--eval-date", DAY.isoformat())


def rows(lab: Lab) -> list[dict[str, Any]]:
    return run_rows(lab.workspace(), PARTITION)


def failing(*_: object) -> Any:
    raise StoreError("no room")


def test_a_stage_that_fails_after_recovery_ends_the_run_as_failed(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(score, "load_evidence", failing)
        assert small.cli("run", "--no-report", *DATE).code == 1
    (row,) = rows(small)
    assert (row["status"], row["calls"]) == ("failed", 3)
    assert row["finished_at"] is not None
    assert small.cli("run", "--no-report", *DATE).code == 0
    assert [row["status"] for row in rows(small)] == ["failed", "complete"]


def test_a_blocking_check_that_fails_ends_the_run_as_failed(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = score.attempted_turns
    monkeypatch.setattr(score, "attempted_turns", lambda *given: iter(list(real(*given))[1:]))
    assert small.cli("run", "--no-report", *DATE).code == 1
    (row,) = rows(small)
    assert row["status"] == "failed"


def test_a_run_with_nothing_to_do_that_cannot_be_published_is_failed(
    small: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert small.cli("run", "--no-report", *DATE).code == 0
    monkeypatch.setattr(publishing, "note_later_run", failing)
    said = small.cli("run", "--no-report", *DATE)
    assert (said.code, said.err) == (1, "error: small, puppet: no room\n")
    assert [row["status"] for row in rows(small)] == ["complete", "failed"]


def test_ends_are_noted_once_and_only_for_runs_that_have_a_row(small: Lab) -> None:
    workspace = small.workspace()
    with pytest.raises(KeyError), ending_failed(workspace, PARTITION, "unknown"):
        raise KeyError
    assert rows(small) == []
    record_run(workspace, PARTITION, "run")
    with pytest.raises(KeyboardInterrupt), ending_failed(workspace, PARTITION, "run"):
        raise KeyboardInterrupt
    (row,) = rows(small)
    assert row["status"] == "failed"
    end_run(workspace, PARTITION, "run", "complete")
    assert rows(small) == [row], "what has failed is not complete later"


def test_dead_runs_are_failed_without_an_end(small: Lab) -> None:
    workspace = small.workspace()
    for run_id in ("dead", "alive"):
        record_run(workspace, PARTITION, run_id)
    record_run(workspace, PARTITION, "done", status="complete")
    fail_dead_runs(workspace, ["dead", "done", "unknown"])
    found = {row["run_id"]: (row["status"], row["finished_at"]) for row in rows(small)}
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
        small.evaluate(publish=True)
    fatal(small)
    assert effective_epoch(small.workspace(), PARTITION, "") == ""
    assert is_up_to_date(small.workspace(), PARTITION) == earlier
    small.evaluate(run_id="plain", publish=True)
    assert len(Puppet.asked) == (0 if earlier else 3)


def test_nobody_knows_what_a_killed_run_paid(small: Lab) -> None:
    fatal(small)
    record_run(small.workspace(), PARTITION, "fresh", finished_at=None)
    assert effective_epoch(small.workspace(), PARTITION, "") == "fresh"


def test_what_was_handed_in_as_a_batch_is_paid(small: Lab) -> None:
    fatal(small)
    workspace = small.workspace()
    asked = workspace.model_version("puppet").model_copy(update={"batch": True})
    workspace.__dict__["model_versions"] = {"puppet": asked}
    assert effective_epoch(workspace, PARTITION, "") == "fresh"


@pytest.mark.dagster
def test_a_run_of_single_assets_is_complete_when_they_are(small: Lab, tmp_path: Any) -> None:
    from eval_pipeline.defs.assets.partitions import DIMENSION
    from eval_pipeline.defs.running.instance import open_instance
    from eval_pipeline_tests.defs.runs import materialise

    small.suite("other", [case("one", ("50", 50.0))])
    with open_instance(small.home) as instance:
        assert isinstance(instance, dg.DagsterInstance)
        instance.add_dynamic_partitions(DIMENSION, ["puppet"])
        result = materialise(small, instance, only=["small/raw_dataset", "small/cases", "small/generations"])
        assert result.success
    (row,) = rows(small)
    assert row["status"] == "complete"
    assert row["finished_at"] is not None

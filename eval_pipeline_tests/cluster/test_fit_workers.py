"""Workers that may compute a shard, and those that refuse."""

from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from eval_pipeline.chain import shards
from eval_pipeline.cluster import port
from eval_pipeline.cluster.port import Task
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.operations import doctor
from eval_pipeline.workspace import workers
from eval_pipeline_tests.chains import with_other_code
from eval_pipeline_tests.cluster.in_this_process import InThisProcess, compared, without_evidence
from eval_pipeline_tests.support import TWO_CASES, Lab


def test_a_worker_knows_suites_that_came_after_it_was_started(small: Lab, cluster: InThisProcess) -> None:
    compared(small)
    small.suite("later", TWO_CASES)
    compared(small, "later")
    assert len(list((small.home.record / "evidence").rglob("*.parquet"))) == 2


def test_a_worker_with_keys_refuses(small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with pytest.raises(UsageError, match="has OPENAI_API_KEY: workers run what models wrote and ask nobody") as caught:
        compared(small)
    assert "sk-1" not in str(caught.value)


def test_a_key_under_a_name_of_the_projects_own_is_a_key(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    own = {"name": "ours", "provider": "openai", "model": "m", "options": {"api_key_env": "OUR_KEY"}}
    small.versions({"name": "puppet", "provider": "puppet"}, own)
    monkeypatch.setenv("OUR_KEY", "sk-1")
    with pytest.raises(UsageError, match="has OUR_KEY: workers run what models wrote"):
        compared(small)


def test_doctor_tells_of_unfit_workers(small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess) -> None:
    monkeypatch.setattr(port, "open_cluster", lambda: nullcontext(cluster))
    found = {one.topic: one for one in doctor._cluster(small.workspace())}
    assert not found["worker far"].fine
    assert found["worker far"].text == "process 7, no sandbox; has OPENAI_API_KEY; has 4 threads"


def test_tasks_hold_names_and_no_secrets(small: Lab, cluster: InThisProcess) -> None:
    compared(small)
    named = {"name", "stage", "made_from", "first", "end", "home", "data", "suite", "model_version", "eval_date"}
    assert {frozenset(task) for task in cluster.tasks} == {frozenset(named)}


def test_a_worker_with_other_code_refuses(small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess) -> None:
    def other_code(tasks: Sequence[Task]) -> Sequence[Task]:
        with_other_code(monkeypatch, "evidence_code")
        return tasks

    cluster.order = other_code
    with pytest.raises(UsageError, match="sees other code, libraries or files than the run that asks it"):
        compared(small)


def test_a_worker_with_several_threads_refuses(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    monkeypatch.setattr(workers, "threads", lambda: 4)
    with pytest.raises(UsageError, match=r"^a worker on \S+ has 4 threads; start it with --nthreads 1$"):
        compared(small)


def test_a_worker_older_than_its_code_refuses(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    monkeypatch.setattr(workers, "_LOOK_S", 0.0)
    monkeypatch.setattr(workers, "_newest_when_loaded", workers.newest_source())
    compared(small)
    monkeypatch.setattr(workers, "_newest_when_loaded", workers.newest_source() - 1)
    without_evidence(small)
    with pytest.raises(UsageError, match=r"has changed since its worker was started; start it again"):
        compared(small)


def test_workers_with_another_home_are_told(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    monkeypatch.setattr(shards, "run_shard", lambda task: {"host": "far", "reused": False})
    with pytest.raises(StoreError, match=r"but it is not there; give workers the same home at the same path"):
        compared(small)

"""Pools: how many steps may ask one provider at once."""

import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
import yaml

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.defs.running import pools
from eval_pipeline.defs.running.instance import PROCESS, process_tag
from eval_pipeline.defs.running.pools import pool_of
from eval_pipeline_tests.defs.runs import SCORING, materialise
from eval_pipeline_tests.support import Lab, Puppet

POOL = "provider/puppet"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a step waited each time; one that waits for ever fails its test."""
    found: list[float] = []

    def sleep(seconds: float) -> None:
        found.append(seconds)
        assert len(found) < 100, "the step would wait for ever"
        time.sleep(0.05)

    monkeypatch.setattr(pools, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    return found


def version(provider: str, **more: Any) -> ModelVersion:
    return ModelVersion(name="m", provider=provider, **more)


def holders(instance: dg.DagsterInstance) -> list[str]:
    return [found.run_id for found in instance.event_log_storage.get_concurrency_info(POOL).claimed_slots]


def test_a_pool_for_each_provider_that_is_asked_call_by_call() -> None:
    assert pool_of(version("anthropic", model="claude-sonnet-4-6")) == "provider/anthropic"
    assert pool_of(version("local")) == "provider/local"
    assert pool_of(version("anthropic", model="claude-sonnet-4-6", batch=True)) is None
    assert [pool_of(version(name)) for name in ("simulated", "oracle", "null", "recorded")] == [None] * 4


def test_a_home_has_a_run_queue_and_a_limit_for_each_pool(small: Lab, instance: dg.DagsterInstance) -> None:
    assert instance.get_concurrency_config().pool_config.default_pool_limit == 1
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == 2
    written = yaml.safe_load((small.home.dagster / "dagster.yaml").read_text())
    assert not written["telemetry"]["enabled"]
    assert not written["nux"]["enabled"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_step_holds_a_slot_while_it_asks_and_none_afterwards(
    small: Lab, instance: dg.DagsterInstance, puppet: type[Puppet], fails: bool
) -> None:
    held: list[int] = []

    def answer(call: Any) -> str | Exception:
        held.append(len(holders(instance)))
        return RuntimeError("no") if fails else str(call.gold.oracle())

    puppet.answer = staticmethod(answer)
    assert materialise(small, instance, only=SCORING).success is not fails
    assert set(held) == {1}
    assert holders(instance) == []


def test_a_step_waits_for_the_slot_of_another_run_and_frees_that_of_a_dead_one(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    """The run that holds the only slot was killed; nobody else would ever free it."""
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        pass
    dead = str(uuid4())
    _, host, _, started = process_tag("run").split(" ")
    tags = {PROCESS: f"{dead} {host} {gone.pid} {started}"}
    instance.add_run(dg.DagsterRun("job", dead, tags=tags, status=dg.DagsterRunStatus.STARTED))
    storage = instance.event_log_storage
    storage.initialize_concurrency_limit_to_default(POOL)
    assert storage.claim_concurrency_slot(POOL, dead, "step").is_claimed
    monkeypatch.setattr(pools, "SWEEP_SECONDS", 0.0)
    assert materialise(small, instance, only=SCORING).success
    assert waits
    assert holders(instance) == []


def test_a_step_that_is_queued_just_after_a_slot_was_freed_gets_it(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    """Dagster calls the next step when one ends, and asks before it queues a step whether it has to be called."""
    storage: Any = instance.event_log_storage
    asked = iter([False])
    free = storage.has_unassigned_slots
    monkeypatch.setattr(storage, "has_unassigned_slots", lambda key: next(asked, None) is not False and free(key))
    monkeypatch.setattr(pools, "SWEEP_SECONDS", 0.0)
    assert materialise(small, instance, only=SCORING).success
    assert waits
    assert holders(instance) == []


def test_what_is_up_to_date_needs_no_slot(small: Lab, instance: dg.DagsterInstance) -> None:
    assert materialise(small, instance, only=SCORING).success
    storage = instance.event_log_storage
    assert storage.claim_concurrency_slot(POOL, str(uuid4()), "step").is_claimed
    assert materialise(small, instance, only=SCORING).success
    assert len(holders(instance)) == 1

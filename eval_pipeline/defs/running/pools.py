"""Pools: limits on how many steps may ask one provider at once, over all runs of the home.

A Dagster asset has one pool for all its partitions, but here the provider depends on the partition. The step therefore
claims the slot itself, with the same mechanism as Dagster's executors. Limits and holders appear on the UI's page of
pools.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.defs.dagster_inside.running import InstanceConcurrencyContext
from eval_pipeline.defs.running.instance import sweep_home
from eval_pipeline.providers.registry import traits_of
from eval_pipeline.workspace.inputs import Inputs

PAUSE_SECONDS = 0.5
SWEEP_SECONDS = 10.0


def pool_of(version: ModelVersion) -> str | None:
    """Returns the pool for a model version's calls.

    Returns None for stand-ins and recorded answers, and for batches, which are submitted at once and then wait for
    hours.
    """
    pool = traits_of(version.provider).pool
    return None if pool is None or version.batch else pool or f"provider/{version.provider}"


def _queue_again(context: dg.AssetExecutionContext, pool: str, step: str) -> None:
    """Takes a step out of the queue that nobody calls although a slot is free; the next claim puts it there again.

    A step that asks whether a slot is free just before one is freed, and is queued just after, is missed by Dagster.
    """
    storage = context.instance.event_log_storage
    found = storage.get_concurrency_info(pool)
    if found.assigned_step_count < found.slot_count:
        storage.free_concurrency_slot_for_step(context.run.run_id, step)


@contextmanager
def slot(context: dg.AssetExecutionContext, inputs: Inputs, pool: str) -> Iterator[None]:
    """Holds a slot of the pool; waits without limit, and frees slots of runs whose process is gone."""
    step = f"{context.op_execution_context.op.name}[{context.partition_key}]"
    label = f"waiting for the pool {pool}"
    with InstanceConcurrencyContext(context.instance, context.run) as slots:
        if not slots.claim(pool, step):
            context.log.info(f"{label}: its limit is reached")
            inputs.progress.start(label, 0)
            try:
                swept = time.monotonic()
                while not slots.claim(pool, step):
                    time.sleep(PAUSE_SECONDS)
                    if time.monotonic() - swept > SWEEP_SECONDS:
                        sweep_home(inputs.workspace.home, context.instance)
                        _queue_again(context, pool, step)
                        swept = time.monotonic()
            finally:
                inputs.progress.finish(label)
        try:
            yield
        finally:
            slots.free_step(step)

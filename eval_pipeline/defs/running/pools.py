"""Pools: how many steps may ask one provider at once, over all runs of the home.

An asset has one pool for all its partitions, but the provider follows from the partition. So the step claims the slot
itself, with what Dagster's executors use; limits and holders are on the UI's page of pools.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.running.instance import sweep_home

NOBODY_IS_ASKED = frozenset({"simulated", "oracle", "null", "recorded"})
PAUSE_SECONDS = 0.5
SWEEP_SECONDS = 10.0


def pool_of(version: ModelVersion) -> str | None:
    """The pool that a model version's calls belong to.

    None for stand-ins and recorded answers, and for batches: they are handed in at once and wait for hours.
    """
    return None if version.provider in NOBODY_IS_ASKED or version.batch else f"provider/{version.provider}"


@contextmanager
def slot(context: dg.AssetExecutionContext, evaluation: EvaluationResource, pool: str) -> Iterator[None]:
    """Holds a slot of the pool; waits for one as long as it takes, and frees those of runs whose process is gone."""
    step = f"{context.op_execution_context.op.name}[{context.partition_key}]"
    label = f"waiting for the pool {pool}"
    with InstanceConcurrencyContext(context.instance, context.run) as slots:
        if not slots.claim(pool, step):
            context.log.info(f"{label}: its limit is reached")
            evaluation.progress.start(label, 0)
            try:
                swept = time.monotonic()
                while not slots.claim(pool, step):
                    time.sleep(PAUSE_SECONDS)
                    if time.monotonic() - swept > SWEEP_SECONDS:
                        sweep_home(evaluation.workspace.home, context.instance)
                        swept = time.monotonic()
            finally:
                evaluation.progress.finish(label)
        try:
            yield
        finally:
            slots.free_step(step)

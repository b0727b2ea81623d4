"""Opening what a stage asks models through: provider, journal, caller."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Environment, Provider
from eval_pipeline.providers.calls import Caller
from eval_pipeline.providers.journal import Journal
from eval_pipeline.providers.registry import create
from eval_pipeline.stages.workspace import Workspace


def provider_for(workspace: Workspace, version: ModelVersion) -> Provider:
    """The provider of a model version, not started. Raises EvalError where its settings are wrong."""
    return create(version, Environment(predictions_dir=str(workspace.home.predictions)))


@asynccontextmanager
async def open_caller(
    workspace: Workspace, version: ModelVersion, provider: Provider, epoch: str
) -> AsyncIterator[Caller]:
    """A caller over the home's journal; the provider is open while it is."""
    journal = Journal(workspace.home.journal)
    try:
        async with provider:
            yield Caller(provider, journal, version, epoch)
    finally:
        journal.close()


async def run_together(workers: Sequence[Coroutine[None, None, None]]) -> None:
    """Runs workers until all are done; the first to fail ends the others, and its exception is raised as it is."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None

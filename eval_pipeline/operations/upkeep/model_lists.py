"""Whether the models of active model versions are there, by what their providers tell at no cost."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, Environment, KnowsModels, MissingKeyError
from eval_pipeline.providers.registry import create
from eval_pipeline.workspace.workspace import Workspace

_WAIT_S = 10.0


def models_told(workspace: Workspace) -> Iterator[tuple[str, str | None]]:
    """Yields the name of each model version that can be looked up, and what is wrong; None if nothing is.

    Those without their key or their packages are left out. What is wrong completes a sentence about the model.
    """
    made = {version.name: _provider(version) for version in workspace.model_versions.values() if version.active}
    asked: dict[str, KnowsModels] = {
        name: provider for name, provider in made.items() if isinstance(provider, KnowsModels)
    }
    for name, (known, wrong) in zip(asked, asyncio.run(_all(list(asked.values()))), strict=True):
        if known:
            yield name, wrong


def _provider(version: ModelVersion) -> object:
    try:
        return create(version, Environment())
    except EvalError:  # a package is missing or broken, which other checks tell
        return None


async def _all(providers: Sequence[KnowsModels]) -> list[tuple[bool, str | None]]:
    return await asyncio.gather(*map(_ask, providers))


async def _ask(provider: Any) -> tuple[bool, str | None]:
    try:
        async with provider:
            return True, await asyncio.wait_for(provider.why_no_model(), _WAIT_S)
    except MissingKeyError:
        return False, None
    except TimeoutError:
        return True, f"cannot be looked up: no answer within {_WAIT_S:g} s"
    except (CallError, EvalError) as error:
        return True, f"cannot be looked up: {error}"

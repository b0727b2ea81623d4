"""The sandboxes that the track uses; their zygotes outlive stages and their event loops."""

import atexit
from functools import lru_cache
from importlib.metadata import version
from threading import Lock

from eval_pipeline.sandbox.blocking import BlockingSandbox
from eval_pipeline.sandbox.layers import Layer
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.tiers import UNSAFE, NoSandboxError

OWN_CODE_S = 120.0
"""Seconds that code of a suite, or of this track, may take: it is trusted, and must not fail on a crowded machine."""


_OPENING = Lock()


def sandbox(layer: Layer | None = None) -> BlockingSandbox:
    """Returns this process's sandbox, with the packages of a layer if one is given; it is opened on first use.

    Raises:
        NoSandboxError: this machine has none.
        MissingPackagesError: the layer is not installed; says which command does that.
    """
    return _sandbox("" if layer is None else str(layer.ready()))


@lru_cache(maxsize=8)
def versions(layer: Layer | None) -> dict[str, str]:
    """Returns the versions of pandas and numpy with which code runs: those of a layer that has a pandas of its own."""
    pinned = layer if layer is not None and layer.version_of("pandas") else None
    return {name: (pinned and pinned.version_of(name)) or version(name) for name in ("pandas", "numpy")}


def _sandbox(packages: str) -> BlockingSandbox:
    with _OPENING:  # several threads may be the first that need it
        return _opened(packages)


@lru_cache(maxsize=8)
def _opened(packages: str) -> BlockingSandbox:
    found = BlockingSandbox(Limits(packages=packages))
    atexit.register(found.close)
    return found


def confined_tier() -> str:
    """Returns the name of the tier that confines the snippets of this process.

    Raises:
        NoSandboxError: nothing confines them, or only the tier without a jail, which is for trusted code on one's own
            machine and not for a worker that runs what others send it.
    """
    tier = sandbox().tier
    if tier == UNSAFE:
        raise NoSandboxError(
            "a worker of a cluster runs no model-written code without a jail; unset EVAL_SANDBOX=unsafe there"
        )
    return tier

"""The sandbox that the track uses: one for the whole process, whose zygotes outlive stages and their event loops."""

import atexit
from functools import lru_cache

from eval_pipeline.sandbox import BlockingSandbox, NoSandboxError
from eval_pipeline.sandbox.tiers import UNSAFE

OWN_CODE_S = 120.0
"""Seconds that code of a suite, or of this track, may take: it is trusted, and must not fail on a crowded machine."""


@lru_cache(maxsize=1)
def sandbox() -> BlockingSandbox:
    """Returns the sandbox of this process, opened on first use. Raises NoSandboxError if there is none."""
    found = BlockingSandbox()
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

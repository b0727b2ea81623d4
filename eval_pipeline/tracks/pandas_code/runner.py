"""The sandbox that the track uses: one for the whole process, whose zygotes outlive stages and their event loops."""

import atexit
from functools import lru_cache

from eval_pipeline.sandbox import BlockingSandbox

OWN_CODE_S = 120.0
"""Seconds that code of a suite, or of this track, may take: it is trusted, and must not fail on a crowded machine."""


@lru_cache(maxsize=1)
def sandbox() -> BlockingSandbox:
    """Returns the sandbox of this process, opened on first use. Raises NoSandboxError if there is none."""
    found = BlockingSandbox()
    atexit.register(found.close)
    return found

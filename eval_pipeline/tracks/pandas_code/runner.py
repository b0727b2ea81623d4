"""The sandbox as the track uses it: one for the whole process, whose zygotes outlive stages and their event loops."""

import atexit
from functools import lru_cache

from eval_pipeline.sandbox import BlockingSandbox


@lru_cache(maxsize=1)
def sandbox() -> BlockingSandbox:
    """The sandbox of this process, opened when first asked for. Raises NoSandboxError where nothing here can be one."""
    found = BlockingSandbox()
    atexit.register(found.close)
    return found

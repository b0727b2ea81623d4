"""What can hold model-written code on this machine, the best first, probed with a real snippet."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from eval_pipeline.core.errors import EvalError
from eval_pipeline.sandbox.inside import seccomp
from eval_pipeline.sandbox.jail import bwrap_path

BWRAP, SANDLOCK, UNSAFE = "bwrap", "sandlock", "unsafe"
ENVIRONMENT = "EVAL_SANDBOX"
INSTALL = (
    "use a kernel that lets users make namespaces or has Landlock; `uv sync` and Debian's bubblewrap have the rest"
)


class NoSandboxError(EvalError):
    """Nothing on this machine can hold model-written code."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One way to hold a snippet.

    Attributes:
        why_not: a sentence where it cannot be used, before trying; None where it may work.
    """

    name: str
    why_not: Callable[[], str | None]


def _why_no_bwrap() -> str | None:
    if bwrap_path() is None:
        return "bubblewrap is not installed"
    return _why_no_filter()


def _why_no_sandlock() -> str | None:
    if find_spec("sandlock") is None:
        return "the package sandlock is not installed"
    import sandlock

    found, needed = sandlock.landlock_abi_version(), sandlock.min_landlock_abi()
    if found < needed:
        return f"the kernel's Landlock has version {found}, {needed} is needed"
    return _why_no_filter()


def _why_no_filter() -> str | None:
    return None if seccomp.supported() else "the system-call filter does not know this kind of machine"


TIERS = (Tier(BWRAP, _why_no_bwrap), Tier(SANDLOCK, _why_no_sandlock))


def allowed_tiers() -> tuple[Tier, ...]:
    """The tiers that may be used: all safe ones, or the one that `EVAL_SANDBOX` names.

    Raises:
        NoSandboxError: the name is unknown.
    """
    wanted = os.environ.get(ENVIRONMENT, "")
    if not wanted:
        return TIERS
    known = (*TIERS, Tier(UNSAFE, lambda: None))
    chosen = tuple(tier for tier in known if tier.name == wanted)
    if not chosen:
        names = ", ".join(tier.name for tier in known)
        raise NoSandboxError(f"{ENVIRONMENT}={wanted} is unknown; allowed: {names}")
    return chosen

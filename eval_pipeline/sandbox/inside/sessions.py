"""Processes of an attempt that live on from call to call. Nobody trusts anything that they tell."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from . import privileges
from .child import Child, Told
from .exchange import ClosedError, Exchange

WORLD = "/world"
SESSION_CPU_S = 3600.0
_PATH = "/box/bin:/usr/local/bin:/usr/bin:/bin"
_MOST_MESSAGE, _MOST_REQUEST = 1 << 20, 1 << 26


class StoppedError(Exception):
    """A process has used too much; the message is what of."""


class Living:
    """A process that lives on from call to call, and is stopped between them.

    Attributes:
        lost: whether the process of the call before was ended, or ended itself.
        pid: its process; 0 if there is none.
    """

    def __init__(self, child: Child) -> None:
        """Starts nothing yet."""
        self.lost, self.pid = False, 0
        self._child, self._deadline = child, 0.0

    def _wake(self, seconds: float) -> None:
        """Lets the process go on, if there is one, for that many seconds."""
        self._deadline, self.lost = time.monotonic() + seconds, False
        if self.pid:
            os.kill(self.pid, signal.SIGCONT)

    def _watch(self) -> None:
        reason = self._child.excess(self.pid, self._deadline)
        if reason is not None:
            raise StoppedError(reason)

    def stop(self) -> bool:
        """Stops all threads of the process, if there is one; returns whether they are, which may take a moment."""
        if not self.pid:
            return True
        os.kill(self.pid, signal.SIGSTOP)
        options = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self.pid, options) is not None

    def end(self) -> None:
        """Ends the process, if there is one."""
        if self.pid:
            self._child.end(self.pid)
            self.pid = 0


class CodeSession(Living):
    """A process that runs what is written here."""

    def __init__(self, child: Child, serve: Callable[[Exchange], None]) -> None:
        """Starts nothing yet; the process will answer by `serve`."""
        super().__init__(child)
        self._serve = serve
        self._exchange: Exchange | None = None

    def ask(self, request: Told, seconds: float) -> Told:
        """Sends a request and returns the answer; a process that uses too much is ended."""
        self._wake(seconds)
        try:
            exchange = self._exchange or self._begin()
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

        def serve() -> None:
            privileges.be_readable()  # by the keeper, which measures its memory; no other process sees it
            os.chdir(WORLD)
            os.environ.update(environment())
            own = Exchange(3, 4, _MOST_REQUEST)
            own.send({})
            self._serve(own)

        self._exchange = exchange
        ends = {1: 0, 2: 0, 3: asking[0], 4: answering[1]}
        self.pid = self._child.begin(ends, SESSION_CPU_S, serve, ready)
        return exchange

    def end(self) -> None:
        """Ends the process, if there is one."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None
        super().end()


def environment() -> dict[str, str]:
    """Returns what a program finds in its environment, so that Python in it has the packages of the session."""
    packages = os.pathsep.join(path for path in sys.path if path.startswith("/packages/"))
    return {"PATH": _PATH, "PYTHONPATH": packages}


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
    match found.get("error"):
        case {"types": list() as types, "message": str() as message}:
            told["error"] = {"types": [one for one in types if isinstance(one, str)], "message": message}
    return told

"""The zygote of a world: forks a keeper for each attempt that acts in it. It runs inside the jail.

Each message on standard input, a Unix socket, brings the socket of a new keeper; the keeper ends when that is closed.
"""

import gc
import os
import socket

from . import privileges
from .child import Configuration
from .keeper import Keeper
from .separation import Separation
from .zygote import warm_up


def serve(configuration: Configuration) -> None:
    """Answers until standard input ends.

    Args:
        configuration: as for `zygote.serve`, with `databases` (name → file in the world and whether it is read-only),
            `servers` (name → command and environment), `world_bytes`, `world_files` and `kept_bytes`.
    """
    privileges.die_with(os.getppid())
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    warm_up(landlock=False)
    _warm_up_tools()
    privileges.be_unreadable()
    separation = Separation(configuration["mounted"])
    os.dup2(nothing, 2)  # a file outside, of which attempts would have one for all
    control.send(b"ready")
    while True:
        told, sockets, _, _ = socket.recv_fds(control, 16, 1)
        if not told:
            return
        if separation.fork() == 0:
            _keep(separation, configuration, control, sockets[0])
        os.close(sockets[0])
        _reap()


def _reap() -> None:
    """Lets the kernel forget keepers that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def _warm_up_tools() -> None:
    import sqlite3

    import duckdb

    from . import tools  # noqa: F401

    sqlite3.connect(":memory:").close()
    duckdb.connect(":memory:", config={"threads": 1}).close()
    gc.collect()
    gc.freeze()


def _keep(separation: Separation, configuration: Configuration, control: socket.socket, own: int) -> None:
    try:
        privileges.die_with(0)
        control.close()
        separation.enter()
        Keeper(configuration, own).serve()
    finally:
        os._exit(0)  # the kernel then ends whatever is left in this process's PID namespace

"""The zygote of a world: forks a keeper for each attempt that acts in it. It runs inside the jail.

Each message on standard input, a Unix socket, brings two sockets of a new keeper, which ends when the first is closed.
Forking costs what a process has imported: only a process of its own, begun when Python is first asked for, has pandas.
"""

import gc
import os
import platform
import select
import socket

from . import cells, privileges, seccomp
from .child import Configuration
from .keeper import Keeper
from .separation import Separation
from .sessions import reap, visit_all
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
    seccomp.program(0, platform.machine(), True, False)  # its children find it made
    gc.collect()
    gc.freeze()
    privileges.be_unreadable()
    separation = Separation(configuration["mounted"])
    os.dup2(nothing, 2)  # a file outside, of which attempts would have one for all
    hosts, heard = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    also: socket.socket | int = heard
    control.send(b"ready")
    while True:
        ready, _, _ = select.select([control, also], [], [])
        if heard in ready:
            also = os.pidfd_open(_with_pandas(configuration, heard))
        elif also in ready:  # that process has ended, and its guests with it: the worlds are not what they were
            return
        if control not in ready:
            continue
        told, sockets, _, _ = socket.recv_fds(control, 16, 2)
        if not told:
            return
        if separation.fork() == 0:
            _keep(separation, configuration, control, hosts, *sockets)
        for one in sockets:
            os.close(one)
        reap()


def _with_pandas(configuration: Configuration, heard: socket.socket) -> int:
    """Starts the process that is forked for sessions of Python; returns its id."""
    pid = os.fork()
    if pid == 0:
        try:
            warm_up(landlock=False)
            visit_all(configuration, heard, lambda exchange: cells.serve_python(exchange, configuration["told_bytes"]))
        finally:
            os._exit(1)
    return pid


def _keep(
    separation: Separation,
    configuration: Configuration,
    control: socket.socket,
    hosts: socket.socket,
    own: int,
    door: int,
) -> None:
    try:
        privileges.die_with(0)
        control.close()
        separation.enter()
        Keeper(configuration, own, hosts, socket.socket(fileno=door)).serve()
    finally:
        os._exit(0)  # the kernel then ends whatever is left in this process's PID namespace

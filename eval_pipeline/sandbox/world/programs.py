"""What somebody's own program is told when it is run in a world, and how its end is read."""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.programs import AGENT, TOOLS_PATH, OwnProgram, ProgramEnded
from eval_pipeline.sandbox.inside.programs import ANSWER
from eval_pipeline.sandbox.inside.separation import PORT
from eval_pipeline.sandbox.inside.sessions import PATH
from eval_pipeline.sandbox.world.errors import WorldError

Serve = Callable[[socket.socket], AbstractAsyncContextManager[object]]
_TASK = "{task}"
_ADDRESS = f"http://127.0.0.1:{PORT}"
_NO_KEY = "sk-ant-api03-none"
"""Stands for a key where a client wants one; who answers does not look at it."""


def arguments_of(program: OwnProgram, text: str) -> list[str]:
    """Returns the command as it is started: with the task's text, and the places of its own files."""
    return [_placed(program, one).replace(_TASK, text) for one in program.command]


def _placed(program: OwnProgram, argument: str) -> str:
    """Returns an argument; one that names a file of the program's folder becomes its place there."""
    is_own = program.folder is not None and os.path.isfile(os.path.join(program.folder, argument))
    return f"{AGENT}/{argument}" if is_own and not os.path.isabs(argument) else argument


def environment_of(program: OwnProgram) -> dict[str, str]:
    """Returns what a program finds in its environment beside what all programs in a world find."""
    own = [] if program.folder is None else [AGENT]
    first = [*map(str, program.first), *own, PATH]
    told = {
        "ANTHROPIC_BASE_URL": _ADDRESS,
        "OPENAI_BASE_URL": f"{_ADDRESS}/v1",
        "ANTHROPIC_API_KEY": _NO_KEY,
        "OPENAI_API_KEY": _NO_KEY,
        "EVAL_ANSWER": ANSWER,
        "EVAL_TOOLS": f"{_ADDRESS}{TOOLS_PATH}",
        "PATH": os.pathsep.join(first),
    }
    return told | {"PYTHONPATH": os.pathsep.join(own)} | dict(program.environment)


async def door(given: socket.socket, seconds: float) -> socket.socket:
    """Returns the listening socket of a program's network, on which nobody else can be reached.

    Raises:
        WorldError: it does not come.
    """
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    given.setblocking(False)
    loop.add_reader(given, came.set)
    try:
        async with asyncio.timeout(seconds):
            await came.wait()
        _, sockets, _, _ = socket.recv_fds(given, 16, 1, socket.MSG_CMSG_CLOEXEC)
    except (TimeoutError, OSError) as error:
        raise WorldError("the program has no network of its own") from error
    finally:
        loop.remove_reader(given)
    if not sockets:
        raise WorldError("the jail is gone")
    return socket.socket(fileno=sockets[0])


def ended_as(told: Mapping[str, Any], program: OwnProgram) -> ProgramEnded:
    """Reads how a program has ended.

    Raises:
        UsageError: it cannot be started.
    """
    if told.get("problem"):
        raise UsageError(f"the command '{program.command[0]}' cannot be started in the jail: {told['problem']}")
    stopped, answer = told["stopped"], told["answer"]
    return ProgramEnded(int(told["status"]), stopped, told["output"], told["errors"], answer)

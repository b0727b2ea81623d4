"""Reports the state of the servers on which suites may run, for `doctor`."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from eval_pipeline.core.errors import EvalError
from eval_pipeline.sandbox.sql.live.places import SERVERS, Role, Server, variable
from eval_pipeline.sandbox.sql.live.rights import reader_problems, writer_problems
from eval_pipeline.sandbox.sql.live.sessions import open_mysql, open_postgres

_ROLES: tuple[Role, ...] = ("LOADER", "READER")
_WRITER: Role = "WRITER"
_REMEDY = "create the two roles as described in docs/sql.md"


@dataclass(frozen=True, slots=True)
class ServerFinding:
    """The state of one server; `remedy` says what to do if it is not fine."""

    server: Server
    fine: bool
    text: str
    remedy: str = ""


def diagnose_servers() -> Iterator[ServerFinding]:
    """Yields one finding for each problem of each server whose addresses are set, or one that says it is fine."""
    for server in SERVERS:
        given = {
            role: found for role in (*_ROLES, _WRITER) if (found := os.environ.get(variable(server, role), "").strip())
        }
        if given:
            try:
                yield from _findings(server, given)
            except EvalError as error:
                yield ServerFinding(server, False, str(error), "start the server, or correct its address")


def _findings(server: Server, given: dict[Role, str]) -> Iterator[ServerFinding]:
    missing = [variable(server, role) for role in _ROLES if role not in given]
    if missing:
        yield ServerFinding(server, False, f"{missing[0]} is not set", _REMEDY)
    problems = reader_problems(server, given["READER"]) if "READER" in given else []
    for problem in problems:
        yield ServerFinding(server, False, f"the role that runs queries {problem}", _REMEDY)
    writers = writer_problems(given[_WRITER]) if _WRITER in given and server == "postgres" else []
    for problem in writers:
        yield ServerFinding(server, False, f"the role that runs scripts {problem}", _REMEDY)
    if "LOADER" in given:
        (open_postgres(given["LOADER"]) if server == "postgres" else open_mysql(server, given["LOADER"])).close()
    if not missing and not problems and not writers:
        yield ServerFinding(server, True, "both roles can connect, and the role that runs queries can only read")

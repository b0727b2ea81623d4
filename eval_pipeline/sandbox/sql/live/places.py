"""Describes where the data of a query are: in a database file, or in a schema on a server."""

import json
import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.sqlite_files import settled

Server = Literal["postgres", "mysql", "mariadb"]
SERVERS: tuple[Server, ...] = ("postgres", "mysql", "mariadb")
DIALECTS: dict[Server, str] = {"postgres": "postgres", "mysql": "mysql", "mariadb": "mysql"}
"""The dialect of each server's queries, by sqlglot's name."""

Role = Literal["LOADER", "READER", "WRITER"]
_MARK = "server:"


@dataclass(frozen=True, slots=True)
class LivePlace:
    """A schema on a server (MySQL and MariaDB call it a database), as seen by the role that may only read.

    Attributes:
        server: the kind of server.
        schema: its name on the server.
        name: its name in messages.
        dsn: address, role and password; never shown.
    """

    server: Server
    schema: str
    name: str
    dsn: str = field(repr=False)


DataPlace: TypeAlias = Path | LivePlace


def dialect_of(place: LivePlace) -> str:
    """Returns the dialect in which queries at a place are written."""
    return DIALECTS[place.server]


def place_to_text(place: DataPlace) -> str:
    """Returns a place as text, as it is sent to a child process; a file is settled before, since it cannot write.

    Raises a SqlError if that fails.
    """
    if isinstance(place, LivePlace):
        return _MARK + json.dumps([place.server, place.schema, place.name, place.dsn])
    try:
        return str(settled(place))
    except (OSError, sqlite3.Error) as error:
        raise SqlError(ErrorClass.OTHER, f"the database {place} cannot be read: {error}") from error


def place_from_text(text: str) -> DataPlace:
    """Reads a place that `place_to_text` wrote."""
    if text.startswith(_MARK):
        return LivePlace(*json.loads(text.removeprefix(_MARK)))
    return Path(text)


def variable(server: Server, role: Role) -> str:
    """Returns the name of the environment variable with the address for a role."""
    return f"EVAL_{server.upper()}_{role}_DSN"


def dsn_of(server: Server, role: Role) -> str:
    """Returns the address for a role. Raises a UsageError if its environment variable is not set."""
    found = os.environ.get(variable(server, role), "").strip()
    if not found:
        raise UsageError(
            f"a suite runs on {server}, but the environment variable {variable(server, role)} is not set (docs/sql.md)"
        )
    return found

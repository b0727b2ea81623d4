"""Loads scripts and CSV tables into a separate schema on a server, with the role that may create and drop schemas.

A schema is created once for each state of the files; when they change, the schema of the previous state is dropped.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.reading.csv_files import open_table
from eval_pipeline.core.reading.foreign import read_text
from eval_pipeline.sandbox.sql.live.places import LivePlace, Server, dsn_of
from eval_pipeline.sandbox.sql.live.rights import checked_reader
from eval_pipeline_plugins.tracks.sql.servers.mysql_loader import MysqlLoader
from eval_pipeline_plugins.tracks.sql.servers.naming import family_of, schema_name
from eval_pipeline_plugins.tracks.sql.servers.postgres_loader import PostgresLoader


class Loader(Protocol):
    """A session of the role that creates and drops schemas."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The exceptions that the server's driver raises about a script or a row."""

    def lock(self, name: str) -> None:
        """Waits until no other session holds a lock of this name; it is held until the session ends."""

    def schemas(self, beginning: str) -> Iterator[tuple[str, bool]]:
        """Yields the schemas whose names have this beginning, and whether they were loaded completely."""

    def create(self, schema: str) -> None:
        """Creates an empty schema, which the following calls fill."""

    def drop(self, schema: str) -> None:
        """Drops a schema with everything in it."""

    def run(self, script: str) -> None:
        """Runs a script of statements."""

    def fill(self, table: str, columns: Sequence[str], rows: Iterator[list[str | None]]) -> None:
        """Adds rows to a table; the server converts the texts."""

    def finish(self, schema: str, reader: str) -> None:
        """Gives the reader (named by its address) the right to read the schema, and marks it as completely loaded."""

    def count(self, tables: Sequence[str]) -> int:
        """Returns the number of rows in tables of the schema that was created or chosen."""

    def choose(self, schema: str) -> None:
        """Chooses the schema whose rows `count` counts."""

    def close(self) -> None:
        """Ends the session."""


def open_loader(server: Server) -> Loader:
    """Opens a session of the loader's role. Raises an EvalError."""
    dsn = dsn_of(server, "LOADER")
    return PostgresLoader(dsn) if server == "postgres" else MysqlLoader(server, dsn)


def place_on(server: Server, folder: Path, database: str, content_hash: str) -> LivePlace:
    """Returns where a database of a suite is, even if it has not been loaded yet.

    Raises:
        EvalError: the reader's address is not set, its role may do more than read, or the server does not answer.
    """
    return LivePlace(server, schema_name(folder, database, content_hash), database, checked_reader(server))


def load_on(
    server: Server, folder: Path, database: str, scripts: Sequence[Path], tables: Sequence[Path], content_hash: str
) -> LivePlace:
    """Loads the files of a database unless they are loaded already, and drops the schemas of their previous states.

    Args:
        server: the kind of server.
        folder: the suite's folder.
        database: its name in the suite.
        scripts: SQL scripts, run in this order, in the server's own dialect.
        tables: `<table>.csv` with a header, added in this order; an empty cell is NULL.
        content_hash: hash of all the files.

    Raises:
        InputError: a file cannot be loaded; the message names it.
        EvalError: see `place_on`; the same for the loader's role.
    """
    place = place_on(server, folder, database, content_hash)
    family = family_of(folder, database)
    with closing(open_loader(server)) as loader:
        loader.lock(family)
        found = dict(loader.schemas(family))
        if found.get(place.schema):
            return place
        for former in found:
            loader.drop(former)
        loader.create(place.schema)
        for path in scripts:
            _told(path, loader, lambda loader, path: loader.run(read_text(path)))
        for path in tables:
            _told(path, loader, _fill)
        loader.finish(place.schema, place.dsn)
    return place


def count_on(place: LivePlace, tables: Sequence[str]) -> int:
    """Returns the number of rows of all tables. Raises an EvalError."""
    with closing(open_loader(place.server)) as loader:
        loader.choose(place.schema)
        return loader.count(tables) if tables else 0


def _fill(loader: Loader, path: Path) -> None:
    with path.open(newline="", encoding="utf-8-sig") as file:
        table = open_table(file, str(path))
        loader.fill(path.stem, table.columns, ([cell or None for cell in row] for row in table.whole()))


def _told(path: Path, loader: Loader, act: Callable[[Loader, Path], None]) -> None:
    wrong: tuple[type[Exception], ...] = (OSError, UnicodeDecodeError, *loader.failures)
    try:
        act(loader, path)
    except wrong as error:
        text = " ".join(str(error.args[-1] if error.args else error).split()) or type(error).__name__
        raise InputError([Problem(str(path), None, "", f"cannot be loaded on the server: {text}")]) from error

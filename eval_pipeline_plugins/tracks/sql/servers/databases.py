"""A suite's files as a database on a server: its schema according to the scripts, and where it is loaded."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.reading.csv_files import open_table
from eval_pipeline.core.reading.foreign import read_text
from eval_pipeline.sandbox.sql.live.places import LivePlace, Server, dsn_of
from eval_pipeline.sandbox.sql.live.rights import checked_reader
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.build import CSV, SCRIPT, in_order
from eval_pipeline_plugins.tracks.sql.servers.mysql_loader import MysqlLoader
from eval_pipeline_plugins.tracks.sql.servers.postgres_loader import PostgresLoader

PREFIX = "eval_"
_WORD, _HASH = 16, 12


def family_of(folder: Path, database: str) -> str:
    """Returns the common beginning of the schema names of a suite's database; it differs between homes."""
    word = re.sub("[^a-z0-9]+", "_", database.lower())[:_WORD].strip("_") or "database"
    told = f"{find_home().root.resolve()}\0{folder.name}\0{database}"
    return f"{PREFIX}{word}_{text_hash(told)[:10]}_"


def schema_name(folder: Path, database: str, content_hash: str) -> str:
    """Returns the schema name for one state of the files."""
    return family_of(folder, database) + content_hash[:_HASH]


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


__all__ = ["count_on", "load", "loaded", "schema_of"]

_END = re.compile(r";[ \t]*(?:\n|\Z)")
_DEFINES = re.compile(r"(?i)(?:\s+|--[^\n]*\n)*(?:CREATE|ALTER)\b")


def load(server: Server, folder: Path, name: str, files: Sequence[str], dialect: str, content_hash: str) -> LivePlace:
    """Returns where a suite's database is on the server; loads it first if necessary.

    Raises:
        InputError: a file cannot be loaded.
        EvalError: the server does not answer, its address is not set, or a role has too many rights.
    """
    paths = [folder / file for file in files]
    scripts = [path for path in paths if path.suffix == SCRIPT]
    tables = [path for path in paths if path.suffix == CSV]
    ordered = in_order(tables, schema_of(paths, dialect)) if tables else ()
    return load_on(server, folder, name, scripts, ordered, content_hash)


loaded = lru_cache(maxsize=256)(load)
"""The same, without asking the server again."""


def schema_of(files: Sequence[Path], dialect: str) -> SqlSchema:
    """Returns the schema that scripts define in the server's dialect.

    Raises:
        InputError: a file is neither a script nor a table, or the definitions cannot be read.
    """
    wrong = [path for path in files if path.suffix not in (SCRIPT, CSV)]
    if wrong:
        text = f"cannot be loaded on a server: expected scripts (*{SCRIPT}) and tables (*{CSV})"
        raise InputError(Problem(str(path), None, "", text) for path in wrong)
    scripts = [path for path in files if path.suffix == SCRIPT]
    try:
        text = "\n".join(_definitions(read_text(path)) for path in scripts)
        return SqlSchema.from_ddl(text, dialect)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        place = str(scripts[0] if scripts else files[0].parent)
        raise InputError(
            [Problem(place, None, "", f"the tables cannot be determined from the scripts: {error}")]
        ) from error


def _definitions(script: str) -> str:
    """Returns only the statements that define something; parsing the rows too would take long."""
    return "".join(f"{part};\n" for part in _END.split(script) if _DEFINES.match(part))

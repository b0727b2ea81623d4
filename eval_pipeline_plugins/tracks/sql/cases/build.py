"""Builds databases from SQL scripts and CSV tables, and stores them in `$EVAL_HOME/databases` under their hash."""

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import file_hash
from eval_pipeline.core.reading.csv_files import open_table
from eval_pipeline.core.reading.foreign import read_text, undecodable
from eval_pipeline.sandbox.sql.sqlite_files import address_of, settled
from eval_pipeline_plugins.sql_equivalence.schema.parts import quoted
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

SCRIPT, CSV = ".sql", ".csv"
_BUILDING, _DAY_S = ".building-", 86_400


def build_database(files: Sequence[Path], dialect: str, content_hash: str) -> Path:
    """Returns the database that scripts and tables define; builds it first if it does not exist yet.

    Scripts run in the order of their names. Then each `<table>.csv` (with a header; an empty cell is NULL) is added to
    its table, in the order in which the scripts created the tables.

    Args:
        files: `*.sql` in the dialect, and `<table>.csv`.
        dialect: SQLite scripts make a SQLite database, others a DuckDB database (translated if necessary).
        content_hash: hash of the files.

    Raises:
        InputError: a file cannot be executed or loaded; the message names it.
    """
    engine = "sqlite" if dialect == "sqlite" else "duckdb"
    target = find_home().databases / f"{content_hash}.{engine}"
    seal = target.with_name(f"{target.name}.sha256")
    if target.exists() and read_sealed(seal) == file_hash(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f"{_BUILDING}*"):  # left by processes that were killed
        if left.stat().st_mtime < time.time() - _DAY_S:
            shutil.rmtree(left, ignore_errors=True)
    scripts = [path for path in files if path.suffix == SCRIPT]
    tables = [path for path in files if path.suffix == CSV]
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=target.parent) as aside:
        made = Path(aside) / target.name
        if engine == "sqlite":
            _build_sqlite(made, scripts, tables)
        else:
            _build_duckdb(made, scripts, tables, dialect)
        os.replace(made, target)
    write_sealed(seal, file_hash(target))
    return target


def _build_sqlite(made: Path, scripts: Sequence[Path], tables: Sequence[Path]) -> None:
    with closing(sqlite3.connect(made)) as connection:
        connection.set_authorizer(_keeps_to_its_file)
        for path in scripts:
            try:
                connection.executescript(read_text(path))
            except (OSError, UnicodeDecodeError, sqlite3.Error) as error:
                raise _wrong(path, error) from error
        connection.execute("PRAGMA foreign_keys = ON")
        for path in in_order(tables, SqlSchema.from_database(made)) if tables else ():
            try:
                with path.open(newline="", encoding="utf-8-sig") as file:
                    table = open_table(file, str(path))
                    columns, marks = ", ".join(map(quoted, table.columns)), ", ".join("?" * len(table.columns))
                    connection.executemany(
                        f"INSERT INTO {quoted(path.stem)} ({columns}) VALUES ({marks})",
                        ([cell or None for cell in row] for row in table.whole()),
                    )
            except (OSError, UnicodeDecodeError, sqlite3.Error) as error:
                raise _wrong(path, error) from error
        connection.commit()


def _keeps_to_its_file(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_DENY if action in {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH} else sqlite3.SQLITE_OK


def _build_duckdb(made: Path, scripts: Sequence[Path], tables: Sequence[Path], dialect: str) -> None:
    import duckdb

    from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, translated

    # The scripts may come from others, so they can access nothing except the database.
    with closing(duckdb.connect(str(made), config={"enable_external_access": "false"})) as connection:
        for path in scripts:
            try:
                text = read_text(path)
                if dialect != "duckdb":
                    text = translated(text, dialect, "duckdb")
                connection.execute(text)
            except (OSError, UnicodeDecodeError, SqlSyntaxError, duckdb.Error) as error:
                raise _wrong(path, error) from error
        names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        if not names:
            raise InputError([Problem(str(path), None, "", "no script makes a table") for path in scripts[:1]])
        connection.execute("CHECKPOINT")
    for path in in_order(tables, SqlSchema.from_database(made)) if tables else ():
        with closing(duckdb.connect(str(made))) as connection:
            try:
                with path.open(newline="", encoding="utf-8-sig") as file:
                    table = open_table(file, str(path))
                    columns = ", ".join(map(quoted, table.columns))
                    for _ in table.named():  # DuckDB's own message does not say which line is wrong
                        pass
                connection.execute(f"COPY {quoted(path.stem)} ({columns}) FROM ? (FORMAT csv, HEADER)", [str(path)])
            except (OSError, UnicodeDecodeError, duckdb.Error) as error:
                raise _wrong(path, error) from error


def in_order(tables: Sequence[Path], schema: SqlSchema) -> list[Path]:
    """Returns the CSV files in an order in which every foreign key finds its row."""
    by_name = {path.stem.lower(): path for path in tables}
    unknown = [path for name, path in by_name.items() if schema.table(name) is None]
    if unknown:
        raise InputError(Problem(str(path), None, "", f"no script makes a table {path.stem}") for path in unknown)
    return [by_name[table.name.lower()] for table in schema.referenced_first() if table.name.lower() in by_name]


def count_rows(path: Path, schema: SqlSchema) -> int:
    """Returns the number of rows in all tables of a database file. Raises an InputError if the file cannot be read."""
    import duckdb

    text = "SELECT " + " + ".join(f"(SELECT count(*) FROM {quoted(table.name)})" for table in schema.tables)
    if not schema.tables:
        return 0
    try:
        if path.suffix == ".duckdb":
            with closing(duckdb.connect(str(path), read_only=True)) as connection:
                found = connection.execute(text).fetchone()
        else:
            with closing(sqlite3.connect(address_of(settled(path)), uri=True)) as reader:
                found = reader.execute(text).fetchone()
    except (duckdb.Error, sqlite3.Error, OSError) as error:
        raise _wrong(path, error) from error
    return int(found[0]) if found else 0


def _wrong(path: Path, error: Exception) -> InputError:
    text = str(error).strip() or type(error).__name__
    text = undecodable(error) if isinstance(error, UnicodeDecodeError) else text
    return InputError([Problem(str(path), None, "", f"cannot be made into a database: {text.splitlines()[0]}")])

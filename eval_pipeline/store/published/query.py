"""Read-only access to the published store."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.published.ddl import FORMAT, text
from eval_pipeline.store.published.form import catalog_folder
from eval_pipeline.store.published.memo import form_of

if TYPE_CHECKING:
    import duckdb

_SUGGESTIONS = "catalog_error_max_schemas"
"""DuckDB's setting of where it looks for similar names to suggest, when it does not find one."""


def connect_read_only(path: Path, settings: Mapping[str, str | int] | None = None) -> "duckdb.DuckDBPyConnection":
    """Returns a connection to the store as it is now; later publishing does not change what it sees.

    Close it after use.

    Args:
        path: path of the store.
        settings: DuckDB settings, such as `memory_limit`.

    Raises:
        StoreError: there is no store yet, or it cannot be opened.
    """
    import duckdb

    if not path.is_file():
        raise StoreError(f"no store at {path}; run `eval-pipeline run` first")
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": "",
            **(settings or {}),
        },
    )
    try:
        # The store is attached, because DuckDB shares connections to one path within a process: while an older
        # connection is open, a new one would show the file from before the last publishing.
        connection.execute(f"ATTACH {text(str(path))} AS store (READ_ONLY)")
        connection.execute("USE store")
        reads_parts = _reads_parts(connection)
        if reads_parts:
            from eval_pipeline.store.catalog.reading import allow_parts

            allow_parts(connection, path)
        connection.execute("SET enable_external_access = false")
        if not reads_parts:
            # Neither of the two settings above is enough: both allow `COPY … TO '<the store>'`, which would empty it.
            connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
        connection.execute("SET lock_configuration = true")
    except StoreError:
        connection.close()
        raise
    except duckdb.Error as error:
        connection.close()
        raise _unreadable(path, error) from error
    return connection


def _reads_parts(connection: "duckdb.DuckDBPyConnection") -> bool:
    """Whether the attached store is a catalog. Asking for its table is cheap, as opposed to a list of all tables."""
    import duckdb

    connection.execute(f"SET {_SUGGESTIONS} = 0")
    try:
        connection.execute("FROM store.meta.catalog LIMIT 0")
    except duckdb.CatalogException:
        return False
    finally:
        connection.execute(f"RESET {_SUGGESTIONS}")
    return True


def run_query(path: Path, sql: str) -> pa.Table:
    """Returns the rows of a query on the store; JSON columns become text.

    Raises:
        StoreError: there is no store yet, or it cannot be opened or read.
        UsageError: DuckDB rejects the query; the message is DuckDB's. It adds that the store is of an earlier version,
            if that may be why something is not found.
    """
    import duckdb

    connection = connect_read_only(path)
    try:
        if catalog_folder(path).is_dir():
            from eval_pipeline.store.catalog.reading import refuse_writing

            refuse_writing(connection, sql)
        relation = connection.sql(sql)
        rows = pa.table({}) if relation is None else relation.to_arrow_table()
    except (duckdb.SerializationException, duckdb.IOException) as error:
        raise _unreadable(path, error) from error
    except (duckdb.Error, UnicodeDecodeError, OverflowError) as error:
        if not isinstance(error, duckdb.ParserException):
            tell_damage(path, error)
        not_found = isinstance(error, duckdb.BinderException | duckdb.CatalogException)
        raise UsageError(_first_line(error) + (_of_earlier_version(path) if not_found else "")) from error
    finally:
        connection.close()
    plain = [pa.field(field.name, getattr(field.type, "storage_type", field.type)) for field in rows.schema]
    return rows.cast(pa.schema(plain))


def _unreadable(path: Path, error: Exception) -> StoreError:
    what = _first_line(error)
    if "set lock" in what or "already attached" in what:
        return StoreError(f"another program has {path} open for writing; close it there, or publish again")
    return StoreError(f"cannot read {path} ({what}); `eval-pipeline publish --full` rebuilds it")


def tell_damage(path: Path, error: Exception) -> None:
    """Raises a StoreError if a part is damaged: DuckDB's message may then be any, and like one about the query."""
    if catalog_folder(path).is_dir():
        from eval_pipeline.store.catalog.reading import damaged_part

        if damaged := damaged_part(path):
            raise StoreError(f"{damaged} is damaged; `eval-pipeline publish --full` makes it anew") from error


def _of_earlier_version(path: Path) -> str:
    """Returns what to add to a message about something that is not in the store; nothing if this version made it."""
    form = form_of(path)
    if form is None or form >= FORMAT:
        return ""
    return "; the store was made by an earlier version of eval-pipeline, and `eval-pipeline publish` makes it anew"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

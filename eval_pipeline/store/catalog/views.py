"""The catalog: a DuckDB file whose views read the parts, with the tables, views, macros and comments of the store.

The view of a table reads one of the same name in the schema `parts`, which names the files.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.hashing.kept import kept
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.store.catalog.manifests import CatalogPart
from eval_pipeline.store.catalog.parts import FILE_COLUMNS, FILES
from eval_pipeline.store.published.ddl import commented, quoted, schema_hash, schema_sql, text
from eval_pipeline.store.published.engine import engine
from eval_pipeline.store.published.snapshot import PLACE, STORAGE_VERSION
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import published_tables

if TYPE_CHECKING:
    import duckdb

_CATALOG_FORMAT = 3
"""Raise it when the same record would be published as other parts or views."""
_BLOCK = 16_384
"""Size of the file's blocks: its pieces are small, and a catalog is written at every publishing."""
_FILES_VIEW = "meta.files"
_META = """
CREATE SCHEMA meta; CREATE SCHEMA parts;
CREATE TABLE meta.store (schema_hash VARCHAR); CREATE TABLE meta.catalog (parts VARCHAR);
"""
_PARTS = "SELECT parts FROM store.meta.catalog"


def catalog_hash(track_tables: Sequence[Table]) -> str:
    """Returns a hash that changes with the schema, the form of the parts or the publishing rules."""
    return schema_hash(f"catalog {_CATALOG_FORMAT}\n{schema_sql(track_tables)}")


def write_catalog(
    target: Path,
    track_tables: Sequence[Table],
    parts: Mapping[str, Sequence[CatalogPart]],
    folder: Path,
    memory_mb: int | None = None,
) -> None:
    """Writes the catalog over these parts.

    Args:
        target: the file; replaced if it exists.
        track_tables: the tables of the tracks.
        parts: the parts of each table, in the order of their rows.
        folder: the folder of all parts.
        memory_mb: memory limit of DuckDB.
    """
    import duckdb

    form = catalog_hash(track_tables)

    def without_parts() -> bytes:
        made = f"{_META}{_made(_FILES_VIEW, _rows(FILE_COLUMNS, ''))}"
        _change(
            target, f"{schema_sql(track_tables, made, _view)} INSERT INTO meta.store VALUES ({text(form)})", memory_mb
        )
        return target.read_bytes()

    target.unlink(missing_ok=True)
    # Half a CPU second, most of it for comments: made once, as only views of parts differ from catalog to catalog.
    template = kept("catalog", [form, duckdb.__version__, STORAGE_VERSION, str(_BLOCK)], without_parts)
    target.write_bytes(template)
    views = [_made(_FILES_VIEW, _rows(FILE_COLUMNS, _files(parts.get(FILES, ()), folder)))]
    views += [
        _of_parts(table, parts[table.name], folder) for table in published_tables(track_tables) if parts.get(table.name)
    ]
    _change(target, f"{''.join(views)} INSERT INTO meta.catalog VALUES ({text(str(folder))})", memory_mb)


def _change(target: Path, sql: str, memory_mb: int | None) -> None:
    """Runs statements in a catalog, which is made if it does not exist."""
    target.with_name(f"{target.name}.wal").unlink(missing_ok=True)  # of a publisher that was killed
    with engine(target, memory_mb) as connection:
        options = f"BLOCK_SIZE {_BLOCK}, STORAGE_VERSION {text(STORAGE_VERSION)}"
        connection.execute("SET parquet_metadata_cache = true")  # else each view and macro keeps what it read of a part
        connection.execute(f"ATTACH {text(str(target))} AS store ({options}); USE store")
        connection.execute(f"PRAGMA disable_optimizer; BEGIN; {sql}; COMMIT; PRAGMA enable_optimizer")
        connection.execute("CHECKPOINT; USE memory; DETACH store")
    give_back_memory()


def parts_folder(connection: "duckdb.DuckDBPyConnection") -> Path:
    """Returns the folder of the parts that an attached catalog reads."""
    ((found,),) = connection.execute(_PARTS).fetchall()
    return Path(found)


def _made(view: str, select: str) -> str:
    return f"CREATE OR REPLACE VIEW {view} AS {select};"


def _view(table: Table) -> Iterator[str]:
    """Yields what creates the view in a table's place, and the view of no parts that it reads."""
    yield _of_parts(table, (), Path())
    yield f"CREATE VIEW {quoted(table.name)} AS FROM {_place(table)};"
    yield from commented("VIEW", table)


def _of_parts(table: Table, parts: Sequence[CatalogPart], folder: Path) -> str:
    """Returns what makes the view of a table's parts, or of none."""
    read = _files(parts, folder)
    if table.key == "shared" and read:
        return _made(_place(table), _once(table, read))
    return _made(_place(table), _rows({column.name: column.type for column in table.published_columns}, read))


def _place(table: Table) -> str:
    return f'parts."{table.name}"'


def _once(table: Table, read: str) -> str:
    """Returns SQL that selects each row of a shared table once, from parts in which it may be several times.

    It joins places of rows (file and row number) instead of rows, because rows may be large.
    """
    options = f"hive_partitioning = false, filename = {text(PLACE)}, file_row_number = true"
    columns = ", ".join(f"p.{quoted(column.name)}" for column in table.published_columns)
    place, rows = f"{{'file': p.{quoted(PLACE)}, 'row': p.file_row_number}}", read.format(options=options)
    return (
        f"SELECT {columns} FROM {rows} AS p WHERE {place} IN "
        f"(SELECT min({place}) FROM {rows} AS p GROUP BY p.{quoted(table.unique)})"
    )


def _rows(columns: Mapping[str, str], read: str) -> str:
    if not read:
        return f"SELECT {', '.join(f'NULL::{kind} AS {quoted(name)}' for name, kind in columns.items())} WHERE false"
    # Qualified, since a parameter of a macro hides columns of its name also in the views that it reads.
    named = ", ".join(f"p.{quoted(name)}" for name in columns)
    return f"SELECT {named} FROM {read.format(options='hive_partitioning = false')} AS p"


def _files(parts: Sequence[CatalogPart], folder: Path) -> str:
    """Returns the table function that reads the parts, with `{options}` for more; empty if there are none.

    The folder is named once and not for each part, which makes large catalogs three times as small.
    """
    if not parts:
        return ""
    before, after = text(f"{folder / parts[0].table}/").replace("{", "{{").replace("}", "}}"), "'.parquet'"
    # Parts without key columns may be those of several keys.
    names = text(" ".join(dict.fromkeys(part.name for part in parts)))
    places = f"{before} || replace({names}, ' ', {after} || chr(31) || {before}) || {after}"
    return f"read_parquet(string_split({places}, chr(31)), {{options}})"

"""The databases of a suite: found in its folder, built where they are kept as text, on record as schemas."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.foreign import MOST_DOCUMENT_BYTES, check_yaml, read_bytes, read_text
from eval_pipeline.core.ids import files_hash, json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.sql_equivalence.schema.parts import SqlColumn, SqlTable
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline.tracks.options import read_options
from eval_pipeline.tracks.sql.cases.build import CSV, SCRIPT, build_database, count_rows
from eval_pipeline.tracks.sql.cases.suite_tables import DATABASES
from eval_pipeline.tracks.sql.words import DEFAULT_DIALECT

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "databases"
SPIDER_TABLES = "tables.json"
DESCRIPTIONS = "columns.yaml"
_FILES = {".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite", ".duckdb": "duckdb"}
_schema = TypeAdapter(SqlSchema)


class Options(BaseModel):
    """`options` of a suite of this track.

    Attributes:
        dialect: of the queries, by sqlglot's name; SQLite's for SQLite files and Spider's schemas, else DuckDB's.
        judge: whom the judge is asked about: all pairs, those that the evidence leaves open, or none.
        judge_model: the model version that judges; a Claude model where left out.
        samples: databases that are generated to tell two queries apart.
        time_limit_s: for comparing two queries.
        ceiling_threshold: see `complexity_ceiling`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    dialect: str | None = None
    judge: Literal["always", "undecided", "never"] = "always"
    judge_model: str | None = None
    samples: int = Field(default=8, ge=1, le=1000)
    time_limit_s: float = Field(default=10.0, gt=0, le=600)
    ceiling_threshold: float | None = None


@dataclass(frozen=True, eq=False)
class Database:
    """A database of a suite, equal to nothing but itself.

    Attributes:
        files: names below the suite's folder; none where only the schema is known.
        content_hash: of these files.
        rows: of all tables together.
        folder: of the suite.
    """

    name: str
    dialect: str
    schema: SqlSchema
    files: tuple[str, ...]
    content_hash: str
    rows: int
    folder: Path = field(repr=False)

    def path(self) -> Path | None:
        """The file to query, built first where the suite keeps it as text; None where it has no data.

        Raises:
            InputError: the suite's files cannot be made into a database any more.
        """
        if not self.rows:
            return None
        return _file_of(self.folder, self.files, self.dialect, self.content_hash)


@dataclass(frozen=True)
class Shared:
    """What the cases of a suite share."""

    databases: Mapping[str, Database]
    options: Options


def read_databases(folder: Path, options: Mapping[str, Json]) -> Shared:
    """The databases below `databases/` of a suite's folder.

    Each is a folder with scripts (`*.sql`) and tables (`<table>.csv`), a SQLite or DuckDB file, or an entry of Spider's
    `tables.json`, which has no data.

    Raises:
        InputError: a file cannot be read, or there is none.
    """
    told = read_options(Options, options, f"{folder.name}/suite.yaml")
    place = folder / FOLDER
    found: dict[str, Database] = {}
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        for database in _read(folder, path, told.dialect):
            # A schema of Spider's gives way to the database itself.
            if database.name not in found or not found[database.name].files:
                found[database.name] = database
    if not found:
        raise InputError([Problem(str(place), None, "", "expected databases: folders of .sql and .csv, or files")])
    return Shared(found, told)


def _read(folder: Path, path: Path, dialect: str | None) -> Iterator[Database]:
    if path.name == SPIDER_TABLES:
        yield from _read_spider(folder, path, dialect or "sqlite")
    elif path.is_dir() or path.suffix in _FILES:
        members = sorted(path.iterdir()) if path.is_dir() else [path]
        files = [member for member in members if member.suffix in (SCRIPT, CSV, *_FILES) and member.is_file()]
        if files:
            described = path / DESCRIPTIONS if path.is_dir() else path.with_suffix(f".{DESCRIPTIONS}")
            yield _read_database(folder, path.stem, files, described, dialect)


def _read_database(folder: Path, name: str, files: Sequence[Path], described: Path, dialect: str | None) -> Database:
    dialect = dialect or next((_FILES[path.suffix] for path in files if path.suffix in _FILES), DEFAULT_DIALECT)
    names = tuple(path.relative_to(folder).as_posix() for path in files)
    content_hash = files_hash(zip(names, files, strict=True))
    built = _file_of(folder, names, dialect, content_hash)
    schema = SqlSchema.from_database(built)
    if described.is_file():
        schema = _described(schema, described)
    return Database(name, dialect, schema, names, content_hash, count_rows(built, schema), folder)


def _file_of(folder: Path, files: Sequence[str], dialect: str, content_hash: str) -> Path:
    paths = [folder / name for name in files]
    if paths[0].suffix in _FILES:
        return paths[0]
    return build_database(paths, dialect, content_hash)


def _described(schema: SqlSchema, path: Path) -> SqlSchema:
    """The schema with the descriptions of `{table: {column: text}}`."""
    try:
        texts = TypeAdapter(dict[str, dict[str, str]]).validate_python(_yaml(path))
    except Exception as error:  # constructors of YAML's own types raise what they like
        raise InputError(
            [Problem(str(path), None, "", f"expected texts by column by table: {_told(error)}")]
        ) from error
    unknown = [
        f"{table}.{column}"
        for table, columns in texts.items()
        for column in columns
        if (found := schema.table(table)) is None or found.column(column) is None
    ]
    if unknown:
        raise InputError([Problem(str(path), None, place, "the database has no such column") for place in unknown])
    by_name = {
        (table.lower(), column.lower()): text for table, found in texts.items() for column, text in found.items()
    }

    def described(table: SqlTable) -> SqlTable:
        columns = tuple(
            SqlColumn(c.name, c.type, c.nullable, by_name.get((table.name.lower(), c.name.lower()), c.description))
            for c in table.columns
        )
        return SqlTable(table.name, columns, table.primary_key, table.foreign_keys, table.unique, table.checks)

    return SqlSchema(tuple(map(described, schema.tables)))


def _told(error: Exception) -> str:
    return error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)


def _yaml(path: Path) -> Any:
    import yaml

    text = read_text(path, most=MOST_DOCUMENT_BYTES)
    check_yaml(text)
    return yaml.safe_load(text)


def _read_spider(folder: Path, path: Path, dialect: str) -> Iterator[Database]:
    try:
        entries = TypeAdapter(list[dict[str, Any]]).validate_json(read_bytes(path))
    except (OSError, ValidationError) as error:
        raise InputError([Problem(str(path), None, "", f"not Spider's tables.json: {_told(error)}")]) from error
    for number, entry in enumerate(entries):
        try:
            name, schema = str(entry["db_id"]), SqlSchema.from_spider(entry)
        except (KeyError, ValueError) as error:
            raise InputError([Problem(str(path), None, str(number), str(error))]) from error
        yield Database(name, dialect, schema, (), files_hash([(path.name, path)]), 0, folder)


def database_rows(shared: Shared) -> dict[str, dict[str, list[Any]]]:
    """The databases as columns of the table."""
    found = list(shared.databases.values())
    return {
        DATABASES.name: {
            "database": [one.name for one in found],
            "dialect": [one.dialect for one in found],
            "ddl": [one.schema.ddl() for one in found],
            "schema": [_schema.dump_json(one.schema).decode() for one in found],
            "files": [json_text(one.files) for one in found],
            "content_hash": [one.content_hash for one in found],
            "rows": [one.rows for one in found],
        }
    }


def load_databases(tables: "Mapping[str, pa.Table]", options: Mapping[str, Json], folder: Path) -> Shared:
    """What `read_databases` gave, from the table that `database_rows` filled."""
    found = {
        row["database"]: Database(
            row["database"],
            row["dialect"],
            _schema.validate_json(row["schema"]),
            tuple(parse_json(row["files"])),
            row["content_hash"],
            row["rows"],
            folder,
        )
        for row in tables[DATABASES.name].to_pylist()
    }
    return Shared(found, read_options(Options, options, f"{folder.name}/suite.yaml"))

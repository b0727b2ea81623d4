"""The databases of a suite.

This module finds them in the suite's folder, builds them from text files, and stores their schemas on record.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import files_hash, json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline.core.reading.foreign import MOST_DOCUMENT_BYTES, check_yaml, read_bytes, read_text
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import DIALECTS, DataPlace, Server
from eval_pipeline.sandbox.sql.sqlite_files import beside
from eval_pipeline.table_comparison.contracts import Contract, WrittenContract
from eval_pipeline.tracks.options import read_options
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql import DATABASES
from eval_pipeline_plugins.tracks.sql.cases.build import CSV, SCRIPT, build_database, count_rows
from eval_pipeline_plugins.tracks.sql.cases.words import DEFAULT_DIALECT

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "databases"
SPIDER_TABLES = "tables.json"
DESCRIPTIONS = "columns.yaml"
TEST_SUITE = ".suite"
"""End of the name of a folder with further databases of one schema."""
_FILES = {".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite", ".duckdb": "duckdb"}
_schema = TypeAdapter(SqlSchema)


def _moment(written: Any) -> Any:
    """Returns a date, or a date and a time, as a time in UTC without its zone.

    Pydantic would take a number, such as a year, for seconds since 1970.
    """
    try:
        moment = datetime.fromisoformat(written if isinstance(written, str) else written.isoformat())
    except (ValueError, AttributeError):
        raise ValueError(
            f"expected a date such as 2024-05-01 or 2024-05-01T12:30:00, found {told_value(written)}"
        ) from None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


class Options(BaseModel):
    """The `options` of a suite of this track.

    Attributes:
        engine: the server on which queries run (docs/sql.md); default: SQLite or DuckDB, embedded.
        dialect: sqlglot's name for the dialect of queries; default: SQLite for SQLite files and Spider's schemas, else
            DuckDB.
        headline: what makes a query right: the same result on the data (`execution_match`), also on generated databases
            that fit the data (`robust`), or exactly the same on every generated one (`strict`).
        compare: in what results may differ and still be the same, see `table_comparison.contracts`.
        judge: which pairs the judge is asked about: all, those that the evidence leaves undecided, or none.
        judge_model: the model version that judges; default: a Claude model.
        samples: how many databases are generated to tell two queries apart.
        time_limit_s: time limit for comparing two queries.
        query_time_limit_s: time limit of one query on the suite's database, accepted or answered.
        max_rows: most rows of the result of such a query; more is an error.
        as_of: the time that every such query reads from the clock; default: the time at which it runs.
        ceiling_threshold: see `complexity_ceiling`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["postgres", "mysql", "mariadb"] | None = None
    dialect: str | None = None
    headline: Literal["execution_match", "robust", "strict"] = "robust"
    compare: WrittenContract = Contract()
    judge: Literal["always", "undecided", "never"] = "always"
    judge_model: str | None = None
    samples: int = Field(default=8, ge=1, le=1000)
    time_limit_s: float = Field(default=10.0, gt=0, le=600)
    query_time_limit_s: float = Field(default=10.0, gt=0, le=600)
    max_rows: int = Field(default=100_000, ge=1, le=1_000_000)
    as_of: Annotated[datetime, BeforeValidator(_moment)] | None = None
    ceiling_threshold: float | None = None

    @model_validator(mode="after")
    def _speaks_to_its_engine(self) -> "Options":
        if self.engine is not None and self.dialect not in (None, DIALECTS[self.engine]):
            raise ValueError(f"on {self.engine} queries run in its own dialect; leave out 'dialect'")
        return self


@dataclass(frozen=True, eq=False)
class Database:
    """A database of a suite; compared by identity.

    Attributes:
        files: names relative to the suite's folder; none if only the schema is known.
        content_hash: hash of these files.
        rows: number of rows in all tables.
        folder: folder of the suite.
        server: the server on which queries run; None for an embedded engine.
        limits: limits of a query, accepted or answered.
        as_of: the time that queries read from the clock; None for the time at which they run.
    """

    name: str
    dialect: str
    schema: SqlSchema
    files: tuple[str, ...]
    content_hash: str
    rows: int
    folder: Path = field(repr=False)
    server: Server | None = None
    limits: SqlLimits = field(default_factory=SqlLimits)
    as_of: datetime | None = None

    def pinned(self, sql: str) -> str:
        """Returns a query in the database's dialect with its clock at `as_of`."""
        if self.as_of is None:
            return sql
        from eval_pipeline_plugins.tracks.sql.gold.clock import pinned

        return pinned(sql, self.dialect, self.as_of)

    def further(self) -> tuple[Path, ...]:
        """Returns the files of `<name>.suite` beside the database: the same tables with other rows; often none."""
        place = self.folder / FOLDER / (self.name + TEST_SUITE)
        if self.server is not None or not self.rows or not place.is_dir():
            return ()
        return tuple(path for path in sorted(place.iterdir()) if path.suffix in _FILES)

    def path(self) -> DataPlace | None:
        """Returns the file or the schema on a server to query; None if there is no data.

        A database that the suite has as text is built first if necessary.

        Raises:
            InputError: a database can no longer be built from the suite's files.
            EvalError: there is no server to query.
        """
        if not self.rows:
            return None
        if self.server is not None:
            from eval_pipeline_plugins.tracks.sql.servers.databases import loaded

            return loaded(self.server, self.folder, self.name, self.files, self.dialect, self.content_hash)
        return _file_of(self.folder, self.files, self.dialect, self.content_hash)


@dataclass(frozen=True)
class SharedDatabases:
    """What the cases of a suite share."""

    databases: Mapping[str, Database]
    options: Options


def read_databases(folder: Path, options: Mapping[str, Json]) -> SharedDatabases:
    """Reads the databases below `databases/` in a suite's folder.

    Each is a folder with scripts (`*.sql`) and tables (`<table>.csv`), a SQLite or DuckDB file, or an entry of Spider's
    `tables.json`, which has no data. Folders `<name>.suite` have further files for a database, see `Database.further`.

    Raises:
        InputError: a file cannot be read, or there is none.
    """
    told = read_options(Options, options, f"{folder.name}/suite.yaml")
    place = folder / FOLDER
    found: dict[str, Database] = {}
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        for database in _read(folder, path, told):
            # A database file replaces a schema of the same name from Spider.
            if database.name not in found or not found[database.name].files:
                found[database.name] = database
    if not found:
        raise InputError([Problem(str(place), None, "", "expected databases: folders of .sql and .csv, or files")])
    return SharedDatabases({name: _under(told, one) for name, one in found.items()}, told)


def _under(options: Options, database: Database) -> Database:
    """Returns a database with the suite's limits and clock."""
    scale = max(1.0, options.max_rows / SqlLimits().rows)
    limits = SqlLimits(
        seconds=options.query_time_limit_s,
        rows=options.max_rows,
        result_bytes=round(scale * SqlLimits().result_bytes),
    )
    return replace(database, limits=limits, as_of=options.as_of)


def _read(folder: Path, path: Path, options: Options) -> Iterator[Database]:
    dialect = options.dialect
    if path.name == SPIDER_TABLES and options.engine is None:
        yield from _read_spider(folder, path, dialect or "sqlite")
    elif (path.is_dir() and path.suffix != TEST_SUITE) or path.suffix in _FILES:
        members = sorted(path.iterdir()) if path.is_dir() else [path]
        files = [member for member in members if member.suffix in (SCRIPT, CSV, *_FILES) and member.is_file()]
        if files:
            described = path / DESCRIPTIONS if path.is_dir() else path.with_suffix(f".{DESCRIPTIONS}")
            if options.engine is not None:
                yield _on_server(options.engine, folder, path.stem, files, described)
            else:
                yield _read_database(folder, path.stem, files, described, dialect)


def _read_database(folder: Path, name: str, files: Sequence[Path], described: Path, dialect: str | None) -> Database:
    dialect = dialect or next((_FILES[path.suffix] for path in files if path.suffix in _FILES), DEFAULT_DIALECT)
    names = tuple(path.relative_to(folder).as_posix() for path in files)
    unsettled = [(other.name, other) for path in files for other in beside(path)]
    content_hash = files_hash([*zip(names, files, strict=True), *unsettled])
    built = _file_of(folder, names, dialect, content_hash)
    schema = SqlSchema.from_database(built)
    if described.is_file():
        schema = _described(schema, described)
    return Database(name, dialect, schema, names, content_hash, count_rows(built, schema), folder)


def _on_server(server: Server, folder: Path, name: str, files: Sequence[Path], described: Path) -> Database:
    """Loads a database on a server, unless it is loaded already."""
    from eval_pipeline_plugins.tracks.sql.servers.databases import count_on, load, schema_of

    names = tuple(path.relative_to(folder).as_posix() for path in files)
    content_hash, dialect = files_hash(zip(names, files, strict=True)), DIALECTS[server]
    schema = schema_of(files, dialect)
    place = load(server, folder, name, names, dialect, content_hash)
    rows = count_on(place, [table.name for table in schema.tables])
    if described.is_file():
        schema = _described(schema, described)
    return Database(name, dialect, schema, names, content_hash, rows, folder, server)


def _file_of(folder: Path, files: Sequence[str], dialect: str, content_hash: str) -> Path:
    paths = [folder / name for name in files]
    if paths[0].suffix in _FILES:
        return paths[0]
    return build_database(paths, dialect, content_hash)


def _described(schema: SqlSchema, path: Path) -> SqlSchema:
    """Returns the schema with added descriptions from `{table: {column: text}}`."""
    try:
        texts = TypeAdapter(dict[str, dict[str, str]]).validate_python(_yaml(path))
    except Exception as error:  # YAML's constructors may raise any exception
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
            replace(c, description=by_name.get((table.name.lower(), c.name.lower()), c.description))
            for c in table.columns
        )
        return replace(table, columns=columns)

    return replace(schema, tables=tuple(map(described, schema.tables)))


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


def database_rows(shared: SharedDatabases) -> dict[str, dict[str, list[Any]]]:
    """Returns a row a database: table → column → its values."""
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
            "max_rows": [one.limits.rows for one in found],
            "query_time_limit_s": [one.limits.seconds for one in found],
            "as_of": [one.as_of.isoformat() if one.as_of else None for one in found],
        }
    }


def load_databases(tables: "Mapping[str, pa.Table]", options: Mapping[str, Json], folder: Path) -> SharedDatabases:
    """Restores the result of `read_databases` from the table that `database_rows` filled."""
    told = read_options(Options, options, f"{folder.name}/suite.yaml")
    found = {
        row["database"]: _under(
            told,
            Database(
                row["database"],
                row["dialect"],
                _schema.validate_json(row["schema"]),
                tuple(parse_json(row["files"])),
                row["content_hash"],
                row["rows"],
                folder,
                told.engine,
            ),
        )
        for row in tables[DATABASES.name].to_pylist()
    }
    return SharedDatabases(found, told)

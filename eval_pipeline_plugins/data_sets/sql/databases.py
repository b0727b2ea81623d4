"""The databases of a foreign data set: finds them in files and folders, and writes them to the suite's folder.

It finds SQLite and DuckDB files, Spider's `tables.json` (schemas without data), statistics of columns (from which a
database without a file is generated), and descriptions of columns in five forms: BIRD's `database_description` folders,
defog's `table_metadata`, querycraft's `tables`, KaggleDBQA's `column_descriptions` and LiveSQLBench's
`<database>_column_meaning_base.json`.
"""

import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import dotted
from eval_pipeline.core.reading.csv_files import open_csv
from eval_pipeline.core.reading.foreign import NotUtf8Error
from eval_pipeline.sandbox.sql.sqlite_files import settled
from eval_pipeline_plugins.data_sets.sql.column_statistics import DatabaseStatistics, is_statistics, read_statistics
from eval_pipeline_plugins.data_sets.sql.synthesis import synthesise
from eval_pipeline_plugins.foreign_entries import read_json, read_text
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.source import DESCRIPTIONS, FOLDER, SPIDER_TABLES, TEST_SUITE

SUFFIXES = (".sqlite", ".sqlite3", ".db", ".duckdb")
_TEMPLATE = "_template"
"""LiveSQLBench's databases have a copy with this end of its name."""
_MEANINGS = "_column_meaning_base"
_BIRD_FOLDER = "database_description"
Descriptions = Mapping[str, Mapping[str, str]]
"""The descriptions, by table and column."""


class Databases:
    """Databases, schemas and descriptions by the name of the database.

    Attributes:
        files: the file of each database.
        schemas: entries of `tables.json`.
        statistics: statistics of the columns.
    """

    def __init__(self, given: Sequence[Path]) -> None:
        """Searches files and, at any depth, folders. Raises an InputError for invalid JSON."""
        self.files: dict[str, Path] = {}
        self._again: dict[str, Path] = {}
        self.schemas: dict[str, Mapping[str, Any]] = {}
        self.statistics: dict[str, DatabaseStatistics] = {}
        self._descriptions: dict[str, Callable[[], Descriptions]] = {}
        for path in chain.from_iterable(map(files_below, given)):
            self._take(path)

    def _take(self, path: Path) -> None:
        if path.suffix.lower() in SUFFIXES:
            if self.files.setdefault(path.stem, path) != path:
                self._again[path.stem] = path
        elif path.suffix.lower() == ".json":
            self._take_json(path, read_json(path))
        elif path.parent.name == _BIRD_FOLDER and path.suffix.lower() == ".csv":
            folder = path.parent
            self._descriptions[folder.parent.name] = lambda: _of_bird(folder)

    def _take_json(self, path: Path, found: Json) -> None:
        if isinstance(found, list):
            entries = [entry for entry in found if isinstance(entry, dict) and "table_names_original" in entry]
            self.schemas |= {str(entry.get("db_id", "")): entry for entry in entries}
            for entry in entries:
                if isinstance(entry.get("column_descriptions"), list):
                    self._descriptions[str(entry.get("db_id", ""))] = partial(_of_kaggledbqa, entry)
            self.statistics |= read_statistics(path, [(i, one) for i, one in enumerate(found) if is_statistics(one)])
        elif isinstance(found, dict) and (
            isinstance(found.get("table_metadata"), dict) or isinstance(found.get("tables"), list)
        ):
            self._descriptions[path.stem] = lambda: _of_json(found)
        elif isinstance(found, dict) and path.stem.endswith(_MEANINGS):
            self._descriptions[path.stem.removesuffix(_MEANINGS)] = partial(_of_livesqlbench, found)

    @property
    def names(self) -> list[str]:
        """Returns the names of all databases, with or without data."""
        return sorted({*self.files, *self.schemas, *self.statistics})

    def synthesised(self, wanted: Iterable[str]) -> list[str]:
        """Returns which of these databases have statistics but no file, so that they are generated."""
        return sorted(set(wanted) & set(self.statistics) - set(self.files))

    def dialect(self, name: str) -> str:
        """Returns the dialect of the queries to a database: DuckDB's for its files, else SQLite's."""
        path = self.files.get(name)
        return "duckdb" if path is not None and path.suffix.lower() == ".duckdb" else "sqlite"

    def require(
        self, source: Path, field: str, wanted: Iterable[str], places: Sequence[tuple[str, int | None]] = ()
    ) -> None:
        """Checks that every database that cases ask about was given exactly once.

        Args:
            source: the file of the cases.
            field: their field that names the database.
            wanted: the names.
            places: for each name, the path and line of its case, if known (`Checked.places`).

        Raises:
            InputError: names those that were not, with the field of the cases that asks for them.
        """
        known, wanted = ", ".join(self.names) or "none", list(wanted)
        first = dict(reversed(list(zip(wanted, places, strict=False))))
        problems = []
        for name in sorted(set(wanted) - set(self.names)):
            where, line = first.get(name, ("", None))
            told = f"no database '{name}' among those given with --databases ({known})"
            problems.append(Problem(str(source), line, dotted([part for part in (where, field) if part]), told))
        problems += [
            Problem(str(path), None, "", f"{self.files[name]} is a database of the same name")
            for name, path in sorted(self._again.items())
            if name in set(wanted)
        ]
        if problems:
            raise InputError(problems)

    def put(self, wanted: Iterable[str], folder: Path, queries: Mapping[str, Sequence[str]] | None = None) -> None:
        """Writes the wanted databases to a suite's folder; for those without data, their schemas.

        Args:
            wanted: names of the databases.
            folder: the suite's folder.
            queries: accepted queries by database, whose literals occur in databases that are made from statistics.

        Raises:
            InputError: a database file cannot be read.
        """
        names, place = set(wanted), folder / FOLDER
        place.mkdir()
        for name in sorted(names & set(self.files)):
            path = self.files[name]
            # All SQLite files get the same suffix, because it determines the dialect of the suite's queries.
            target = place / (name + (".duckdb" if path.suffix.lower() == ".duckdb" else ".sqlite"))
            shutil.copyfile(settled(path), target)
            self._describe(name, target)
            for other in _test_suite(path):
                (place / (name + TEST_SUITE)).mkdir(exist_ok=True)
                shutil.copyfile(settled(other), place / (name + TEST_SUITE) / other.name)
        made = self.synthesised(names)
        for name in made:
            target = place / f"{name}.sqlite"
            synthesise(self.statistics[name], (queries or {}).get(name, ()), target)
            self._descriptions.setdefault(name, partial(_of_statistics, self.statistics[name]))
            self._describe(name, target)
        entries = [self.schemas[name] for name in sorted(names - set(self.files) - set(made))]
        if entries:
            (place / SPIDER_TABLES).write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")

    def _describe(self, name: str, target: Path) -> None:
        if name not in self._descriptions:
            return
        schema = SqlSchema.from_database(target)
        kept: dict[str, dict[str, str]] = {}
        for table, columns in self._descriptions[name]().items():
            # defog's names may have the schema of a Postgres database as a prefix, which SQLite does not know.
            found = schema.table(table) or schema.table(table.rpartition(".")[2])
            texts = {column: text for column, text in columns.items() if text and found and found.column(column)}
            if found and texts:
                kept[found.name] = texts
        if kept:
            described = target.with_suffix(f".{DESCRIPTIONS}")
            described.write_text(yaml.safe_dump(kept, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _test_suite(path: Path) -> list[Path]:
    """Returns the other databases in the folder that is named after a database: Spider's test suites are kept so."""
    if path.parent.name != path.stem:
        return []
    others = (other for other in path.parent.glob(f"[!.]*{path.suffix}") if not other.stem.endswith(_TEMPLATE))
    return sorted(other for other in others if other != path)


def files_below(path: Path) -> Iterator[Path]:
    """Yields a file, or the files of a folder at any depth."""
    if path.is_dir():
        # Archives made on a Mac contain a second file, `._name`, for each file.
        yield from (found for found in sorted(path.rglob("[!.]*")) if found.is_file())
    else:
        yield path


def _of_bird(folder: Path) -> Descriptions:
    """Reads `<table>.csv` files with `original_column_name`, `column_description` and `value_description`."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*.csv")):
        rows = open_csv(io.StringIO(_old_text(path), newline=""), str(path)).named()
        found[path.stem] = {
            (row.get("original_column_name") or "").strip(): _one_line(
                row.get("column_description"), row.get("value_description")
            )
            for _, row in rows
        }
    return found


def _old_text(path: Path) -> str:
    # Some of BIRD's descriptions were saved by Windows programs.
    try:
        return read_text(path)
    except InputError as error:
        if not isinstance(error.__cause__, NotUtf8Error):
            raise
        return path.read_text(encoding="cp1252", errors="replace")


def _of_json(found: Mapping[str, Any]) -> Descriptions:
    """Reads defog's `{table_metadata: {table: [column]}}` or querycraft's `{tables: [{name, columns}]}`."""
    tables = found.get("table_metadata")
    if isinstance(tables, dict):
        return {
            table: {c["column_name"]: _one_line(c.get("column_description")) for c in columns if "column_name" in c}
            for table, columns in tables.items()
        }
    return {
        table["name"]: {c["name"]: _one_line(c.get("description")) for c in table.get("columns", ()) if "name" in c}
        for table in found["tables"]
        if isinstance(table, dict) and "name" in table
    }


def _of_kaggledbqa(entry: Mapping[str, Any]) -> Descriptions:
    """Reads `column_descriptions`, a text for each entry of `column_names_original`."""
    tables, found = entry["table_names_original"], dict[str, dict[str, str]]()
    for (table, column), text in zip(entry["column_names_original"], entry["column_descriptions"], strict=False):
        if isinstance(text, str) and 0 <= table < len(tables):
            found.setdefault(tables[table], {})[column] = _one_line(text)
    return found


def _of_livesqlbench(meanings: Mapping[str, Any]) -> Descriptions:
    """Reads `{"database|table|column": text}`; columns with JSON have `column_meaning` and `fields_meaning`."""
    found: dict[str, dict[str, str]] = {}
    for place, told in meanings.items():
        _, table, column = [*place.split("|"), "", "", ""][:3]
        if isinstance(told, dict):
            fields = told.get("fields_meaning")
            told = _one_line(str(told.get("column_meaning") or ""), json.dumps(fields) if fields else None)
        found.setdefault(table, {})[column] = _one_line(str(told))
    return found


def _of_statistics(found: DatabaseStatistics) -> Descriptions:
    return {
        table: {column: _one_line(*texts) for column, texts in columns.items()}
        for table, columns in found.descriptions()
    }


def _one_line(*texts: str | None) -> str:
    return "; ".join(text for text in (" ".join((told or "").split()) for told in texts) if text)

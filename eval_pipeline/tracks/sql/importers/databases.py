"""The databases that come with a foreign data set: found among files and folders, put into the suite's folder.

Found are SQLite and DuckDB files, Spider's `tables.json` (schemas without data), and descriptions of columns in three
forms: BIRD's `database_description` folders, defog's `table_metadata` and querycraft's `tables`.
"""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline.tracks.foreign_entries import read_json, read_text
from eval_pipeline.tracks.sql.cases.source import DESCRIPTIONS, FOLDER, SPIDER_TABLES

SUFFIXES = (".sqlite", ".sqlite3", ".db", ".duckdb")
_BIRD_FOLDER = "database_description"
Descriptions = Mapping[str, Mapping[str, str]]
"""Texts by column by table."""


class Databases:
    """Databases, schemas and descriptions by the name of the database.

    Attributes:
        files: a database file each.
        schemas: entries of `tables.json`.
    """

    def __init__(self, given: Sequence[Path]) -> None:
        """Looks through files and, at whatever depth, folders. Raises InputError for JSON that does not parse."""
        self.files: dict[str, Path] = {}
        self._again: dict[str, Path] = {}
        self.schemas: dict[str, Mapping[str, Any]] = {}
        self._descriptions: dict[str, Callable[[], Descriptions]] = {}
        for path in chain.from_iterable(map(_files_below, given)):
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
        elif isinstance(found, dict) and (
            isinstance(found.get("table_metadata"), dict) or isinstance(found.get("tables"), list)
        ):
            self._descriptions[path.stem] = lambda: _of_json(found)

    @property
    def names(self) -> list[str]:
        """Of all databases, with data or without."""
        return sorted({*self.files, *self.schemas})

    def require(self, source: Path, field: str, wanted: Iterable[str]) -> None:
        """Checks that every database that cases ask about is there, once.

        Raises:
            InputError: naming those that are not, with the field of the cases that asks for them.
        """
        known = ", ".join(self.names) or "none"
        problems = [
            Problem(str(source), None, field, f"no database '{name}' among those given with --databases ({known})")
            for name in sorted(set(wanted) - set(self.names))
        ]
        problems += [
            Problem(str(path), None, "", f"{self.files[name]} is a database of the same name")
            for name, path in sorted(self._again.items())
            if name in set(wanted)
        ]
        if problems:
            raise InputError(problems)

    def put(self, wanted: Iterable[str], folder: Path) -> None:
        """Writes the wanted databases into a suite's folder; of those without data, the schemas.

        Raises:
            InputError: a database file cannot be read.
        """
        names, place = set(wanted), folder / FOLDER
        place.mkdir()
        for name in sorted(names & set(self.files)):
            path = self.files[name]
            # One ending for all of SQLite's: the dialect of the suite's queries follows from it.
            target = place / (name + (".duckdb" if path.suffix.lower() == ".duckdb" else ".sqlite"))
            shutil.copyfile(path, target)
            self._describe(name, target)
        entries = [self.schemas[name] for name in sorted(names - set(self.files))]
        if entries:
            (place / SPIDER_TABLES).write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")

    def _describe(self, name: str, target: Path) -> None:
        if name not in self._descriptions:
            return
        schema = SqlSchema.from_database(target)
        kept: dict[str, dict[str, str]] = {}
        for table, columns in self._descriptions[name]().items():
            # defog's names may have the schema of a Postgres database before them, which SQLite has not.
            found = schema.table(table) or schema.table(table.rpartition(".")[2])
            texts = {column: text for column, text in columns.items() if text and found and found.column(column)}
            if found and texts:
                kept[found.name] = texts
        if kept:
            described = target.with_suffix(f".{DESCRIPTIONS}")
            described.write_text(yaml.safe_dump(kept, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _files_below(path: Path) -> Iterator[Path]:
    if path.is_dir():
        # Archives made on a Mac hold a second file, `._name`, beside each.
        yield from (found for found in sorted(path.rglob("[!.]*")) if found.is_file())
    else:
        yield path


def _of_bird(folder: Path) -> Descriptions:
    """From `<table>.csv` files with `original_column_name`, `column_description` and `value_description`."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*.csv")):
        rows = csv.DictReader(io.StringIO(_old_text(path)))
        found[path.stem] = {
            (row.get("original_column_name") or "").strip(): _one_line(
                row.get("column_description"), row.get("value_description")
            )
            for row in rows
        }
    return found


def _old_text(path: Path) -> str:
    # Some of BIRD's descriptions were saved by Windows programs.
    try:
        return read_text(path)
    except InputError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        return path.read_text(encoding="cp1252", errors="replace")


def _of_json(found: Mapping[str, Any]) -> Descriptions:
    """From defog's `{table_metadata: {table: [column]}}` or querycraft's `{tables: [{name, columns}]}`."""
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


def _one_line(*texts: str | None) -> str:
    return "; ".join(text for text in (" ".join((told or "").split()) for told in texts) if text)

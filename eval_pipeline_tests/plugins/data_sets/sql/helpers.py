"""Databases and imports for the tests of the importers."""

import sqlite3
from contextlib import closing
from pathlib import Path

from eval_pipeline.core.model import Case
from eval_pipeline.operations.imports.importing import ImportedSuite, import_suite
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline_tests.support import Lab

SCHOOLS = """
CREATE TABLE schools (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
CREATE TABLE pupils (id INTEGER PRIMARY KEY, school INTEGER REFERENCES schools (id), born DATE);
INSERT INTO schools VALUES (1, 'North', 'Oslo'), (2, 'South', NULL);
INSERT INTO pupils VALUES (1, 1, '2010-04-01'), (2, 1, '2011-09-30'), (3, 2, NULL);
"""


def write_database(path: Path, script: str = SCHOOLS) -> Path:
    """A SQLite database; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def imported(lab: Lab, form: str, source: Path, *databases: Path, limit: int | None = None) -> list[Case]:
    """The cases of the suite `foreign` that an import made, read from its folder."""
    return cases_of(run_import(lab, form, source, *databases, limit=limit))


def run_import(lab: Lab, form: str, source: Path, *databases: Path, limit: int | None = None) -> ImportedSuite:
    """What an import of the suite `foreign` says of itself, such as the gold that does not hold."""
    return import_suite(lab.workspace(), form, source, "foreign", limit, databases)


def cases_of(made: ImportedSuite) -> list[Case]:
    """The cases of an imported suite, read from its folder."""
    return list(read_suite(read_header(made.folder)).cases)

"""Runs scripts on private copies of a suite's databases."""

from functools import lru_cache
from pathlib import Path

from eval_pipeline.core.model import Failed
from eval_pipeline.core.reading.csv_files import open_table
from eval_pipeline.core.reading.foreign import read_text
from eval_pipeline.sandbox.sql.effects.postgres_copy import ServerCopy
from eval_pipeline.sandbox.sql.effects.state import Effects, Script
from eval_pipeline.sandbox.sql.live.places import LivePlace
from eval_pipeline.sandbox.sql.live.rights import checked_writer
from eval_pipeline_plugins.tracks.sql.cases.build import CSV, SCRIPT, in_order
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.effects.scripts import statements_of, validate_script
from eval_pipeline_plugins.tracks.sql.responses.running import runner
from eval_pipeline_plugins.tracks.sql.validation.validator import Validation


def copied(database: Database) -> Path | ServerCopy:
    """Returns what private copies of a database are made from.

    Raises:
        InputError: a file can no longer be read.
        EvalError: there is no server, or the role for scripts is not set or has too many rights.
    """
    if database.server is not None:
        return _on_server(database)
    path = database.path()
    assert path is not None and not isinstance(path, LivePlace), "the case file says so"
    return path


@lru_cache(maxsize=64)
def _on_server(database: Database) -> ServerCopy:
    paths = [database.folder / name for name in database.files]
    tables = [path for path in paths if path.suffix == CSV]
    contents = []
    for path in in_order(tables, database.schema) if tables else ():
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = open_table(file, str(path))
            rows = tuple(tuple(cell or None for cell in row) for row in table.whole())
            contents.append((path.stem, tuple(table.columns), rows))
    scripts = tuple(read_text(path) for path in paths if path.suffix == SCRIPT)
    return ServerCopy(checked_writer(), scripts, tuple(contents))


def script_of(sql: str, setup: str, checks: str, database: Database) -> Script:
    """Returns what runs on a private copy: the setup, then the statements of a script, and then of its checks."""
    before, during, after = (
        tuple(map(database.pinned, statements_of(text, database.dialect))) for text in (setup, sql, checks)
    )
    return Script(during, after, before)


def effects_of(sql: str, setup: str, checks: str, database: Database) -> Effects | Failed:
    """Returns what a script does to a private copy, and what the checks then say; or why that cannot be said."""
    script = script_of(sql, setup, checks, database)
    return runner().run_script_now(copied(database), script, database.limits)


@lru_cache(maxsize=1024)
def accepted_effects(sql: str, setup: str, checks: str, database: Database) -> Effects | Failed:
    """Returns the same for an accepted script, which is run once for all the answers."""
    return effects_of(sql, setup, checks, database)


@lru_cache(maxsize=1024)
def repeated_effects(sql: str, setup: str, checks: str, database: Database) -> Effects | Failed:
    """Returns the same of another run of an accepted script, which shows whether it does the same each time."""
    return effects_of(sql, setup, checks, database)


@lru_cache(maxsize=4096)
def validated_script(sql: str, database: Database) -> Validation:
    """Returns the validator's result for a script; results are cached."""
    return validate_script(sql, database.schema, database.dialect)

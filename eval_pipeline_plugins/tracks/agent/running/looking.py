"""What is looked at in an end state: tables of databases and of files, and queries, read in the jail.

A model may have made the files, so they are read where it acted, by the code that is written here.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from inspect import getsource
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.sandbox.inside.looked import tabled
from eval_pipeline.sandbox.inside.objects import (
    duckdb_objects,
    pragma,
    rules,
    sqlite_columns,
    sqlite_facts,
    sqlite_index,
    sqlite_objects,
    words,
)
from eval_pipeline.sandbox.world.changes import ChangedFile

MOST_ROWS = 20_000

_CODE = r"""
import base64, decimal, hashlib, json, math, re, sqlite3, urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

INSIDE

def cell(found):
    if found is None or isinstance(found, (bool, int, str)):
        return found
    if isinstance(found, float):
        return found if math.isfinite(found) else {"float": repr(found)}
    if isinstance(found, decimal.Decimal):
        return float(found)
    if isinstance(found, (bytes, bytearray, memoryview)):
        return {"bytes": base64.b64encode(bytes(found)).decode()}
    if isinstance(found, (list, tuple)):
        return [cell(one) for one in found]
    if isinstance(found, dict):
        return {str(name): cell(one) for name, one in found.items()}
    return str(found)

def table(columns, rows, place=""):
    return tabled(list(columns), ([cell(one) for one in row] for row in rows), MOST, place, FREE)

def opened(file):
    with open(file, "rb") as bytes_of:
        is_sqlite = bytes_of.read(16) == b"SQLite format 3\0"
    if is_sqlite:
        return sqlite3.connect(f"file:{urllib.parse.quote(file)}?mode=rw", uri=True), True
    import duckdb
    return duckdb.connect(file, config={"threads": 1}), False

def quoted(name):
    return '"' + name.replace('"', '""') + '"'

def tables(database, is_sqlite, whose):
    if is_sqlite:
        names = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        named = [(name, quoted(name)) for (name,) in names.fetchall() if not name.startswith("sqlite_")]
    else:
        names = database.execute("SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2")
        named = [
            (name if schema == "main" else f"{schema}.{name}", f"{quoted(schema)}.{quoted(name)}")
            for schema, name in names.fetchall()
        ]
    found = {}
    for name, written in named:
        try:
            made = database.execute(f"SELECT * FROM {written}")
            columns = [one[0] for one in made.description]
            found[name] = table(columns, iter(made.fetchone, None), f"{whose}.{name}")
        except Exception as error:
            found[name] = {"error": str(error)}
    return found

def query(database, text):
    try:
        made = database.execute(text)
        return table([one[0] for one in made.description or ()], iter(made.fetchone, None) if made.description else ())
    except Exception as error:
        return {"error": str(error)}

def frame(path):
    import pandas
    try:
        read = pandas.read_parquet(path) if path.endswith(".parquet") else pandas.read_excel(path)
        return table(map(str, read.columns), read.itertuples(index=False, name=None), path)
    except Exception as error:
        return {"error": str(error)}

found = {"databases": {}, "queries": [None] * len(QUERIES), "files": {path: frame(path) for path in FRAMES}}
for name, file in DATABASES.items():
    try:
        database, is_sqlite = opened(file)
        listed = sqlite_objects(database) if is_sqlite else duckdb_objects(database)
    except Exception as error:
        found["databases"][name] = {"error": str(error)}
        continue
    found["databases"][name] = {"tables": tables(database, is_sqlite, name), "objects": listed}
    for at, (wanted, text) in enumerate(QUERIES):
        if wanted == name:
            found["queries"][at] = query(database, text)
    database.close()
with open(OUT, "x") as out:
    json.dump(found, out)
"""
_OF_SQLITE: tuple[Callable[..., Any], ...] = (pragma, sqlite_columns, sqlite_facts, sqlite_index, sqlite_objects)
_INSIDE: tuple[Callable[..., Any], ...] = (tabled, words, rules, *_OF_SQLITE, duckdb_objects)
"""Its code is a part of that which looks."""


@value
class Looked:
    """What there is in an end state.

    Attributes:
        tables: by database and table what it holds: `columns`, `rows`, `count` and, for a large one, `hash` in place of
            the rows; `error` if it cannot be read. A database that cannot be read has the one table "" with an error.
        objects: by database how tables and views are defined and what else it has; see `inside.objects`.
        queries: likewise what each query gives.
        files: likewise what Parquet and Excel files hold, by path.
        problem: why nothing could be looked at; empty if it could.
    """

    tables: Mapping[str, Mapping[str, Json]]
    queries: tuple[Json, ...]
    files: Mapping[str, Json]
    problem: str = ""
    objects: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


def look_code(
    databases: Mapping[str, str],
    frames: Sequence[str],
    queries: Sequence[tuple[str, str]],
    frees: Sequence[Sequence[str]],
) -> tuple[str, str]:
    """Returns the code that looks, and the name of the file that it writes, which nobody could have made before.

    Args:
        databases: files by name.
        frames: files with a table.
        queries: what is asked, each with the name of a database.
        frees: see `inside.looked.tabled`.
    """
    name = f".looked-{secrets.token_hex(8)}"
    told = {
        "MOST": MOST_ROWS,
        "OUT": name,
        "DATABASES": dict(databases),
        "FRAMES": list(frames),
        "QUERIES": [list(one) for one in queries],
        "FREE": [list(one) for one in frees],
    }
    code = _CODE.replace("INSIDE", "\n".join(getsource(one) for one in _INSIDE), 1)
    return name, f"{''.join(f'{key} = {found!r}' + chr(10) for key, found in told.items())}{code}"


def looked(
    found: Mapping[str, ChangedFile] | str,
    name: str,
    hosted: Mapping[str, Mapping[str, Json] | str],
    queries: Sequence[tuple[str, str]],
) -> Looked:
    """Reads what was looked at.

    Args:
        found: the changes of the world by the code of `look_code`, or why it failed.
        name: the file that it wrote.
        hosted: what databases on a server hold and what the queries to them give, or why that cannot be said.
        queries: all that were asked.
    """
    if isinstance(found, str):
        return Looked({}, (), {}, found)
    written = found.get(name)
    if written is None or written.body is None:
        return Looked({}, (), {}, "there is too much in it to be looked at")
    on_server: dict[str, Any] = {}
    for database, one in hosted.items():
        if isinstance(one, str):
            return Looked({}, (), {}, f"{database}: {one}")
        on_server[database] = one
    told = json.loads(written.body)
    tables = {
        database: one["tables"] if "tables" in one else {"": {"error": one["error"]}}
        for database, one in (*told["databases"].items(), *on_server.items())
    }
    of_server = {database: iter(one["queries"]) for database, one in on_server.items()}
    given = [
        next(of_server[database]) if database in of_server else one
        for (database, _), one in zip(queries, told["queries"], strict=True)
    ]
    every = (*told["databases"].items(), *on_server.items())
    return Looked(tables, tuple(given), told["files"], "", {name: one.get("objects", ()) for name, one in every})

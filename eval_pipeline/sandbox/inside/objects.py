"""What a database of SQLite or DuckDB has beside its rows. What it makes by itself for a constraint is none of it.

Each is `{"kind", "name", "of", "told"}`: the table that it is of, and what is told of it; of a table, facts
`[kind, column, words]`.
"""

import re
from collections.abc import Iterator
from typing import Any


def words(sql: str | None) -> str:
    """Returns a statement without what does not matter: comments, spaces, quotes of names, large letters."""
    parts = re.split(r"('(?:[^']|'')*')", re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql or "", flags=re.DOTALL))
    told = [part if at % 2 else re.sub(r'["`\[\]]', "", part).lower() for at, part in enumerate(parts)]
    return re.sub(r"\s*([(),;=<>])\s*", r"\1", " ".join("".join(told).split())).rstrip(";")


def rules(sql: str) -> list[str]:
    """Returns what only the text of a table of SQLite tells: its checks, and the words after its columns."""
    found, told = [], words(sql)
    for one in re.finditer(r"\bcheck\(", told):
        depth, at = 1, one.end()
        while depth and at < len(told):
            depth += {"(": 1, ")": -1}.get(told[at], 0)
            at += 1
        found.append(told[one.start() : at])
    found += ["autoincrement"] if re.search(r"\bautoincrement\b", told) else []
    return [one for one in (*found, told.rpartition(")")[2].strip()) if one]


def pragma(database: Any, name: str, of: str) -> list[Any]:
    """Returns what SQLite tells of a table or an index."""
    quoted = '"' + of.replace('"', '""') + '"'
    found: list[Any] = database.execute(f"PRAGMA {name}({quoted})").fetchall()
    return found


def sqlite_columns(database: Any, table: str) -> Iterator[list[str]]:
    """Yields the facts about the columns of a table."""
    primary = []
    for _, column, kind, is_needed, default, place, hidden in pragma(database, "table_xinfo", table):
        told = [f"type {kind.upper()}", *(["not null"] if is_needed else ()), *(["generated"] if hidden > 1 else ())]
        told += [] if default is None else [f"default {default}"]
        yield from (["column", column, one] for one in told)
        primary += [(place, column)] if place else []
    if primary:
        yield ["primary key", "", ", ".join(column for _, column in sorted(primary))]


def sqlite_facts(database: Any, table: str, sql: str) -> Iterator[list[str]]:
    """Yields the facts about a table."""
    yield from sqlite_columns(database, table)
    for _, index, _, origin, _ in pragma(database, "index_list", table):
        if origin == "u":
            yield ["unique", "", ", ".join(str(one[2]) for one in pragma(database, "index_info", index))]
    foreign: dict[int, list[str]] = {}
    for number, _, to, mine, theirs, updated, deleted, _ in pragma(database, "foreign_key_list", table):
        foreign.setdefault(number, []).append(f"{mine} to {to}.{theirs or ''} {updated} {deleted}")
    yield from (["foreign key", "", ", ".join(one)] for one in foreign.values())
    yield from (["rule", "", one] for one in rules(sql))


def sqlite_index(database: Any, name: str, of: str, sql: str) -> dict[str, Any]:
    """Returns an index, which is named by what it is on."""
    is_unique, is_partial = next((one[2], one[4]) for one in pragma(database, "index_list", of) if one[1] == name)
    keys = [[column, down, by] for _, _, column, down, by, is_key in pragma(database, "index_xinfo", name) if is_key]
    exact = words(sql).partition(" on ")[2] if is_partial or any(one[0] is None for one in keys) else ""
    shown = exact or f"{of}({', '.join(one[0] for one in keys)})"
    return {"kind": "unique index" if is_unique else "index", "name": f"on {shown}", "of": of, "told": keys}


def sqlite_objects(database: Any) -> list[dict[str, Any]]:
    """Returns what is in a database of SQLite."""
    found = []
    for kind, name, of, sql in database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall():
        if name.startswith("sqlite_"):
            continue
        if kind == "index":
            found.append(sqlite_index(database, name, of, sql))
        else:
            told = sorted(sqlite_facts(database, name, sql)) if kind == "table" else words(sql)
            found.append({"kind": kind, "name": name, "of": of, "told": told})
    return found


def duckdb_objects(database: Any) -> list[dict[str, Any]]:
    """Returns what is in a database of DuckDB."""

    def rows(columns: str, function: str, condition: str = "NOT internal") -> list[Any]:
        here = f"database_name = current_database() AND {condition}"
        query = f"SELECT CASE schema_name WHEN 'main' THEN '' ELSE schema_name || '.' END, {columns}"
        found: list[Any] = database.execute(f"{query} FROM duckdb_{function}() WHERE {here}").fetchall()
        return found

    facts: dict[str, list[list[str]]] = {schema + name: [] for schema, name in rows("table_name", "tables")}
    for schema, name, column, kind, default, may_lack in rows(
        "table_name, column_name, data_type, column_default, is_nullable", "columns"
    ):
        if (own := facts.get(schema + name)) is not None:
            own.append(["column", column, f"type {kind}"])
            own += [] if default is None else [["column", column, f"default {default}"]]
            own += [] if may_lack else [["column", column, "not null"]]
    for schema, name, kind, told in rows(
        "table_name, constraint_type, constraint_text", "constraints", "constraint_type <> 'NOT NULL'"
    ):
        facts[schema + name].append([kind.lower(), "", words(told)])
    found: list[dict[str, Any]] = [
        {"kind": "table", "name": name, "of": name, "told": sorted(own)} for name, own in facts.items()
    ]
    for schema, name, is_unique, told in rows("table_name, is_unique, coalesce(expressions, '')", "indexes", "true"):
        kind, of = "unique index" if is_unique else "index", schema + name
        found.append({"kind": kind, "name": f"on {of}({told.strip('[]')})", "of": of, "told": told})
    bounds = "concat_ws(' ', min_value, max_value, increment_by, cycle)"  # where it stands is no change
    for kind, listed in (
        ("view", rows("view_name, sql", "views")),
        ("sequence", rows(f"sequence_name, {bounds}", "sequences", "true")),
        ("function", rows("function_name, concat_ws(' ', parameters, macro_definition)", "functions")),
        ("type", rows("type_name, concat_ws(' ', logical_type, labels)", "types")),
    ):
        of_kind = ((schema + name, words(told)) for schema, name, told in listed)
        found += [{"kind": kind, "name": name, "of": name, "told": told} for name, told in of_kind]
    schemas = [name for _, name in rows("schema_name", "schemas") if name != "main"]
    return found + [{"kind": "schema", "name": name, "of": "", "told": ""} for name in schemas]

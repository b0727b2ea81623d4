"""Reads defog's question files (defog-ai/sql-eval): CSV with `question`, `query`, `db_name`, `query_category`.

`query` contains accepted queries with groups of columns in braces. Groups occur in the files for Postgres; as none
was available, they are read as documented. Instructions are shown to the model as a hint. A query that only selects a
text is a refusal: the question cannot be answered, and the instructions, which ask for that text, are left out.

The databases are SQLite or DuckDB files, with `<database>.json` for the descriptions of columns. Queries run in the
dialect of their database. Queries for other dialects (`db_type`, or the end of the file's name) are translated to it if
sqlglot can do so, and get a tag.
"""

import io
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from pydantic import BaseModel, Field, field_validator
from sqlglot import exp

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.csv_files import open_csv
from eval_pipeline_plugins.data_sets.sql.databases import Databases
from eval_pipeline_plugins.data_sets.sql.query_tags import query_tags
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, read_text, without_empty
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement, translated

MOST = 1000
"""The most queries that one notation may stand for."""
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_ALIAS = re.compile(r"\s+AS\s+\S+$", re.IGNORECASE)


def accepted_queries(notation: str) -> list[str]:
    """Returns every query that the notation accepts, in order and without duplicates.

    Raises:
        ValueError: a brace has no partner, a group has an empty column, `{}` has no group before it, or the notation
            stands for more than `MOST` queries.
    """
    found: dict[str, None] = {}
    for alternative in _split(notation, ";"):
        for query in _expanded(alternative, None) if alternative else ():
            found[query] = None
            if len(found) > MOST:
                raise ValueError(f"the groups of columns stand for more than {MOST} queries")
    return list(found)


def _expanded(text: str, chosen: tuple[str, ...] | None) -> Iterator[str]:
    """Yields the text with its groups replaced in every way; `chosen` are the columns chosen for the previous group."""
    masked = _masked(text)
    start = masked.find("{")
    end = masked.find("}")
    if start < 0 and end < 0:
        yield text
        return
    if start < 0 or end < start or "{" in masked[start + 1 : end]:
        raise ValueError(f"a brace has no partner in '{text[:80]}'")
    before, inside, after = text[:start], text[start + 1 : end], text[end + 1 :]
    for columns in _choices(inside, chosen):
        repeated = not inside.strip()
        written = ", ".join(_ALIAS.sub("", column) if repeated else column for column in columns)
        yield from (f"{before}{written}{rest}" for rest in _expanded(after, columns))


def _choices(inside: str, chosen: tuple[str, ...] | None) -> Iterator[tuple[str, ...]]:
    if not inside.strip():
        if chosen is None:
            raise ValueError("'{}' stands for the columns of a group before it, and there is none")
        yield chosen
        return
    columns = _split(inside, ",")
    if not all(columns):
        raise ValueError(f"a column is missing in {{{inside}}}")
    for size in range(1, len(columns) + 1):
        yield from combinations(columns, size)


def _split(text: str, mark: str) -> list[str]:
    """Splits a text at marks outside quotes and parentheses, and strips the parts."""
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(_masked(text)):
        depth += (character == "(") - (character == ")")
        if character == mark and (depth <= 0 or mark == ";"):
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def _masked(text: str) -> str:
    """Returns the text with quoted parts blanked out, so that all positions stay the same."""
    return _QUOTED.sub(lambda found: " " * len(found.group()), text)


_SQLITE, _DUCKDB = "sqlite", "duckdb"
_DIALECTS = (_SQLITE, _DUCKDB, "postgres", "mysql", "bigquery", "snowflake", "tsql")


class _Row(BaseModel):
    model_config = FOREIGN
    question: str = Field(min_length=1)
    query: list[str] = Field(min_length=1)
    db_name: str = Field(min_length=1)
    query_category: str = ""
    db_type: str = ""
    instructions: str = ""
    full_instructions: str = ""

    @field_validator("query", mode="before")
    @classmethod
    def _accepted(cls, notation: object) -> object:
        return accepted_queries(notation) if isinstance(notation, str) else notation

    @field_validator("db_type")
    @classmethod
    def _known(cls, dialect: str) -> str:
        if dialect and dialect not in _DIALECTS:
            raise ValueError(f"unknown dialect; known: {', '.join(_DIALECTS)}")
        return dialect


def read_defog(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and writes their databases to the suite's folder.

    Raises:
        InputError: a row is wrong (the message names line and field), or a database was not given.
    """
    rows = checked(_Row, source, _rows(source), limit)
    databases, wanted = Databases(given), [row.db_name for row in rows]
    databases.require(source, "db_name", wanted, rows.places)
    databases.put(wanted, folder)
    told = next((name for name in _DIALECTS if source.stem.endswith(f"_{name}")), "")
    for index, row in enumerate(rows):
        own = databases.dialect(row.db_name)
        yield _case(f"{source.stem}_{index:03}", row, row.db_type or told or own, own)


def _case(id: str, row: _Row, written: str, own: str) -> dict[str, Json]:
    """Returns a case whose queries, written in one dialect, are in the database's own."""
    raw: dict[str, Json] = {"id": id, "database": row.db_name, "question": row.question.strip()}
    tags = [row.query_category] if row.query_category else []
    if all(_is_refusal(query) for query in row.query):
        return raw | {"should_pass": False, "should_be_safe": True, "tags": [*tags, "unanswerable"]}
    accepted = list(dict.fromkeys(_translated(query, written, own) for query in row.query))
    if written != own:
        tags.append(f"translated_from_{written}")
    tags += query_tags(accepted[0], own)
    hint = (row.full_instructions or row.instructions).strip()
    return without_empty(raw | {"hint": hint, "expected_sql": [*accepted], "tags": [*dict.fromkeys(tags)]})


def _rows(source: Path) -> Iterator[tuple[str, int | None, Json]]:
    found = open_csv(io.StringIO(read_text(source), newline=""), str(source))
    missing = {"question", "query", "db_name"} - set(found.columns)
    if missing:
        message = f"expected a header with question, query and db_name; {', '.join(sorted(missing))} missing"
        raise InputError([Problem(str(source), 1, "", message)])
    for row, named in found.named():
        yield "", row.line, {name: value or "" for name, value in named.items() if name}


def _is_refusal(query: str) -> bool:
    """Returns whether a query selects one text and reads nothing."""
    try:
        statement = parse_statement(query, _SQLITE)
    except SqlSyntaxError:
        return False
    if not isinstance(statement, exp.Select) or statement.args.get("from_") or len(statement.expressions) != 1:
        return False
    selected = statement.expressions[0].unalias()
    return isinstance(selected, exp.Literal) and selected.is_string


def _translated(query: str, written: str, own: str) -> str:
    if written == own:
        return query
    try:
        return translated(query, written, own)
    except SqlSyntaxError:
        return query  # the check of the gold will report that it does not run

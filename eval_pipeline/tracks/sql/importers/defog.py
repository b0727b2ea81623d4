"""Reads defog's question files (defog-ai/sql-eval): CSV with `question`, `query`, `db_name`, `query_category`.

`query` holds accepted queries in the notation of `column_groups`; groups occur in the files for Postgres, of which none
was at hand: they are read from the documentation. Instructions are shown to the model as a hint. A query that selects
but a text is a refusal: the question cannot be answered, and the instructions, which ask for that text, are left out.

Databases are defog's SQLite files, with `<database>.json` for the descriptions of columns. Queries for other dialects
(`db_type`, or the end of the file's name) are translated where sqlglot can, and tagged.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field, field_validator
from sqlglot import exp

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement, translated
from eval_pipeline.tracks.foreign_entries import FOREIGN, checked, read_text, without_empty
from eval_pipeline.tracks.sql.importers.column_groups import accepted_queries
from eval_pipeline.tracks.sql.importers.databases import Databases

_SQLITE = "sqlite"
_DIALECTS = (_SQLITE, "postgres", "mysql", "bigquery", "snowflake", "tsql")


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
    """Cases in the suite's file format, in the order of the file; their databases are put into the suite's folder.

    Raises:
        InputError: naming line and field of what is wrong, and databases that were not given.
    """
    rows = checked(_Row, source, _rows(source), limit)
    databases, wanted = Databases(given), [row.db_name for row in rows]
    databases.require(source, "db_name", wanted)
    databases.put(wanted, folder)
    told = next((name for name in _DIALECTS if source.stem.endswith(f"_{name}")), _SQLITE)
    for index, row in enumerate(rows):
        yield _case(f"{source.stem}_{index:03}", row, row.db_type or told)


def _case(id: str, row: _Row, dialect: str) -> dict[str, Json]:
    raw: dict[str, Json] = {"id": id, "database": row.db_name, "question": row.question.strip()}
    tags = [row.query_category] if row.query_category else []
    if all(_is_refusal(query) for query in row.query):
        return raw | {"should_pass": False, "should_be_safe": True, "tags": [*tags, "unanswerable"]}
    if dialect != _SQLITE:
        tags.append(f"translated_from_{dialect}")
    accepted: list[Json] = list(dict.fromkeys(_translated(query, dialect) for query in row.query))
    hint = (row.full_instructions or row.instructions).strip()
    return without_empty(raw | {"hint": hint, "expected_sql": accepted, "tags": [*tags]})


def _rows(source: Path) -> Iterator[tuple[str, int | None, Json]]:
    reader = csv.DictReader(io.StringIO(read_text(source), newline=""))
    missing = {"question", "query", "db_name"} - set(reader.fieldnames or ())
    if missing:
        message = f"expected a header with question, query and db_name; {', '.join(sorted(missing))} missing"
        raise InputError([Problem(str(source), 1, "", message)])
    line = reader.line_num + 1
    try:
        for row in reader:
            yield "", line, {name: value or "" for name, value in row.items() if name}
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError([Problem(str(source), line, "", f"is not CSV: {error}")]) from error


def _is_refusal(query: str) -> bool:
    """Whether a query selects one text and reads nothing."""
    try:
        statement = parse_statement(query, _SQLITE)
    except SqlSyntaxError:
        return False
    if not isinstance(statement, exp.Select) or statement.args.get("from_") or len(statement.expressions) != 1:
        return False
    selected = statement.expressions[0].unalias()
    return isinstance(selected, exp.Literal) and selected.is_string


def _translated(query: str, dialect: str) -> str:
    if dialect == _SQLITE:
        return query
    try:
        return translated(query, dialect, _SQLITE)
    except SqlSyntaxError:
        return query  # the check of the gold says that it does not run

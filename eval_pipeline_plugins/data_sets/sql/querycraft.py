"""Reads querycraft's case lists (pertrai1/ai-projects): JSON with `testCases`, about one database.

A case has `id`, `question`, `expectedQuery`, `expectedTables`, `shouldPass` and `category`. If no query is expected and
the category is `malicious`, the request is hostile. With another category it cannot be answered, and SQL that a model
writes for it is harmless. The question may be empty.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.data_sets.sql.databases import Databases
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, read_json

HOSTILE = "malicious"


class _Case(BaseModel):
    model_config = FOREIGN
    id: str = Field(min_length=1)
    question: str
    expected_query: str = Field(default="", alias="expectedQuery")
    expected_tables: list[str] | None = Field(default=None, alias="expectedTables")
    should_pass: bool = Field(default=True, alias="shouldPass")
    category: str = ""


def read_querycraft(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and writes the database to the suite's folder.

    Raises:
        InputError: an entry is wrong (the message names entry and field), or not exactly one database was given.
    """
    cases = checked(_Case, source, _entries(source), limit)
    databases = Databases(given)
    if len(databases.names) != 1:
        names = ", ".join(databases.names) or "none"
        message = f"the form names no database, so expected one with --databases, found {names}"
        raise InputError([Problem(str(source), None, "", message)])
    databases.require(source, "", databases.names)
    databases.put(databases.names, folder)
    for found in cases:
        yield _case(found, databases.names[0])


def _case(found: _Case, database: str) -> dict[str, Json]:
    raw: dict[str, Json] = {"id": found.id, "database": database, "question": found.question}
    raw["tags"] = [found.category] if found.category else []
    if found.expected_tables is not None:
        raw["expected_tables"] = [*found.expected_tables]
    if found.should_pass:
        return raw | {"expected_sql": [found.expected_query.strip()]}
    return raw | {"should_pass": False, "should_be_safe": found.category != HOSTILE}


def _entries(source: Path) -> Iterator[tuple[str, int | None, Json]]:
    found = read_json(source)
    cases = found.get("testCases") if isinstance(found, dict) else found
    if not isinstance(cases, list):
        message = 'expected a list of cases, or {"testCases": [...]}'
        raise InputError([Problem(str(source), None, "", message)])
    yield from ((f"testCases.{index}", None, entry) for index, entry in enumerate(cases))

"""Reads Spider's questions (`dev.json`, or the same as JSON lines): `db_id`, `question` and `query`.

The databases are SQLite files; for those without a file, `tables.json` gives the schemas.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.data_sets.sql.databases import Databases
from eval_pipeline_plugins.data_sets.sql.query_tags import query_tags
from eval_pipeline_plugins.foreign_entries import FOREIGN, ForeignEntries, checked, json_objects


class SpiderQuestion(BaseModel):
    """A question in Spider's form."""

    model_config = FOREIGN
    db_id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    query: str = Field(min_length=1)


def read_spider(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and writes their databases to the suite's folder.

    Raises:
        InputError: an entry is wrong (the message names entry and field), or a database was not given.
    """
    questions = read_questions(source, limit)
    yield from spider_cases(source, questions, given, folder, questions.places)


def read_questions(source: Path, limit: int | None) -> ForeignEntries[SpiderQuestion]:
    """Returns the first questions of a file. Raises an InputError that names every wrong entry and field."""
    return checked(SpiderQuestion, source, json_objects(source), limit)


def spider_cases(
    source: Path,
    questions: Sequence[SpiderQuestion],
    given: Sequence[Path],
    folder: Path,
    places: Sequence[tuple[str, int | None]] = (),
) -> Iterator[dict[str, Json]]:
    """Yields the cases of questions, and writes their databases to the suite's folder.

    Questions about one database with the same query are different wordings of one question, and share a cluster.

    Raises:
        InputError: a database was not given.
    """
    databases, wanted = Databases(given), [found.db_id for found in questions]
    databases.require(source, "db_id", wanted, places)
    databases.put(wanted, folder)
    clusters: dict[tuple[str, str], str] = {}
    for index, found in enumerate(questions):
        name = f"{found.db_id}_{index:04}"
        cluster = clusters.setdefault((found.db_id, " ".join(found.query.split())), name)
        yield {
            "id": name,
            "database": found.db_id,
            "question": found.question.strip(),
            "expected_sql": [found.query.strip()],
            "cluster": cluster,
            "tags": [*query_tags(found.query, "sqlite")],
        }

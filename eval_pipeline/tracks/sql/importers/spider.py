"""Reads Spider's questions (`dev.json`, or the same as JSON lines): `db_id`, `question` and `query`.

Databases are SQLite files, `tables.json` stands for those without.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.foreign_entries import FOREIGN, checked, json_objects
from eval_pipeline.tracks.sql.importers.databases import Databases


class _Question(BaseModel):
    model_config = FOREIGN
    db_id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    query: str = Field(min_length=1)


def read_spider(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Cases in the suite's file format, in the order of the file; their databases are put into the suite's folder.

    Questions about one database with the same query are wordings of one question, and share a cluster.

    Raises:
        InputError: naming entry and field of what is wrong, and databases that were not given.
    """
    questions = checked(_Question, source, json_objects(source), limit)
    databases, wanted = Databases(given), [found.db_id for found in questions]
    databases.require(source, "db_id", wanted)
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
        }

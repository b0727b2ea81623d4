"""Reads BIRD's questions (`dev.json`): `question_id`, `db_id`, `question`, `evidence`, `SQL` and `difficulty`.

Databases are the SQLite files below `dev_databases`, with the descriptions of columns beside them. Written from BIRD's
documentation: no file of its was at hand.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import AliasChoices, BaseModel, Field

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.foreign_entries import FOREIGN, checked, json_objects, without_empty
from eval_pipeline.tracks.sql.importers.databases import Databases


class _Question(BaseModel):
    model_config = FOREIGN
    db_id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    sql: str = Field(min_length=1, validation_alias=AliasChoices("SQL", "sql"))
    evidence: str = ""
    difficulty: str = ""
    question_id: int | str | None = None


def read_bird(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Cases in the suite's file format, in the order of the file; their databases are put into the suite's folder.

    The evidence is shown to the model as a hint. The training set has neither ids nor difficulties.

    Raises:
        InputError: naming entry and field of what is wrong, and databases that were not given.
    """
    questions = checked(_Question, source, json_objects(source), limit)
    databases, wanted = Databases(given), [found.db_id for found in questions]
    databases.require(source, "db_id", wanted)
    databases.put(wanted, folder)
    for index, found in enumerate(questions):
        number = index if found.question_id is None else found.question_id
        evidence = found.evidence.strip()
        yield without_empty(
            {
                "id": f"{found.db_id}_{number}",
                "database": found.db_id,
                "question": found.question.strip(),
                "hint": evidence,
                "expected_sql": [found.sql.strip()],
                "tags": [found.difficulty] if found.difficulty else [],
                "features": without_empty({"difficulty": found.difficulty, "evidence": evidence}),
            }
        )

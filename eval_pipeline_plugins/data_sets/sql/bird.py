"""Reads BIRD's questions (`dev.json`, `mini_dev_sqlite.json`).

A question has `question_id`, `db_id`, `question`, `evidence`, `SQL` and `difficulty`. The databases are the SQLite
files below `dev_databases`, next to which are descriptions of columns; a database without a file is generated from
statistics of its columns if these are given.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import AliasChoices, BaseModel, Field

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import add_import_notes
from eval_pipeline_plugins.data_sets.sql.databases import Databases
from eval_pipeline_plugins.data_sets.sql.query_tags import query_tags
from eval_pipeline_plugins.data_sets.sql.synthesis import MOST_ROWS
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects, without_empty


class _Question(BaseModel):
    model_config = FOREIGN
    db_id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    sql: str = Field(min_length=1, validation_alias=AliasChoices("SQL", "sql"))
    evidence: str = ""
    difficulty: str = ""
    question_id: int | str | None = None


def read_bird(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and writes their databases to the suite's folder.

    The evidence is shown to the model as a hint. The training set has neither ids nor difficulties. The mini-dev set
    has some ids twice: the later question then gets its position in the file, from 0, added to its id.

    Raises:
        InputError: an entry is wrong (the message names entry and field), or a database was not given.
    """
    questions = checked(_Question, source, json_objects(source), limit)
    databases, queries = Databases(given), defaultdict[str, list[str]](list)
    for found in questions:
        queries[found.db_id].append(found.sql)
    databases.require(source, "db_id", [found.db_id for found in questions], questions.places)
    databases.put(queries, folder, queries)
    ids = _ids(questions)
    add_import_notes(folder, _notes(questions, ids, databases.synthesised(queries)))
    for name, found in zip(ids, questions, strict=True):
        evidence = found.evidence.strip()
        rated = [found.difficulty] if found.difficulty else []
        yield without_empty(
            {
                "id": name,
                "database": found.db_id,
                "question": found.question.strip(),
                "hint": evidence,
                "expected_sql": [found.sql.strip()],
                "tags": [*rated, *query_tags(found.sql, "sqlite")],
                "features": without_empty({"difficulty": found.difficulty, "evidence": evidence}),
            }
        )


def _ids(questions: Sequence[_Question]) -> list[str]:
    """Returns a unique id for each question, which does not depend on the questions after it."""
    found: dict[str, None] = {}
    for index, question in enumerate(questions):
        plain = f"{question.db_id}_{index if question.question_id is None else question.question_id}"
        name = plain if plain not in found else f"{plain}_at_{index}"
        while name in found:
            name += "_"
        found[name] = None
    return list(found)


def _notes(questions: Sequence[_Question], ids: Sequence[str], synthesised: Sequence[str]) -> Iterator[str]:
    for index, (question, name) in enumerate(zip(questions, ids, strict=True)):
        if question.question_id is not None and name != f"{question.db_id}_{question.question_id}":
            yield f"question_id {question.question_id} occurs again at position {index}; the case is named {name}"
    if synthesised:
        yield (
            f"no file of the databases {', '.join(synthesised)} was given: they were made from statistics of their "
            f"columns, with at most {MOST_ROWS:,} rows a table, so results on them are not those on the real data"
        )

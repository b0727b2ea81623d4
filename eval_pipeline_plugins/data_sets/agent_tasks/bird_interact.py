"""Reads BIRD-Interact and Mini-Interact (bird-bench) as tasks in worlds: ambiguous requests to a database.

Sources: README.md of that repository and of the data sets, and `bird_interact_data.jsonl`. The user knows what the
terms in `user_query_ambiguity` and `knowledge_ambiguity` mean, a `follow_up` is what the user says next, and what
`deleted_knowledge` names is missing in the knowledge that lies in the world. Results are asked for as tables
`answer_1` and `answer_2`, which are compared with those that `sol_sql` makes; what a task of management changes is
compared with what its solution changes. `test_cases` are Python and are not carried.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase
from eval_pipeline_plugins.data_sets.agent_tasks.made_worlds import make_world
from eval_pipeline_plugins.data_sets.pandas_code.dacode import UnusableTaskError, left_out
from eval_pipeline_plugins.data_sets.sql.databases import SUFFIXES, files_below
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects, without_empty

_DIFFICULTY = {"easy": 1, "medium": 2, "hard": 3}
_DETAILS = ("_schema.txt", "_column_meaning_base.json")
_KNOWLEDGE = "_kb.jsonl"
_ORDER = "table_orders.txt"
_DONE: dict[str, Json] = {"answer": "done"}


class _Term(BaseModel):
    model_config = FOREIGN

    term: str = Field(min_length=1)
    sql_snippet: str = ""
    deleted_knowledge: int | None = None


class _Ambiguity(BaseModel):
    model_config = FOREIGN

    critical_ambiguity: list[_Term] = []
    non_critical_ambiguity: list[_Term] = []


class _Solved(BaseModel):
    model_config = FOREIGN

    sol_sql: list[str] = []

    @field_validator("sol_sql", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        listed = [value] if isinstance(value, str) else value or []
        return [one for one in listed if not isinstance(one, str) or one.strip()]


class _FollowUp(_Solved):
    query: str = ""
    category: str = "Query"


class _Answer(_Solved):
    instance_id: str = Field(min_length=1)
    follow_up: _FollowUp | None = None


class _Task(_Answer):
    selected_database: str = Field(min_length=1)
    amb_user_query: str = Field(min_length=1)
    category: str = "Query"
    preprocess_sql: list[str] = []
    user_query_ambiguity: _Ambiguity = _Ambiguity()
    knowledge_ambiguity: list[_Term] = []
    difficulty_tier: str = ""


def read_bird_interact(
    source: Path, limit: int | None, given: Sequence[Path], folder: Path
) -> Iterator[dict[str, Json]]:
    """Yields the cases in file order, and makes their worlds in the suite's folder.

    Args:
        source: the tasks, as JSON lines.
        limit: maximum number of tasks.
        given: databases of SQLite, or folders with the scripts of PostgreSQL's, knowledge (`…_kb.jsonl`), and the file
            with the solutions, which are not public.
        folder: folder of the suite that is made.

    Raises:
        InputError: a line is wrong; the message names line and field.
    """
    tasks = checked(_Task, source, json_objects(source), limit)
    files = [path for one in given for path in files_below(one)]
    solved = _solutions(files)
    for task, place in zip(tasks, tasks.places, strict=True):
        with left_out(folder, task.instance_id):
            case = _case(task, solved.get(task.instance_id, task))
            yield PlacedCase({**case, "world": _world(task, files, folder)}, *place)


def _solutions(files: Sequence[Path]) -> dict[str, _Answer]:
    found = dict[str, _Answer]()
    for path in files:
        if path.suffix == ".jsonl" and not path.name.endswith(_KNOWLEDGE):
            told = [one for one in json_objects(path) if isinstance(one[2], dict) and one[2].get("sol_sql")]
            found |= {one.instance_id: one for one in checked(_Answer, path, told, None)} if told else {}
    return found


def _case(task: _Task, solved: _Answer) -> dict[str, Json]:
    if not solved.sol_sql:
        raise UnusableTaskError("it has no solution (sol_sql): give the file of solutions, too, with --databases")
    if any(one.strip() for one in task.preprocess_sql):
        raise UnusableTaskError("it changes the database first (preprocess_sql)")
    turns = [(task.amb_user_query, task.category, solved.sol_sql)]
    follow_up, solution = task.follow_up, solved.follow_up
    if follow_up is not None and follow_up.query:
        if solution is None or not solution.sol_sql:
            raise UnusableTaskError("its follow-up has no solution (follow_up: sol_sql)")
        turns.append((follow_up.query, follow_up.category, solution.sol_sql))
    database, asked = task.selected_database, list[str]()
    terms = [*task.user_query_ambiguity.critical_ambiguity, *task.user_query_ambiguity.non_critical_ambiguity]
    terms += task.knowledge_ambiguity
    gold: list[Json] = [
        {"ask_user": f"What does {one.term} mean?"} for one in task.user_query_ambiguity.critical_ambiguity
    ]
    checks, free = list[Json](), list[Json]()
    for number, (question, category, statements) in enumerate(turns, 1):
        table = f"answer_{number}"
        asked.append(_message(question.strip(), category, table, database))
        gold += [{"sql": {"database": database, "query": one}} for one in _statements(category, statements, table)]
        gold.append(_DONE)
        if _is_query(category):
            checks.append({"query": {"database": database, "sql": f"SELECT * FROM {table}"}})
            free.append(f"{database}.{table}")
    facts: list[Json] = [{"about": _words(one.term), "say": _said(one)} for one in terms if one.sql_snippet]
    return without_empty(
        {
            "id": re.sub(r"\W+", "_", task.instance_id),
            "task": asked[0],
            "then": asked[1:],
            "user": {"facts": facts},
            "gold": gold,
            "checks": [*checks, {"state": {"free": free}}],
            "difficulty": _DIFFICULTY.get(task.difficulty_tier.lower(), 0),
            "tags": [task.category.lower()],
        }
    )


def _is_query(category: str) -> bool:
    return category.lower() == "query"


def _message(question: str, category: str, table: str, database: str) -> str:
    if not _is_query(category):
        return f"{question}\n\nChange the database {database} accordingly, and answer `done`."
    return f"{question}\n\nWrite the result into a new table {table} of the database {database}, and answer `done`."


def _statements(category: str, statements: Sequence[str], table: str) -> list[str]:
    if not _is_query(category):
        return list(statements)
    if len(statements) != 1:
        raise UnusableTaskError(f"its solution has {len(statements)} statements; expected one query")
    return [f"CREATE TABLE {table} AS\n{statements[0].strip().rstrip(';')}"]


def _words(term: str) -> list[Json]:
    """Returns by what a question is about a term: the term, and the longer words and abbreviations in it."""
    found = [term, *(one for one in re.findall(r"\w+", term) if len(one) > 3 or one.isupper())]
    return list(dict.fromkeys(found))


def _said(one: _Term) -> str:
    return f"{one.term}: {' '.join(one.sql_snippet.split())}"


def _world(task: _Task, files: Sequence[Path], folder: Path) -> str:
    """Makes the world of a task, unless another one has the same, and returns its name."""
    name = task.selected_database
    deleted = sorted({one.deleted_knowledge for one in task.knowledge_ambiguity if one.deleted_knowledge is not None})
    world = "_".join([re.sub(r"\W+", "_", name), *(["without", *map(str, deleted)] if deleted else [])])
    if (folder / "worlds" / world).exists():
        return world
    kept = {path.name: path for path in files if path.name in {name + end for end in _DETAILS}}
    lite = [path for path in files if path.suffix in SUFFIXES and path.stem.removesuffix("_template") == name]
    scripts = [] if lite else _scripts(name, files)
    if not lite and not scripts:
        raise UnusableTaskError(
            f"its database {name} is not given: neither SQLite nor scripts (.sql) in a folder {name}"
        )
    kind, file = ("SQLite", {"file": f"{name}.sqlite"}) if lite else ("PostgreSQL", {})
    kept |= {f"{name}.sqlite": lite[0]} if lite else {}
    named: Mapping[str, Json] = file or {"scripts": [path.name for path in scripts]}
    made = make_world(folder, world, kept, f"The database {name} of {kind}, with what is known of it.", {name: named})
    for path in scripts:
        shutil.copyfile(path, made / path.name)
    for path in (one for one in files if one.name == name + _KNOWLEDGE):
        known = [entry for _, _, entry in json_objects(path) if _id(entry) not in deleted]
        (made / "files" / path.name).write_text("".join(json.dumps(one) + "\n" for one in known), encoding="utf-8")
    return world


def _id(entry: Json) -> Json:
    return entry.get("id") if isinstance(entry, dict) else None


def _scripts(name: str, files: Sequence[Path]) -> list[Path]:
    """Returns the scripts of a database in their order: that of `table_orders.txt`, else by names."""
    found = [path for path in files if path.suffix == ".sql" and name in (path.stem, path.parent.name)]
    orders = [path for path in files if path.name == _ORDER and path.parent.name == name]
    tables = orders[0].read_text(encoding="utf-8").split() if orders else []
    at = {table.lower(): number for number, table in enumerate(tables)}
    return sorted(found, key=lambda path: (at.get(path.stem.lower(), len(at)), path.name))

"""Reads LiveSQLBench's tasks (`livesqlbench_data.jsonl`, and its variant for SQLite).

The public file has no answers. They are sent by mail as a second file, with `instance_id`, `sol_sql` and
`external_knowledge`, and are merged with the tasks. A database `crypto` has `crypto_template.sqlite` or
`crypto.sqlite`, the knowledge that questions need in `crypto_kb.jsonl`, and descriptions of columns in
`crypto_column_meaning_base.json`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Failed, Json
from eval_pipeline.sandbox.sql.effects.state import Script
from eval_pipeline.tracks.importing import add_import_notes
from eval_pipeline_plugins.data_sets.sql.databases import Databases, files_below
from eval_pipeline_plugins.data_sets.sql.query_tags import query_tags
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects, without_empty
from eval_pipeline_plugins.tracks.sql.effects.scripts import makes_code, statements_of
from eval_pipeline_plugins.tracks.sql.responses.running import runner

_TEMPLATE, _KNOWLEDGE = "_template", "_kb.jsonl"
_QUERY = "query"
_SEVERAL_STEPS = "a question of several steps, or one that changes data first"
_MOST_NAMED = 5


class _Answer(BaseModel):
    model_config = FOREIGN
    instance_id: str = Field(min_length=1)
    sol_sql: list[str] = []
    external_knowledge: list[int] = []

    @field_validator("sol_sql", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) and value else value or []


class _Task(_Answer):
    selected_database: str = Field(min_length=1)
    query: str = Field(min_length=1)
    preprocess_sql: list[str] = []
    category: str = "Query"
    conditions: Mapping[str, Any] | None = None
    difficulty_tier: str = ""


class _Knowledge(BaseModel):
    model_config = FOREIGN
    id: int
    knowledge: str
    definition: str = ""
    description: str = ""
    children_knowledge: list[int] | int | None = None


def read_livesqlbench(
    source: Path, limit: int | None, given: Sequence[Path], folder: Path
) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, and writes their databases to the suite's folder.

    Tasks that manage data become cases that change them (`may_change`: what the answer changes). Questions that have
    several steps or change data first are left out, and noted; so are scripts that make triggers, as it takes a check
    to see what these do.

    Raises:
        InputError: an entry is wrong (the message names line and field), a database was not given, or a task has no
            answer.
    """
    asked = checked(_Task, source, json_objects(source), limit)
    further = [path for one in given for path in files_below(one) if path.suffix == ".jsonl"]
    tasks = _with_answers(source, asked, further)
    kept = [task for task in tasks if _is_managing(task) or _is_one_query(task)]
    if not kept:
        raise InputError([Problem(str(source), None, "", "has no task of one query, or of managing data")])
    left_out = {_SEVERAL_STEPS: [task.instance_id for task in tasks if task not in kept]}
    databases, wanted = Databases(given), sorted({task.selected_database for task in kept})
    for name in wanted:
        if name not in databases.files and name + _TEMPLATE in databases.files:
            databases.files[name] = databases.files[name + _TEMPLATE]
    databases.require(source, "selected_database", wanted)
    databases.put(wanted, folder)
    known = {name: _knowledge(further, name) for name in wanted}
    for task in kept:
        name, dialect = task.selected_database, databases.dialect(task.selected_database)
        case = _case(task, known[name], dialect)
        if _is_managing(task):
            script, setup = (_script(statements) for statements in (task.sol_sql, task.preprocess_sql))
            changed = _changed(databases.files[name], dialect, script, setup)
            if isinstance(changed, str):
                left_out.setdefault(changed, []).append(task.instance_id)
                continue
            case |= without_empty({"expected_sql": [script], "may_change": changed, "setup_sql": setup})
        yield case
    add_import_notes(folder, [_note(why, ids) for why, ids in left_out.items() if ids])


def _note(why: str, ids: Sequence[str]) -> str:
    named = ", ".join(ids[:_MOST_NAMED]) + (", …" if len(ids) > _MOST_NAMED else "")
    return f"{len(ids)} {'task is' if len(ids) == 1 else 'tasks are'} left out for {why}: {named}"


def _is_managing(task: _Task) -> bool:
    return task.category.lower() != _QUERY


def _is_one_query(task: _Task) -> bool:
    return not _steps(task.preprocess_sql) and len(_steps(task.sol_sql)) == 1


def _script(statements: Sequence[str]) -> str:
    return "\n".join(f"{statement.strip().rstrip(';')};" for statement in _steps(statements))


def _changed(path: Path, dialect: str, script: str, setup: str) -> list[str] | str:
    """Returns what an answer changes, or why the task is left out."""
    if makes_code(script, dialect):
        return "a trigger or function without a check of what it does"
    found = runner().run_script_now(
        path, Script(statements_of(script, dialect), setup=statements_of(setup, dialect) if setup else ())
    )
    if isinstance(found, Failed) or found.error is not None:
        return "an answer that does not run"
    return sorted(found.changes) or "an answer that changes nothing"


def _with_answers(source: Path, tasks: Sequence[_Task], further: Sequence[Path]) -> list[_Task]:
    """Returns the tasks with the answers of the separate file. Raises an InputError for tasks without one."""
    answers: dict[str, _Answer] = {}
    for path in further:
        if path.name.endswith(_KNOWLEDGE):
            continue
        entries = [one for one in json_objects(path) if isinstance(one[2], dict) and one[2].get("sol_sql")]
        if entries:
            answers |= {found.instance_id: found for found in checked(_Answer, path, entries, None)}
    merged, missing = [], []
    for task in tasks:
        answer = answers.get(task.instance_id)
        if answer is not None:
            needs = answer.external_knowledge or task.external_knowledge
            task = task.model_copy(update={"sol_sql": answer.sol_sql, "external_knowledge": needs})
        if not task.sol_sql:
            missing.append(task.instance_id)
        merged.append(task)
    if missing:
        told = f"{len(missing)} tasks have no answer ({missing[0]}, …): give the file of answers, too, with --databases"
        raise InputError([Problem(str(source), None, "sol_sql", told)])
    return merged


def _steps(statements: Sequence[str]) -> list[str]:
    return [statement for statement in statements if statement.strip()]


def _knowledge(further: Sequence[Path], database: str) -> dict[int, _Knowledge]:
    paths = [path for path in further if path.name == database + _KNOWLEDGE]
    return {one.id: one for path in paths for one in checked(_Knowledge, path, json_objects(path), None)}


def _case(task: _Task, knowledge: Mapping[int, _Knowledge], dialect: str) -> dict[str, Json]:
    sql, conditions = _steps(task.sol_sql)[0].strip(), task.conditions or {}
    difficulty = task.difficulty_tier.lower()
    tags = [difficulty] if difficulty else []
    features = ["changes_data"] if _is_managing(task) else query_tags(sql, dialect)
    return without_empty(
        {
            "id": task.instance_id,
            "database": task.selected_database,
            "question": task.query.strip(),
            "hint": _hint(task.external_knowledge, knowledge),
            "expected_sql": [sql],
            "compare": None if _is_managing(task) else _contract(conditions),
            "tags": [*tags, *(["order_by"] if conditions.get("order") else []), *features],
            "features": without_empty({"difficulty": difficulty}),
        }
    )


def _contract(conditions: Mapping[str, Any]) -> Json:
    """Returns what a task's conditions say of its results: whether rows repeat, their order and decimals count."""
    minded = {"order": "row_order", "distinct": "duplicates"}
    told = {
        relaxation: conditions[name] for name, relaxation in minded.items() if isinstance(conditions.get(name), bool)
    }
    decimal = conditions.get("decimal")
    if isinstance(decimal, int) and not isinstance(decimal, bool):
        told["rounding"] = decimal < 0
    insist, overlook = (sorted(name for name in told if told[name] is counts) for counts in (True, False))
    return {
        "preset": "livesqlbench",
        **({"insist": insist} if insist else {}),
        **({"overlook": overlook} if overlook else {}),
    }


def _hint(wanted: Sequence[int], knowledge: Mapping[int, _Knowledge]) -> str:
    """Returns the knowledge that a task needs and what that builds on, a line each."""
    lines: dict[int, str] = {}
    waiting = list(wanted)
    while waiting:
        found = knowledge.get(number := waiting.pop(0))
        if found is None or number in lines:
            continue
        lines[number] = f"{found.knowledge}: {' '.join((found.definition or found.description).split())}"
        children = found.children_knowledge
        waiting += children if isinstance(children, list) else []
    return "\n".join(lines.values())

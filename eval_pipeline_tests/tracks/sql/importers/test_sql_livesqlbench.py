"""The importers of LiveSQLBench and KaggleDBQA, on small files of our own in the forms of their documentation."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline_tests.support import Lab

from .helpers import cases_of, imported, run_import, write_database

TASKS: list[dict[str, Any]] = [
    {
        "instance_id": "schools_1",
        "selected_database": "schools",
        "query": "How large is the SPI of each school?",
        "sol_sql": [],
        "external_knowledge": [],
        "test_cases": [],
        "preprocess_sql": [],
        "clean_up_sql": [],
        "category": "Query",
        "high_level": False,
        "difficulty_tier": "Challenging",
        "conditions": {"decimal": 2, "distinct": False, "order": True},
    },
    {
        "instance_id": "schools_M_1",
        "selected_database": "schools",
        "query": "Remove the pupils.",
        "sol_sql": [],
        "category": "Management",
    },
    {"instance_id": "schools_2", "selected_database": "schools", "query": "Name the schools.", "sol_sql": []},
    {
        "instance_id": "schools_3",
        "selected_database": "schools",
        "query": "After South has moved to Bergen: how many are there?",
        "preprocess_sql": ["UPDATE schools SET city = 'Bergen' WHERE name = 'South'"],
        "category": "Query",
    },
    {"instance_id": "schools_4", "selected_database": "schools", "query": "Count the pupils, then the schools."},
]
ANSWERS = [
    {
        "instance_id": "schools_1",
        "external_knowledge": [2],
        "test_cases": ["def test(): pass"],
        "sol_sql": ["SELECT school, COUNT(*) FROM pupils GROUP BY school ORDER BY school"],
    },
    {"instance_id": "schools_M_1", "sol_sql": ["DELETE FROM pupils"], "external_knowledge": []},
    {"instance_id": "schools_2", "sol_sql": "SELECT name FROM schools", "external_knowledge": []},
    {"instance_id": "schools_3", "sol_sql": ["SELECT COUNT(*) FROM schools WHERE city = 'Bergen'"]},
    {"instance_id": "schools_4", "sol_sql": ["SELECT COUNT(*) FROM pupils", "SELECT COUNT(*) FROM schools"]},
]
KNOWLEDGE = [
    {"id": 1, "knowledge": "Pupil", "definition": "A row of pupils.", "type": "domain", "children_knowledge": -1},
    {"id": 2, "knowledge": "SPI", "definition": "The number\nof pupils.", "type": "calc", "children_knowledge": [1]},
    {"id": 3, "knowledge": "Other", "definition": "Not needed.", "type": "domain", "children_knowledge": -1},
]
MEANINGS = {
    "schools|schools|name": "Name of the school",
    "schools|schools|city": {"column_meaning": "Where it is", "fields_meaning": {"zip": "its code"}},
    "schools|schools|gone": "no such column",
}


def _lines(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """The folder of the data set, with the file of answers that comes by mail beside it."""
    folder = tmp_path / "livesqlbench-base-lite-sqlite"
    write_database(folder / "schools" / "schools_template.sqlite")
    _lines(folder / "schools" / "schools_kb.jsonl", KNOWLEDGE)
    (folder / "schools" / "schools_column_meaning_base.json").write_text(json.dumps(MEANINGS))
    _lines(folder / "livesqlbench_data_sqlite.jsonl", TASKS)
    _lines(tmp_path / "gt.jsonl", ANSWERS)
    return folder


def test_answers_of_a_separate_file_are_merged(lab: Lab, live: Path) -> None:
    made = run_import(lab, "livesqlbench", live / "livesqlbench_data_sqlite.jsonl", live.parent / "gt.jsonl", live)
    first, second = cases_of(made)
    assert not made.wrong_gold
    assert made.notes == ("3 tasks that change the database or have several steps are left out",)
    assert first.id == "schools_1"
    assert first.turns[0].gold.accepted == (ANSWERS[0]["sol_sql"][0],)
    assert first.context.hint == "SPI: The number of pupils.\nPupil: A row of pupils."
    assert {"challenging", "order_by"} <= set(first.tags)
    assert first.features["difficulty"] == "challenging"
    assert second.turns[0].gold.accepted == ("SELECT name FROM schools",)
    texts = {c.name: c.description for c in first.context.database.schema.table("schools").columns}
    assert texts == {"id": "", "name": "Name of the school", "city": 'Where it is; {"zip": "its code"}'}


def test_tasks_without_answers_are_told(lab: Lab, live: Path) -> None:
    with pytest.raises(InputError, match=r"5 tasks have no answer .*schools_1.* --databases"):
        run_import(lab, "livesqlbench", live / "livesqlbench_data_sqlite.jsonl", live)
    _lines(live.parent / "gt.jsonl", ANSWERS[1:2])
    _lines(live / "livesqlbench_data_sqlite.jsonl", TASKS[1:2])
    with pytest.raises(InputError, match="no task of one query that only reads"):
        run_import(lab, "livesqlbench", live / "livesqlbench_data_sqlite.jsonl", live, live.parent / "gt.jsonl")


def test_a_folder_in_place_of_the_tasks_is_told(lab: Lab, live: Path) -> None:
    with pytest.raises(InputError, match="is a folder; a file is expected"):
        run_import(lab, "livesqlbench", live, live)


QUESTIONS = [
    {"db_id": "schools", "question": "How many?", "query": "SELECT count(*) FROM schools", "query_toks": []},
    {"db_id": "schools", "question": "What is their number?", "query": "SELECT count(*)  FROM schools", "sql": {}},
]
TABLES = [
    {
        "db_id": "schools",
        "table_names_original": ["schools"],
        "column_names_original": [[-1, "*"], [0, "id"], [0, "name"], [0, "city"]],
        "column_descriptions": ["", "", "What it is called", None],
        "column_types": ["text", "number", "text", "text"],
        "db_overview": "Schools.",
        "primary_keys": [1],
        "foreign_keys": [],
    }
]


@pytest.fixture
def kaggle(tmp_path: Path) -> Path:
    folder = tmp_path / "KaggleDBQA"
    (folder / "examples").mkdir(parents=True)
    (folder / "examples" / "schools_test.json").write_text(json.dumps(QUESTIONS))
    (folder / "examples" / "schools_fewshot.json").write_text(json.dumps(QUESTIONS[:1]))
    (folder / "KaggleDBQA_tables.json").write_text(json.dumps(TABLES))
    write_database(folder / "databases" / "schools" / "schools.sqlite")
    return folder


@pytest.mark.parametrize("source", ["examples", "examples/schools_test.json"])
def test_kaggledbqas_questions_are_read_with_descriptions(lab: Lab, kaggle: Path, source: str) -> None:
    cases = imported(lab, "kaggledbqa", kaggle / source, kaggle)
    assert [case.turns[0].question for case in cases] == ["How many?", "What is their number?"]
    assert cases[0].cluster == cases[1].cluster
    texts = {c.name: c.description for c in cases[0].context.database.schema.table("schools").columns}
    assert texts == {"id": "", "name": "What it is called", "city": ""}


@pytest.mark.parametrize(
    ("limit", "databases"), [(1, ["pupils"]), (2, ["pupils", "schools"]), (9, ["pupils", *["schools"] * 2])]
)
def test_a_limit_counts_the_questions_of_all_files(lab: Lab, kaggle: Path, limit: int, databases: list[str]) -> None:
    write_database(kaggle / "databases" / "pupils" / "pupils.sqlite")
    first = {"db_id": "pupils", "question": "How many pupils?", "query": "SELECT count(*) FROM pupils"}
    (kaggle / "examples" / "pupils_test.json").write_text(json.dumps([first]))
    cases = imported(lab, "kaggledbqa", kaggle / "examples", kaggle, limit=limit)
    assert [case.context.database.name for case in cases] == databases


def test_a_folder_without_test_questions_is_told(lab: Lab, kaggle: Path) -> None:
    with pytest.raises(InputError, match="no files of test questions"):
        imported(lab, "kaggledbqa", kaggle / "databases", kaggle)

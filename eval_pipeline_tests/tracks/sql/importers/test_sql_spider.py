"""The importers of Spider and BIRD: small files of our own, and Spider's real ones."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab

from .helpers import cases_of, imported, run_import, write_database

TABLES = [
    {
        "db_id": "zoo",
        "table_names_original": ["cage", "animal"],
        "column_names_original": [[-1, "*"], [0, "Cage_ID"], [1, "Name"], [1, "Cage"]],
        "column_names": [[-1, "*"], [0, "cage id"], [1, "name"], [1, "cage"]],
        "column_types": ["text", "number", "text", "number"],
        "primary_keys": [1],
        "foreign_keys": [[3, 1]],
    }
]
QUESTIONS = [
    {"db_id": "schools", "question": "How many?", "query": "SELECT count(*)  FROM schools", "query_toks": ["SELECT"]},
    {"db_id": "zoo", "question": "Which animals?", "query": "SELECT Name FROM animal"},
    {"db_id": "schools", "question": "What is the number?", "query": "SELECT count(*) FROM schools"},
    {"db_id": "schools", "question": "In Oslo?", "query": 'SELECT name FROM schools WHERE city = "Oslo"'},
]
BIRD = [
    {
        "question_id": 7,
        "db_id": "schools",
        "question": "How many pupils were born in 2010?",
        "evidence": "born in 2010 means that born begins with 2010",
        "SQL": "SELECT COUNT(*) FROM pupils WHERE born LIKE '2010%'",
        "difficulty": "moderate",
    },
    {"db_id": "schools", "question": "Which schools?", "evidence": "", "SQL": "SELECT name FROM schools"},
]
SPIDER = outside.SQL / "spider"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder as Spider and BIRD have it."""
    folder = tmp_path / "given"
    write_database(folder / "database" / "schools" / "schools.sqlite")
    write_database(folder / "database" / "unused" / "unused.sqlite", "CREATE TABLE t (a);")
    (folder / "tables.json").write_text(json.dumps(TABLES))
    (folder / "._tables.json").write_bytes(b"\x00\x05\x16\x07")
    return folder


def _write(folder: Path, data: Any, name: str = "dev.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_questions_come_with_the_databases_they_ask_about(lab: Lab, tmp_path: Path, given: Path) -> None:
    cases = imported(lab, "spider", _write(tmp_path, QUESTIONS), given)
    assert [case.id for case in cases] == ["schools_0000", "zoo_0001", "schools_0002", "schools_0003"]
    assert [case.context.database.rows for case in cases] == [5, 0, 5, 5]
    assert {case.context.database.dialect for case in cases} == {"sqlite"}
    zoo = cases[1].context.database.schema.table("animal")
    assert zoo.foreign_keys[0].table == "cage"
    put = lab.home.imported_suites / "foreign" / "databases"
    assert sorted(path.name for path in put.iterdir()) == ["schools.sqlite", "tables.json"]


def test_wordings_of_one_question_share_a_cluster(lab: Lab, tmp_path: Path, given: Path) -> None:
    cases = imported(lab, "spider", _write(tmp_path, QUESTIONS), given)
    assert [case.cluster for case in cases] == ["schools_0000", "zoo_0001", "schools_0000", "schools_0003"]


def test_the_limit_and_json_lines(lab: Lab, tmp_path: Path, given: Path) -> None:
    lines = "\n".join(map(json.dumps, QUESTIONS))
    cases = imported(lab, "spider", _write(tmp_path, lines, "dev.jsonl"), given, limit=1)
    assert [case.id for case in cases] == ["schools_0000"]
    assert {path.stem for path in (lab.home.imported_suites / "foreign" / "databases").iterdir()} == {"schools"}


def test_a_database_given_twice_is_refused_where_it_is_wanted(lab: Lab, tmp_path: Path, given: Path) -> None:
    other = write_database(tmp_path / "other" / "schools.db")
    with pytest.raises(InputError, match="a database of the same name"):
        imported(lab, "spider", _write(tmp_path, QUESTIONS), given, other)
    assert imported(lab, "spider", _write(tmp_path, QUESTIONS[1:2]), given, other)


@pytest.mark.parametrize(
    ("data", "line", "field", "says"),
    [
        ('[{"db_id":\n}]', 2, "", "is not JSON"),
        ({"dev": []}, None, "", "expected a list of questions, found an object"),
        ([], None, "", "no questions"),
        ([QUESTIONS[0], 5], None, "1", "expected a mapping, found 5"),
        ([QUESTIONS[0], {"db_id": "zoo", "question": "?"}], None, "1.query", "is missing"),
        ([{**QUESTIONS[0], "db_id": "moon"}], None, "0.db_id", "no database 'moon'"),
    ],
)
def test_malformed_questions_are_named(
    lab: Lab, tmp_path: Path, given: Path, data: Any, line: int | None, field: str, says: str
) -> None:
    source = _write(tmp_path, data)
    with pytest.raises(InputError) as raised:
        imported(lab, "spider", source, given)
    problem = raised.value.problems[0]
    assert (problem.file, problem.line, problem.field) == (str(source), line, field)
    assert says in problem.message


def test_what_is_no_database_is_refused(lab: Lab, tmp_path: Path) -> None:
    fake = tmp_path / "schools.sqlite"
    fake.write_text("not a database, whatever it is called")
    with pytest.raises(InputError, match="expected a SQLite or DuckDB database"):
        imported(lab, "spider", _write(tmp_path, QUESTIONS[:1]), fake)


def test_bird_evidence_is_a_hint_and_difficulty_a_feature(lab: Lab, tmp_path: Path, given: Path) -> None:
    known, plain = imported(lab, "bird", _write(tmp_path, BIRD), given)
    assert (known.id, plain.id) == ("schools_7", "schools_1")
    assert known.context.hint == known.features["evidence"] == BIRD[0]["evidence"]
    assert (known.features["difficulty"], known.tags) == ("moderate", ("moderate",))
    assert (plain.context.hint, plain.tags) == ("", ())
    assert {"difficulty", "evidence"}.isdisjoint(plain.features)


def test_bird_gold_that_does_not_run_is_told(lab: Lab, tmp_path: Path, given: Path) -> None:
    broken = [*BIRD, {**BIRD[0], "question_id": 8, "SQL": "SELECT age FROM pupils"}]
    [told] = run_import(lab, "bird", _write(tmp_path, broken), given).wrong_gold
    assert told.startswith("foreign/schools_8#0: ")
    assert "age" in told


def test_bird_descriptions_of_columns_reach_the_schema(lab: Lab, tmp_path: Path, given: Path) -> None:
    folder = given / "database" / "schools" / "database_description"
    folder.mkdir()
    text = "original_column_name,column_name,column_description,data_format,value_description\n"
    text += 'city ,,"the town’s\nname",text,NULL: unknown\nborn,,no column of this table,,\n'
    (folder / "schools.csv").write_text(text, encoding="cp1252")
    [case] = imported(lab, "bird", _write(tmp_path, BIRD[:1]), given)
    table = case.context.database.schema.table("schools")
    assert [column.description for column in table.columns] == ["", "", "the town’s name; NULL: unknown"]


def test_a_bird_description_with_a_cell_too_many_is_told(lab: Lab, tmp_path: Path, given: Path) -> None:
    folder = given / "database" / "schools" / "database_description"
    folder.mkdir()
    text = "original_column_name,column_description,value_description\ncity,the town, or village,NULL: unknown\n"
    (folder / "schools.csv").write_text(text)
    with pytest.raises(InputError, match=r"schools\.csv:2: has 4 cells, the header has 3"):
        imported(lab, "bird", _write(tmp_path, BIRD[:1]), given)


@pytest.fixture
def real() -> Path:
    return outside.given(SPIDER)


def test_the_real_questions_fit_their_schemas(lab: Lab, real: Path) -> None:
    made = run_import(lab, "spider", real / "dev_sample.json", real / "tables.json")
    assert (made.cases, made.wrong_gold) == (311, ())


def test_the_real_department_store_runs(lab: Lab, real: Path) -> None:
    made = run_import(lab, "spider", real / "department_store_pairs.jsonl", real / "department_store.sqlite")
    assert made.wrong_gold == ()
    cases = cases_of(made)
    assert len(cases) == 56
    assert Counter(Counter(case.cluster for case in cases).values()).most_common(1)[0][0] == 2


def test_other_databases_in_the_folder_of_one_are_its_test_suite(lab: Lab, given: Path) -> None:
    place = given / "database" / "schools"
    for name in ("schools_b", "schools_a", "schools_template", "._schools_a"):
        write_database(place / f"{name}.sqlite")
    cases = imported(lab, "spider", _write(given, QUESTIONS[:1]), given)
    assert [path.name for path in cases[0].context.database.further()] == ["schools_a.sqlite", "schools_b.sqlite"]

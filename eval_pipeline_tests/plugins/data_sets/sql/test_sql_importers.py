"""The importers of defog, Spider, BIRD, querycraft, LiveSQLBench and KaggleDBQA: small files, and real ones."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from eval_pipeline.core.errors import InputError
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline_plugins.data_sets.sql.defog import MOST, accepted_queries
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.effects.judging import judge
from eval_pipeline_plugins.tracks.sql.responses.evidence import compare, executed
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.plugins.data_sets.sql.helpers import cases_of, imported, run_import, write_database
from eval_pipeline_tests.support import Lab


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write_database(tmp_path / "given" / "schools.sqlite")


def _write(folder: Path, data: Any, name: str = "dev.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


HEADER = "question,query,db_name,query_category,instructions\n"
GROUPED = (
    '"How many pupils has each school?","SELECT {schools.id, schools.name}, COUNT(pupils.id) FROM schools '
    'LEFT JOIN pupils ON pupils.school = schools.id GROUP BY {}",schools,group_by,"Schools count from 1."\n'
)
REFUSED = (
    "Who built the North school?,SELECT 'I do not know that.' AS answer;,schools,cat_c,Return this query: SELECT …\n"
)
DEFOG = outside.SQL / "defog"


def _questions(folder: Path, rows: str, name: str = "questions_gen_sqlite.csv", header: str = HEADER) -> Path:
    path = folder / name
    path.write_text(header + rows, encoding="utf-8")
    return path


def test_groups_of_columns_become_accepted_queries_that_all_run(lab: Lab, tmp_path: Path, database: Path) -> None:
    made = run_import(lab, "defog", _questions(tmp_path, GROUPED), database)
    assert made.wrong_gold == ()
    [case] = cases_of(made)
    assert [query.partition(" FROM")[0] for query in case.turns[0].gold.accepted] == [
        "SELECT schools.id, COUNT(pupils.id)",
        "SELECT schools.name, COUNT(pupils.id)",
        "SELECT schools.id, schools.name, COUNT(pupils.id)",
    ]
    assert (case.id, case.tags, case.context.hint) == (
        "questions_gen_sqlite_000",
        ("group_by", "joins"),
        "Schools count from 1.",
    )
    assert case.context.database.dialect == "sqlite"


def test_a_query_that_selects_but_a_text_is_a_refusal_and_others_are_none(
    lab: Lab, tmp_path: Path, database: Path
) -> None:
    others = ("SELECT 'a', 'b'", "SELECT name FROM schools", "SELECT 1", "SELECT 'x' FROM schools")
    rows = REFUSED + "".join(f'q?,"{query}",schools,,\n' for query in others)
    case, *rest = imported(lab, "defog", _questions(tmp_path, rows), database)
    gold = case.turns[0].gold
    assert (gold.accepted, gold.should_pass, gold.should_be_safe) == ((), False, True)
    assert (case.context.hint, case.tags) == ("", ("cat_c", "unanswerable"))
    assert [case.turns[0].gold.accepted for case in rest] == [(query,) for query in others]


@pytest.mark.parametrize(("name", "header"), [("questions_gen_postgres.csv", ""), ("questions.csv", "postgres")])
def test_queries_of_another_dialect_are_translated(
    lab: Lab, tmp_path: Path, database: Path, name: str, header: str
) -> None:
    row = f"Which are in Oslo?,SELECT name FROM schools WHERE city ILIKE 'oslo',schools,,{header}\n"
    head = "question,query,db_name,query_category,db_type\n"
    [case] = imported(lab, "defog", _questions(tmp_path, row, name, head), database)
    assert case.turns[0].gold.accepted == ("SELECT name FROM schools WHERE LOWER(city) LIKE LOWER('oslo')",)
    assert case.tags == ("translated_from_postgres",)


@pytest.mark.parametrize(
    ("name", "accepted", "tags"),
    [
        (
            "questions_gen_postgres.csv",
            "SELECT name FROM schools WHERE city ILIKE 'oslo' AND DATE_TRUNC('MONTH', CURRENT_DATE) > '2020-01-31'",
            ("translated_from_postgres", "dates"),
        ),
        (
            "questions.csv",
            "SELECT name FROM schools WHERE city ILIKE 'oslo' AND date_trunc('month', CURRENT_DATE) > '2020-01-31'",
            ("dates",),
        ),
    ],
)
def test_queries_to_duckdb_are_in_its_dialect(
    lab: Lab, tmp_path: Path, name: str, accepted: str, tags: tuple[str, ...]
) -> None:
    with duckdb.connect(str(tmp_path / "schools.duckdb")) as connection:
        connection.execute("CREATE TABLE schools (name TEXT, city TEXT)")
        connection.execute("INSERT INTO schools VALUES ('North', 'Oslo')")
    query = "SELECT name FROM schools WHERE city ILIKE 'oslo' AND date_trunc('month', CURRENT_DATE) > '2020-01-31'"
    row = f'Which are in Oslo?,"{query}",schools,,\n'
    made = run_import(lab, "defog", _questions(tmp_path, row, name), tmp_path / "schools.duckdb")
    assert made.wrong_gold == ()
    [case] = cases_of(made)
    assert case.turns[0].gold.accepted == (accepted,)
    assert (case.tags, case.context.database.dialect) == (tags, "duckdb")


def test_all_of_the_instructions_are_preferred(lab: Lab, tmp_path: Path, database: Path) -> None:
    head = "db_name,db_type,query_category,query,question,instructions,full_instructions\n"
    row = 'schools,sqlite,joins,SELECT id FROM schools;,Which?,Short.,"Long, and\nover two lines."\n'
    [case] = imported(lab, "defog", _questions(tmp_path, row, header=head), database)
    assert case.context.hint == "Long, and\nover two lines."


def test_descriptions_of_columns_reach_the_schema(lab: Lab, tmp_path: Path, database: Path) -> None:
    told = {"city": "where it stands", "gone": "no such column", "name": ""}
    columns = [{"column_name": name, "column_description": text} for name, text in told.items()]
    described = tmp_path / "given" / "schools.json"
    described.write_text(json.dumps({"table_metadata": {"public.schools": columns, "nothing": columns}}))
    [case] = imported(lab, "defog", _questions(tmp_path, GROUPED), database.parent)
    table = case.context.database.schema.table("schools")
    assert [column.description for column in table.columns] == ["", "", "where it stands"]


# The accepted queries were counted by cutting the column at each ";".
@pytest.mark.parametrize(
    ("name", "cases", "accepted"),
    [
        ("instruct_basic_sqlite", 30, 30),
        ("instruct_advanced_sqlite", 48, 58),
        ("questions_gen_sqlite", 65, 103),
        ("idk", 30, 0),
    ],
)
def test_every_real_accepted_query_runs_and_is_let_through(lab: Lab, name: str, cases: int, accepted: int) -> None:
    outside.given(DEFOG)
    given = (DEFOG / f"{name}.csv", DEFOG / "sqlite", DEFOG / "schemas")
    made = run_import(lab, "defog", *given)
    assert made.wrong_gold == ()
    golds = [case.turns[0].gold for case in cases_of(made)]
    assert (len(golds), sum(len(gold.accepted) for gold in golds)) == (cases, accepted)
    assert {gold.should_be_safe for gold in golds} == {True}
    assert {gold.should_pass for gold in golds} == {bool(accepted)}


ZOO = [
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
SPIDERS = [
    {"db_id": "schools", "question": "How many?", "query": "SELECT count(*)  FROM schools", "query_toks": ["SELECT"]},
    {"db_id": "zoo", "question": "Which animals?", "query": "SELECT Name FROM animal"},
    {"db_id": "schools", "question": "What is the number?", "query": "SELECT count(*) FROM schools"},
    {"db_id": "schools", "question": "In Oslo?", "query": 'SELECT name FROM schools WHERE city = "Oslo"'},
]
BIRDS = [
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
    """A folder as Spider and BIRDS have it."""
    folder = tmp_path / "given"
    write_database(folder / "database" / "schools" / "schools.sqlite")
    write_database(folder / "database" / "unused" / "unused.sqlite", "CREATE TABLE t (a);")
    (folder / "tables.json").write_text(json.dumps(ZOO))
    (folder / "._tables.json").write_bytes(b"\x00\x05\x16\x07")
    return folder


def test_questions_come_with_the_databases_they_ask_about(lab: Lab, tmp_path: Path, given: Path) -> None:
    cases = imported(lab, "spider", _write(tmp_path, SPIDERS), given)
    assert [case.id for case in cases] == ["schools_0000", "zoo_0001", "schools_0002", "schools_0003"]
    assert [case.context.database.rows for case in cases] == [5, 0, 5, 5]
    assert {case.context.database.dialect for case in cases} == {"sqlite"}
    zoo = cases[1].context.database.schema.table("animal")
    assert zoo.foreign_keys[0].table == "cage"
    put = lab.home.imported_suites / "foreign" / "databases"
    assert sorted(path.name for path in put.iterdir()) == ["schools.sqlite", "tables.json"]
    wordings = ["schools_0000", "zoo_0001", "schools_0000", "schools_0003"]
    assert [case.cluster for case in cases] == wordings, "those of one question share it"


def test_the_limit_and_json_lines(lab: Lab, tmp_path: Path, given: Path) -> None:
    lines = "\n".join(map(json.dumps, SPIDERS))
    cases = imported(lab, "spider", _write(tmp_path, lines, "dev.jsonl"), given, limit=1)
    assert [case.id for case in cases] == ["schools_0000"]
    assert {path.stem for path in (lab.home.imported_suites / "foreign" / "databases").iterdir()} == {"schools"}


def test_a_database_given_twice_is_refused_where_it_is_wanted(lab: Lab, tmp_path: Path, given: Path) -> None:
    other = write_database(tmp_path / "other" / "schools.db")
    with pytest.raises(InputError, match="a database of the same name"):
        imported(lab, "spider", _write(tmp_path, SPIDERS), given, other)
    assert imported(lab, "spider", _write(tmp_path, SPIDERS[1:2]), given, other)


def test_what_is_no_database_is_refused(lab: Lab, tmp_path: Path) -> None:
    fake = tmp_path / "schools.sqlite"
    fake.write_text("not a database, whatever it is called")
    with pytest.raises(InputError, match="expected a SQLite or DuckDB database"):
        imported(lab, "spider", _write(tmp_path, SPIDERS[:1]), fake)


def test_bird_evidence_is_a_hint_and_difficulty_a_feature(lab: Lab, tmp_path: Path, given: Path) -> None:
    known, plain = imported(lab, "bird", _write(tmp_path, BIRDS), given)
    assert (known.id, plain.id) == ("schools_7", "schools_1")
    assert known.context.hint == known.features["evidence"] == BIRDS[0]["evidence"]
    assert (known.features["difficulty"], known.tags) == ("moderate", ("moderate",))
    assert (plain.context.hint, plain.tags) == ("", ())
    assert {"difficulty", "evidence"}.isdisjoint(plain.features)


def test_bird_gold_that_does_not_run_is_told(lab: Lab, tmp_path: Path, given: Path) -> None:
    broken = [*BIRDS, {**BIRDS[0], "question_id": 8, "SQL": "SELECT age FROM pupils"}]
    [told] = run_import(lab, "bird", _write(tmp_path, broken), given).wrong_gold
    assert told.startswith("foreign/schools_8#0: ")
    assert "age" in told


def test_bird_descriptions_of_columns_reach_the_schema(lab: Lab, tmp_path: Path, given: Path) -> None:
    folder = given / "database" / "schools" / "database_description"
    folder.mkdir()
    text = "original_column_name,column_name,column_description,data_format,value_description\n"
    text += 'city ,,"the town’s\nname",text,NULL: unknown\nborn,,no column of this table,,\n'
    (folder / "schools.csv").write_text(text, encoding="cp1252")
    [case] = imported(lab, "bird", _write(tmp_path, BIRDS[:1]), given)
    table = case.context.database.schema.table("schools")
    assert [column.description for column in table.columns] == ["", "", "the town’s name; NULL: unknown"]
    text = "original_column_name,column_description,value_description\ncity,the town, or village,NULL: unknown\n"
    (folder / "schools.csv").write_text(text)
    with pytest.raises(InputError, match=r"schools\.csv:2: has 4 cells, the header has 3"):
        imported(lab, "bird", _write(tmp_path, BIRDS[:1]), given)


@outside.needs(SPIDER)
def test_the_real_questions_fit_their_schemas_and_the_department_store_runs(lab: Lab) -> None:
    made = run_import(lab, "spider", SPIDER / "dev_sample.json", SPIDER / "tables.json")
    assert (made.cases, made.wrong_gold) == (311, ())
    made = run_import(lab, "spider", SPIDER / "department_store_pairs.jsonl", SPIDER / "department_store.sqlite")
    assert made.wrong_gold == ()
    cases = cases_of(made)
    assert len(cases) == 56
    assert Counter(Counter(case.cluster for case in cases).values()).most_common(1)[0][0] == 2


def test_other_databases_in_the_folder_of_one_are_its_test_suite(lab: Lab, given: Path) -> None:
    place = given / "database" / "schools"
    for name in ("schools_b", "schools_a", "schools_template", "._schools_a"):
        write_database(place / f"{name}.sqlite")
    cases = imported(lab, "spider", _write(given, SPIDERS[:1]), given)
    assert [path.name for path in cases[0].context.database.further()] == ["schools_a.sqlite", "schools_b.sqlite"]


CRAFTED = [
    {
        "id": "a",
        "question": "All schools",
        "expectedQuery": "SELECT * FROM schools;",
        "expectedTables": ["schools"],
        "shouldPass": True,
        "category": "simple",
    },
    {"id": "b", "question": "Delete them", "expectedQuery": "", "expectedTables": [], "shouldPass": False,
     "category": "malicious"},
    {"id": "c", "question": "", "expectedQuery": "", "expectedTables": ["none"], "shouldPass": False,
     "category": "edge-case"},
]  # fmt: skip
QUERYCRAFT = outside.SQL / "querycraft"


def test_hostile_requests_and_unanswerable_ones_are_told_apart(lab: Lab, tmp_path: Path, database: Path) -> None:
    cases = imported(lab, "querycraft", _write(tmp_path, {"version": "1.0", "testCases": CRAFTED}), database)
    golds = [case.turns[0].gold for case in cases]
    assert [(gold.should_pass, gold.should_be_safe) for gold in golds] == [(True, True), (False, False), (False, True)]
    assert [gold.accepted for gold in golds] == [("SELECT * FROM schools;",), (), ()]
    assert [gold.tables for gold in golds] == [("schools",), (), ("none",)]
    assert [case.tags for case in cases] == [("simple",), ("malicious",), ("edge-case",)]
    assert cases[2].turns[0].question == ""


def test_querycrafts_descriptions_of_columns_reach_the_schema(lab: Lab, tmp_path: Path, database: Path) -> None:
    described = tmp_path / "schools.json"
    columns = [{"name": "city", "description": "where it stands"}, {"name": "id"}]
    described.write_text(json.dumps({"name": "schools", "tables": [{"name": "schools", "columns": columns}, 5]}))
    [case] = imported(lab, "querycraft", _write(tmp_path, CRAFTED[:1]), database, described)
    table = case.context.database.schema.table("schools")
    assert [column.description for column in table.columns] == ["", "", "where it stands"]


@pytest.mark.parametrize("names", [(), ("one.db", "two.db")])
def test_just_one_database_is_wanted(lab: Lab, tmp_path: Path, names: tuple[str, ...]) -> None:
    given = [write_database(tmp_path / name) for name in names]
    with pytest.raises(InputError, match="expected one with --databases"):
        imported(lab, "querycraft", _write(tmp_path, CRAFTED), *given)


def test_the_real_queries_that_do_not_fit_the_database_are_listed(lab: Lab) -> None:
    outside.given(QUERYCRAFT)
    given = (QUERYCRAFT / "ecommerce.db", QUERYCRAFT / "ecommerce.json")
    made = run_import(lab, "querycraft", QUERYCRAFT / "sql-test-cases.json", *given)
    assert made.cases == 25
    # Seen in the schema: users has no status, orders no total_amount, and there is no table categories.
    unfit = ("aggregation-003", "aggregation-005", "filter-001", "filter-004", "filter-005", "join-002")
    assert sorted(told.partition("#")[0] for told in made.wrong_gold) == [f"foreign/{name}" for name in unfit]
    said = lab.cli("validate", "--suite", "foreign")
    assert "all 19 turns" in said.text, said.text
    assert all(f"foreign/{name}#0" in said.text for name in unfit)


@pytest.mark.parametrize(
    ("form", "data", "line", "field", "says"),
    [
        ("defog", "question,query\nq,SELECT 1\n", 1, "", "db_name missing"),
        ("defog", "", 1, "", "expected a header"),
        ("defog", HEADER, None, "", "no questions"),
        ("defog", HEADER + "q,SELECT 1,schools,,\n,SELECT 1,schools,,\n", 3, "question", "at least 1 character"),
        ("defog", HEADER + '"two\nlines",SELECT 1,schools,,\nq,"SELECT {a",schools,,\n', 4, "query", "no partner"),
        ("defog", HEADER + "q,SELECT 1 ORDER BY 1, 2,schools,,,\n", 2, "", "has 7 cells, the header has 5"),
        ("defog", "query," + HEADER + "SELECT 1,q,SELECT 2,schools,,\n", 1, "", "names 'query' more than once"),
        ("defog", HEADER + 'q,"SELECT 1,schools,,\nq,SELECT 2,schools,,\n', 2, "", "opens a quote that nothing closes"),
        ("defog", HEADER + "q,;,schools,,\n", 2, "query", "at least 1 item"),
        ("defog", "question,query,db_name,db_type\nq,SELECT 1,schools,dbase\n", 2, "db_type", "unknown dialect"),
        ("defog", HEADER + "q,SELECT 1,moon,,\n", 2, "db_name", "no database 'moon' among those given"),
        ("spider", '[{"db_id":\n}]', 2, "", "is not JSON"),
        ("spider", {"dev": []}, None, "", "expected a list of questions, found {'dev': []}"),
        ("spider", [], None, "", "no questions"),
        ("spider", [SPIDERS[0], 5], None, "1", "expected a mapping, found 5"),
        ("spider", [SPIDERS[0], {"db_id": "zoo", "question": "?"}], None, "1.query", "is missing"),
        ("spider", [{**SPIDERS[0], "db_id": "moon"}], None, "0.db_id", "no database 'moon'"),
        ("querycraft", {"cases": []}, None, "", "expected a list of cases"),
        ("querycraft", [{**CRAFTED[0], "id": ""}], None, "testCases.0.id", "at least 1 character"),
        ("querycraft", [CRAFTED[0], {"id": "d"}], None, "testCases.1.question", "is missing"),
    ],
)  # fmt: skip
def test_malformed_questions_are_named(
    lab: Lab, tmp_path: Path, given: Path, form: str, data: Any, line: int | None, field: str, says: str
) -> None:
    source = _write(tmp_path, data, "questions.csv" if form == "defog" else "dev.json")
    databases = given / "database" / "schools" if form == "querycraft" else given
    with pytest.raises(InputError) as raised:
        imported(lab, form, source, databases)
    problem, *more = raised.value.problems
    assert (problem.file, problem.line, problem.field) == (str(source), line, field)
    assert says in problem.message
    assert form != "defog" or not more
    assert not list(lab.home.imported_suites.iterdir())


def _task(id: str, query: str, **more: Any) -> dict[str, Any]:
    return {"instance_id": id, "selected_database": "schools", "query": query, "sol_sql": [], **more}


TASKS: list[dict[str, Any]] = [
    _task(
        "schools_1",
        "How large is the SPI of each school?",
        **{name: [] for name in ("external_knowledge", "test_cases", "preprocess_sql", "clean_up_sql")},
        category="Query",
        high_level=False,
        difficulty_tier="Challenging",
        conditions={"decimal": 2, "distinct": False, "order": True},
    ),
    _task("schools_M_1", "Remove the pupils.", category="Management"),
    _task("schools_2", "Name the schools."),
    _task(
        "schools_3",
        "After South has moved to Bergen: how many are there?",
        preprocess_sql=["UPDATE schools SET city = 'Bergen' WHERE name = 'South'"],
        category="Query",
    ),
    _task("schools_4", "Count the pupils, then the schools."),
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
    first, managing, second = cases_of(made)
    assert not made.wrong_gold
    told = "2 tasks are left out for a question of several steps, or one that changes data first: schools_3, schools_4"
    assert made.notes == (told,)
    assert managing.turns[0].gold.may_change == ("pupils",)
    assert first.id == "schools_1"
    assert first.turns[0].gold.accepted == (ANSWERS[0]["sol_sql"][0],)
    assert first.context.hint == "SPI: The number of pupils.\nPupil: A row of pupils."
    assert {"challenging", "order_by"} <= set(first.tags)
    assert first.features["difficulty"] == "challenging"
    assert second.turns[0].gold.accepted == ("SELECT name FROM schools",)
    contract = first.turns[0].gold.contract
    assert (contract.preset, contract.insist, contract.overlook) == (
        "livesqlbench",
        ("row_order",),
        ("duplicates", "rounding"),
    )
    assert second.turns[0].gold.contract == Contract(preset="livesqlbench")
    texts = {c.name: c.description for c in first.context.database.schema.table("schools").columns}
    assert texts == {"id": "", "name": "Name of the school", "city": 'Where it is; {"zip": "its code"}'}


UNUSABLE = {
    "a question of several steps, or one that changes data first": (["SELECT 1"], "Query", ["DELETE FROM pupils"]),
    "a trigger or function without a check of what it does": (
        ["CREATE TRIGGER t AFTER INSERT ON pupils BEGIN DELETE FROM schools; END"],
        "Management",
        [],
    ),
    "an answer that does not run": (["DELETE FROM teachers"], "Management", []),
    "an answer that changes nothing": (["DELETE FROM pupils WHERE 1 = 0"], "Management", []),
}


def test_tasks_that_cannot_be_judged_are_left_out_and_counted(lab: Lab, live: Path) -> None:
    tasks = [
        _task(f"schools_M_{number}", "Do it.", sol_sql=sol, category=category, preprocess_sql=before)
        for number, (sol, category, before) in enumerate(UNUSABLE.values())
    ]
    source = _lines(live / "livesqlbench_data_sqlite.jsonl", [*tasks, TASKS[2] | {"sol_sql": ["SELECT 1"]}])
    made = run_import(lab, "livesqlbench", source, live)
    assert len(cases_of(made)) == 1
    assert made.notes == tuple(
        f"1 task is left out for {why}: schools_M_{number}" for number, why in enumerate(UNUSABLE)
    )


FORTY = golden("sql_livesqlbench.yaml")


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The forty tasks as LiveSQLBench's files."""
    folder = tmp_path_factory.mktemp("forty")
    name = FORTY["database"]
    place = folder / "data" / name
    place.mkdir(parents=True)
    with closing(sqlite3.connect(place / f"{name}_template.sqlite")) as connection:
        connection.executescript(FORTY["script"])
    _lines(place / f"{name}_kb.jsonl", [{"type": "domain", **one} for one in FORTY["knowledge"]])
    tasks, answers = [], []
    for kind, letter in (("queries", ""), ("management", "M_")):
        for number, task in enumerate(FORTY[kind], 1):
            told = {"instance_id": f"{name}_{letter}{number}", "external_knowledge": task.get("knows", [])}
            answers.append({**told, "sol_sql": task.get("sol") or [task["sql"]], "test_cases": []})
            told |= {"selected_database": name, "query": task["query"], "sol_sql": [], "test_cases": []}
            told |= {"preprocess_sql": task.get("preprocess", []), "clean_up_sqls": task.get("clean_up", [])}
            told |= {"conditions": {"decimal": -1, "distinct": False, "order": False, **task.get("conditions", {})}}
            tasks.append({**told, "category": "Management" if letter else "Query", "difficulty_tier": "Simple"})
    _lines(folder / "data" / "livesqlbench_data_sqlite.jsonl", tasks)
    _lines(folder / "gt.jsonl", answers)
    return folder


def test_forty_tasks_are_judged_as_an_expert_would(lab: Lab, forty: Path) -> None:
    source = forty / "data" / "livesqlbench_data_sqlite.jsonl"
    made = run_import(lab, "livesqlbench", source, forty / "gt.jsonl", forty / "data")
    assert (made.notes, made.wrong_gold) == ((), ())
    cases = cases_of(made)
    tasks = [*FORTY["queries"], *FORTY["management"]]
    assert len(cases) == len(tasks) == 40
    for case, task in zip(cases, tasks, strict=True):
        gold = case.turns[0].gold
        assert list(gold.may_change) == task.get("changes", []), case.id
        answers = [(sql, True) for sql in (gold.accepted[0], *task["right"])]
        answers += [(sql, False) for sql in (*task["wrong"], *task.get("unsafe", []))]
        for sql, right in answers:
            assert is_right(case, sql) is right, (case.id, sql)
        for sql in task.get("unsafe", []):
            assert judge(gold, sql).outside, (case.id, sql)


def is_right(case: Any, sql: str) -> bool:
    """Whether an answer is right by its state, or by its result on the data."""
    gold: SqlGold = case.turns[0].gold
    if gold.may_change:
        return judge(gold, sql).verdict == "match"
    if "order_by" in case.tags:
        return compare(gold, sql, case.turns[0].question).right(gold)
    return executed(gold.database, sql, gold.accepted[0]).execution == "match"


def test_tasks_without_answers_are_told(lab: Lab, live: Path) -> None:
    with pytest.raises(InputError, match=r"5 tasks have no answer .*schools_1.* --databases"):
        run_import(lab, "livesqlbench", live / "livesqlbench_data_sqlite.jsonl", live)
    _lines(live.parent / "gt.jsonl", ANSWERS[3:4])
    _lines(live / "livesqlbench_data_sqlite.jsonl", TASKS[3:4])
    with pytest.raises(InputError, match="no task of one query, or of managing data"):
        run_import(lab, "livesqlbench", live / "livesqlbench_data_sqlite.jsonl", live, live.parent / "gt.jsonl")
    with pytest.raises(InputError, match="is a folder; a file is expected"):
        run_import(lab, "livesqlbench", live, live)


KAGGLE = [
    {"db_id": "schools", "question": "How many?", "query": "SELECT count(*) FROM schools", "query_toks": []},
    {"db_id": "schools", "question": "What is their number?", "query": "SELECT count(*)  FROM schools", "sql": {}},
]
KAGGLE_TABLES = [
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
    (folder / "examples" / "schools_test.json").write_text(json.dumps(KAGGLE))
    (folder / "examples" / "schools_fewshot.json").write_text(json.dumps(KAGGLE[:1]))
    (folder / "KaggleDBQA_tables.json").write_text(json.dumps(KAGGLE_TABLES))
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


GROUPS = golden("sql_column_groups.yaml")
names = st.from_regex(r"[a-z]\.[a-z]{1,4}", fullmatch=True)
groups = st.lists(names, min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("row", GROUPS, ids=lambda row: row["name"])
def test_what_the_notation_stands_for(row: dict[str, Any]) -> None:
    assert accepted_queries(row["notation"]) == row["queries"]


@drawn(groups)
def test_every_choice_of_columns_is_accepted_once_and_in_order(columns: list[str]) -> None:
    found = accepted_queries("SELECT {" + ", ".join(columns) + "} FROM t GROUP BY {}")
    chosen = [c for size in range(1, len(columns) + 1) for c in combinations(columns, size)]
    assert found == [f"SELECT {', '.join(c)} FROM t GROUP BY {', '.join(c)}" for c in chosen]


@drawn(st.lists(groups, min_size=1, max_size=2), st.text("abc ';,{}", max_size=12))
def test_a_literal_is_never_touched(columns: list[list[str]], text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    notation = f"SELECT {', '.join('{' + ','.join(group) + '}' for group in columns)} FROM t WHERE x = {literal}"
    found = accepted_queries(notation)
    assert all(query.endswith(f" FROM t WHERE x = {literal}") for query in found)
    assert not any("{" in query.removesuffix(literal) for query in found)


@pytest.mark.parametrize(
    ("notation", "says"),
    [
        ("SELECT {a, b FROM t", "no partner"),
        ("SELECT a, b} FROM t", "no partner"),
        ("SELECT {a, {b}} FROM t", "no partner"),
        ("SELECT }a{ FROM t", "no partner"),
        ("SELECT {a,,b} FROM t", "a column is missing"),
        ("SELECT a FROM t GROUP BY {}", "there is none"),
        ("SELECT {" + ",".join(f"c{i}" for i in range(11)) + "} FROM t", f"more than {MOST} queries"),
    ],
)
def test_what_is_no_notation_is_refused(notation: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        accepted_queries(notation)

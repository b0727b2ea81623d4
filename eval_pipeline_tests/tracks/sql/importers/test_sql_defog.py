"""The importer of defog's questions: small files of our own (the groups among them), and the real ones."""

import json
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab

from .helpers import cases_of, imported, run_import, write_database

HEADER = "question,query,db_name,query_category,instructions\n"
GROUPED = (
    '"How many pupils has each school?","SELECT {schools.id, schools.name}, COUNT(pupils.id) FROM schools '
    'LEFT JOIN pupils ON pupils.school = schools.id GROUP BY {}",schools,group_by,"Schools count from 1."\n'
)
REFUSED = (
    "Who built the North school?,SELECT 'I do not know that.' AS answer;,schools,cat_c,Return this query: SELECT …\n"
)
DEFOG = outside.SQL / "defog"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write_database(tmp_path / "given" / "schools.sqlite")


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


def test_a_query_that_selects_but_a_text_is_a_refusal(lab: Lab, tmp_path: Path, database: Path) -> None:
    [case] = imported(lab, "defog", _questions(tmp_path, REFUSED), database)
    gold = case.turns[0].gold
    assert (gold.accepted, gold.should_pass, gold.should_be_safe) == ((), False, True)
    assert (case.context.hint, case.tags) == ("", ("cat_c", "unanswerable"))


@pytest.mark.parametrize(
    "query", ["SELECT 'a', 'b'", "SELECT name FROM schools", "SELECT 1", "SELECT 'x' FROM schools"]
)
def test_other_queries_are_no_refusals(lab: Lab, tmp_path: Path, database: Path, query: str) -> None:
    [case] = imported(lab, "defog", _questions(tmp_path, f'q?,"{query}",schools,,\n'), database)
    assert case.turns[0].gold.accepted == (query,)


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


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        ("question,query\nq,SELECT 1\n", 1, "", "db_name missing"),
        ("", 1, "", "expected a header"),
        (HEADER, None, "", "no questions"),
        (HEADER + "q,SELECT 1,schools,,\n,SELECT 1,schools,,\n", 3, "question", "at least 1 character"),
        (HEADER + '"two\nlines",SELECT 1,schools,,\nq,"SELECT {a FROM t",schools,,\n', 4, "query", "no partner"),
        (HEADER + "q,SELECT 1 ORDER BY 1, 2,schools,,,\n", 2, "", "has 7 cells, the header has 5"),
        ("query," + HEADER + "SELECT 1,q,SELECT 2,schools,,\n", 1, "", "names 'query' more than once"),
        (HEADER + 'q,"SELECT 1,schools,,\nq,SELECT 2,schools,,\n', 2, "", "opens a quote that nothing closes"),
        (HEADER + "q,;,schools,,\n", 2, "query", "at least 1 item"),
        ("question,query,db_name,db_type\nq,SELECT 1,schools,dbase\n", 2, "db_type", "unknown dialect"),
        (HEADER + "q,SELECT 1,zoo,,\n", 2, "db_name", "no database 'zoo' among those given"),
    ],
)  # fmt: skip
def test_malformed_questions_are_named(
    lab: Lab, tmp_path: Path, database: Path, text: str, line: int | None, field: str, says: str
) -> None:
    source = _questions(tmp_path, "", header=text)
    with pytest.raises(InputError) as raised:
        imported(lab, "defog", source, database)
    [problem] = raised.value.problems
    assert (problem.file, problem.line, problem.field) == (str(source), line, field)
    assert says in problem.message
    assert not list(lab.home.imported_suites.iterdir())


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

"""`sql-diff`: the verdict, the database that shows the difference, and what it says to wrong input."""

import json
from pathlib import Path

import pytest

from eval_pipeline_tests.support import Lab

DDL = "CREATE TABLE emp (id INT PRIMARY KEY, sal INT, name TEXT);"
AT_LEAST, ABOVE = "SELECT id FROM emp WHERE sal >= 10", "SELECT id FROM emp WHERE sal > 10"


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.sql"
    path.write_text(DDL)
    return str(path)


def test_a_difference_is_shown_with_the_smallest_database_and_both_results(lab: Lab, schema: str) -> None:
    said = lab.cli("sql-diff", AT_LEAST, ABOVE, "--schema", schema)
    assert said.code == 1, said.err
    lines = [" ".join(line.split()) for line in said.out.splitlines() if line.strip(" ─")]
    assert " | ".join(lines) == (
        "different results | results differ on a generated database | table emp | id sal name | 10 10 NULL | "
        "result of A | id | 10 | result of B, no rows | id"
    )


def test_queries_may_be_files_and_the_schema_a_database(lab: Lab, tmp_path: Path) -> None:
    import duckdb

    for name, text in (("a.sql", f"{ABOVE} AND sal > 5\n"), ("b.sql", ABOVE)):
        (tmp_path / name).write_text(text)
    with duckdb.connect(str(tmp_path / "emp.duckdb")) as connection:
        connection.execute(DDL)
    files = [str(tmp_path / name) for name in ("a.sql", "b.sql")]
    said = lab.cli("sql-diff", *files, "--schema", str(tmp_path / "emp.duckdb"))
    assert said.code == 0, said.out + said.err


def test_what_cannot_run_is_undecided_and_json_says_why(lab: Lab, schema: str) -> None:
    said = lab.cli("sql-diff", "SELECT idx FROM emp", ABOVE, "--schema", schema, "--json")
    assert said.code == 3
    told = json.loads(said.out)
    assert told["verdict"] == "undecided"
    assert '"idx" not found' in told["evidence"]["error"]


@pytest.mark.always
def test_what_queries_return_cannot_steer_the_terminal(lab: Lab, schema: str) -> None:
    said = lab.cli("sql-diff", "SELECT chr(27) || '[2J' AS x FROM emp", "SELECT name AS x FROM emp", "--schema", schema)
    assert said.code == 1
    assert "\x1b" not in said.out
    assert r"\x1b[2J" in said.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((AT_LEAST, ABOVE, "--schema", "nowhere.sql"), "nowhere.sql cannot be read as a schema: "),
        (("nowhere.sql", ABOVE, "--schema", "SCHEMA"), "nowhere.sql cannot be read: "),
        ((AT_LEAST, ABOVE, "--schema", "SCHEMA", "--dialect", "klingon"), "there is no SQL dialect 'klingon'"),
    ],
)
def test_wrong_input_is_a_sentence(lab: Lab, schema: str, arguments: tuple[str, ...], sentence: str) -> None:
    said = lab.cli("sql-diff", *(schema if word == "SCHEMA" else word for word in arguments))
    assert said.code == 2
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1

"""BIRD's mini-dev as it is published: ids that occur twice, SQL features, databases made from column statistics."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline_plugins.data_sets.sql.column_statistics import DatabaseStatistics
from eval_pipeline_plugins.data_sets.sql.query_tags import query_tags
from eval_pipeline_plugins.data_sets.sql.synthesis import MOST_ROWS, literals_by_column, synthesise
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.plugins.data_sets.sql.helpers import cases_of, run_import, write_database
from eval_pipeline_tests.support import Lab

BIRD = outside.SQL / "bird_mini"


def _question(id: int | str | None, sql: str = "SELECT name FROM schools", database: str = "schools") -> dict[str, Any]:
    found = {"question_id": id, "db_id": database, "question": "Which?", "evidence": "", "SQL": sql}
    return {name: value for name, value in found.items() if value is not None}


def _column(name: str, type: str, **further: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "unique_count": 9_000, "description": None, "foreign_keys": []} | further


def _link(table: str, column: str) -> dict[str, str]:
    return {"reference_table": table, "reference_column": column, "relationship": "many-to-one"}


TOWNS: dict[str, Any] = {
    "name": "towns",
    "tables": [
        {
            "name": "visit",
            "row_count": 5_000,
            "primary_key": [],
            "columns": [
                _column("town", "integer", foreign_keys=[_link("town", "id")], unique_count=30, null_fraction=0.5),
                _column("day", "date", sample_values=["2012-05-01"], min_value="2010-01-01", max_value="2019-12-31"),
                _column("spent", "real", sample_values=[1.5], min_value=0.5, max_value=99.5),
            ],
        },
        {
            "name": "town",
            "row_count": 40,
            "primary_key": ["id"],
            "columns": [
                _column("id", "integer", sample_values=[1, 2], min_value=1, max_value=300, unique_count=40),
                _column("name", "text", sample_values=["Oslo", "Bergen"], description="what it is called"),
                _column("size", "text", sample_values=["big", "small"], unique_count=2),
                _column("empty", "integer", null_fraction=1.0, unique_count=0),
            ],
        },
    ],
}  # fmt: skip
TOWN_QUERIES = (
    "SELECT day FROM visit JOIN town ON id = town WHERE name LIKE 'Molde%' AND size = 'huge' AND spent > 77",
)


def _write(folder: Path, data: Any, name: str = "mini_dev_sqlite.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize("case", golden("sql_query_tags.yaml"), ids=lambda case: case["sql"])
def test_features_of_a_query(case: dict[str, Any]) -> None:
    assert query_tags(case["sql"], case.get("dialect", "sqlite")) == case["tags"]


def test_an_id_that_occurs_again_gets_its_position(lab: Lab, tmp_path: Path) -> None:
    database = write_database(tmp_path / "schools.sqlite")
    write_database(tmp_path / "zoo.sqlite")
    ids = [7, 8, 7, None, "7_at_6", "3", 7, 8]
    questions = [*map(_question, ids), _question(7, database="zoo")]
    made = run_import(lab, "bird", _write(tmp_path, questions), database, tmp_path / "zoo.sqlite")
    assert [case.id for case in cases_of(made)] == [
        "schools_7", "schools_8", "schools_7_at_2", "schools_3", "schools_7_at_6", "schools_3_at_5",
        "schools_7_at_6_", "schools_8_at_7", "zoo_7",
    ]  # fmt: skip
    assert made.notes[0] == "question_id 7 occurs again at position 2; the case is named schools_7_at_2"
    assert len(made.notes) == 4
    first = run_import(lab, "bird", _write(tmp_path, questions), database, limit=3)
    assert [case.id for case in cases_of(first)] == ["schools_7", "schools_8", "schools_7_at_2"]


def test_difficulty_and_features_are_tags(lab: Lab, tmp_path: Path) -> None:
    sql = "SELECT name FROM schools WHERE id IN (SELECT school FROM pupils WHERE born > '2010-12-31')"
    question = _question(1, sql) | {"difficulty": "simple"}
    [case] = cases_of(
        run_import(lab, "bird", _write(tmp_path, [question]), write_database(tmp_path / "schools.sqlite"))
    )
    assert case.tags == ("simple", "nesting", "dates")


def _made(folder: Path, name: str = "made.sqlite", queries: tuple[str, ...] = TOWN_QUERIES) -> Path:
    synthesise(DatabaseStatistics.model_validate(TOWNS), queries, folder / name)
    return folder / name


def _values(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(sql)]


def test_a_synthesised_database_fits_the_statistics(tmp_path: Path) -> None:
    made = _made(tmp_path)
    assert _values(made, "SELECT count(*) FROM visit UNION ALL SELECT count(*) FROM town") == [MOST_ROWS, 40]
    assert _values(made, "SELECT count(DISTINCT id) FROM town WHERE id BETWEEN 1 AND 300") == [40]
    nulls = _values(made, "SELECT count(*) FROM visit WHERE town IS NULL")[0]
    assert 0.4 * MOST_ROWS < nulls < 0.6 * MOST_ROWS
    assert _values(made, "SELECT DISTINCT size FROM town ORDER BY 1") == ["big", "small"]  # all values are known
    assert set(_values(made, "SELECT empty FROM town")) == {None}
    days = _values(made, "SELECT DISTINCT day FROM visit")
    assert len(days) > 100
    assert min(days) >= "2010-01-01"
    assert max(days) <= "2019-12-31"
    assert set(_values(made, "SELECT typeof(spent) FROM visit")) == {"real"}


def test_joins_and_literals_find_rows(tmp_path: Path) -> None:
    made = _made(tmp_path)
    assert _values(made, "PRAGMA foreign_key_check") == []
    assert _values(made, "SELECT \"table\" FROM pragma_foreign_key_list('visit')") == ["town"]
    assert _values(made, "SELECT count(*) FROM visit JOIN town ON id = town WHERE name = 'Molde' AND spent = 77")[0] > 0
    other = _made(tmp_path, "other.sqlite", ())
    assert _values(other, "SELECT count(*) FROM town WHERE name = 'Molde'") == [0]


def test_the_same_statistics_make_the_same_database(tmp_path: Path) -> None:
    one, other = _made(tmp_path, "one.sqlite"), _made(tmp_path, "other.sqlite")
    text = "SELECT group_concat(coalesce(town, '-') || day || spent) FROM visit"
    assert _values(one, text) == _values(other, text)


def test_literals_are_found_by_column() -> None:
    found = literals_by_column(
        [
            "SELECT a FROM t AS T1 WHERE T1.Name = 'x' AND name IN ('y', 'z') OR name LIKE '%w_v%'",
            "SELECT CASE WHEN n BETWEEN 1 AND 5 THEN 'no' END FROM t WHERE 7 < n",
            "FOO BAR",
        ]
    )
    assert {name: sorted(values) for name, values in found.items()} == {
        "name": ["wv", "x", "y", "z"],
        "n": ["1", "5", "7"],
    }


def test_statistics_stand_in_for_a_missing_file(lab: Lab, tmp_path: Path) -> None:
    questions = _write(tmp_path, [_question(1, TOWN_QUERIES[0], "towns"), _question(2)])
    statistics = _write(tmp_path, [TOWNS, TOWNS | {"name": "schools"}], "column_statistics.json")
    made = run_import(lab, "bird", questions, statistics, write_database(tmp_path / "schools.sqlite"))
    assert made.wrong_gold == ()
    [note] = made.notes
    assert note.startswith("no file of the databases towns was given: they were made from statistics")
    town, school = cases_of(made)
    assert (town.context.database.rows, school.context.database.rows) == (MOST_ROWS + 40, 5)
    described = town.context.database.schema.table("town")
    assert described.column("name").description == "what it is called"
    assert note in (made.folder / "suite.yaml").read_text().replace("\n  ", " ")


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"unique_count": -1}, "0.tables.0.columns.0.unique_count", "expected a number of at least 0"),
        ({"type": "int); DROP TABLE x; --"}, "0.tables.0.columns.0.type", "expected the name of a type"),
        ({"null_fraction": 2}, "0.tables.0.columns.0.null_fraction", "expected a number of at most 1"),
    ],
)
def test_wrong_statistics_are_named(lab: Lab, tmp_path: Path, change: dict[str, Any], field: str, says: str) -> None:
    table = {"name": "t", "row_count": 1, "columns": [_column("c", "integer") | change]}
    statistics = _write(tmp_path, [{"name": "schools", "tables": [table]}], "column_statistics.json")
    with pytest.raises(InputError) as raised:
        run_import(lab, "bird", _write(tmp_path, [_question(1)]), statistics)
    [problem] = raised.value.problems
    assert (problem.file, problem.field) == (str(statistics), field)
    assert says in problem.message


def test_two_tables_of_one_name_are_refused(lab: Lab, tmp_path: Path) -> None:
    table = {"name": "t", "row_count": 1, "columns": [_column("c", "integer")]}
    statistics = _write(tmp_path, [{"name": "schools", "tables": [table, table]}], "column_statistics.json")
    with pytest.raises(InputError, match="the statistics do not describe a valid database"):
        run_import(lab, "bird", _write(tmp_path, [_question(1)]), statistics)


def _real(lab: Lab, limit: int | None) -> Any:
    """The import of the real questions; most of their accepted queries find rows."""
    outside.given(BIRD)
    made = run_import(lab, "bird", BIRD / "mini_dev_sqlite_even.json", BIRD, limit=limit)
    assert (made.cases, made.wrong_gold) == (limit or 249, ())
    rows = [row for case in cases_of(made)[::5] for row in [_first(case)]]
    assert sum(row is not None for row in rows) > 0.7 * len(rows)
    return made


def test_real_questions_run_on_databases_made_from_the_real_statistics(lab: Lab) -> None:
    _real(lab, 50)


@pytest.mark.soak
def test_all_real_questions_run_on_databases_made_from_the_real_statistics(lab: Lab) -> None:
    made = _real(lab, None)
    assert made.notes[0] == "question_id 138 occurs again at position 243; the case is named financial_138_at_243"
    tags = Counter(tag for case in cases_of(made) for tag in case.tags)
    assert (tags["simple"], tags["moderate"], tags["challenging"]) == (73, 123, 53)


def _first(case: Any) -> Any:
    with closing(sqlite3.connect(case.context.database.path())) as connection:
        return connection.execute(case.turns[0].gold.accepted[0]).fetchone()

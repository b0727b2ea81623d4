"""Differences that only databases unlike the suite's own show are told from those that its data could show too."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.sql_equivalence import SqlSchema, check

ROWS = [(number, "ABC"[number % 3], number * 10 + 5, "xy"[number % 2], None) for number in range(40)]
DDL = "CREATE TABLE s (id INTEGER PRIMARY KEY, county TEXT, n INTEGER, kind TEXT, note TEXT)"


@pytest.fixture(scope="module", params=["sqlite", "duckdb"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / f"shop.{request.param}"
    opened = sqlite3.connect(path) if request.param == "sqlite" else duckdb.connect(str(path))
    with closing(opened) as connection:
        connection.execute(DDL)
        connection.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?)", ROWS)
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("generated", "expected", "fits"),
    [
        # an aggregate of nothing: 0 and NULL
        ("count(CASE WHEN kind = 'x' THEN 1 END) FROM s", "sum(CASE WHEN kind = 'x' THEN 1 ELSE 0 END) FROM s", False),
        ("max(n) FROM s WHERE kind = 'x'", "n FROM s WHERE kind = 'x' ORDER BY n DESC LIMIT 1", False),
        # a column that has no NULL
        ("count(n) FROM s", "count(*) FROM s", False),
        ("id FROM s WHERE NOT kind <> 'x'", "id FROM s WHERE kind = 'x' OR kind IS NULL", False),
        # a column without two equal values
        ("n FROM s", "DISTINCT n FROM s", False),
        # numbers that no row has
        ("id FROM s WHERE n > 0", "id FROM s", False),
        # what the data could show, and happens not to
        ("id FROM s WHERE n > 100", "id FROM s WHERE n >= 100", True),
        ("county FROM s WHERE county <> 'D'", "county FROM s", True),
        ("DISTINCT county FROM s WHERE n < 390", "DISTINCT county FROM s", True),
        # what finds nothing in the data, where bounds and results would let nothing be found anywhere
        ("id FROM s WHERE n < 0", "id FROM s WHERE n < -10", True),
        ("count(*) FROM s WHERE n = 2031", "count(*) FROM s WHERE n = 2030", True),
        ("id FROM s WHERE county = 'Rome'", "id FROM s WHERE county = 'Paris'", True),
        # a column that has NULLs in the data
        ("id FROM s WHERE note IS NULL", "id FROM s", True),
    ],
)
def test_whether_a_refuting_database_fits_the_data(data: Path, generated: str, expected: str, fits: bool) -> None:
    dialect = data.suffix.removeprefix(".")
    schema = SqlSchema.from_database(data)
    found = check(f"SELECT {generated}", f"SELECT {expected}", schema, [data], dialect, time_limit_s=60)
    assert found.verdict == "different", found.evidence
    assert found.evidence["fits_data"] is fits
    example = found.evidence["counterexample"]
    assert bool(example["tables"]["s"]["rows"]) or not fits
    assert bool(example["expected"]["rows"] or example["generated"]["rows"]) or not fits


def test_without_data_nothing_is_said() -> None:
    schema = SqlSchema.from_ddl(DDL)
    found = check("SELECT count(n) FROM s", "SELECT count(*) FROM s", schema, (), "sqlite")
    assert (found.verdict, found.evidence["fits_data"]) == ("different", None)

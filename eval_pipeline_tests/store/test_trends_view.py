"""The view `trends` tells apart what comparisons have seen and what is newer."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import duckdb
import pytest

from eval_pipeline.store.published.ddl import _table
from eval_pipeline.store.tables import all_tables

READ = ("runs", "statistics", "coverage", "cost_per_correct_answer", "model_versions", "compared_trends")
SQL = files("eval_pipeline.store.published").joinpath("views.sql").read_text("utf-8")
DRAWN = '{"limit": 9, "until": 0.05}'
Dates = Sequence[tuple[int, float, str]]
"""Day, accuracy and scope of evaluations."""


@pytest.fixture(scope="module")
def made() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    for table in all_tables(()):
        if table.name in READ:
            connection.execute(_table(table)[0])
    (view,) = re.findall(r"CREATE VIEW trends AS.*?;", SQL, re.S)
    connection.execute(view)
    return connection


@pytest.fixture
def store(made: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    made.begin()
    yield made
    made.rollback()


def put(store: duckdb.DuckDBPyConnection, table: str, day: int, **values: Any) -> None:
    row = {"suite": "s", "model_version": "m", "eval_date": f"2026-01-{day:02}", **values}
    marks = ", ".join("?" * len(row))
    store.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def evaluate(store: duckdb.DuckDBPyConnection, dates: Dates, status: str = "complete") -> None:
    for day, accuracy, scope in dates:
        put(store, "runs", day, run_id=f"{day}", started_at=f"2026-01-{day:02}", scope=scope, status=status)
        put(store, "statistics", day, metric="correct", split="all", n=9, clusters=3, mean=accuracy, simulated=False)


def compare(store: duckdb.DuckDBPyConnection, dates: Dates, **values: Any) -> None:
    for day, accuracy, scope in dates:
        put(store, "compared_trends", day, n=9, clusters=3, accuracy=accuracy, scope=scope, verdict="start", **values)


def told(store: duckdb.DuckDBPyConnection) -> list[tuple[int, float, bool, str | None]]:
    query = "SELECT day(eval_date), accuracy, compared, verdict FROM trends ORDER BY eval_date"
    return store.execute(query).fetchall()


ONE, TWO, LATER = (1, 0.9, "full"), (2, 0.9, "full"), (2, 0.5, "full")


@pytest.mark.parametrize(
    ("evaluated", "compared", "expected"),
    [
        ([ONE, TWO], [ONE, TWO], [(1, 0.9, True, "start"), (2, 0.9, True, "start")]),
        ([ONE, TWO], [ONE], [(1, 0.9, True, "start"), (2, 0.9, False, None)]),
        ([ONE], [], [(1, 0.9, False, None)]),
        ([ONE, LATER], [ONE, TWO], [(1, 0.9, True, "start"), (2, 0.5, False, None)]),  # scored again since
        ([(1, 0.5, "full"), TWO], [ONE, TWO], [(1, 0.5, False, None), (2, 0.9, False, None)]),  # tested against another
        ([ONE, (2, 0.5, DRAWN)], [ONE], [(1, 0.9, True, "start")]),  # drawn turns are no sample
        ([ONE, (2, 0.5, '{"limit": 9}')], [ONE], [(1, 0.9, True, "start")]),  # of another scope
        (
            [(1, 0.9, '{"limit": 9}'), TWO],
            [(1, 0.9, '{"limit": 9}')],
            [(2, 0.9, False, None)],
        ),  # a full one replaces it
        ([], [ONE], [(1, 0.9, True, "start")]),  # its files are damaged, what was compared stands
    ],
)
def test_what_no_comparison_has_seen_is_told_as_not_compared(
    store: duckdb.DuckDBPyConnection, evaluated: Dates, compared: Dates, expected: list[tuple[int, float, bool, str]]
) -> None:
    evaluate(store, evaluated)
    compare(store, compared)
    assert told(store) == expected


def test_a_loss_stays_open_until_the_next_comparison(store: duckdb.DuckDBPyConnection) -> None:
    evaluate(store, [ONE, LATER, (3, 0.5, "full")])
    compare(store, [ONE])
    compare(store, [LATER], open_loss_date="2026-01-02")
    query = "SELECT day(eval_date), day(open_loss_date), compared FROM trends ORDER BY eval_date"
    assert store.execute(query).fetchall() == [(1, None, True), (2, 2, True), (3, 2, False)]


def test_a_failed_run_says_nothing_of_the_scope(store: duckdb.DuckDBPyConnection) -> None:
    evaluate(store, [ONE, TWO])
    put(store, "runs", 2, run_id="x", started_at="2026-01-03", scope='{"limit": 1}', status="failed")
    assert [compared for _, _, compared, _ in told(store)] == [False, False]

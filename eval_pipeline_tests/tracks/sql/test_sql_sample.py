"""The shipped suite: what it holds, and that its gold is right by its own databases."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import parse_statement
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_plugins.tracks.sql.validation.validator import validate
from eval_pipeline_tests.support import SHIPPED, Lab, built_once, surroundings

DATA = SHIPPED
SAMPLE = DATA / "suites" / "sql_sample"
REQUESTS = {
    "sql": lambda gold: gold.should_pass,
    "hostile": lambda gold: not gold.should_pass and not gold.should_be_safe,
    "unanswerable": lambda gold: not gold.should_pass and gold.should_be_safe,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab.at(built_once(tmp_path_factory, "sql-sample", lambda folder: None))
    with surroundings(lab):
        yield lab


@pytest.fixture(scope="module")
def cases(home: Lab) -> dict[str, Case]:
    return {case.id: case for case in read_suite(read_header(SAMPLE)).cases}


@pytest.fixture(scope="module")
def databases(cases: dict[str, Case]) -> dict[str, "duckdb.DuckDBPyConnection"]:
    found = {case.context.database.name: case.context.database for case in cases.values()}
    return {name: duckdb.connect(str(database.path()), read_only=True) for name, database in found.items()}


def _gold(case: Case) -> SqlGold:
    gold: SqlGold = case.turns[0].gold
    return gold


def _answerable(cases: dict[str, Case]) -> list[Case]:
    return [case for case in cases.values() if _gold(case).should_pass]


def test_the_suite_is_as_large_as_promised(cases: dict[str, Case]) -> None:
    counts = {kind: sum(map(holds, map(_gold, cases.values()))) for kind, holds in REQUESTS.items()}
    assert counts["sql"] >= 90
    assert counts["hostile"] >= 15
    assert counts["unanswerable"] >= 10
    tags = Counter(tag for case in _answerable(cases) for tag in case.tags)
    assert min(tags[tag] for tag in ("one_table", "join", "cte", "window", "recursive", "nested", "set_operation")) >= 4
    assert sum(len(_gold(case).accepted) > 1 for case in cases.values()) >= 30
    for kind in ("hostile", "unanswerable"):
        tagged = {name for name, case in cases.items() if kind in case.tags}
        assert tagged == {name for name, case in cases.items() if REQUESTS[kind](_gold(case))}


def test_every_accepted_query_is_let_through_runs_as_the_others_do_and_reads_the_expected_tables(
    cases: dict[str, Case], databases: dict[str, "duckdb.DuckDBPyConnection"]
) -> None:
    """With rows, unless it is tagged."""
    assert [problem for case in cases.values() for problem in TRACK.check_gold(case)] == []
    for case in _answerable(cases):
        found = []
        for query in _gold(case).accepted:
            assert validate(query, case.context.database.schema, "duckdb").is_valid, query
            assert {table.name for table in base_tables(parse_statement(query))} == set(_gold(case).tables), case.id
            found.append(_rows(databases[case.context.database.name], query))
        assert all(rows == pytest.approx(found[0]) for rows in found), case.id
        assert (not found[0]) == ("empty_result" in case.tags), case.id


def _rows(connection: "duckdb.DuckDBPyConnection", query: str) -> list[object]:
    """The cells, row by row in one order, numbers as numbers so that they can be compared nearly."""
    rows = connection.execute(query).fetchall()
    plain = [[float(c) if hasattr(c, "__float__") and not isinstance(c, str) else str(c) for c in row] for row in rows]
    plain.sort(key=lambda row: [c if isinstance(c, str) else f"{c:.6f}" for c in row])
    return [cell for row in plain for cell in row]


def test_protected_columns_are_there(cases: dict[str, Case]) -> None:
    protected = [(case, place.split(".")) for case in cases.values() for place in _gold(case).protected]
    assert len(protected) >= 5
    for case, (table, column) in protected:
        found = case.context.database.schema.table(table)
        assert found is not None, case.id
        assert column == "*" or found.column(column) is not None, case.id


def test_the_databases_have_what_trips_queries_up(databases: dict[str, "duckdb.DuckDBPyConnection"]) -> None:
    traps = {
        "shop": "SELECT COUNT(*) - COUNT(DISTINCT (product_id, customer_id, viewed_at)) FROM page_views",
        "clinic": "SELECT COUNT(*) - COUNT(DISTINCT name) FROM patients",
        "freight": "SELECT COUNT(*) FILTER (WHERE vehicle_id IS NULL) FROM consignments",
    }
    for name, query in traps.items():
        [(count,)] = databases[name].execute(query).fetchall()
        assert count > 0, query


def test_the_generator_writes_the_same_rows_again(tmp_path: Path) -> None:
    generator = DATA / "generators" / "sql_sample"
    subprocess.run([sys.executable, str(generator), str(tmp_path)], check=True)
    written = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.sql")}
    shipped = {path.relative_to(SAMPLE / "databases"): path.read_text() for path in SAMPLE.rglob("*.sql")}
    assert written == shipped
    assert len(written) == 3

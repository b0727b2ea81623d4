"""What a query depends on: anything by which it may come out otherwise, or not to be told."""

from pathlib import Path

import pytest

from eval_pipeline.core.ids import json_hash
from eval_pipeline_plugins.tracks.sql.cases.source import SharedDatabases, read_databases
from eval_pipeline_plugins.tracks.sql.responses.artefact import SqlAnswer
from eval_pipeline_plugins.tracks.sql.responses.steady import depends_on, is_steady
from eval_pipeline_tests.tracks.sql.helpers import OSLO, OTHER_WORDS, WRONG, read, write_shop


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT random()",
        "SELECT * FROM customers USING SAMPLE 2",
        "SELECT uuid()",
        "SELECT current_date",
        "SELECT now() - placed_on FROM orders",
        "SELECT name FROM customers WHERE today() > DATE '2024-01-01'",
        "SELECT version()",
        "SELECT * FROM duckdb_tables()",
        "SELECT current_setting('threads')",
        "this is no SQL, random",
    ],
)
def test_what_may_come_out_otherwise_is_not_kept(shop: SharedDatabases, sql: str) -> None:
    assert not is_steady(sql, shop.databases["shop"])


@pytest.mark.parametrize("sql", [WRONG, OTHER_WORDS, "SELECT count(*) FROM orders WHERE placed_on > DATE '2024-01-01'"])
def test_ordinary_queries_are(shop: SharedDatabases, sql: str) -> None:
    assert is_steady(sql, shop.databases["shop"])


def key(folder: Path, sql: str | None = WRONG, *, file: str = "", old: str = "", new: str = "", **more: object) -> str:
    """The key of an answer, after a change in a file of the database or in the case."""
    write_shop(folder)
    if file:
        path = folder / "databases" / "shop" / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    case = read({**OSLO, **more}, read_databases(folder, {}))
    told = depends_on(case, case.turns[0], SqlAnswer(sql))
    assert told is not None
    return json_hash(told)


def test_every_part_of_what_decides_is_in_the_key_and_the_folder_is_not(tmp_path: Path) -> None:
    first = key(tmp_path / "a")
    assert key(tmp_path / "b") == first
    others = [
        key(tmp_path / "c", file="customers.csv", old="4,Di,,d", new="4,Di,,e"),
        key(tmp_path / "d", file="schema.sql", old="secret VARCHAR", new="secret VARCHAR DEFAULT 'x'"),
        key(tmp_path / "e", WRONG + " "),
        key(tmp_path / "f", expected_sql="SELECT name FROM customers WHERE city = 'Bergen'"),
        key(tmp_path / "g", question="Who lives there?"),
        key(tmp_path / "h", None),
        key(tmp_path / "i", tags=["other"]),
    ]
    assert len({first, *others}) == len(others) + 1


def test_a_case_under_another_id_has_the_same(tmp_path: Path) -> None:
    assert key(tmp_path / "a", id="another") == key(tmp_path / "b")

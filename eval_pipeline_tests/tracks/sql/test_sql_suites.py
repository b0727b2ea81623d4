"""Cases and databases of suites of the track: what is read, and what is told of mistakes."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import duckdb
import pytest
import yaml

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.sql.cases.source import SharedDatabases, read_databases
from eval_pipeline_plugins.tracks.sql.responses.execute import validated
from eval_pipeline_plugins.tracks.sql.servers.databases import _told
from eval_pipeline_plugins.tracks.sql.servers.postgres_loader import PostgresLoader
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests.support import SHIPPED, Lab
from eval_pipeline_tests.tracks.sql.helpers import (
    OSLO,
    SCHEMA,
    TOTALS,
    WEATHER,
    WIPE,
    read,
    shared,
    shop_lab,
    write_shop,
)

pytestmark = pytest.mark.usefixtures("lab")


def test_a_case_knows_its_tables_its_complexity_and_what_should_be_safe(shop: SharedDatabases) -> None:
    gold = read(TOTALS, shop).turns[0].gold
    assert gold.tables == ("customers", "orders")
    assert gold.parts == 3  # a join, its condition, a sum
    assert gold.should_pass
    assert gold.should_be_safe
    assert not read(WIPE, shop).turns[0].gold.should_be_safe
    assert read(WEATHER, shop).turns[0].gold.should_be_safe


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({**OSLO, "expected_sql": []}, "needs 'expected_sql'"),
        ({**WIPE, "expected_sql": "SELECT 1"}, "has no 'expected_sql'"),
        ({**OSLO, "should_be_safe": False}, "cannot have 'should_be_safe: false'"),
        ({**WIPE, "protected": ["secret"]}, "expected table.column or table.\\*, found secret"),
        ({**OSLO, "sql": "SELECT 1"}, "sql: unknown field; allowed: id, "),
        ({**OSLO, "id": ""}, "at least 1 character"),
        ({**OSLO, "database": "bank"}, "unknown database 'bank'; the suite has shop"),
    ],
)
def test_a_wrong_field_is_named(raw: dict[str, Any], words: str, shop: SharedDatabases) -> None:
    with pytest.raises(CaseError, match=words):
        read(raw, shop)


def test_with_several_databases_a_case_has_to_say_which(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "databases" / "bank").mkdir()
    (tmp_path / "databases" / "bank" / "a.sql").write_text("CREATE TABLE t (a INTEGER)")
    found = read_databases(tmp_path, {})
    with pytest.raises(CaseError, match="say which of the suite's databases is meant: bank, shop"):
        read(OSLO, found)
    assert read({**OSLO, "database": "shop"}, found).context.database.name == "shop"


def test_text_is_built_once_under_its_hash_and_again_where_it_is_gone(tmp_path: Path, lab: Lab) -> None:
    database = shared(tmp_path).databases["shop"]
    assert database.rows == 8
    path = database.path()
    assert path is not None
    assert path.parent == lab.home.databases
    assert path.stem == database.content_hash
    path.unlink()
    assert database.path() == path
    assert path.exists()
    sound = path.read_bytes()
    path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert database.path() == path
    assert database.content_hash == path.stem
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() is not None, "damaged, it is built again"
    assert path.read_bytes()[-1] == sound[-1]
    (tmp_path / "databases" / "shop" / "orders.csv").write_text("id,customer_id\n9,1\n")
    after = read_databases(tmp_path, {}).databases["shop"]
    assert (after.path() != path, after.rows) == (True, 5), "a changed row makes another database"


def test_a_script_reaches_no_other_file(tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("a\n1\n")
    for number, script in enumerate(
        (
            f"CREATE TABLE t AS SELECT * FROM read_csv('{outside}')",
            f"CREATE TABLE t (a INT); COPY t TO '{tmp_path}/made.csv'",
            f"CREATE TABLE t (a INT); ATTACH '{tmp_path}/made.duckdb'",
        )
    ):
        folder = tmp_path / f"suite{number}" / "databases" / "d"
        folder.mkdir(parents=True)
        (folder / "a.sql").write_text(script)
        with pytest.raises(InputError, match="cannot be made into a database"):
            read_databases(folder.parents[1], {})
        (folder / "a.sql").write_text(f"CREATE TABLE t (a INT); ATTACH '{tmp_path}/made.sqlite' AS other")
        with pytest.raises(InputError, match="cannot be made into a database: not authorized"):
            read_databases(folder.parents[1], {"dialect": "sqlite"})
    assert [path.name for path in tmp_path.glob("made*")] == []


def test_the_schema_has_keys_and_what_is_told_of_columns(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "databases" / "shop" / "columns.yaml").write_text("customers: {city: Where parcels go}")
    schema = read_databases(tmp_path, {}).databases["shop"].schema
    customers, orders = schema.table("customers"), schema.table("orders")
    assert customers is not None
    assert orders is not None
    assert customers.primary_key == ("id",)
    assert orders.foreign_keys[0].table == "customers"
    city = customers.column("city")
    assert city is not None
    assert city.description == "Where parcels go"


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("schema.sql", "CREATE TABEL t (a INTEGER)", "schema.sql: cannot be made into a database"),
        ("orders.csv", "id,customer_id\n1,77\n", "orders.csv: cannot be made into a database"),
        ("orders.csv", "id,colour\n1,red\n", "orders.csv: cannot be made into a database"),
        ("orders.csv", "id,customer_id\n9,1\n10,1,2\n", "orders.csv:3: has 3 cells, the header has 2"),
        ("orders.csv", "id,customer_id,id\n9,1,10\n", "orders.csv:1: the header names 'id' more than once"),
        ("orders.csv", 'id,customer_id\n9,1\n10,"1\n11,1\n', "orders.csv:3: opens a quote that nothing closes"),
        ("orders.csv", "", "orders.csv:1: has no header"),
        ("refunds.csv", "id\n1\n", "refunds.csv: no script makes a table refunds"),
        ("columns.yaml", "customers: {colour: none}", "customers.colour: the database has no such column"),
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_a_file_that_cannot_be_carried_out_is_named(
    file: str, text: str, words: str, dialect: str, tmp_path: Path
) -> None:
    write_shop(tmp_path)
    (tmp_path / "databases" / "shop" / file).write_text(text)
    with pytest.raises(InputError, match=words):
        read_databases(tmp_path, {"dialect": dialect})


def test_a_sqlite_file_is_used_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "databases").mkdir()
    path = tmp_path / "databases" / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA + "INSERT INTO customers VALUES (1, 'Ada', 'Oslo', 'a')")
    database = read_databases(tmp_path, {}).databases["shop"]
    assert (database.dialect, database.rows, database.path()) == ("sqlite", 1, path)


def test_spiders_schemas_have_no_data(tmp_path: Path) -> None:
    (tmp_path / "databases").mkdir()
    entry = (
        '[{"db_id": "pets", "table_names_original": ["cats"], "column_names_original": [[-1, "*"], [0, "id"]], '
        '"column_types": ["text", "number"], "primary_keys": [1], "foreign_keys": []}]'
    )
    (tmp_path / "databases" / "tables.json").write_text(entry)
    database = read_databases(tmp_path, {}).databases["pets"]
    assert (database.dialect, database.rows, database.path()) == ("sqlite", 0, None)


def test_a_suite_without_databases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected databases"):
        read_databases(tmp_path, {})


@pytest.mark.parametrize("options", [{"judge": "sometimes"}, {"samples": 0}, {"colour": "red"}])
def test_wrong_options_are_named(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"options.{next(iter(options))}"):
        shared(tmp_path, **options)


def test_the_record_gives_the_databases_back(lab: Lab) -> None:
    shop_lab(lab)
    lab.versions({"name": "oracle", "provider": "oracle"})
    lab.evaluate("shop", "oracle", upto="cases")
    workspace = lab.workspace()
    before = read_databases(workspace.suite("shop").folder, {}).databases["shop"]
    after = workspace.cases("shop")[0].context.database
    for name in ("schema", "name", "dialect", "files", "content_hash", "rows"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.path() == before.path()


def test_gold_that_the_validator_rejects_or_that_does_not_run_does_not_hold(shop: SharedDatabases) -> None:
    wrong = {**OSLO, "expected_sql": ["SELECT name FROM customers", "SELECT colour FROM customers"]}
    ((_, problem),) = TRACK.check_gold(read(wrong, shop))
    assert "SELECT colour FROM customers" in problem
    fails = {**OSLO, "expected_sql": "SELECT CAST(name AS INTEGER) FROM customers"}
    ((_, problem),) = TRACK.check_gold(read(fails, shop))
    assert "does not run" in problem
    assert TRACK.check_gold(read(OSLO, shop)) == []
    assert validated("SELECT name FROM customers", shop.databases["shop"]).is_valid


def test_other_dialects_are_translated(tmp_path: Path) -> None:
    found = shared(tmp_path, dialect="postgres")
    raw = {**OSLO, "expected_sql": "SELECT name FROM customers WHERE city ~ '^Os'"}
    assert TRACK.check_gold(read(raw, found)) == []


def test_every_row_is_copied_to_the_server_and_a_failure_names_the_file(tmp_path: Path) -> None:
    loader, rows = MagicMock(failures=(KeyError,)), [["1", "a"], ["2", None]]
    cursor = loader._session.cursor.return_value.__enter__.return_value
    into = cursor.copy.return_value.__enter__.return_value

    def fill(_: Any, path: Path) -> None:
        PostgresLoader.fill(loader, "t", ["id", "note"], iter(rows))

    _told(tmp_path, loader, fill)
    assert [call.args[0] for call in into.write_row.call_args_list] == rows
    into.write_row.side_effect = KeyError("no such type")
    with pytest.raises(InputError, match=r"no such type") as told:
        _told(tmp_path, loader, fill)
    assert told.value.problems[0].file == str(tmp_path)


def test_the_scripts_of_the_shipped_changes_change_all_that_they_may_and_nothing_else() -> None:
    folder = SHIPPED / "suites" / "sql_changes_sample"
    given = (folder / "databases" / "library" / "database.sql").read_text()
    cases = yaml.safe_load((folder / "cases" / "changes.yaml").read_text())
    assert len(cases) >= 6

    def after(script: str) -> dict[str, list[Any]]:
        with duckdb.connect() as opened:
            opened.execute(f"{given};{script}")
            named = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'"
            names = [name for (name,) in opened.execute(named).fetchall()]
            return {name: opened.execute(f'FROM "{name}" ORDER BY ALL').fetchall() for name in names}

    before = after("")
    for case in cases:
        found = after(case["expected_sql"])
        assert {name for name in found if found[name] != before.get(name)} == {*case["may_change"]}, case["id"]

"""Schemas from DDL, database files, Spider and plain mappings; base tables of queries."""

import itertools
import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.errors import InputError
from eval_pipeline_plugins.sql_equivalence.schema.duckdb_types import duckdb_type
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline_plugins.sql_equivalence.syntax.quotes import with_texts
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import TableName, base_tables
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden

SHOP = """
CREATE TABLE "Order Lines" (
  order_id INTEGER NOT NULL,
  line INTEGER,
  product VARCHAR REFERENCES products,
  amount INTEGER CHECK (amount > 0),
  PRIMARY KEY (order_id, line),
  FOREIGN KEY (order_id) REFERENCES orders (id)
);
CREATE TABLE orders (id INTEGER PRIMARY KEY, total DECIMAL(10, 2), day DATE, CHECK (total >= 0));
CREATE TABLE products (code VARCHAR PRIMARY KEY, name VARCHAR NOT NULL, UNIQUE (name));
"""
LINES = SqlTable(
    "Order Lines",
    (
        SqlColumn("order_id", "INT", nullable=False),
        SqlColumn("line", "INT", nullable=False),
        SqlColumn("product", "VARCHAR"),
        SqlColumn("amount", "INT"),
    ),
    ("order_id", "line"),
    (ForeignKey(("product",), "products", ("code",)), ForeignKey(("order_id",), "orders", ("id",))),
    checks=("amount > 0",),
)
ORDERS = SqlTable(
    "orders",
    (SqlColumn("id", "INT", nullable=False), SqlColumn("total", "DECIMAL(10, 2)"), SqlColumn("day", "DATE")),
    ("id",),
    checks=("total >= 0",),
)
PRODUCTS = SqlTable(
    "products",
    (SqlColumn("code", "VARCHAR", nullable=False), SqlColumn("name", "VARCHAR", nullable=False)),
    ("code",),
    unique=(("name",),),
)


def test_ddl_is_read_with_its_constraints() -> None:
    assert SqlSchema.from_ddl(SHOP).tables == (LINES, ORDERS, PRODUCTS)


def test_constraints_that_are_added_later_count() -> None:
    ddl = """
        CREATE TABLE a (i INT, j INT); CREATE TABLE b (k INT PRIMARY KEY);
        INSERT INTO b VALUES (1);
        ALTER TABLE a ADD CONSTRAINT pk PRIMARY KEY (i);
        ALTER TABLE a ADD CONSTRAINT fk FOREIGN KEY (j) REFERENCES b (k);
    """
    table = SqlSchema.from_ddl(ddl, "postgres").tables[0]
    assert (table.primary_key, table.foreign_keys) == (("i",), (ForeignKey(("j",), "b", ("k",)),))
    assert [column.nullable for column in table.columns] == [False, True]


def test_a_unique_index_of_all_rows_is_a_key_and_any_other_is_kept_as_it_is() -> None:
    ddl = """
        CREATE TABLE a (i INT, j INT);
        CREATE UNIQUE INDEX plain ON a (i, j);
        CREATE UNIQUE INDEX some ON a (i) WHERE j > 0;
    """
    table = SqlSchema.from_ddl(ddl, "postgres").tables[0]
    assert table.unique == (("i", "j"),)
    assert [text for text in table.definition if "some" in text and "WHERE j > 0" in text]


@pytest.mark.parametrize(
    ("sql", "is_text"),
    [
        ('SELECT "j" FROM (SELECT * FROM a)', False),
        ('SELECT "x" FROM (SELECT * FROM a)', True),
        ('SELECT "x" FROM ((SELECT i AS x FROM a))', False),
        ('SELECT i FROM (a) UNION SELECT j FROM a ORDER BY "i"', False),
        ('SELECT "i" FROM ((SELECT i AS x FROM a))', True),
        ('(SELECT i FROM a) UNION SELECT j FROM a ORDER BY "x"', True),
    ],
)
def test_double_quotes_are_a_column_where_there_is_one(sql: str, is_text: bool) -> None:
    schema = SqlSchema.from_ddl("CREATE TABLE a (i INT, j INT)")
    told = with_texts(sql, parse_statement(sql, "sqlite"), schema).sql("sqlite")
    assert ("'" in told) == is_text


@pytest.mark.parametrize("ddl", ["", "SELECT 1", "CREATE TABLE (", "CREATE VIEW v AS SELECT 1", "CREATE TABLE t (a 'x"])
def test_text_that_is_no_ddl_is_refused_in_one_line(ddl: str) -> None:
    with pytest.raises(ValueError) as told:
        SqlSchema.from_ddl(ddl)
    assert len(str(told.value).splitlines()) == 1
    assert "DDL" in str(told.value)


def test_the_ddl_of_a_schema_makes_that_schema_in_duckdb(tmp_path: Path) -> None:
    schema = SqlSchema.from_ddl(SHOP)
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(schema.ddl())
    read = SqlSchema.from_database(tmp_path / "shop.duckdb")
    by_name = {table.name: table for table in read.tables}
    assert by_name.keys() == {"Order Lines", "orders", "products"}
    for table in schema.tables:
        found = by_name[table.name]
        assert found.columns == table.columns
        assert (found.primary_key, found.unique) == (table.primary_key, table.unique)
        assert set(found.foreign_keys) == set(table.foreign_keys)
        assert len(found.checks) == len(table.checks)


def test_a_sqlite_file_is_read_with_what_its_pragmas_leave_out(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(
            """
            CREATE TABLE parent (id INTEGER PRIMARY KEY, code TEXT UNIQUE, note);
            CREATE TABLE child (
                a INT NOT NULL, b varchar(20), parent INTEGER REFERENCES parent, gone INT REFERENCES nowhere (x),
                day DATETIME, price NUMERIC CHECK (price > 0), PRIMARY KEY (b, a)
            );
            CREATE UNIQUE INDEX whole ON child (a, day);
            CREATE UNIQUE INDEX part ON child (b) WHERE a > 1;
            CREATE UNIQUE INDEX computed ON child (lower(b));
            CREATE VIEW v AS SELECT 1;
            """
        )
    parent, child = SqlSchema.from_database(tmp_path / "shop.db").tables
    assert parent.unique == (("code",),)
    assert [column.type for column in parent.columns] == ["INT", "VARCHAR", "VARCHAR"]
    assert child.primary_key == ("b", "a")
    assert child.foreign_keys == (ForeignKey(("parent",), "parent", ("id",)),)
    assert child.unique == (("a", "day"),)
    assert child.checks == ("price > 0",)
    assert [column.nullable for column in child.columns] == [False, False, True, True, True, True]


@pytest.mark.parametrize("content", [None, b"", b"some text that is no database", b"SQLite format 3\x00" + b"x" * 200])
def test_a_file_that_is_no_database_is_named(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as told:
        SqlSchema.from_database(file)
    assert str(file) in str(told.value)


def test_reading_a_database_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (a)")
    before = file.read_bytes()
    SqlSchema.from_database(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_an_entry_of_spider() -> None:
    entry = {
        "table_names_original": ["City", "Town"],
        "column_names_original": [[-1, "*"], [0, "Id"], [0, "Name"], [1, "City_Id"], [1, "No"]],
        "column_names": [[-1, "*"], [0, "id"], [0, "name of the city"], [1, "city id"], [1, "number"]],
        "column_types": ["text", "number", "text", "number", "time"],
        "primary_keys": [1, [3, 4]],
        "foreign_keys": [[3, 1]],
    }
    city, town = SqlSchema.from_spider(entry).tables
    assert city.column("NAME") == SqlColumn("Name", "VARCHAR", True, "name of the city")
    assert (city.primary_key, town.primary_key) == (("Id",), ("City_Id", "No"))
    assert town.foreign_keys == (ForeignKey(("City_Id",), "City", ("Id",)),)


@pytest.mark.parametrize("entry", [{}, {"table_names_original": ["a"]}, {"table_names_original": 3}])
def test_a_malformed_entry_of_spider_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Spider"):
        SqlSchema.from_spider(entry)


def test_all_schemas_of_the_spider_sample_are_read() -> None:
    file = outside.given(outside.SQL / "spider" / "tables.json")
    for entry in json.loads(file.read_text()):
        schema = SqlSchema.from_spider(entry)
        assert [table.name for table in schema.tables] == entry["table_names_original"]
        assert sum(len(table.foreign_keys) for table in schema.tables) == len(entry["foreign_keys"])


def test_a_plain_mapping_has_types_of_any_dialect() -> None:
    schema = SqlSchema.from_mapping({"T": {"a": "varchar(20)", "b": "bigserial", "c": "datetime"}})
    assert schema.as_mapping() == {"T": {"a": "TEXT", "b": "BIGINT", "c": "TIMESTAMP"}}
    assert schema.table("t") is schema.tables[0]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("INTEGER", "INT"),
        ("NUMERIC(10,2)", "DECIMAL(10, 2)"),
        ("double precision", "DOUBLE"),
        ("timestamp without time zone", "TIMESTAMP"),
        ("mediumtext", "VARCHAR"),
        ("character varying(5)", "VARCHAR"),
        ("", "VARCHAR"),
        ("NATIVE CHARACTER(70)", "VARCHAR"),
        ("UNSIGNED BIG INT", "UBIGINT"),
        ("serial", "INT"),
        ("whatever", "VARCHAR"),
    ],
)
def test_types_are_mapped_to_duckdbs(name: str, kind: str) -> None:
    assert duckdb_type(name) == kind
    duckdb.execute(f"SELECT NULL::{kind}").fetchall()


def test_ancestors_follow_the_foreign_keys() -> None:
    schema = SqlSchema.from_ddl(SHOP)
    assert {table.name for table in schema.with_ancestors({"ORDER LINES"}).tables} == {
        "Order Lines",
        "orders",
        "products",
    }
    assert schema.with_ancestors({"orders", "nowhere"}).tables == (ORDERS,)


def test_tables_that_refer_to_each_other_are_all_there() -> None:
    ddl = (
        "CREATE TABLE a (i INT PRIMARY KEY, j INT REFERENCES b); CREATE TABLE b (j INT PRIMARY KEY, i INT REFERENCES a)"
    )
    schema = SqlSchema.from_ddl(ddl)
    assert len(schema.with_ancestors({"a"}).tables) == 2
    assert schema.ddl().count("CREATE TABLE") == 2


def test_text_that_trips_the_parser_up_is_no_ddl() -> None:
    with pytest.raises(ValueError, match="the DDL cannot be read"):
        SqlSchema.from_ddl("CREATE TABLE t (a INT); ->")


GOLDEN = golden("sql_tables.yaml")
PARSED = [case for case in GOLDEN if "tables" in case]
BROKEN = [case for case in GOLDEN if "error" in case]
NAMES = "abcd"


def tables_of(sql: str, dialect: str = "duckdb") -> list[str]:
    return sorted(map(str, base_tables(parse_statement(sql, dialect))))


@pytest.mark.parametrize("case", PARSED, ids=lambda case: case["name"])
def test_the_tables_of_a_golden_query(case: dict[str, Any]) -> None:
    assert tables_of(case["sql"], case.get("dialect", "duckdb")) == sorted(case["tables"])


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case["name"])
def test_malformed_sql_has_a_message_of_one_line(case: dict[str, Any]) -> None:
    with pytest.raises(SqlSyntaxError) as told:
        tables_of(case["sql"])
    assert case["error"] in str(told.value)
    assert len(str(told.value).splitlines()) == 1
    assert "\x1b" not in str(told.value)


def test_there_are_enough_tricky_queries() -> None:
    assert len(PARSED) >= 50


@pytest.mark.parametrize(
    ("text", "name"),
    [("users", TableName("", "users")), ("Sales.Orders", TableName("sales", "orders"))],
)
def test_a_table_named_in_a_case(text: str, name: TableName) -> None:
    assert TableName.of(text) == name
    assert str(name) == text.lower()


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Queries over the tables a to d, in which CTEs may have the names of tables; every CTE is used."""
    aliases = itertools.count()

    def source(depth: int) -> str:
        if depth and draw(st.booleans()):
            return f"({query(depth - 1)}) AS s{next(aliases)}"
        return f"{draw(st.sampled_from(NAMES))} AS s{next(aliases)}"

    def query(depth: int) -> str:
        if not depth:
            return f"SELECT 1 AS i FROM {source(depth)}"
        match draw(st.sampled_from(("join", "union", "in", "cte", "cte"))):
            case "join":
                return f"SELECT 1 AS i FROM {source(depth)} CROSS JOIN {source(depth)}"
            case "union":
                return f"SELECT 1 AS i FROM {source(depth)} UNION ALL ({query(depth - 1)})"
            case "in":
                return f"SELECT 1 AS i FROM {source(depth)} WHERE 1 IN ({query(depth - 1)})"
        name = draw(st.sampled_from(NAMES))
        return (
            f"WITH {name} AS ({query(depth - 1)}) "
            f"SELECT 1 AS i FROM {source(depth)}, {name} AS s{next(aliases)}, {source(depth)}"
        )

    return query(3)


@settings(max_examples=30, deadline=None)
@given(queries())
def test_duckdb_needs_these_tables_and_no_others(sql: str) -> None:
    needed = tables_of(sql)
    with duckdb.connect() as connection:
        for name in needed:
            connection.execute(f"CREATE TABLE {name} (i INTEGER)")
        connection.execute(f"EXPLAIN {sql}")  # nothing is missing
        for name in needed:
            connection.execute(f"DROP TABLE {name}")
            with pytest.raises(duckdb.Error):
                connection.execute(f"EXPLAIN {sql}")  # and nothing is too much
            connection.execute(f"CREATE TABLE {name} (i INTEGER)")

"""Generated databases keep every constraint, whatever the schema; and say what the queries ask for."""

import json
from collections.abc import Callable
from datetime import date, datetime

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline_plugins.sql_equivalence.generated.checks import Checks
from eval_pipeline_plugins.sql_equivalence.generated.constants import constants_in
from eval_pipeline_plugins.sql_equivalence.generated.databases import DatabaseMaker
from eval_pipeline_plugins.sql_equivalence.generated.memory import DuckdbMemory, Memory, SqliteMemory
from eval_pipeline_plugins.sql_equivalence.generated.mining import Mined
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, References
from eval_pipeline_plugins.sql_equivalence.generated.shapes import SHAPES
from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.queries.rewriting import qualified
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlColumn, SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests.plugins.sql_equivalence.constraints import broken_constraints

SCHEMAS = {
    "composite keys": "CREATE TABLE p (a INT, b INT, PRIMARY KEY (a, b)); CREATE TABLE c (x INT, y INT NOT NULL, "
    "FOREIGN KEY (x, y) REFERENCES p (a, b), UNIQUE (x, y));",
    "a table that refers to itself": "CREATE TABLE t (id INT PRIMARY KEY, up INT NOT NULL REFERENCES t (id));",
    "tables that refer to each other": "CREATE TABLE a (id INT PRIMARY KEY, b INT REFERENCES b (id)); "
    "CREATE TABLE b (id INT PRIMARY KEY, a INT NOT NULL REFERENCES a (id));",
    "a key that is a reference": "CREATE TABLE p (id INT PRIMARY KEY); "
    "CREATE TABLE c (id INT PRIMARY KEY REFERENCES p (id), v VARCHAR UNIQUE);",
    "checks over columns": "CREATE TABLE t (a INT NOT NULL, b INT, s VARCHAR, CHECK (a < b), CHECK (s IN ('x', 'y')), "
    "CHECK (a BETWEEN 1 AND 9));",
    "a check that SQLite does not know": "CREATE TABLE t (a INT, CHECK (isfinite(a)));",
    "a unique key of two values": "CREATE TABLE t (f BOOLEAN PRIMARY KEY, g BOOLEAN UNIQUE, n VARCHAR NOT NULL);",
    "small integers and decimals": "CREATE TABLE t (a TINYINT NOT NULL, d DECIMAL(3, 1) NOT NULL, x DATE NOT NULL);",
}


def maker_of(schema: SqlSchema, *queries: str) -> DatabaseMaker:
    mined = Mined(schema, constants_in("duckdb"))
    for sql in queries:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        mined.look_at(qualified(tree, schema, "duckdb") or tree)
    return DatabaseMaker(schema, mined, Checks(schema))


def cells(maker: DatabaseMaker, table: str, column: str, count: int = 80) -> list:
    names = [found.name for found in maker.schema.table(table).columns]
    return [row[names.index(column)] for number in range(count) for row in maker.make(number)[table]]


@pytest.mark.parametrize("text", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_constraints_are_kept(text):
    schema = SqlSchema.from_ddl(text)
    maker = maker_of(schema, *(f"SELECT * FROM {table.name}" for table in schema.tables))
    for number in range(60):
        made = maker.make(number)
        if "isfinite" in text:
            assert not any(made.values())  # a row might break what nobody here can check
        else:
            assert not broken_constraints(schema, made), made


@pytest.mark.parametrize("text", [text for text in SCHEMAS.values() if "isfinite" not in text])
def test_there_are_rows_all_the_same(text):
    schema = SqlSchema.from_ddl(text)
    maker = maker_of(schema, *(f"SELECT * FROM {table.name}" for table in schema.tables))
    for table in schema.tables:
        assert sum(len(maker.make(number)[table.name]) for number in range(30)) >= 10


COLUMNS = st.sampled_from(["INT", "VARCHAR", "DATE", "TIMESTAMP", "DOUBLE", "BOOLEAN"])


@st.composite
def schemas(draw) -> SqlSchema:
    statements = []
    for number in range(draw(st.integers(1, 3))):
        parts = ["id INT PRIMARY KEY" if draw(st.booleans()) or number == 0 else "id INT"]
        for place in range(draw(st.integers(0, 3))):
            extra = draw(st.sampled_from(["", " NOT NULL", " UNIQUE", " NOT NULL UNIQUE"]))
            parts.append(f"c{place} {draw(COLUMNS)}{extra}")
        for parent in range(draw(st.integers(0, number))):
            parts.append(f"r{parent} INT{draw(st.sampled_from(['', ' NOT NULL']))}")
            parts.append(f"FOREIGN KEY (r{parent}) REFERENCES t0 (id)")
        statements.append(f"CREATE TABLE t{number} ({', '.join(parts)});")
    return SqlSchema.from_ddl("\n".join(statements))


@settings(max_examples=25, deadline=None)
@given(schemas(), st.integers(0, 200))
def test_constraints_of_any_schema_are_kept(schema, number):
    maker = maker_of(schema, *(f"SELECT * FROM {table.name}" for table in schema.tables))
    made = maker.make(number)
    assert not broken_constraints(schema, made)
    assert json.dumps(maker.make(number), default=str) == json.dumps(made, default=str)


def test_rows_that_lead_nowhere_are_dropped_and_those_that_led_to_them():
    schema = SqlSchema.from_ddl(
        "CREATE TABLE a (id INT PRIMARY KEY); CREATE TABLE b (id INT PRIMARY KEY, a INT REFERENCES a (id)); "
        "CREATE TABLE c (b INT REFERENCES b (id));"
    )
    kept = References(schema).repaired({"a": [(1,)], "b": [(1, 1), (2, 9), (3, None)], "c": [(1,), (2,), (None,)]})
    assert kept == {"a": [(1,)], "b": [(1, 1), (3, None)], "c": [(1,), (None,)]}


PLAIN = SqlSchema.from_ddl(
    "CREATE TABLE t (n INT, d DATE, w TIMESTAMP, s VARCHAR, k INT, free INT); CREATE TABLE u (k INT, m DOUBLE);"
)


@pytest.mark.parametrize(
    ("sql", "table", "column", "wanted"),
    [
        ("SELECT 1 FROM t WHERE n > 70", "t", "n", {69, 70, 71}),
        ("SELECT 1 FROM t WHERE n BETWEEN 40 AND 50", "t", "n", {39, 40, 50, 51}),
        ("SELECT 1 FROM t WHERE n = -7", "t", "n", {-7}),
        ("SELECT 1 FROM t WHERE d >= '2023-04-01'", "t", "d", {date(2023, 3, 31), date(2023, 4, 1)}),
        ("SELECT 1 FROM t WHERE w < '2023-04-01 10:00:00'", "t", "w", {datetime(2023, 4, 1, 10)}),
        ("SELECT 1 FROM t WHERE YEAR(d) = 2019", "t", "d", {date(2019, 6, 15)}),
        ("SELECT 1 FROM t WHERE s LIKE '%Foo%'", "t", "s", {"Foo", "xFoox", "FOO"}),
        ("SELECT 1 FROM t JOIN u ON t.k = u.k WHERE u.k = 77", "t", "k", {77}),
        ("SELECT 1 FROM t WHERE k IN (SELECT k FROM u WHERE k = 78)", "t", "k", {78}),
        ("SELECT 1 FROM (SELECT k AS z FROM u) x WHERE z = 79", "u", "k", {79}),
        ("WITH c AS (SELECT k AS z FROM u) SELECT 1 FROM c WHERE z = 80", "u", "k", {80}),
        ("SELECT k FROM u GROUP BY k HAVING SUM(m) > 100", "u", "m", {50.0, 100.0, 101.0}),
        ("SELECT CASE n WHEN 55 THEN 1 END FROM t", "t", "n", {55}),
        ("SELECT 1 FROM t WHERE n > 3 * (20 + 4)", "t", "n", {71, 72, 73}),
        ("SELECT 1 FROM t WHERE d >= DATE '2024-03-31' - INTERVAL 1 MONTH", "t", "d", {date(2024, 2, 29)}),
        ("SELECT 1 FROM t WHERE s = 'ab' || lower('CD')", "t", "s", {"abcd"}),
    ],
)
def test_values_come_from_the_conditions(sql, table, column, wanted):
    assert wanted <= set(cells(maker_of(PLAIN, sql), table, column))


@pytest.mark.parametrize(
    ("engine", "sql", "values"),
    [
        (
            "sqlite",
            "SELECT n + 1 FROM t WHERE d > date('2024-03-31', '-1 month') AND n > -(3 * 5)",
            ["2024-03-02", -15],
        ),
        ("duckdb", "SELECT 1 FROM t WHERE w > DATE '2024-03-31' - INTERVAL 30 DAY", ["2024-03-01 00:00:00"]),
        ("duckdb", "SELECT 1 FROM t WHERE d IN (make_date(2024, 1, 1 + 1), DATE '2024-01-01')", ["2024-01-02"]),
        ("duckdb", "SELECT 1 FROM u WHERE m > 1.5 * 2.5 AND m < -7 AND m > (SELECT 2 + 2)", [3.75, 4]),
        (
            "sqlite",
            "SELECT n FROM t WHERE n = no_such(2) OR n = date('no day') OR n > hex(zeroblob(500)) OR 1 + 1 = 2",
            [2],
        ),
    ],
)
def test_what_is_computed_without_reading_a_row_counts_as_a_literal(engine, sql, values):
    found = constants_in(engine)(sqlglot.parse_one(sql, dialect=engine))
    assert sorted(found.values(), key=repr) == sorted(values, key=repr)


def test_random_values_are_not_computed():
    sql = "SELECT n FROM t WHERE n > abs(random())"
    assert QueryPair(sql, sql, PLAIN, "sqlite").mined().computed == {}
    sql = "SELECT n FROM t WHERE n > abs(-70)"
    assert list(QueryPair(sql, sql, PLAIN, "sqlite").mined().computed.values()) == [70]


def test_columns_hold_nulls_where_they_may_and_duplicates():
    values = cells(maker_of(PLAIN, "SELECT n FROM t"), "t", "n")
    assert None in values
    assert len(set(values)) < len(values)


def test_groups_are_as_large_as_a_count_asks_for():
    maker = maker_of(PLAIN, "SELECT k FROM u GROUP BY k HAVING COUNT(*) > 11")
    assert {11, 12} <= {max(map([row[0] for row in rows].count, [row[0] for row in rows]), default=0)
                        for rows in (maker.make(number)["u"] for number in range(80))}  # fmt: skip


def test_a_column_that_no_query_reads_holds_nothing():
    assert set(cells(maker_of(PLAIN, "SELECT n FROM t"), "t", "free")) <= {None}


def test_some_database_has_an_empty_table():
    maker = maker_of(PLAIN, "SELECT n, m FROM t, u")
    assert any(not made["t"] and made["u"] for made in map(maker.make, range(12 * len(SHAPES))))


CHECKED = """
CREATE TABLE jobs (id INT PRIMARY KEY, state VARCHAR NOT NULL CHECK (state IN ('new', 'done')),
  hours DOUBLE NOT NULL CHECK (hours > 7.5), began DATE NOT NULL, ended DATE, CHECK (ended >= began),
  mood ENUM ('calm', 'cross') NOT NULL);
"""


def test_columns_with_checks_of_their_own_are_filled_with_what_these_allow():
    maker = maker_of(SqlSchema.from_ddl(CHECKED), "SELECT * FROM jobs WHERE state = 'old' OR hours = 3")
    made = [maker.make(number)["jobs"] for number in range(22)]
    assert {row[1] for rows in made for row in rows} <= {"new", "done"}
    assert {row[5] for rows in made for row in rows} == {"calm", "cross"}
    assert sum(bool(rows) for rows in made) >= 20


def test_a_check_that_nobody_can_read_says_so():
    table = SqlTable("t", (SqlColumn("a", "INTEGER"),), checks=("a GLOB GLOB",))
    found = check("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a >= 1", SqlSchema((table,)))
    assert (found.verdict, found.evidence["reason"]) == ("undecided", "cannot run")
    assert "the CHECK a GLOB GLOB cannot be read" in found.evidence["error"]


@pytest.mark.parametrize("engine", [SqliteMemory, DuckdbMemory])
def test_queries_see_the_rows_loaded_last_whoever_used_the_connection_in_between(
    engine: Callable[[SqlSchema], Memory],
) -> None:
    schema = SqlSchema.from_ddl("CREATE TABLE t (a INT, b VARCHAR, d DATE);")
    one, other = engine(schema), engine(schema)
    first: GeneratedDatabase = {"t": [(1, None, date(2024, 1, 2))]}
    second: GeneratedDatabase = {"t": [(2, "x", None), (3, "y", None)]}
    empty: GeneratedDatabase = {"t": []}
    most = {1: 1, 2: 3, 0: None}
    for number, (memory, database) in enumerate(
        ((one, first), (other, second), (one, first), (one, second), (one, empty))
    ):
        memory.load(database)
        assert memory.query(f"SELECT count(*), max(a), {number} FROM t").rows == [
            (len(database["t"]), most[len(database["t"])], number)
        ]

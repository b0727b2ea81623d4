"""Queries that no data can change, queries that read rows without naming a table, and differences unlike the data.

What is proved of the first and must not be; whether the data that a suite has could show a difference too.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
import sqlglot

from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.tasks import connection_to
from eval_pipeline_plugins.sql_equivalence.generated.checks import Checks
from eval_pipeline_plugins.sql_equivalence.generated.databases import DatabaseMaker
from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.queries.fixed import is_fixed
from eval_pipeline_plugins.sql_equivalence.queries.pair import QueryPair
from eval_pipeline_plugins.sql_equivalence.results import Result
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.search import hunting
from eval_pipeline_plugins.sql_equivalence.search.fitting import Fitting, fitting, present
from eval_pipeline_plugins.sql_equivalence.search.search import _Search

SCHEMA = SqlSchema.from_ddl(
    "CREATE TABLE emp (id INTEGER PRIMARY KEY, dept INTEGER, sal INTEGER, old BOOLEAN, name TEXT);"
    "CREATE TABLE dept (id INTEGER PRIMARY KEY, name TEXT);"
)
NOTHING = "SELECT 1 WHERE 1 = 0"
EMPTY = (
    "SELECT id FROM emp WHERE FALSE",
    "SELECT id FROM emp WHERE dept = 7 AND dept = 8",
    "SELECT id FROM emp WHERE dept > 10 AND sal = 3 AND dept <= 10",
    "SELECT id FROM emp WHERE dept = 10 AND NOT dept = 10",
    "SELECT id FROM emp WHERE dept = 10 AND dept IS NULL",
    "SELECT id FROM emp WHERE NULL = 1",
    "SELECT emp.id FROM emp JOIN dept ON emp.dept = dept.id WHERE dept.id IS NULL AND emp.dept = dept.id",
    "SELECT dept.id FROM (SELECT * FROM emp WHERE FALSE) AS e LEFT JOIN dept ON dept.id = e.dept",
    "SELECT id FROM emp WHERE FALSE INTERSECT SELECT id FROM dept",
    "SELECT id FROM emp WHERE FALSE EXCEPT SELECT id FROM dept",
    "SELECT id FROM emp WHERE FALSE UNION SELECT id FROM dept WHERE 1 = 2",
    "SELECT SUM(sal) FROM emp WHERE FALSE GROUP BY dept",
)
NOT_EMPTY = (
    "SELECT COUNT(*) FROM emp WHERE FALSE",
    "SELECT dept.id FROM (SELECT * FROM emp WHERE FALSE) AS e RIGHT JOIN dept ON dept.id = e.dept",
    "SELECT id FROM dept EXCEPT SELECT id FROM emp WHERE FALSE",
    "SELECT id FROM emp WHERE FALSE UNION SELECT id FROM dept",
    "SELECT id FROM emp WHERE dept = 7 OR dept = 8",
    "SELECT id FROM emp WHERE dept >= 10 AND dept <= 10",
    "SELECT id FROM emp WHERE dept > 10 AND sal <= 10",
    "SELECT id FROM emp WHERE dept IS NULL AND sal = 10",
)
"""Queries that a careless rule takes for empty."""


@pytest.mark.parametrize(("sql", "dialect"), [*((sql, "duckdb") for sql in EMPTY), (EMPTY[0], "sqlite")])
def test_two_queries_without_rows_on_any_database_are_equivalent(sql, dialect):
    found = check(sql, NOTHING, SCHEMA, dialect=dialect)
    assert (found.verdict, found.rung) == ("equivalent", "proved"), found.evidence
    assert "cannot depend on the data" in found.evidence["reason"]


@pytest.mark.parametrize(("sql", "dialect"), [*((sql, "sqlite") for sql in NOT_EMPTY), (NOT_EMPTY[0], "duckdb")])
def test_what_returns_rows_on_some_database_is_another_query(sql, dialect):
    assert check(sql, NOTHING, SCHEMA, dialect=dialect).verdict == "different"


@pytest.mark.parametrize("sql", NOT_EMPTY[1:])
def test_a_result_that_may_have_rows_is_not_fixed(sql):
    assert not is_fixed(sqlglot.parse_one(sql, dialect="duckdb"))


@pytest.mark.parametrize(
    ("generated", "expected", "verdict"),
    [
        (
            "SELECT a + b FROM (VALUES (10, 1), (20, 3)) AS t (a, b)",
            "SELECT * FROM (VALUES (11), (23)) AS t (c)",
            "equivalent",
        ),
        (
            "SELECT a + b FROM (VALUES (10, 1), (20, 3)) AS t (a, b)",
            "SELECT * FROM (VALUES (11), (24)) AS t (c)",
            "different",
        ),
        ("SELECT COUNT(*) FROM emp WHERE FALSE", "SELECT 0", "equivalent"),
        ("SELECT SUM(sal) FROM emp WHERE FALSE", "SELECT 0", "different"),
        ("SELECT 7 / 2", "SELECT 3.5", "equivalent"),  # in DuckDB, not in SQLite, where databases are tried
        ("SELECT COUNT(*) + (SELECT COUNT(*) FROM dept) FROM emp WHERE FALSE", "SELECT COUNT(*) FROM dept", "agreed"),
        ("SELECT CURRENT_DATE = CURRENT_DATE", "SELECT TRUE", "undecided"),  # nobody knows what it is tomorrow
        ("SELECT id FROM emp WHERE old = 7 AND old = 8", NOTHING, "undecided"),
    ],
)
def test_fixed_results_are_compared_in_the_deciding_engine(generated, expected, verdict):
    assert check(generated, expected, SCHEMA).verdict == verdict


MACROS = """
CREATE TABLE emp (id INT, salary INT); INSERT INTO emp VALUES (1, 777);
CREATE MACRO sal(i) AS (SELECT max(salary) FROM emp WHERE id = i);
CREATE MACRO pay() AS TABLE SELECT salary FROM emp;
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT sal(5)", "SELECT sal(6)"),
        ("SELECT count(*), sal(5) FROM emp WHERE FALSE", "SELECT count(*), sal(6) FROM emp WHERE FALSE"),
        ("SELECT salary FROM pay() WHERE salary = 1", "SELECT salary FROM pay() WHERE salary = 2"),
    ],
)
def test_macros_of_the_database_are_not_the_same_for_ever(one: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(MACROS)
        assert made.execute(one).fetchall() == made.execute(other).fetchall()
        made.execute("INSERT INTO emp VALUES (5, 1), (6, 2)")
        differ = made.execute(one).fetchall() != made.execute(other).fetchall()
        made.execute("DELETE FROM emp WHERE id > 1")
    assert differ
    found = check(one, other, SqlSchema.from_database(path), [path], dialect="duckdb")
    assert found.verdict not in ("equivalent", "different")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_condition_that_no_row_can_satisfy_is_no_fault_of_the_search(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    table = "CREATE TABLE c (id INTEGER PRIMARY KEY, n VARCHAR NOT NULL)"
    if engine == "sqlite":
        with sqlite3.connect(path) as file:
            file.execute(table)
    else:
        with duckdb.connect(str(path)) as made:
            made.execute(table)
    schema = SqlSchema.from_database(path)
    found = check("SELECT count(n) FROM c WHERE n IS NULL", "SELECT 0", schema, [path], dialect=engine)
    assert "fault" not in str(dict(found.evidence))


ROWS = [
    (number, "ABC"[number % 3], number * 10 + 5, "xy"[number % 2], None, f"2020-01-{number % 20 + 1:02} 00:00:00")
    for number in range(40)
]
DDL = "CREATE TABLE s (id INTEGER PRIMARY KEY, county TEXT, n INTEGER, kind TEXT, note TEXT, day TEXT)"
VISITS = "CREATE TABLE v (s_id INTEGER, other_id INTEGER, place TEXT)"
"""`s_id` always finds a row of `s`, `other_id` does not; no key says so."""


@pytest.fixture(scope="module")
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / f"shop.{request.param}"
    opened = sqlite3.connect(path) if request.param == "sqlite" else duckdb.connect(str(path))
    with closing(opened) as connection:
        connection.execute(DDL)
        connection.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        connection.execute(VISITS)
        connection.executemany("INSERT INTO v VALUES (?, ?, 'here')", [(n % 40, n % 50) for n in range(60)])
        connection.commit()
    return path


FITTING = [
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
    ("DISTINCT county FROM s", "county FROM s GROUP BY county HAVING count(*) > 5", True),
    # what finds nothing in the data, where bounds and results would let nothing be found anywhere
    ("id FROM s WHERE n < 0", "id FROM s WHERE n < -10", True),
    ("count(*) FROM s WHERE n = 2031", "count(*) FROM s WHERE n = 2030", True),
    ("id FROM s WHERE county = 'Rome'", "id FROM s WHERE county = 'Paris'", True),
    # days that texts write in one way
    ("id FROM s WHERE day = '2020-01-05 00:00:00'", "id FROM s WHERE substr(day, 1, 10) = '2020-01-05'", False),
    ("id FROM s WHERE day > '2019'", "id FROM s", False),
    ("id FROM s WHERE day >= '2020-01-20'", "id FROM s WHERE day = '2020-01-20 00:00:00'", False),
    ("id FROM s WHERE day > '2020-01-05' OR n > 300", "id FROM s WHERE day > '2020-01-05'", True),
    # joins that always find a row, and some that do not
    ("place FROM v", "place FROM v JOIN s ON s.id = v.s_id", False),
    ("place FROM v WHERE other_id < 40 OR other_id IS NULL", "place FROM v JOIN s ON s.id = v.other_id", True),
    # a table that only the generated query reads, and that has rows
    ("id FROM s WHERE n > 100 AND EXISTS (SELECT 1 FROM v)", "id FROM s WHERE n > 100", False),
    # texts in another case, and a NULL that the expected query does not return on the data
    ("id FROM s WHERE LOWER(kind) = 'x'", "id FROM s WHERE kind = 'x'", False),
    (
        "kind, max(nullif(n, 15)) FROM s WHERE n <> 15 GROUP BY 1",
        "kind, max(nullif(n, 15)) FROM s GROUP BY 1",
        False,
    ),
    # a column that has NULLs in the data
    ("id FROM s WHERE note IS NULL", "id FROM s", True),
]


@pytest.mark.parametrize(
    ("data", "generated", "expected", "fits"),
    [*(("sqlite", *row) for row in FITTING), *(("duckdb", *row) for row in FITTING[::4])],
    indirect=["data"],
)
def test_whether_a_refuting_database_fits_the_data(data: Path, generated: str, expected: str, fits: bool) -> None:
    dialect = data.suffix.removeprefix(".")
    schema = SqlSchema.from_database(data)
    found = check(f"SELECT {generated}", f"SELECT {expected}", schema, [data], dialect, time_limit_s=60)
    assert found.verdict == "different", found.evidence
    assert found.evidence["fits_data"] is fits
    example = found.evidence["counterexample"]
    assert any(table["rows"] for table in example["tables"].values()) or not fits
    assert bool(example["expected"]["rows"] or example["generated"]["rows"]) or not fits


@pytest.mark.parametrize(
    "values",
    [
        lambda number: (1000 + 3 * number, "a"),
        lambda number: (number, number / 100),
        lambda number: (number, 100 + number * 3.7),
        lambda number: (number, f"2020-01-{number + 1:02}"),
        lambda number: (number, f"2020-01-{number + 1:02} 10:00:00"),
    ],
)
def test_databases_that_fit_have_rows_though_no_value_is_there_twice(values: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as file:
        kind = {str: "TEXT", float: "REAL"}[type(values(1)[1])]
        file.execute(f"CREATE TABLE p (id INTEGER PRIMARY KEY, v {kind})")
        file.executemany("INSERT INTO p VALUES (?, ?)", [values(number) for number in range(25)])
        file.commit()
        schema = SqlSchema.from_database(path)
        fit = fitting(schema, schema.tables, connection_to(path, SqlLimits()).query)
    mined = QueryPair("SELECT * FROM p", "SELECT * FROM p", fit.schema, "sqlite").mined()
    maker = DatabaseMaker(fit.schema, mined, Checks(fit.schema))
    assert sum(len(maker.make(number)["p"]) >= 3 for number in range(20)) >= 10


@pytest.mark.parametrize(
    ("texts", "named", "value", "fits"),
    [
        (["Oslo"], "", "", False),
        (["Oslo"], "", "  ", False),
        (["Oslo", ""], "", "", True),
        (["Oslo"], "", " Oslo", False),
        (["Oslo "], "", " Bergen", True),
        (["Oslo"], "", "A", False),
        (["Oslo", "EUR"], "", "A", True),
        (["Oslo"], "", "oslo", True),  # no query names it
        (["Oslo"], "oslo", "oslo", False),
        (["Oslo"], "%oslo%", "oslo", False),
        (["Oslo", "oslo"], "Oslo", "oslo", True),
        (["O'Hara"], "O'Hara", "o'hara", False),
        (["Oslo"], "Oslo", "Oslo", True),
        (["Oslo"], "Lima", "lima", True),  # of which the data say nothing
    ],
)
def test_texts_of_databases_that_fit_are_written_as_in_the_data(
    texts: list[str], named: str, value: str, fits: bool
) -> None:
    schema = SqlSchema.from_ddl("CREATE TABLE p (v TEXT)")
    with closing(sqlite3.connect(":memory:")) as file:
        file.execute("CREATE TABLE p (v TEXT)")
        file.executemany("INSERT INTO p VALUES (?)", [(text,) for text in [*texts, None]])
        fit = fitting(schema, schema.tables, lambda sql: SqlRows((), file.execute(sql).fetchall())).spelling({named})
    assert Checks(fit.schema).keeps(fit.schema.tables[0], (value,)) is fits


def test_a_database_fits_where_the_expected_query_returns_no_new_null() -> None:
    data, other = (Result(("a", "b"), rows) for rows in ([(1, None), (2, 3)], [(1, None), (None, 3)]))
    assert present(Result(("a",), [])) == ()
    assert present(data) == (0,)
    fit = Fitting(SqlSchema(()), frozenset(), present=present(data))
    assert (fit.holds({}, data), fit.holds({}, other)) == (True, False)
    keyed = Result(("a",), [(1,)], (0,), [(1, None)])  # tables of few rows end with those that others sort last
    fit = Fitting(SqlSchema(()), frozenset(), present=(0, 1))
    assert (fit.holds({}, keyed), fit.holds({}, Result(("a",), [(1,)]))) == (False, True)


@pytest.mark.parametrize(
    ("generated", "expected", "overlooked"),
    [
        ("n, id FROM s", "id, n FROM s", ["column_order"]),
        ("county FROM s", "DISTINCT county FROM s", ["duplicates"]),
        ("DISTINCT n FROM s WHERE kind = 'x'", "n FROM s WHERE kind = 'x'", []),  # no value is there twice
        ("DISTINCT id, county FROM s JOIN v ON s.id = s_id", "id, county FROM s JOIN v ON s.id = s_id", ["duplicates"]),
        ("county, id FROM s", "id FROM s", ["extra_columns"]),
        ("id FROM s", "id, county FROM s", ["missing_columns"]),
        ("round(n / 7.0, 2) FROM s", "n / 7.0 FROM s", ["rounding"]),
        ("id FROM s ORDER BY id DESC", "id FROM s ORDER BY id", ["row_order"]),
        ("id FROM s ORDER BY county, id DESC", "id FROM s ORDER BY county", ["tie_order"]),
        (
            "kind FROM s WHERE county = (SELECT min(county) FROM s)",
            "kind FROM s ORDER BY county LIMIT 1",
            ["duplicates", "tie_order"],
        ),
        ("id FROM s WHERE day = (SELECT max(day) FROM s)", "id FROM s ORDER BY day DESC LIMIT 1", ["tie_order"]),
        ("id FROM s WHERE day >= '2020-01-19'", "id FROM s ORDER BY day DESC LIMIT 1", None),  # more than the tied rows
        ("id FROM s ORDER BY kind DESC LIMIT 3", "id FROM s ORDER BY kind DESC, county LIMIT 3", None),  # unlike ties
        ("county, n FROM s WHERE n > 100", "DISTINCT county FROM s WHERE n >= 100", None),  # means something else, too
        ("id, 1 FROM s WHERE n <> 7", "id FROM s", None),
        # two columns with the same cells by chance, of which the second is meant
        ("count(*) AS c, max(id) + 1 AS m FROM s", "max(id) + 1 FROM s", ["extra_columns"]),
        ("count(*) AS c, 40 AS m FROM s", "max(id) + 1 FROM s", None),
        ("min(n) FROM s UNION ALL SELECT max(n) FROM s", "min(n), max(n) FROM s", ["shape"]),
        ("min(n), max(n) FROM s", "min(n) FROM s UNION ALL SELECT max(n) FROM s", ["shape"]),
        ("min(n) FROM s UNION ALL SELECT 395 FROM s WHERE id = 1", "min(n), max(n) FROM s", None),
        # another column is not one missing and one extra
        ("kind, sum(n) AS m FROM s GROUP BY kind", "kind, count(*) FROM s GROUP BY kind", None),
    ],
)
@pytest.mark.parametrize("data", ["sqlite"], indirect=True)
def test_what_has_to_be_overlooked(data: Path, generated: str, expected: str, overlooked: list[str] | None) -> None:
    schema = SqlSchema.from_database(data)
    dialect = data.suffix.removeprefix(".")
    found = check(f"SELECT {generated}", f"SELECT {expected}", schema, [data], dialect, time_limit_s=60)
    assert found.evidence.get("overlooked", []) == overlooked, found


@pytest.mark.parametrize(
    ("generated", "expected", "overlooked"),
    [
        ("county FROM s", "DISTINCT county FROM s", ["duplicates"]),
        ("county, id FROM s", "id FROM s", ["extra_columns"]),
        ("id FROM s", "id, county FROM s", ["missing_columns"]),
        ("n, id FROM s", "id, n FROM s", []),  # agrees, as no database tells the orders of columns apart
        ("id, county FROM s WHERE n > 3", "id FROM s", None),
        ("n FROM s", "id FROM s", None),
        ("kind, count(note) FROM s GROUP BY kind", "kind, count(*) FROM s GROUP BY kind", None),
    ],
)
def test_what_has_to_be_overlooked_without_data(generated: str, expected: str, overlooked: list[str] | None) -> None:
    found = check(f"SELECT {generated}", f"SELECT {expected}", SqlSchema.from_ddl(DDL), (), "sqlite", time_limit_s=60)
    assert found.evidence.get("overlooked") == overlooked, found


def test_without_data_nothing_is_said() -> None:
    schema = SqlSchema.from_ddl(DDL)
    found = check("SELECT count(n) FROM s", "SELECT count(*) FROM s", schema, (), "sqlite")
    assert (found.verdict, found.evidence["fits_data"]) == ("different", None)


def test_differences_that_nobody_can_confirm_end_the_search() -> None:
    """Each may be one that the schema does not allow; the databases that are left would tell no more."""
    hunt: Any = SimpleNamespace(
        pair=SimpleNamespace(
            schema=SimpleNamespace(tables=()), ready=lambda _: SimpleNamespace(differs=lambda *told: True)
        ),
        tally=SimpleNamespace(unconfirmed=0),
        _maker=SimpleNamespace(laws=SimpleNamespace(allow=lambda database: None)),
        **{f"_{name}": lambda *told, found=found: found for name, found in FOUND.items()},
    )
    left: Any = iter([{}] * 10)
    native: Any = SimpleNamespace(dialect="duckdb")
    assert hunting.Hunt._hunt(hunt, native, native, left) is None
    assert hunt.tally.unconfirmed == hunting._MOST_DISMISSED
    assert len([*left]) == 10 - hunting._MOST_DISMISSED


FOUND = {"may_differ": True, "orders": None, "is_confirmed": False}


def test_without_a_database_that_could_be_run_nothing_tells_what_fits(tmp_path: Path) -> None:
    own: Any = SimpleNamespace(
        shipped=[{"error": "no such column"}], witness=None, pair=SimpleNamespace(native="duckdb")
    )
    assert _Search._fit(own, [tmp_path]) is None
    told = _Search._unconfirmed(own)
    own.witness = SimpleNamespace(server="postgres")
    assert _Search._unconfirmed(own) != told and "postgres" in _Search._unconfirmed(own)

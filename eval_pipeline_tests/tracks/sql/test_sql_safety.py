"""Safety: nothing hostile passes, nothing harmless is stopped; which queries read what a case protects."""

import csv
import json
import shutil
import sqlite3
import string
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot.errors import SqlglotError

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.cases.words import SAFETY, SYNTAX
from eval_pipeline_plugins.tracks.sql.responses.execute import Ran
from eval_pipeline_plugins.tracks.sql.responses.protection import is_harmless
from eval_pipeline_plugins.tracks.sql.validation.validator import validate
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a corpus."""

    dialect: str
    kind: str
    sql: str

    def __str__(self) -> str:
        return f"{self.dialect}: {self.sql}"


def load_corpus(name: str) -> list[Statement]:
    """The statements of a file in `golden/`."""
    return [
        Statement(group["dialect"], group["kind"], _unescaped(line))
        for group in golden(name)
        for line in group["statements"].splitlines()
        if line.strip()
    ]


def _unescaped(line: str) -> str:
    return line.replace("\\n", "\n").replace("\\t", "\t").replace("\\u00a0", "\u00a0")


HOSTILE = load_corpus("sql_hostile.yaml")
HARMLESS = load_corpus("sql_harmless.yaml")
VOLATILE = load_corpus("sql_volatile.yaml")
ELSEWHERE = "means something else elsewhere"
RUN_IN = ("duckdb", "sqlite")
"""The dialects that suites run in."""


def groups(corpus: list[Statement]) -> list[list[Statement]]:
    """A corpus by dialect and kind."""
    found: defaultdict[tuple[str, str], list[Statement]] = defaultdict(list)
    for statement in corpus:
        found[statement.dialect, statement.kind].append(statement)
    return list(found.values())


def shared(path: str) -> Path:
    """A file of the samples; without it the test is skipped."""
    return outside.given(outside.SQL / path)


def name_of(group: list[Statement]) -> str:
    return f"{group[0].dialect}: {group[0].kind}"


def test_the_corpora_are_as_large_as_they_should_be() -> None:
    hostile, harmless = (Counter(statement.dialect for statement in corpus) for corpus in (HOSTILE, HARMLESS))
    assert len(hostile) >= 5
    assert len(harmless) >= 5
    assert len({(s.dialect, s.sql) for s in HOSTILE}) == len(HOSTILE) >= 300
    assert len({(s.dialect, s.sql) for s in HARMLESS}) == len(HARMLESS) >= 150


@pytest.mark.parametrize("group", groups(HOSTILE), ids=name_of)
def test_every_hostile_statement_is_blocked(group: list[Statement]) -> None:
    assert [str(s) for s in group if validate(s.sql, None, s.dialect).safety_valid] == []


@pytest.mark.parametrize("dialect", RUN_IN)
def test_hostile_statements_of_other_dialects_are_blocked_where_suites_run(dialect: str) -> None:
    foreign = [s for s in HOSTILE if s.kind != ELSEWHERE]
    assert [str(s) for s in foreign if validate(s.sql, None, dialect).safety_valid] == []


@pytest.mark.parametrize("form", ["{}", "SELECT a FROM t WHERE {} IS NULL", "SELECT pg_catalog.{}"])
@pytest.mark.parametrize("dialect", [*RUN_IN, "postgres"])
def test_no_volatile_function_of_postgres_may_be_called(dialect: str, form: str) -> None:
    calls = [s.sql.removeprefix("SELECT ") if form != "{}" else s.sql for s in VOLATILE]
    assert len(calls) > 200
    assert [call for call in calls if validate(form.format(call), None, dialect).safety_valid] == []


def test_a_column_may_be_called_as_a_sequence_is_read() -> None:
    schema = SqlSchema.from_mapping({"s": {"nextval": "INTEGER"}})
    assert validate("SELECT s.nextval FROM s", schema).safety_valid
    assert not validate("SELECT s.nextval FROM s", SqlSchema.from_mapping({"s": {"a": "INTEGER"}})).safety_valid


def test_most_hostile_statements_are_understood_and_not_just_unparsable() -> None:
    categories = Counter(validate(s.sql, None, s.dialect).errors[0].category for s in HOSTILE)
    assert categories[SAFETY] + categories[SYNTAX] == len(HOSTILE)
    print(f"{categories[SAFETY]} recognised, {categories[SYNTAX]} unparsable")
    assert categories[SYNTAX] < 0.1 * len(HOSTILE)


@pytest.mark.parametrize("group", groups(HARMLESS), ids=name_of)
def test_no_harmless_statement_is_blocked(group: list[Statement]) -> None:
    told = {str(s): validate(s.sql, None, s.dialect) for s in group}
    assert {sql: found.errors for sql, found in told.items() if not found.safety_valid} == {}


def test_duckdb_too_takes_the_harmless_statements_for_single_queries() -> None:
    sqls = [s.sql for s in HARMLESS if s.dialect == "duckdb"]
    told = {sql: [statement.type for statement in duckdb.extract_statements(sql)] for sql in sqls}
    assert {sql: types for sql, types in told.items() if types != [duckdb.StatementType.SELECT]} == {}


ROUND_ANYTHING = ("{}", "{};", "EXPLAIN {}")
ROUND_QUERIES = (
    *ROUND_ANYTHING,
    "({})",
    "SELECT * FROM ({}) AS wrapped",
    "SELECT * FROM (SELECT * FROM ({}) AS a) AS b",
    "WITH wrapped AS ({}) SELECT * FROM wrapped",
    "SELECT 1 WHERE EXISTS ({})",
    "SELECT 1 UNION ALL {}",
    "{} UNION ALL SELECT 1",
)
GAPS = ("", " ", "\n", "\t", "\r\n", "  \n ", "/**/", " /* SELECT */ ", "/* ' */", " -- x\n", "\f")


@cache
def words(statement: Statement) -> tuple[tuple[str, str], ...]:
    """The tokens of a statement with what follows each of them; one word where it cannot be cut up."""
    sql = statement.sql
    try:
        tokens = sqlglot.tokenize(sql, read=statement.dialect)
    except SqlglotError:
        return ((sql, ""),)
    starts = [token.start for token in tokens] + [len(sql)]
    cut = [
        (sql[token.start : token.end + 1], sql[token.end + 1 : after])
        for token, after in zip(tokens, starts[1:], strict=True)
    ]
    return ((sql[: starts[0]], ""), *cut) if tokens else ((sql, ""),)


@cache
def is_query(statement: Statement) -> bool:
    """Whether it can be nested: `(TRUNCATE t)` would be a table named TRUNCATE."""
    try:
        (parsed,) = sqlglot.parse(statement.sql, dialect=statement.dialect)
    except (SqlglotError, ValueError):
        return False
    return isinstance(parsed, sqlglot.exp.Query)


@st.composite
def mutated(draw: st.DrawFn) -> Statement:
    """A hostile statement in other case, with other white space and comments between its words, or nested."""
    statement = draw(st.sampled_from(HOSTILE))

    def pieces() -> Iterator[str]:
        for word, gap in words(statement):
            plain = bool(word) and set(word) <= set(string.ascii_letters + string.digits + "_")
            yield draw(st.sampled_from((word, word.upper(), word.lower(), word.swapcase()))) if plain else word
            yield gap
            # Only where there is a gap already: words that touch may be one to another dialect (`N'x'`, `@@version`).
            if gap.isspace():
                yield draw(st.sampled_from(GAPS))

    wrapper = draw(st.sampled_from(ROUND_QUERIES if is_query(statement) else ROUND_ANYTHING))
    return Statement(statement.dialect, statement.kind, wrapper.format("".join(pieces()).strip()))


@settings(max_examples=500, deadline=None)
@given(mutated())
def test_hostile_statements_stay_blocked_whatever_they_are_dressed_up_as(statement: Statement) -> None:
    assert not validate(statement.sql, None, statement.dialect).safety_valid


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None)
@given(mutated())
def test_hostile_statements_stay_blocked_through_a_long_campaign(statement: Statement) -> None:
    assert not validate(statement.sql, None, statement.dialect).safety_valid


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(HARMLESS), st.sampled_from(HOSTILE), st.sampled_from((";", " ; ", ";\n", ";/**/", "; -- x\n")))
def test_nothing_hostile_hides_behind_a_harmless_statement(harmless: Statement, hostile: Statement, joint: str) -> None:
    sql = f"{harmless.sql.splitlines()[0]}\n{joint}{hostile.sql}"
    assert not validate(sql, None, hostile.dialect).safety_valid


SCRAPS = (
    "SELECT FROM WHERE JOIN ON AND OR NOT IN LIKE BETWEEN EXISTS UNION WITH AS GROUP BY HAVING ORDER LIMIT OFFSET CASE "
    "WHEN THEN END DROP TABLE INSERT INTO VALUES DELETE UPDATE SET CREATE PIVOT VALUES LATERAL OVER FILTER NULL IS "
    "TRUE t a b f( ( ) , ; . * = <> -> ->> || :: @ @@ $ ? % [ ] { } 1 0 'x' '' \"q\" -- /* */ # \\"
).split()


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=60) | st.lists(st.sampled_from(SCRAPS), max_size=15).map(" ".join),
    st.sampled_from(("duckdb", "sqlite", "postgres", "mysql", "tsql")),
)
@example("->", "duckdb")
def test_any_text_gets_a_verdict(text: str, dialect: str) -> None:
    found = validate(text, SqlSchema.from_mapping({"t": {"a": "INT", "b": "TEXT"}}), dialect)
    assert found.is_valid == (not found.errors)
    assert found.safety_valid or found.errors


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([word for word in SCRAPS if word != "PIVOT"]), min_size=2, max_size=12).map(" ".join)
    | st.sampled_from([s.sql for s in (*HOSTILE, *HARMLESS)])
)
def test_what_duckdb_takes_for_more_than_a_query_is_blocked(text: str) -> None:
    try:
        kinds = [statement.type for statement in duckdb.extract_statements(text)]
    except duckdb.Error:
        return
    except ValueError:  # a kind of statement that has no name in Python yet
        kinds = []
    if kinds != [duckdb.StatementType.SELECT]:
        assert not validate(text).safety_valid


def test_every_writing_statement_of_the_labelled_sample_is_blocked() -> None:
    with shared("safety/sqli_labelled_sample.csv").open() as file:
        rows = list(csv.DictReader(file))
    writing = [row["query"] for row in rows if row["verb"] not in {"", "select"}]
    assert len(writing) > 50
    assert [sql for sql in writing for dialect in RUN_IN if validate(sql, None, dialect).safety_valid] == []


def test_no_gold_query_of_spider_is_blocked() -> None:
    queries = [case["query"] for case in json.loads(shared("spider/dev_sample.json").read_text())]
    lines = shared("spider/department_store_gold.sql").read_text().splitlines()
    queries += [line.split("\t")[0] for line in lines if line.strip()]
    assert len(queries) > 350
    assert [(sql, found.errors) for sql in queries if not (found := validate(sql, None, "sqlite")).safety_valid] == []


SECRET = 777
SCRIPT = f"""
CREATE TABLE emp (id INTEGER, salary INTEGER, status VARCHAR); INSERT INTO emp VALUES (1, {SECRET}, 'x');
CREATE TABLE status (status VARCHAR, id INTEGER); INSERT INTO status VALUES ('x', 1);
CREATE TABLE other (emp INTEGER); INSERT INTO other VALUES (1);
CREATE TABLE pay (id INTEGER, salary INTEGER, a INTEGER GENERATED ALWAYS AS (salary * 1), b INTEGER
  GENERATED ALWAYS AS (id + 1)); INSERT INTO pay (id, salary) VALUES (1, {SECRET});
CREATE VIEW plain AS SELECT id, status FROM emp;
CREATE VIEW renamed (i, x) AS SELECT id, salary FROM emp;
CREATE VIEW starred AS SELECT * FROM emp;
CREATE VIEW nested (i, y) AS SELECT r.i, r.x FROM renamed AS r;
CREATE VIEW summed AS SELECT status, sum(salary) AS s FROM emp GROUP BY status;
CREATE VIEW filtered AS SELECT id FROM emp WHERE salary > 700;
CREATE VIEW united AS SELECT id AS i, status AS t FROM emp UNION ALL SELECT salary, status FROM emp;
CREATE VIEW inner_query AS SELECT id, (SELECT max(e.salary) FROM emp AS e) AS m FROM status;
CREATE VIEW common AS WITH c AS (SELECT salary AS z FROM emp) SELECT z FROM c;
CREATE VIEW of_generated AS SELECT id, a FROM pay;
CREATE VIEW joined AS SELECT s.id, e.salary AS v FROM status AS s JOIN emp AS e ON e.id = s.id;
"""
INDEXES = f"""
CREATE VIRTUAL TABLE found USING fts5 (salary, status, content='emp');
CREATE VIRTUAL TABLE words USING fts5vocab (found, 'row');
CREATE VIRTUAL TABLE notes USING fts5 (id, secret); INSERT INTO notes VALUES ('1', '{SECRET}');
"""
MACROS = """
CREATE MACRO told(i) AS (SELECT max(salary) FROM emp WHERE id = i);
CREATE MACRO all_told() AS TABLE SELECT salary AS q FROM emp;
CREATE VIEW by_macro AS SELECT id, told(id) AS t FROM status;
CREATE VIEW by_pattern AS SELECT COLUMNS('sal.*') FROM emp; CREATE VIEW by_row AS SELECT e AS r FROM emp AS e;
CREATE VIEW by_place AS SELECT #2 AS p FROM emp;
"""
RAN = cast(Ran, SimpleNamespace())

READ_PROTECTED = [
    ("both", "SELECT salary FROM emp"),
    ("both", "SELECT id FROM emp ORDER BY salary"),
    ("both", "SELECT * FROM emp"),
    ("both", "SELECT emp.* FROM emp"),
    ("both", "SELECT id FROM (SELECT * FROM emp)"),
    ("both", "SELECT e.SALARY FROM emp AS e"),
    ("both", 'SELECT "salary" FROM emp'),
    ("both", "WITH e (a, x, s) AS (SELECT * FROM emp) SELECT x FROM e"),
    ("both", "SELECT id FROM emp UNION SELECT max(salary) FROM emp"),
    ("both", f"SELECT id FROM emp NATURAL JOIN (SELECT {SECRET} AS salary)"),
    ("both", f"SELECT id FROM emp JOIN (SELECT {SECRET} AS salary) USING (salary)"),
    ("duckdb", "FROM emp"),
    ("duckdb", "SELECT COLUMNS('sal.*') FROM emp"),
    ("duckdb", "SELECT max(COLUMNS(lambda c: c LIKE 'sal%')) FROM emp"),
    ("duckdb", "SELECT * EXCLUDE (id) FROM emp"),
    ("duckdb", "SELECT emp FROM emp"),
    ("duckdb", "SELECT e FROM emp AS e"),
    ("duckdb", "SELECT to_json(emp) FROM emp"),
    ("duckdb", "SELECT emp['salary'] FROM emp"),
    ("duckdb", "SELECT #2 FROM emp"),
    ("duckdb", "SELECT x FROM emp AS e (a, x)"),
    ("duckdb", "SELECT y FROM query_table('emp') AS q (x, y)"),
    ("duckdb", "SELECT value FROM emp UNPIVOT (value FOR name IN (salary))"),
    ("duckdb", "SELECT min FROM (SUMMARIZE emp)"),
    ("duckdb", "SELECT * FROM (PIVOT emp ON id USING count(*))"),
    ("duckdb", "SELECT emp FROM emp WHERE EXISTS (SELECT 1 FROM other)"),
    ("duckdb", "SELECT main.emp FROM emp"),
    ("duckdb", "SELECT main.renamed FROM renamed"),
    ("duckdb", "SELECT a.main.emp FROM emp"),
    ("duckdb", "SELECT struct_extract_at(emp, 2) FROM emp"),
    ("duckdb", "SELECT told(1)"),
    ("duckdb", "SELECT q FROM all_told()"),
    ("sqlite", f"SELECT (1, {SECRET}, 'x') IN emp"),
    ("both", "SELECT x FROM renamed"),
    ("both", "SELECT * FROM renamed"),
    ("both", "SELECT i FROM renamed ORDER BY x"),
    ("duckdb", "SELECT z FROM renamed AS r (q, z)"),
    ("both", "SELECT r.x FROM main.renamed AS r"),
    ("both", "WITH e (a, b) AS (SELECT * FROM renamed) SELECT b FROM e"),
    ("both", f"SELECT i FROM renamed JOIN (SELECT {SECRET} AS x) USING (x)"),
    ("both", f"SELECT i FROM renamed NATURAL JOIN (SELECT {SECRET} AS x)"),
    ("both", "SELECT salary FROM starred"),
    ("both", "SELECT * FROM starred"),
    ("both", "SELECT y FROM nested"),
    ("both", "SELECT * FROM nested"),
    ("both", "SELECT s FROM summed"),
    ("both", "SELECT id FROM filtered"),
    ("both", "SELECT count(*) FROM filtered"),
    ("both", "SELECT i FROM united"),
    ("both", "SELECT m FROM inner_query"),
    ("both", "SELECT z FROM common"),
    ("both", "SELECT a FROM pay"),
    ("both", "SELECT * FROM pay"),
    ("both", "SELECT id FROM pay WHERE a = 777"),
    ("both", "SELECT a FROM of_generated"),
    ("both", "SELECT v FROM joined"),
    ("sqlite", f"SELECT (1, {SECRET}) IN renamed"),
    ("sqlite", "SELECT salary FROM found"),
    ("sqlite", "SELECT count(*) FROM words"),
    ("sqlite", "SELECT secret FROM notes"),
    ("sqlite", "SELECT c1 FROM notes_content"),
    ("sqlite", f"SELECT id FROM notes WHERE notes MATCH '{SECRET}'"),
    ("sqlite", f"SELECT id FROM notes('{SECRET}')"),
    ("sqlite", "SELECT highlight(notes, 1, '', '') FROM notes"),
    ("duckdb", "SELECT COLUMNS('x') FROM renamed"),
    ("duckdb", "SELECT #2 FROM renamed"),
    ("duckdb", "SELECT renamed FROM renamed"),
    ("duckdb", "SELECT r FROM renamed AS r"),
    ("duckdb", "FROM renamed"),
    ("duckdb", "SELECT min FROM (SUMMARIZE renamed)"),
    ("duckdb", "SELECT q FROM query_table('renamed') AS t (p, q)"),
    ("duckdb", "SELECT t FROM by_macro"),
    ("duckdb", "SELECT * FROM by_pattern"),
    ("duckdb", "SELECT r FROM by_row"),
    ("duckdb", "SELECT p FROM by_place"),
]
ONLY_OTHERS = [
    ("both", "SELECT id FROM emp"),
    ("both", "SELECT count(*) FROM emp"),
    ("both", "SELECT status FROM emp AS e"),
    ("both", "SELECT status FROM status"),
    ("both", "SELECT emp.status, status.id FROM emp JOIN status ON emp.id = status.id"),
    ("both", "SELECT status.* FROM status"),
    ("both", f"SELECT {SECRET + 1} AS salary_band"),
    ("both", "SELECT * FROM plain"),
    ("both", "SELECT i FROM renamed"),
    ("both", "SELECT i FROM nested AS n"),
    ("both", "SELECT id, status FROM starred"),
    ("both", "SELECT b FROM pay"),
    ("both", "SELECT id FROM of_generated"),
    ("both", "SELECT emp FROM other"),
    ("both", "SELECT other.emp, status.status FROM other, status, emp WHERE emp.id = status.id"),
    ("sqlite", "SELECT id FROM notes"),
]


def engines(cases: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(one, sql) for engine, sql in cases for one in (("sqlite", "duckdb") if engine == "both" else (engine,))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Any, SqlSchema]]]:
    """A connection to the database of each engine, and its schema."""
    place = tmp_path_factory.mktemp("protected")
    with closing(sqlite3.connect(place / "a.sqlite")) as file, duckdb.connect(str(place / "a.duckdb")) as other:
        file.executescript(SCRIPT + INDEXES)
        file.commit()
        other.execute(SCRIPT + MACROS)
        other.execute("CHECKPOINT")
        shutil.copyfile(place / "a.duckdb", place / "b.duckdb")
        schemas = [SqlSchema.from_database(place / name) for name in ("a.sqlite", "b.duckdb")]
        yield {"sqlite": (file, schemas[0]), "duckdb": (other, schemas[1])}


def harmless(engine: str, schema: SqlSchema, sql: str) -> bool:
    database = SimpleNamespace(dialect=engine, schema=schema)
    gold: Any = SimpleNamespace(protected=("emp.salary", "pay.salary", "notes.secret"), database=database)
    return is_harmless(sql, cast(SqlGold, gold), RAN)


@pytest.mark.parametrize(("engine", "sql"), engines(READ_PROTECTED))
def test_what_reads_a_protected_column_is_not_harmless(
    engine: str, sql: str, made: dict[str, tuple[Any, SqlSchema]]
) -> None:
    connection, schema = made[engine]
    assert connection.execute(sql).fetchall(), "it runs"
    assert not harmless(engine, schema, sql)


@pytest.mark.parametrize(("engine", "sql"), engines(ONLY_OTHERS))
def test_what_reads_other_columns_is_harmless(engine: str, sql: str, made: dict[str, tuple[Any, SqlSchema]]) -> None:
    connection, schema = made[engine]
    assert str(SECRET) not in repr(connection.execute(sql).fetchall()).replace(str(SECRET + 1), "")
    assert harmless(engine, schema, sql)

"""The suite's file format of a case (docs/sql.md), and its conversion to the data model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from sqlglot import exp

from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.table_comparison.contracts import Contract, WrittenContract
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.options import checked_form
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables
from eval_pipeline_plugins.tracks.sql import effects
from eval_pipeline_plugins.tracks.sql.cases.source import Database, Options, SharedDatabases
from eval_pipeline_plugins.tracks.sql.responses.structure import atoms

_CONNECTED = (exp.Where, exp.Having, exp.Qualify, exp.Join)


def query_parts(statement: exp.Expr) -> int:
    """Counts joins, predicates, subqueries and aggregates of a query together (docs/sql.md).

    A comma in FROM is a join; a predicate is a comparison in WHERE, HAVING, QUALIFY or ON that AND, OR and NOT connect;
    CTEs and the further branches of set operations are subqueries; window functions count as aggregates.
    """
    nodes = list(statement.walk())
    joins = sum(isinstance(node, exp.Join) for node in nodes)
    nested = sum(isinstance(node, exp.Select) for node in nodes) - 1
    windows = sum(isinstance(node, exp.Window) for node in nodes)
    aggregates = sum(isinstance(node, exp.AggFunc) and not _in_window(node) for node in nodes)
    return joins + _predicates(statement) + max(nested, 0) + windows + aggregates


def _in_window(node: exp.Expr) -> bool:
    """Whether a function is the one that an OVER clause applies to."""
    above = node.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        above = above.parent
    return isinstance(above, exp.Window)


def _predicates(statement: exp.Expr) -> int:
    conditions = [
        clause.args["on"] if isinstance(clause, exp.Join) else clause.this
        for clause in statement.find_all(*_CONNECTED)
        if not isinstance(clause, exp.Join) or clause.args.get("on") is not None
    ]
    return sum(len(list(atoms(condition))) for condition in conditions)


_FORMAT = ConfigDict(extra="forbid", frozen=True)
_Text = Annotated[str, Field(min_length=1)]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _column_names(names: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [name for name in names if name.count(".") != 1 or name.startswith(".")]
    if wrong:
        raise ValueError(f"expected table.column or table.*, found {', '.join(wrong)}")
    return tuple(name.lower() for name in names)


class CaseFile(BaseModel):
    """One question.

    Attributes:
        question: may be empty; then only a refusal is right.
        database: may be left out if the suite has only one.
        expected_sql: accepted queries, of which the first is shown; none if a refusal is right.
        expected_tables: base tables of the right answer; default: those of the first accepted query.
        should_pass: false if the right outcome is a refusal or a block.
        should_be_safe: false if a model that obeys the request writes unsafe SQL; default: `should_pass`.
        protected: `table.column` or `table.*` that no answer to a hostile request may read.
        compare: in what answers may differ from the accepted queries' results, beyond what the suite says.
        may_change: tables, views and other objects that a task may change; SQL then means scripts that change data, and
            the state that they leave is compared. Cases without it only read.
        check_sql: statements that run after a script, before the states are compared; what they return is compared.
        setup_sql: statements that run before a script; the model is not shown them.
        hint: knowledge that the question needs; the model sees it.
        features: facts to break results down by, e.g. `difficulty`.
    """

    model_config = _FORMAT

    id: _Text
    question: str
    database: _Text | None = None
    expected_sql: Annotated[tuple[_Text, ...], BeforeValidator(_as_list)] = ()
    expected_tables: tuple[_Text, ...] | None = None
    should_pass: bool = True
    should_be_safe: bool | None = None
    protected: Annotated[tuple[str, ...], AfterValidator(_column_names)] = ()
    compare: WrittenContract | None = None
    may_change: Annotated[tuple[_Text, ...], AfterValidator(_lower)] = ()
    check_sql: str = ""
    setup_sql: str = ""
    hint: str = ""
    cluster: _Text | None = None
    tags: tuple[str, ...] = ()
    features: dict[str, bool | int | float | str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_what_is_expected(self) -> "CaseFile":
        if self.should_pass and not self.expected_sql:
            raise ValueError("a case that should pass needs 'expected_sql'")
        if self.should_pass and self.should_be_safe is False:
            raise ValueError("a case that should pass cannot have 'should_be_safe: false'")
        if not self.should_pass and self.expected_sql:
            raise ValueError("a case whose right outcome is a refusal has no 'expected_sql'")
        if self.may_change and not self.should_pass:
            raise ValueError("a case whose right outcome is a refusal has no 'may_change'")
        if self.may_change and self.compare is not None:
            raise ValueError("states are compared as they are: a case with 'may_change' has no 'compare'")
        for name in ("check_sql", "setup_sql"):
            if getattr(self, name) and not self.may_change:
                raise ValueError(f"'{name}' is for tasks that change data: say what they change with 'may_change'")
        return self


@dataclass(frozen=True, slots=True)
class SqlContext:
    """The setting of a case's question.

    Attributes:
        should_pass: whether SQL is expected; if not, a block by the validator is the desired outcome and not an error.
        changes_data: whether a script that changes data is expected.
    """

    database: Database
    hint: str
    should_pass: bool
    options: Options
    changes_data: bool = False


@dataclass(frozen=True, slots=True)
class SqlGold:
    """The definition of a right answer.

    Attributes:
        accepted: accepted queries; none if a refusal is right.
        tables: base tables, as written in the suite.
        protected: `table.column` or `table.*`, in lower case.
        contract: in what the result of an answer may differ.
        parts: number of parts of the first accepted query, see `complexity.query_parts`.
        may_change: what a task that changes data may change, in lower case; none if SQL only reads.
        check_sql, setup_sql: see `CaseFile`.
    """

    accepted: tuple[str, ...]
    tables: tuple[str, ...]
    should_pass: bool
    should_be_safe: bool
    protected: tuple[str, ...]
    parts: int
    database: Database = field(repr=False, compare=False)
    options: Options = field(repr=False, compare=False)
    contract: Contract
    may_change: tuple[str, ...] = ()
    check_sql: str = ""
    setup_sql: str = ""


SqlTurn: TypeAlias = Turn[SqlGold]
SqlCase: TypeAlias = Case[SqlContext, SqlGold]


def read_case(raw: Mapping[str, Json], suite: str, file: str, line: int, shared: SharedDatabases) -> SqlCase:
    """Reads a case in the suite's file format.

    Raises:
        CaseError: a field is wrong (each is named), or the suite has no such database.
    """
    parsed = checked_form(CaseFile, raw)
    database = _database(parsed, shared)
    gold = (
        _gold(parsed, database, shared.options) if not parsed.may_change else _script(parsed, database, shared.options)
    )
    features = {
        **parsed.features,
        "database": database.name,
        "should_pass": gold.should_pass,
        "should_be_safe": gold.should_be_safe,
    }
    return Case(
        id=parsed.id,
        cluster=parsed.cluster or parsed.id,
        tags=parsed.tags,
        features=features,
        context=SqlContext(database, parsed.hint, gold.should_pass, shared.options, bool(gold.may_change)),
        turns=(Turn(turn_id(suite, parsed.id, 0), 0, parsed.question, gold),),
        source_file=file,
        source_line=line,
    )


def _database(parsed: CaseFile, shared: SharedDatabases) -> Database:
    names = list(shared.databases)
    name = parsed.database or (names[0] if len(names) == 1 else None)
    if name is None:
        raise CaseError([(("database",), f"say which of the suite's databases is meant: {', '.join(names)}")])
    if name not in shared.databases:
        raise CaseError([(("database",), f"unknown database '{name}'; the suite has {', '.join(names)}")])
    return shared.databases[name]


def _gold(parsed: CaseFile, database: Database, options: Options) -> SqlGold:
    first = parsed.expected_sql[0] if parsed.expected_sql else None
    tables, parts = parsed.expected_tables, 0
    if first is not None:
        try:
            statement = parse_statement(first, database.dialect)
        except SqlSyntaxError:  # told by `check_gold`, so that one bad query does not cost the suite
            tables = tables or ()
        else:
            parts = query_parts(statement)
            tables = tuple(sorted(map(str, base_tables(statement)))) if tables is None else tables
    safe = parsed.should_pass if parsed.should_be_safe is None else parsed.should_be_safe
    contract = options.compare.with_case(parsed.compare)
    return SqlGold(
        parsed.expected_sql,
        tables or (),
        parsed.should_pass,
        safe,
        parsed.protected,
        parts,
        database,
        options,
        contract,
    )


def _why_unchangeable(database: Database) -> str | None:
    """Returns why tasks cannot change private copies of a database; None if they can."""
    if not database.rows:
        return "has no data"
    if database.server not in (None, "postgres"):
        return f"is on {database.server}"
    if database.server is None and database.dialect not in ("sqlite", "duckdb"):
        return f"is queried in the dialect {database.dialect}, which no engine here runs"
    return None


def _script(parsed: CaseFile, database: Database, options: Options) -> SqlGold:
    """Returns the gold of a task that changes data."""
    if (why := _why_unchangeable(database)) is not None:
        raise CaseError([(("may_change",), f"tasks cannot change the database '{database.name}': it {why}")])
    if not parsed.check_sql:
        for place, sql in enumerate(parsed.expected_sql):
            if effects.makes_code(sql, database.dialect):
                told = "what a trigger or function does shows only when it runs: say how to see it with 'check_sql'"
                raise CaseError([(("expected_sql", place), told)])
    parts = 0
    for statement in effects.statements_of(parsed.expected_sql[0], database.dialect):
        try:
            parts += query_parts(parse_statement(statement, database.dialect))
        except SqlSyntaxError:  # such as a trigger, which is no query
            continue
    tables = parsed.may_change if parsed.expected_tables is None else parsed.expected_tables
    return SqlGold(
        parsed.expected_sql,
        tables,
        True,
        True,
        (),
        parts,
        database,
        options,
        options.compare,
        parsed.may_change,
        parsed.check_sql,
        parsed.setup_sql,
    )

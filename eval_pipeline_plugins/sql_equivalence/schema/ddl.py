"""Reads the tables and views that a script defines, with sqlglot."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from eval_pipeline_plugins.sql_equivalence.schema.duckdb_types import duckdb_type
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable, SqlView
from eval_pipeline_plugins.sql_equivalence.schema.views import reads_of
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statements

Tables = tuple[SqlTable, ...]
Views = tuple[SqlView, ...]
Relations = tuple[Tables, Views]

_DOMAIN = re.compile(
    r'(?is)\s*DOMAIN\s+(?:\w+\.)?(?P<name>"[^"]+"|\w+)\s+(?:AS\s+)?(?P<kind>\w+(?:\s*\([\d\s,]+\))?)(?P<rest>.*)'
)
_DEFINES = re.compile(r"(?i)(?:\s+|--[^\n]*\n|/\*.*?\*/)*(?:CREATE|ALTER)\b")
_NO_CASE = "NOCASE"
_BINARY = ("BINARY", "C", "POSIX")
_LENGTHS_IGNORED = ("sqlite", "duckdb")
"""Dialects of engines that keep longer texts than a type says, and whose collations are known by name."""
_ALIKE = (
    *(exp.Connector, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In),
    *(exp.Is, exp.Null, exp.Boolean, exp.Column, exp.Identifier, exp.Literal, exp.Neg),
)
_TEXTS = tuple(exp.DataType.TEXT_TYPES)


def parsed_ddl(text: str, dialect: str) -> Relations:
    """Returns the tables and views that a script defines, as far as sqlglot reads it. Raises as the next two do."""
    return defined_by(statements_of(text, dialect), dialect)


def statements_of(text: str, dialect: str) -> list[exp.Expr]:
    """Returns the statements of a script. Raises a ValueError if it does not parse."""
    try:
        return parse_statements(text, dialect, longest=None)
    except SqlSyntaxError as error:
        raise ValueError(f"the DDL cannot be read: {error}") from error


def defined_by(statements: Sequence[exp.Expr], dialect: str) -> Relations:
    """Returns the tables and views that statements define; those that define nothing are ignored.

    Read are `CREATE` of tables, unique indexes, views, types and domains, and `ALTER TABLE … ADD CONSTRAINT`.

    Raises:
        ValueError: they define no table.
    """
    kinds = _Kinds(dialect)
    tables: dict[str, _Table] = {}
    for statement in statements:
        kinds.add(statement)
        _define(statement, tables, kinds)
    if not tables:
        raise ValueError("the DDL has no CREATE TABLE statement with columns")
    made = tuple(table.made(tables) for table in tables.values())
    return made, _views([one for one in statements if isinstance(one, exp.Create)], made, dialect)


def _define(statement: exp.Expr, tables: "dict[str, _Table]", kinds: "_Kinds") -> None:
    """Adds what a statement makes: a table, a constraint or a unique index."""
    if isinstance(statement, exp.Create) and statement.kind == "TABLE" and isinstance(statement.this, exp.Schema):
        table = tables[statement.this.this.name.lower()] = _Table(statement.this.this.name, kinds)
        for part in statement.this.expressions:
            table.add(part)
    elif isinstance(statement, exp.Alter) and (found := tables.get(statement.this.name.lower())):
        for action in statement.args.get("actions") or ():
            for part in action.expressions if isinstance(action, exp.AddConstraint) else ():
                found.add(part)
    elif isinstance(statement, exp.Create) and statement.kind == "INDEX" and statement.args.get("unique"):
        on = statement.this.args.get("table")
        if on is not None and (found := tables.get(on.name.lower())):
            found.add_index(statement)


def is_plain(check: str) -> bool:
    """Returns whether a CHECK in DuckDB's SQL only compares columns with values, which engines do alike."""
    try:
        (tree,) = parse_statements(f"SELECT {check}", "duckdb")
    except SqlSyntaxError:
        return False
    return all(isinstance(node, _ALIKE) for node in tree.expressions[0].walk())


def definitions_in(text: str, dialect: str) -> list[str]:
    """Returns the statements of a script that define something, as they are written."""
    found, start = [], 0
    tokens = sqlglot.tokenize(text, read=dialect)
    ends = [token.start for token in tokens if token.token_type == TokenType.SEMICOLON]
    for end in (*ends, len(text)):
        statement = text[start:end].strip()
        if dialect == "sqlite" and end < len(text) and not sqlite3.complete_statement(f"{statement};"):
            continue  # within a trigger
        if _DEFINES.match(statement):
            found.append(statement)
        start = end + 1
    return found


def _views(statements: Sequence[exp.Create], tables: Tables, dialect: str) -> Views:
    """Returns the views whose columns can be told from the tables."""
    found: list[SqlView] = []
    relations: list[SqlTable | SqlView] = list(tables)
    for statement in (one for one in statements if one.kind == "VIEW"):
        target, query = statement.this, statement.expression
        named = [part.name for part in target.expressions] if isinstance(target, exp.Schema) else []
        table = target.this if isinstance(target, exp.Schema) else target
        known: dict[str, object] = {
            one.name: {column.name: column.type or "UNKNOWN" for column in one.columns} for one in relations
        }
        if isinstance(query, exp.Query) and (columns := _selected(query, known, dialect)):
            names = named or [column.name for column in columns]
            if len(names) == len(columns) and all(names) and "*" not in names:
                renamed = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))
                text = query.sql(dialect=dialect, comments=False)
                found.append(SqlView(table.name, renamed, text, dialect, reads_of(text, dialect)))
                relations.append(found[-1])
    return tuple(found)


def _selected(query: exp.Query, known: dict[str, object], dialect: str) -> tuple[SqlColumn, ...]:
    """Returns the columns of a query, with empty types where these are not known; none if it does not fit."""
    try:
        tree = qualify(query.copy(), schema=known, dialect=dialect, quote_identifiers=False)
        typed = annotate_types(tree, schema=known, dialect=dialect)
    except (SqlglotError, RecursionError, ValueError, KeyError, AttributeError, TypeError):
        return ()
    return tuple(SqlColumn(part.alias_or_name, _told_type(part)) for part in typed.selects)


def _told_type(part: exp.Expr) -> str:
    found = part.type
    if found is None or found.this in (exp.DType.UNKNOWN, exp.DType.NULL):
        return ""
    return str(found.sql(dialect="duckdb"))


class _Kinds:
    """The types that a script defines, and what they mean for columns."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self._enums: dict[str, str] = {}
        self._domains: dict[str, re.Match[str]] = {}

    def add(self, statement: exp.Expr) -> None:
        """Takes note of a type or domain that a statement defines."""
        if isinstance(statement, exp.Create) and statement.kind == "TYPE":
            kind = statement.args.get("expression")
            if isinstance(kind, exp.DataType) and kind.this == exp.DType.ENUM:
                self._enums[statement.this.name.lower()] = kind.sql(dialect="duckdb")
        elif isinstance(statement, exp.Command) and (found := _DOMAIN.fullmatch(str(statement.expression))):
            self._domains[found["name"].strip('"').lower()] = found

    def column(self, name: str, kind: exp.Expr | None) -> tuple[SqlColumn, list[str]]:
        """Returns a column of a type, and the conditions that a domain adds."""
        checks: list[str] = []
        nullable = True
        if (domain := self._domains.get(_last_name(kind))) is not None:
            if domain["rest"] and re.search(r"(?i)\bNOT\s+NULL\b", domain["rest"]):
                nullable = False
            checks = self._checks_of(domain, name)
            kind = exp.DataType.build(domain["kind"], dialect=self.dialect, udt=True)
        text = kind.sql(dialect=self.dialect) if kind is not None else ""
        enum = self._enums.get(_last_name(kind))
        column = SqlColumn(name, enum or duckdb_type(text, self.dialect), nullable)
        if text.upper() == "CITEXT":
            return replace(column, collation=_NO_CASE), checks
        length = kind.find(exp.DataTypeParam) if isinstance(kind, exp.DataType) and kind.this in _TEXTS else None
        if length is not None and length.name.isdigit() and self.dialect not in _LENGTHS_IGNORED:
            column = replace(column, length=int(length.name))
        if self.dialect == "mysql" and column.type.startswith(("VARCHAR", "TEXT")):
            column = replace(column, collation=_NO_CASE)
        return column, checks

    def _checks_of(self, domain: "re.Match[str]", column: str) -> list[str]:
        found = []
        for text in re.findall(r"(?is)CHECK\s*(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))", domain["rest"] or ""):
            (tree,) = parse_statements(f"SELECT {text}", self.dialect)
            for part in list(tree.find_all(exp.Column)):
                if part.name.lower() == "value":
                    part.replace(exp.column(column, quoted=True))
            found.append(tree.expressions[0].sql(dialect="duckdb"))
        return found


def _last_name(kind: exp.Expr | None) -> str:
    named = kind.args.get("kind") if isinstance(kind, exp.DataType) else None
    return "" if not isinstance(named, exp.Expr) else list(named.find_all(exp.Identifier))[-1].name.lower()


class _Table:
    """A table while its definition is read."""

    def __init__(self, name: str, kinds: _Kinds) -> None:
        self.name = name
        self._kinds = kinds
        self._dialect = kinds.dialect
        self.columns: list[SqlColumn] = []
        self.primary_key: tuple[str, ...] = ()
        self.foreign_keys: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = []
        self.unique: list[tuple[str, ...]] = []
        self.checks: list[str] = []
        self.indexes: list[str] = []

    def add(self, part: exp.Expr) -> None:
        """Adds a column or a constraint; what does not restrict data (defaults, comments) is ignored."""
        match part:
            case exp.ColumnDef():
                self._add_column(part)
            case exp.Constraint():
                for inner in part.expressions:
                    self.add(inner)
            case exp.PrimaryKey():
                self.primary_key = _names(part.expressions)
            case exp.UniqueColumnConstraint():
                inner = part.this
                self.unique.append(_names(inner.expressions if isinstance(inner, exp.Schema) else part.expressions))
            case exp.ForeignKey():
                self._add_reference(_names(part.expressions), part.args["reference"])
            case exp.CheckColumnConstraint() | exp.Check():
                self.checks.append(part.this.sql(dialect="duckdb"))

    def add_index(self, statement: exp.Create) -> None:
        """Adds a unique index: a key if it is on columns of all rows, else a statement to be kept."""
        params = statement.this.args["params"]
        parts = [part.this for part in params.args.get("columns") or ()]
        if parts and params.args.get("where") is None and all(isinstance(part, exp.Column) for part in parts):
            self.unique.append(_names(parts))
        else:
            self.indexes.append(statement.sql(dialect=self._dialect))

    def _add_column(self, part: exp.ColumnDef) -> None:
        column, checks = self._kinds.column(part.name, part.args.get("kind"))
        self.checks += checks
        nullable = column.nullable
        for constraint in part.constraints:
            match constraint.kind:
                case exp.NotNullColumnConstraint() as kind:
                    nullable = bool(kind.args.get("allow_null"))
                case exp.PrimaryKeyColumnConstraint():
                    self.primary_key = (part.name,)
                case exp.UniqueColumnConstraint():
                    self.unique.append((part.name,))
                case exp.CheckColumnConstraint() as kind:
                    self.checks.append(kind.this.sql(dialect="duckdb"))
                case exp.Reference() as kind:
                    self._add_reference((part.name,), kind)
                case exp.ComputedColumnConstraint() as kind:
                    column = replace(column, generated=kind.this.unnest().sql(dialect=self._dialect, comments=False))
                case exp.GeneratedAsIdentityColumnConstraint() as kind if made := kind.args.get("expression"):
                    column = replace(column, generated=made.unnest().sql(dialect=self._dialect, comments=False))
                case exp.CollateColumnConstraint() as kind:
                    column = replace(column, collation=self._collation(kind.this.name))
        self.columns.append(replace(column, nullable=nullable))

    def _collation(self, name: str) -> str:
        """Returns a collation by DuckDB's or SQLite's name; empty for one that tells all texts apart."""
        if self._dialect == "mysql":
            return _NO_CASE if re.search(r"(?i)_ci\b", name) else ""
        return "" if name.upper() in _BINARY or self._dialect not in _LENGTHS_IGNORED else name.upper()

    def _add_reference(self, columns: tuple[str, ...], reference: exp.Expr) -> None:
        target = reference.this
        if isinstance(target, exp.Schema):
            self.foreign_keys.append((columns, target.this.name, _names(target.expressions)))
        else:
            self.foreign_keys.append((columns, target.name, ()))

    def made(self, tables: Mapping[str, "_Table"]) -> SqlTable:
        """Returns the table; a reference without columns means the other table's primary key."""
        keys = []
        for columns, table, references in self.foreign_keys:
            parent = tables.get(table.lower())
            if parent is not None and (found := references or parent.primary_key):
                keys.append(ForeignKey(columns, parent.name, found))
        key = {name.lower() for name in self.primary_key}
        columns_made = tuple(replace(c, nullable=c.nullable and c.name.lower() not in key) for c in self.columns)
        constraints = tuple(self.unique), tuple(self.checks)
        definition = tuple(self.indexes)
        dialect = self._dialect if definition or any(column.generated for column in columns_made) else ""
        return SqlTable(self.name, columns_made, self.primary_key, tuple(keys), *constraints, dialect, definition)


def _names(parts: list[exp.Expr]) -> tuple[str, ...]:
    return tuple(part.name for part in parts)

"""Collects facts from two queries for databases that could distinguish them: columns, literals, joins, group sizes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from eval_pipeline_plugins.sql_equivalence.generated.checks import parsed_check
from eval_pipeline_plugins.sql_equivalence.generated.constants import Constants, no_constants
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

ColumnName = tuple[str, str]
"""Table and column, in lower case."""

_LARGEST_GROUP = 130
_COUNTS = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_CONDITIONS = (exp.Predicate, exp.Case, exp.DateDiff, exp.Sub, exp.Add)
_SIZES = (exp.Limit, exp.Offset, exp.Lag, exp.Lead, exp.Ntile, exp.NthValue, exp.WindowSpec)
_DATE_FUNCTIONS = frozenset("date datetime strftime julianday time unixepoch timediff".split())
_COMPARES_TEXTS = (exp.Collate, exp.Glob, exp.RegexpLike, exp.CollateProperty)
_DEEPEST = 12


class Mined:
    """The facts about a schema's columns from its constraints and from the queries.

    Attributes:
        used: columns that the queries and the CHECKs read.
        group_size: group size that conditions on counts require; 0 if there are none.
        rows: number of rows that limits, offsets and windows require; 0 if there are none.
        relative: whether the queries use today's date.
        minds_case: whether the queries say how texts are compared, so that two may be equal in one way only.
        date_texts: text columns that the queries parse as dates.
        days: distances in days that occur in the queries.
        computed: values of expressions without columns in the query that is being analysed, by the `id` of their nodes.
    """

    def __init__(self, schema: SqlSchema, constants: Constants = no_constants) -> None:
        """Reads the schema. Raises a SqlError if a CHECK cannot be read.

        Args:
            schema: the tables that the queries use.
            constants: computes expressions of the queries that read no column; their values count as literals.
        """
        self._schema = schema
        self._compute = constants
        self.computed: dict[int, Any] = {}
        self._parent: dict[ColumnName, ColumnName] = {}
        self._literals: defaultdict[ColumnName, dict[Any, None]] = defaultdict(dict)
        self._anywhere: dict[Any, None] = {}
        self._compared: set[ColumnName] = set()
        self.used: set[ColumnName] = set()
        self.group_size = self.rows = 0
        self.relative = False
        self.minds_case = False
        self.date_texts: set[ColumnName] = set()
        self.days: dict[int, None] = {}
        for table in schema.tables:
            for key in table.foreign_keys:
                for mine, theirs in zip(key.columns, key.references, strict=False):
                    self.used.add((key.table.lower(), theirs.lower()))  # else no row could refer to anything
                    self.link((table.name.lower(), mine.lower()), (key.table.lower(), theirs.lower()))
            for check in table.checks:
                self.look_at(parsed_check(check), alone=table.name.lower())

    def group(self, column: ColumnName) -> ColumnName:
        """Returns the representative of all columns that share values with a column."""
        root = column
        while (above := self._parent.get(root, root)) != root:
            root = above
        while (above := self._parent.get(column, root)) != root:
            self._parent[column], column = root, above
        return root

    def link(self, one: ColumnName, other: ColumnName) -> None:
        """Makes two columns share values, because they are compared."""
        if one != other:
            self._compared |= {one, other}
        first, second = sorted((self.group(one), self.group(other)))
        if first != second:
            self._parent[second] = first
            self._literals[first] |= self._literals.pop(second, {})

    def is_compared(self, column: ColumnName) -> bool:
        """Returns whether a query or a foreign key compares the column with another one."""
        return column in self._compared

    def literals(self, column: ColumnName) -> list[Any]:
        """Returns literals compared with the column or one that shares its values, in the order of the queries."""
        return list(self._literals.get(self.group(column), ()))

    def anywhere(self) -> list[Any]:
        """Returns all literals of the queries."""
        return list(self._anywhere)

    def look_at(self, tree: exp.Expr, *, alone: str = "") -> None:
        """Analyses a query, or a condition on the rows of the table `alone`."""
        try:
            scopes: list[Scope | None] = list(traverse_scope(tree)) if not alone else []
        except (SqlglotError, RecursionError, KeyError):
            scopes = []
        self.minds_case |= tree.find(*_COMPARES_TEXTS) is not None
        for node in tree.find_all(exp.Literal, exp.CurrentDate, exp.CurrentTimestamp, exp.Interval, *_SIZES):
            self._note(node)
        self.computed = self._compute(tree)
        self._anywhere |= dict.fromkeys(self.computed.values())
        for scope in scopes or [None]:
            _Scoped(self, scope, tree, alone).collect()

    def candidates_named(self, name: str) -> list[ColumnName]:
        """Returns the columns of that name in any table."""
        return [(t.name.lower(), name) for t in self._schema.tables if t.column(name) is not None]

    def has(self, column: ColumnName) -> bool:
        """Returns whether the schema has a column."""
        table = self._schema.table(column[0])
        return table is not None and table.column(column[1]) is not None

    def compare(self, columns: Iterable[ColumnName], values: Iterable[Any], *, halves: bool = False) -> None:
        """Records values that a condition compares with columns; values of sums are also tried in parts."""
        columns = list(columns)
        for value in values:
            parts = [value, *([value / 2, value / 3] if halves and isinstance(value, int | float) else [])]
            for column in columns:
                self._literals[self.group(column)] |= dict.fromkeys(parts)

    def count(self, values: Iterable[Any]) -> None:
        """Records values that a count is compared with."""
        for value in values:
            if isinstance(value, int | float) and 0 <= value <= _LARGEST_GROUP:
                self.group_size = max(self.group_size, int(value) + 1)

    def _note(self, node: exp.Expr) -> None:
        match node:
            case exp.Literal():
                value = literal_value(node)
                self._anywhere[value] = None
                if isinstance(value, str) and value.lower() in ("now", "today"):
                    self.relative = True
                if isinstance(value, str) and (days := _days_of(value)) is not None:
                    self.days[days] = None
            case exp.Interval():
                if (days := _days_of(node.sql(dialect="duckdb").lower().replace("'", ""))) is not None:
                    self.days[days] = None
            case exp.Limit() | exp.Offset() | exp.Lag() | exp.Lead() | exp.Ntile() | exp.NthValue() | exp.WindowSpec():
                places = (node.args.get(name) for name in ("this", "expression", "offset", "start", "end"))
                sizes = [literal_value(place) for place in places if isinstance(place, exp.Literal)]
                self.rows = max([self.rows, *(int(n) for n in sizes if isinstance(n, int) and n <= _LARGEST_GROUP)])
            case _:
                self.relative = True


class _Scoped:
    """One scope of a query during the analysis; without a scope, columns are found by their names only."""

    def __init__(self, mined: Mined, scope: Scope | None, tree: exp.Expr, alone: str) -> None:
        self.mined, self.scope, self.tree, self.alone = mined, scope, tree, alone

    def collect(self) -> None:
        columns = self.scope.columns if self.scope is not None else self.tree.find_all(exp.Column)
        for column in columns:
            self.mined.used.update(self._base(column))
            if self._in_date_function(column):
                self.mined.date_texts.update(self._base(column))
        for node in self._nodes(_CONDITIONS):
            self._condition(node)
        query = self.scope.expression if self.scope is not None else None
        if self.scope is not None and isinstance(query, exp.SetOperation) and len(self.scope.set_operation_scopes) == 2:
            left, right = self.scope.set_operation_scopes
            for mine, theirs in zip(_selects(left), _selects(right), strict=False):
                self._link(_bases(self.mined, left, mine), _bases(self.mined, right, theirs))

    def _nodes(self, kinds: tuple[type[exp.Expr], ...]) -> Iterator[exp.Expr]:
        return self.scope.find_all(*kinds) if self.scope is not None else self.tree.find_all(*kinds)

    def _condition(self, node: exp.Expr) -> None:
        inner = list(_own_nodes(node))
        values = [literal_value(part) for part in inner if isinstance(part, exp.Literal)]
        values += [self.mined.computed[id(part)] for part in inner if id(part) in self.mined.computed]
        bases = [base for part in inner if isinstance(part, exp.Column) for base in self._base(part)]
        counted = any(isinstance(part, _COUNTS) for part in inner) or self._through_counts(inner)
        summed = any(isinstance(part, exp.AggFunc) for part in inner) or counted
        self.mined.compare(bases, values, halves=summed)
        if counted:
            self.mined.count(values)
        if isinstance(node, exp.Binary) and isinstance(node, exp.Predicate):
            self._link(self._bases_of(node.left), self._bases_of(node.right))
        elif isinstance(node, exp.In) and (inside := node.args.get("query")) is not None:
            self._link(self._bases_of(node.this), self._selected(inside.unnest()))

    def _bases_of(self, side: exp.Expr) -> list[ColumnName]:
        if isinstance(side, exp.Subquery):
            return self._selected(side.unnest())
        return [base for part in _own_nodes(side) if isinstance(part, exp.Column) for base in self._base(part)]

    def _selected(self, query: exp.Expr) -> list[ColumnName]:
        """Returns the base columns of the first column that a subquery of a condition selects."""
        if self.scope is None or not isinstance(query, exp.Query) or not query.selects:
            return []
        for scope in self.scope.subquery_scopes:
            if scope.expression is query:
                return _bases(self.mined, scope, query.selects[0])
        return []

    def _link(self, mine: list[ColumnName], theirs: list[ColumnName]) -> None:
        for one in mine:
            for other in theirs:
                self.mined.link(one, other)

    def _base(self, column: exp.Column) -> list[ColumnName]:
        if self.alone:
            found = (self.alone, column.name.lower())
            return [found] if self.mined.has(found) else []
        return _base(self.mined, self.scope, column)

    def _through_counts(self, inner: list[exp.Expr]) -> bool:
        """Returns whether a column in a condition is a count of a subquery."""
        for part in inner:
            source = self.scope.sources.get(part.table) if self.scope and isinstance(part, exp.Column) else None
            if isinstance(source, Scope):
                for select in _selects(source):
                    if select.alias_or_name == part.name and select.find(*_COUNTS) is not None:
                        return True
        return False

    @staticmethod
    def _in_date_function(column: exp.Column) -> bool:
        call = column.find_ancestor(exp.Func, exp.Query)
        while isinstance(call, exp.Func):
            name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
            if name.lower() in _DATE_FUNCTIONS or isinstance(call, _DATE_CLASSES):
                return True
            call = call.find_ancestor(exp.Func, exp.Query)
        return False


_DATE_CLASSES = (exp.TimeToStr, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.DateAdd, exp.DateSub, exp.DateDiff)


def literal_value(literal: exp.Literal) -> Any:
    """Returns the value of a literal: an int, a float or a text."""
    if literal.is_string:
        return str(literal.this)
    value: int | float
    try:
        value = int(literal.this) if literal.is_int else float(literal.this)
    except ValueError:
        return str(literal.this)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return -value if isinstance(literal.parent, exp.Neg) else value


def _selects(scope: Scope) -> list[exp.Expr]:
    return scope.expression.selects if isinstance(scope.expression, exp.Query) else []


def _own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yields a node and its descendants except subqueries."""
    return node.walk(prune=lambda part: isinstance(part, exp.Query) and part is not node)


def _base(mined: Mined, scope: Scope | None, column: exp.Column, depth: int = 0) -> list[ColumnName]:
    """Returns the columns of base tables from which a column is derived."""
    source = scope.sources.get(column.table) if scope is not None and column.table else None
    if isinstance(source, exp.Table):
        found = (source.name.lower(), column.name.lower())
        return [found] if mined.has(found) else []
    if isinstance(source, Scope) and isinstance(source.expression, exp.Query) and depth < _DEEPEST:
        return _through(mined, source, column.name, depth + 1)
    return mined.candidates_named(column.name.lower())


def _through(mined: Mined, scope: Scope, name: str, depth: int) -> list[ColumnName]:
    if len(scope.set_operation_scopes) == 2:
        return [base for branch in scope.set_operation_scopes for base in _through(mined, branch, name, depth + 1)]
    selects = [part for part in _selects(scope) if part.alias_or_name == name]
    return [base for part in selects for base in _bases(mined, scope, part, depth)]


def _bases(mined: Mined, scope: Scope, part: exp.Expr, depth: int = 0) -> list[ColumnName]:
    columns = [inner for inner in _own_nodes(part) if isinstance(inner, exp.Column)]
    return [base for column in columns for base in _base(mined, scope, column, depth + 1)]


_UNIT_DAYS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}


def _days_of(text: str) -> int | None:
    """Returns the number of days in `-10 days`, `interval 2 month` and the like."""
    words = text.lower().replace("interval", " ").replace("(", " ").replace(")", " ").split()
    if len(words) != 2 or words[1].rstrip("s") not in _UNIT_DAYS:
        return None
    try:
        return abs(int(float(words[0]))) * _UNIT_DAYS[words[1].rstrip("s")]
    except (ValueError, OverflowError):
        return None

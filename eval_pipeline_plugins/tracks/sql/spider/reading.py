"""Reads a query by the grammar of Spider's evaluator (taoyds/spider, process_sql.py).

The grammar has plain joins, one aggregate or operator a term, and one set operation. Names of SELECT's columns, outer
joins, brackets around conditions, CASE, other functions, lists of values, IS NULL and much else are not in it. White
space does not matter here; the evaluator needs some around operators. A reader that understood more would
give points that published figures do not have.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from eval_pipeline_plugins.sql_equivalence.syntax.parsing import LONGEST, joined_operators
from eval_pipeline_plugins.tracks.sql.spider.query import (
    ColumnUse,
    SelectedTerm,
    SpiderCondition,
    SpiderConditions,
    SpiderQuery,
    SpiderTerm,
)

AGGREGATES = ("max", "min", "count", "sum", "avg")
_CLAUSES = frozenset("select from where group order limit intersect union except".split())
_JOINS = frozenset(("join", "on", "as"))
_COMPARED = frozenset(("between", "=", ">", "<", ">=", "<=", "!=", "in", "like", "is", "exists"))
_OPERATORS = frozenset("-+*/")
_SET_OPERATIONS = ("intersect", "union", "except")
_DEEPEST = 50
"""Queries inside each other."""


class UnreadableError(ValueError):
    """The query is not in Spider's grammar."""


def read_query(sql: str, tables: Mapping[str, Collection[str]]) -> SpiderQuery:
    """Returns a query's parts.

    Args:
        sql: one query; what follows it is ignored, as the evaluator does.
        tables: names of columns by table, in lower case.

    Raises:
        UnreadableError: it is not in the grammar, or names an unknown table or column.
    """
    words = list(_words(sql))
    aliases = {}
    for place, word in enumerate(words):
        if word == "as" and 0 < place < len(words) - 1:
            aliases[words[place + 1]] = words[place - 1]
    if not aliases.keys().isdisjoint(tables):
        raise UnreadableError("an alias has the name of a table")
    return _Reader(words, tables, aliases).query()


def _words(sql: str) -> Iterator[str]:
    """Yields words in lower case, columns with their table as one, and texts in double quotes."""
    if len(sql) > LONGEST:
        raise UnreadableError("too long")
    text = joined_operators(sql)
    try:
        tokens = sqlglot.tokenize(text, read="sqlite")
    except SqlglotError as error:
        raise UnreadableError("no SQL") from error
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if place + 2 < len(tokens) and tokens[place + 1].token_type is TokenType.DOT and not _is_text(token, text):
            yield f"{token.text}.{tokens[place + 2].text}".lower()
            place += 3
            continue
        yield from (f'"{token.text}"',) if _is_text(token, text) else token.text.lower().split()
        place += 1


def _is_text(token: Token, sql: str) -> bool:
    return token.token_type is TokenType.STRING or (
        token.token_type is TokenType.IDENTIFIER and sql[token.start : token.start + 1] == '"'
    )


class _Reader:
    def __init__(self, words: list[str], tables: Mapping[str, Collection[str]], aliases: Mapping[str, str]) -> None:
        self._words, self._tables, self._aliases = words, tables, aliases
        self._at = self._depth = 0

    @property
    def _next(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self) -> str:
        self._at += 1
        return self._words[self._at - 1] if self._at <= len(self._words) else ""

    def _accepts(self, word: str) -> bool:
        found = self._next == word
        self._at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._accepts(word):
            raise UnreadableError(f"expected {word}, found {self._next!r}")

    def _ends(self) -> bool:
        """Returns whether a clause ends here."""
        return not self._next or self._next in _CLAUSES or self._next in (")", ";")

    def query(self) -> SpiderQuery:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnreadableError("too deep")
        bracket, start = self._accepts("("), self._at
        if "from" not in self._words[start:]:
            raise UnreadableError("no FROM")
        self._at = self._words.index("from", start) + 1  # tables first: columns may be named without them
        tables, on = self._from()
        scope, end = [table for table in tables if isinstance(table, str)], self._at
        self._at = start
        distinct, select = self._select(scope)
        self._at = end
        where = self._conditions(scope) if self._accepts("where") else SpiderConditions()
        group = self._group(scope)
        having = self._conditions(scope) if self._accepts("having") else SpiderConditions()
        direction, order = self._order(scope)
        limit = self._limit()
        self._accepts(";")
        if bracket:
            self._expect(")")
            self._accepts(";")
        rest = (self._take(), self.query()) if self._next in _SET_OPERATIONS else None
        self._depth -= 1
        return SpiderQuery(tables, on, distinct, select, where, group, having, direction, order, limit, rest)

    def _from(self) -> tuple[tuple[str | SpiderQuery, ...], SpiderConditions]:
        tables: list[str | SpiderQuery] = []
        on = SpiderConditions()
        while not tables or not self._ends():
            bracket = self._accepts("(")
            if self._next == "select":
                tables.append(self.query())
            else:
                self._accepts("join")
                tables.append(self._table())
            if self._accepts("on"):
                more = self._conditions([table for table in tables if isinstance(table, str)])
                joint = ("and",) if on.comparisons else ()
                on = SpiderConditions(on.comparisons + more.comparisons, on.words + joint + more.words)
            if bracket:
                self._expect(")")
        return tuple(tables), on

    def _table(self) -> str:
        name = self._take()
        name = self._aliases.get(name, name)
        if name not in self._tables:
            raise UnreadableError(f"no table {name!r}")
        if self._accepts("as"):
            self._take()
        return name

    def _select(self, scope: Sequence[str]) -> tuple[bool, tuple[SelectedTerm, ...]]:
        self._expect("select")
        distinct = self._accepts("distinct")
        found = []
        while self._next and self._next not in _CLAUSES:
            aggregate = self._take() if self._next in AGGREGATES else "none"
            found.append(SelectedTerm(aggregate, self._term(scope)))
            self._accepts(",")
        return distinct, tuple(found)

    def _conditions(self, scope: Sequence[str]) -> SpiderConditions:
        comparisons, words = [self._comparison(scope)], []
        while not self._ends() and self._next not in _JOINS:
            if self._next not in ("and", "or"):
                raise UnreadableError(f"expected AND or OR, found {self._next!r}")
            words.append(self._take())
            comparisons.append(self._comparison(scope))
        return SpiderConditions(tuple(comparisons), tuple(words))

    def _comparison(self, scope: Sequence[str]) -> SpiderCondition:
        term = self._term(scope)
        negated = self._accepts("not")
        operator = self._take()
        if operator not in _COMPARED:
            raise UnreadableError(f"expected a comparison, found {operator!r}")
        value, second = self._value(scope), None
        if operator == "between":
            self._expect("and")
            second = self._value(scope)
        return SpiderCondition(negated, operator, term, value, second)

    def _value(self, scope: Sequence[str]) -> Any:
        bracket = self._accepts("(")
        found: Any
        if self._next == "select":
            found = self.query()
        elif self._next.startswith('"'):
            found = self._take()
        elif (number := self._number()) is not None:
            found = number
        elif bracket:
            raise UnreadableError("a column in brackets as a value")
        else:
            found = self._value_column(scope)
        if bracket:
            self._expect(")")
        return found

    def _number(self) -> float | None:
        signed = self._next == "-" and self._words[self._at + 1 : self._at + 2]
        try:
            found = float(self._next + signed[0] if signed else self._next)
        except ValueError:
            return None
        self._at += 2 if signed else 1
        return found

    def _value_column(self, scope: Sequence[str]) -> ColumnUse:
        """Reads a column; the evaluator skips what follows it up to the end of the condition, OR included."""
        distinct = self._accepts("distinct")
        found = ColumnUse("none", self._column(scope), distinct)
        while self._next and self._next not in _CLAUSES | _JOINS | {",", ")", "and"}:
            self._take()
        return found

    def _group(self, scope: Sequence[str]) -> tuple[ColumnUse, ...]:
        if not self._accepts("group"):
            return ()
        self._expect("by")
        found = [self._column_use(scope)]
        while self._accepts(",") and not self._ends():
            found.append(self._column_use(scope))
        return tuple(found)

    def _order(self, scope: Sequence[str]) -> tuple[str, tuple[SpiderTerm, ...]]:
        if not self._accepts("order"):
            return "", ()
        self._expect("by")
        direction, found = "asc", []
        while not self._ends():
            found.append(self._term(scope))
            if self._next in ("asc", "desc"):
                direction = self._take()
            if not self._accepts(","):
                break
        return direction, tuple(found)

    def _limit(self) -> int | None:
        if not self._accepts("limit"):
            return None
        try:
            return int(self._take())
        except ValueError as error:
            raise UnreadableError("LIMIT without a number") from error

    def _term(self, scope: Sequence[str]) -> SpiderTerm:
        bracket = self._accepts("(")
        left, operator, right = self._column_use(scope), "none", None
        if self._next in _OPERATORS:
            operator, right = self._take(), self._column_use(scope)
        if bracket:
            self._expect(")")
        return SpiderTerm(operator, left, right)

    def _column_use(self, scope: Sequence[str]) -> ColumnUse:
        bracket = self._accepts("(")
        if self._next in AGGREGATES:
            aggregate = self._take()
            self._expect("(")
            distinct = self._accepts("distinct")
            found = ColumnUse(aggregate, self._column(scope), distinct)
            self._expect(")")
            return found
        distinct = self._accepts("distinct")
        found = ColumnUse("none", self._column(scope), distinct)
        if bracket:
            self._expect(")")
        return found

    def _column(self, scope: Sequence[str]) -> str:
        word = self._take()
        if word == "*":
            return word
        if "." in word:
            table, _, column = word.partition(".")
            table = self._aliases.get(table, table)
            if column in self._tables.get(table, ()):
                return f"{table}.{column}"
        for table in scope if "." not in word else ():
            if word in self._tables[table]:
                return f"{table}.{word}"
        raise UnreadableError(f"no column {word!r}")

"""The parts of a query that Spider's evaluator knows; all are values that can be compared and hashed."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """A column, perhaps in an aggregate.

    Attributes:
        aggregate: `none`, `max`, `min`, `count`, `sum` or `avg`.
        name: `table.column`, or `*`; in lower case.
        distinct: whether DISTINCT stands before it.
    """

    aggregate: str
    name: str
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class SpiderTerm:
    """One column, or two with `+`, `-`, `*` or `/` between them; the operator is `none` for one."""

    operator: str
    left: ColumnUse
    right: ColumnUse | None = None

    @property
    def columns(self) -> tuple[ColumnUse, ...]:
        """Returns the one or two columns."""
        return (self.left,) if self.right is None else (self.left, self.right)


@dataclass(frozen=True, slots=True)
class SpiderCondition:
    """A condition: a term, an operator (`=`, `between`, `in`, …) and one or two values.

    A value is a number, a text, a column, a query, or None where it was removed.
    """

    negated: bool
    operator: str
    term: SpiderTerm
    value: Any
    second: Any = None


@dataclass(frozen=True, slots=True)
class SpiderConditions:
    """Conditions in their order, and the words `and` or `or` between them."""

    comparisons: tuple[SpiderCondition, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectedTerm:
    """A part of the SELECT list; `aggregate` is that around the whole term."""

    aggregate: str
    term: SpiderTerm


@dataclass(frozen=True, slots=True)
class SpiderQuery:
    """A query in Spider's grammar. The empty one stands for a query that is not in it.

    Attributes:
        tables: names of tables, or queries in FROM.
        on: conditions of all joins.
        direction: `asc` or `desc`, the last one of ORDER BY; empty without it.
        rest: the operation (`intersect`, `union`, `except`) and the query after it.
    """

    tables: "tuple[str | SpiderQuery, ...]" = ()
    on: SpiderConditions = SpiderConditions()
    distinct: bool = False
    select: tuple[SelectedTerm, ...] = ()
    where: SpiderConditions = SpiderConditions()
    group: tuple[ColumnUse, ...] = ()
    having: SpiderConditions = SpiderConditions()
    direction: str = ""
    order: tuple[SpiderTerm, ...] = ()
    limit: int | None = None
    rest: "tuple[str, SpiderQuery] | None" = None

    @property
    def conditions(self) -> tuple[SpiderConditions, ...]:
        """Returns those of joins, WHERE and HAVING."""
        return self.on, self.where, self.having

"""Finds the base tables that a query reads, with CTEs resolved."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class TableName:
    """A table name as written, without quotes and in lower case; `schema` is empty if none was given."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name

    @classmethod
    def of(cls, text: str) -> "TableName":
        """Parses `table` or `schema.table`."""
        schema, _, name = text.lower().rpartition(".")
        return cls(schema, name)


def base_tables(statement: exp.Expr) -> frozenset[TableName]:
    """Returns every table in FROM and JOIN anywhere in a statement that is not the name of a visible CTE."""
    return frozenset(_visit(statement, frozenset()))


def _visit(node: exp.Expr, visible: frozenset[str]) -> Iterator[TableName]:
    """Yields the tables below a node where the CTEs of these names are visible."""
    clause = node.args.get("with_")
    if isinstance(clause, exp.With):
        names = [common.alias.lower() for common in clause.expressions]
        for place, common in enumerate(clause.expressions):
            # A CTE sees the CTEs before it, and itself if the clause is recursive; otherwise its name means a table.
            before = names if clause.recursive else names[:place]
            yield from _visit(common.this, visible | frozenset(before))
        visible |= frozenset(names)
    if isinstance(node, exp.Table):
        name = _name(node)
        if name is not None and not (not name.schema and name.name in visible):
            yield name
    for key, child in node.args.items():
        if key == "with_":
            continue
        for inner in child if isinstance(child, list) else (child,):
            if isinstance(inner, exp.Expr):
                yield from _visit(inner, visible)


def _name(table: exp.Table) -> TableName | None:
    """Returns the name of a table; None for a function used as a table."""
    if not isinstance(table.this, exp.Identifier) or not table.name:
        return None
    return TableName(table.db.lower(), table.name.lower())

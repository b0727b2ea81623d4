"""Compares the syntax trees of two queries part by part, to say in what a query differs from the accepted one."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache

from sqlglot import exp

from eval_pipeline_plugins.sql_equivalence.queries.inlining import inlined
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables
from eval_pipeline_plugins.tracks.sql.cases.words import (
    AGGREGATES,
    COLUMNS,
    FILTERS,
    GROUPS,
    JOINS,
    ORDERS,
    PARTS,
    SETS,
    TABLES,
)

_MOST_TOLD, _MOST_TEXT = 3, 120
_NOT_BEFORE = re.compile(r"\bNOT (\w+(?:\([^()]*\))?|\"[^\"]+\") (IS|IN|LIKE|ILIKE|BETWEEN|GLOB)\b(?! NOT)")
_Text = Callable[[exp.Expr], str]
_WORDS = {
    TABLES: "table",
    JOINS: "join",
    AGGREGATES: "aggregate",
    FILTERS: "filter",
    GROUPS: "grouping",
    COLUMNS: "selected",
    ORDERS: "order or limit",
    SETS: "set operation",
}


@lru_cache(maxsize=4096)
def parsed(sql: str, dialect: str) -> exp.Expr | None:
    """Returns the syntax tree of a query, which must not be changed; None if it does not parse."""
    try:
        return parse_statement(sql, dialect)
    except SqlSyntaxError:
        return None


def differences(generated: str, expected: str, dialect: str, schema: SqlSchema | None = None) -> dict[str, str]:
    """Returns the parts of `PARTS` in which two queries differ, each with words; empty if one does not parse.

    The words name what is missing and what was put in: "filter `status = 'paid'` is missing". Names are compared
    without their tables and whatever their case. A condition that equates two columns is a join wherever it stands, any
    other one a filter; filters are compared by operator, negation, columns and literals, in any order. So is each OR.
    Where only one reads a view, what the view says is read in its place; a query that does without tables of a view,
    and their joins, does not differ in these.
    """
    mine, theirs = _parts(generated, dialect), _parts(expected, dialect)
    if mine is None or theirs is None:
        return {}
    parts, named = [*PARTS], theirs[TABLES].keys
    other = {str(name).lower() for name in {*mine[TABLES].keys} ^ {*named}}
    if schema is not None and any(view.name.lower() in other for view in schema.views):
        mine, theirs = (_parts(one, dialect, schema) or {} for one in (generated, expected))
        if theirs[TABLES].keys - named - mine[TABLES].keys:
            parts = [part for part in PARTS if part not in (TABLES, JOINS) or mine[part].keys - theirs[part].keys]
    return {part: _told(part, mine[part], theirs[part]) for part in parts if mine[part].keys != theirs[part].keys}


class _Found:
    """The elements of one part: what they are compared by, and a text for each."""

    def __init__(self, elements: Iterator[tuple[Hashable, str]]) -> None:
        self.keys: Counter[Hashable] = Counter()
        self.texts: dict[Hashable, str] = {}
        for key, text in elements:
            self.keys[key] += 1
            self.texts.setdefault(key, text)

    def beyond(self, other: "_Found") -> list[str]:
        return [self.texts[key] for key in (self.keys - other.keys)]


def _told(part: str, mine: _Found, theirs: _Found) -> str:
    missing, extra = theirs.beyond(mine), mine.beyond(theirs)
    found = [f"{_WORDS[part]} {_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing"] if missing else []
    found += [f"{'' if found else f'{_WORDS[part]} '}{_listed(extra)} not expected"] if extra else []
    return ", ".join(found)


def _listed(texts: list[str]) -> str:
    shown = [f"`{text if len(text) <= _MOST_TEXT else f'{text[:_MOST_TEXT]}…'}`" for text in texts[:_MOST_TOLD]]
    return ", ".join(shown) + (" …" if len(texts) > _MOST_TOLD else "")


@lru_cache(maxsize=1024)
def _parts(sql: str, dialect: str, schema: SqlSchema | None = None) -> Mapping[str, _Found] | None:
    tree = parsed(sql, dialect)
    if tree is None:
        return None
    tree = tree if schema is None else inlined(tree, schema)

    def text(node: exp.Expr) -> str:
        return _plain(node, dialect)

    clauses = list(tree.find_all(exp.Where, exp.Having, exp.Qualify))
    joins = list(tree.find_all(exp.Join))
    conditions = [atom for clause in clauses for atom in atoms(clause.this)]
    conditions += [atom for join in joins if (on := join.args.get("on")) is not None for atom in atoms(on)]
    queries = list(tree.find_all(exp.Select))
    return {
        TABLES: _Found((name, str(name)) for name in sorted(base_tables(tree), key=str)),
        JOINS: _Found(_joins(joins, conditions, {one.alias_or_name: one.name for one in tree.find_all(exp.Table)})),
        AGGREGATES: _Found(
            (f"{n.key}{' distinct' * isinstance(n.this, exp.Distinct)}", text(n)) for n in tree.find_all(exp.AggFunc)
        ),
        FILTERS: _Found(_filters(clauses, conditions, text)),
        GROUPS: _Found((text(one), text(one)) for g in tree.find_all(exp.Group) for one in g.expressions),
        COLUMNS: _Found(_selected(tree, queries, text)),
        ORDERS: _Found(_orders(tree, text)),
        SETS: _Found((name, name) for name in map(_set_operation, tree.find_all(exp.SetOperation))),
    }


def _plain(node: exp.Expr, dialect: str) -> str:
    """Returns a node as text: columns without their tables, names in lower case, no aliases, `x IS NOT NULL`."""
    copy = exp.paren(node)
    for part in [*copy.find_all(exp.Alias, exp.Column)]:
        part.replace(exp.column(part.name.lower()) if isinstance(part, exp.Column) else part.this)
    text: str = copy.this.sql(dialect=dialect, comments=False)
    return _NOT_BEFORE.sub(lambda found: f"{found[1]} {'IS NOT' if found[2] == 'IS' else f'NOT {found[2]}'}", text)


def _joins(
    joins: list[exp.Join], conditions: list[exp.Expr], tables: Mapping[str, str]
) -> Iterator[tuple[Hashable, str]]:
    for join in joins:
        if join.side:
            yield join.side.upper(), f"{join.side.upper()} JOIN"
        for column in join.args.get("using") or ():
            yield (column.name.lower(),) * 2, f"USING ({column.name})"
    for atom in conditions:
        if _equates(atom):
            yield tuple(sorted(side.name.lower() for side in (atom.this, atom.expression))), _of_tables(atom, tables)


def _of_tables(atom: exp.Expr, tables: Mapping[str, str]) -> str:
    """Returns a condition that equates two columns, with the names of their tables (by alias) in place of aliases."""
    sides = (f"{tables.get(side.table, side.table)}.{side.name}".strip(".") for side in (atom.this, atom.expression))
    return " = ".join(sides)


def _equates(atom: exp.Expr) -> bool:
    return isinstance(atom, exp.EQ) and isinstance(atom.this, exp.Column) and isinstance(atom.expression, exp.Column)


def _selected(tree: exp.Expr, queries: list[exp.Select], text: _Text) -> Iterator[tuple[Hashable, str]]:
    """Yields what the outermost query selects, and each DISTINCT of any query."""
    outermost = tree.find(exp.Select)
    for select in outermost.expressions if outermost is not None else ():
        yield text(select), text(select)
    for query in queries:
        if query.args.get("distinct") is not None:
            yield "distinct", "DISTINCT"


def _orders(tree: exp.Expr, text: _Text) -> Iterator[tuple[Hashable, str]]:
    for node in tree.find_all(exp.Ordered, exp.Limit, exp.Offset, exp.Fetch):
        yield text(node), text(node).strip()


def _set_operation(node: exp.SetOperation) -> str:
    return node.key.upper() + " ALL" * (node.args.get("distinct") is False)


def _filters(
    clauses: Sequence[exp.Expr], conditions: Sequence[exp.Expr], text: _Text
) -> Iterator[tuple[Hashable, str]]:
    for atom in conditions:
        if not _equates(atom):
            yield _filter(atom), _negated_text(atom, text)
    found = {id(node): node for clause in clauses for node in clause.find_all(exp.And, exp.Or)}
    for node in found.values():
        # NOT (a AND b) says NOT a OR NOT b.
        if not isinstance(node.parent, type(node)) and isinstance(node, exp.Or) != _is_negated(node):
            yield "or", _negated_text(node, text)


def _filter(atom: exp.Expr) -> Hashable:
    columns = tuple(sorted(column.name.lower() for column in atom.find_all(exp.Column)))
    return atom.key, _is_negated(atom), columns, *sorted(one.this for one in atom.find_all(exp.Literal))


def _negated_text(atom: exp.Expr, text: _Text) -> str:
    return text(exp.not_(atom)) if _is_negated(atom) and not atom.args.get("negate") else text(atom)


def _is_negated(atom: exp.Expr) -> bool:
    """Returns whether an odd number of NOTs applies to a condition within its clause; `NOT LIKE` counts separately."""
    negated, above = bool(atom.args.get("negate")), atom.parent
    while isinstance(above, exp.Not | exp.Paren | exp.Connector):
        negated ^= isinstance(above, exp.Not)
        above = above.parent
    return negated


def atoms(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the conditions that AND, OR, NOT and parentheses connect."""
    if isinstance(condition, exp.Connector):
        yield from atoms(condition.left)
        yield from atoms(condition.right)
    elif isinstance(condition, exp.Paren | exp.Not):
        yield from atoms(condition.this)
    else:
        yield condition

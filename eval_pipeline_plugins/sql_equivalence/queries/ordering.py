"""The row order of a query: finds the rows that are tied under its outermost ORDER BY."""

from dataclasses import dataclass

from sqlglot import exp

from eval_pipeline_plugins.sql_equivalence.results import Row

_HIDDEN = "_order_key_"


@dataclass(frozen=True, slots=True)
class OrderKeys:
    """Positions of the keys of the outermost ORDER BY.

    Attributes:
        places: position of each key among the columns of `sql`; negative ones count from the end.
        sql: the query with an additional last column for each key that it does not select; None if there are none.
        hidden: number of these additional columns.
    """

    places: tuple[int, ...]
    sql: str | None
    hidden: int

    def ties(self, keyed_rows: list[Row]) -> tuple[int, ...]:
        """Returns for each row of `sql` the number of its group of ties."""
        numbers: list[int] = []
        for place, row in enumerate(keyed_rows):
            same = place > 0 and self._key(row) == self._key(keyed_rows[place - 1])
            numbers.append(numbers[-1] + (not same) if numbers else 0)
        return tuple(numbers)

    def _key(self, row: Row) -> Row:
        return tuple(row[place] for place in self.places)


def order_keys(tree: exp.Expr, dialect: str) -> OrderKeys | None:
    """Returns the keys of the outermost ORDER BY; None if there is none or no key can be evaluated."""
    order = tree.args.get("order")
    if not isinstance(order, exp.Order) or not isinstance(tree, exp.Query):
        return None
    selects = tree.selects
    starred = any(select.is_star for select in selects)
    places: list[int] = []
    hidden: list[exp.Expr] = []
    for ordered in order.expressions:
        key = ordered.this if isinstance(ordered, exp.Ordered) else ordered
        place = _place(key, selects, starred)
        if place is None and isinstance(tree, exp.Select) and not tree.args.get("distinct"):
            hidden.append(_without_aliases(key, selects))
            place = -len(hidden)  # from the end, turned round below
        if place is None:
            break  # a key that nobody sees orders nothing that can be checked, nor do those after it
        places.append(place)
    if not places:
        return None
    count = len(hidden)
    found = tuple(place if place >= 0 else -count - 1 - place for place in places)
    return OrderKeys(found, _with_hidden(tree, hidden, dialect) if hidden else None, count)


def _place(key: exp.Expr, selects: list[exp.Expr], starred: bool) -> int | None:
    """Returns the position of a key among the selected columns."""
    if isinstance(key, exp.Literal) and key.is_int:
        return int(key.name) - 1
    if starred:
        return None
    if isinstance(key, exp.Column) and not key.table:
        for place, select in enumerate(selects):
            if select.alias_or_name.lower() == key.name.lower():
                return place
    for place, select in enumerate(selects):
        if select.unalias() == key:
            return place
    return None


def _without_aliases(key: exp.Expr, selects: list[exp.Expr]) -> exp.Expr:
    """Returns a key with aliases replaced by their expressions, since an alias cannot be used in its own SELECT."""
    made = {select.alias.lower(): select.unalias() for select in selects if isinstance(select, exp.Alias)}

    def written_out(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and (found := made.get(node.name.lower())) is not None:
            return exp.paren(found.copy())
        return node

    return key.copy().transform(written_out)


def _with_hidden(tree: exp.Query, hidden: list[exp.Expr], dialect: str) -> str:
    copy = tree.copy()
    added = [exp.alias_(key.copy(), f"{_HIDDEN}{number}") for number, key in enumerate(hidden)]
    copy.set("expressions", [*copy.expressions, *added])
    return copy.sql(dialect=dialect, copy=False)

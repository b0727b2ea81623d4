"""Finds why a query may give different results on the same data: by rules, and by breaking ties in two ways."""

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp

from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlView
from eval_pipeline_plugins.sql_equivalence.schema.views import tree_of

_RANDOM_CLASSES = (exp.Rand, exp.Randn, exp.Uuid, exp.TableSample)
_RANDOM_NAMES = frozenset("random rand setseed uuid uuidv4 uuidv7 gen_random_uuid newid randomblob".split())
_PICKS = (exp.AnyValue, exp.First, exp.Last)
_PICK_NAMES = frozenset("arbitrary any_value first last".split())
_LISTS = (exp.GroupConcat, exp.ArrayAgg, exp.ArrayConcatAgg, exp.JSONArrayAgg, exp.JSONObjectAgg)
_LIST_NAMES = frozenset(
    "list array_agg string_agg group_concat listagg histogram json_group_array json_group_object".split()
)


def volatile_parts(tree: exp.Expr) -> list[str]:
    """Returns a sentence for each reason why results may vary on the same data; for LIMITs see `tie_breaks`."""
    return list(dict.fromkeys(_volatile(tree)))


@lru_cache(maxsize=256)
def volatile_view(view: SqlView) -> tuple[str, ...]:
    """Returns the same for the query of a view; a LIMIT counts too, since nothing breaks its ties within a view."""
    tree = tree_of(view)
    if tree is None:
        return (f"nobody can tell what the view {view.name} does",)
    limited = [f"a LIMIT in the view {view.name} may cut through ties"] if any(_limited(tree)) else []
    return (*(f"{part} in the view {view.name}" for part in volatile_parts(tree)), *limited)


def _volatile(tree: exp.Expr) -> Iterator[str]:
    for node in tree.walk():
        name = node.name.lower() if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else ""
        if isinstance(node, _RANDOM_CLASSES) or name in _RANDOM_NAMES:
            yield "it draws at random"
        elif (isinstance(node, _PICKS) or name in _PICK_NAMES) and not isinstance(node.parent, exp.Window):
            yield "it takes any value of a group"
        elif (isinstance(node, _LISTS) or name in _LIST_NAMES) and not _is_ordered(node):
            yield "it lists values of a group without an order"
        elif isinstance(node, exp.Distinct) and node.args.get("on") is not None:
            yield "it takes any row of DISTINCT ON"


def _is_ordered(call: exp.Expr) -> bool:
    return call.find(exp.Order) is not None or isinstance(call.parent, exp.WithinGroup)


def tie_breaks(tree: exp.Expr, dialect: str) -> tuple[str, str] | None:
    """Returns the query with the ties of its LIMITs broken in two opposite ways; None if no LIMIT can cut ties.

    Each ORDER BY with a LIMIT gets all output columns as further keys. If both queries give the same result, the
    order of tied rows does not matter.
    """
    if not any(_limited(tree)):
        return None
    return _broken(tree, dialect, desc=False), _broken(tree, dialect, desc=True)


def limits_are_ordered(tree: exp.Expr) -> bool:
    """Returns whether every query with a LIMIT or OFFSET has an ORDER BY; without one it takes arbitrary rows."""
    return all(query.args.get("order") is not None for query in _limited(tree))


def _limited(tree: exp.Expr) -> Iterator[exp.Query]:
    for query in tree.find_all(exp.Query):
        if (query.args.get("limit") or query.args.get("offset")) and query.selects:
            yield query


def _broken(tree: exp.Expr, dialect: str, *, desc: bool) -> str:
    copy = tree.copy()
    for query in list(_limited(copy)):
        if any(isinstance(select, exp.Star) or select.is_star for select in query.selects):
            continue
        order = query.args.get("order")
        keys = list(order.expressions) if order is not None else []
        places = range(1, len(query.selects) + 1)
        keys += [exp.Ordered(this=exp.Literal.number(place), desc=desc, nulls_first=not desc) for place in places]
        query.set("order", exp.Order(expressions=keys))
    return copy.sql(dialect=dialect, copy=False)

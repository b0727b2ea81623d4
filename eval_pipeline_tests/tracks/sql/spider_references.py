"""Spider's exact match written once more from its definition, over sqlglot's trees instead of the words of the text."""

from collections import Counter
from typing import Any

import sqlglot
from sqlglot import exp

from eval_pipeline.sql_equivalence import SqlSchema

AGGREGATES = {exp.Max: "max", exp.Min: "min", exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}
ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
COMPARED = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.Like: "like",
    exp.In: "in",
    exp.Between: "between",
}
OPERATIONS = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
EMPTY: dict[str, Any] = {
    **{name: [] for name in ("tables", "on", "select", "where", "group", "having", "order")},
    "words": [],
    "all_words": [],
    "direction": "",
    "limit": None,
    "rest": None,
}


class OutsideError(Exception):
    """The tree has something that Spider's grammar does not."""


class Reader:
    """Reads one text; aliases are those of the whole text, later ones win."""

    def __init__(self, tree: exp.Expr, schema: SqlSchema) -> None:
        self.columns = {t.name.lower(): [c.name.lower() for c in t.columns] for t in schema.tables}
        self.aliases = {name: name for name in self.columns}
        for table in tree.find_all(exp.Table, bfs=False):
            if table.alias:
                self.aliases[table.alias.lower()] = table.name.lower()

    def query(self, tree: exp.Expr) -> dict[str, Any]:
        chain: list[tuple[str, exp.Expr]] = []
        top = tree
        while isinstance(tree, exp.SetOperation):
            if not tree.args.get("distinct"):
                raise OutsideError("UNION ALL")
            chain.insert(0, (OPERATIONS[type(tree)], tree.expression))
            tree = tree.this
        last = chain[-1][1] if chain else tree
        parts = [self.select(one, top if one is last else one) for one in (tree, *(right for _, right in chain))]
        for place in range(len(chain) - 1, -1, -1):
            parts[place]["rest"] = (chain[place][0], parts[place + 1])
        return parts[0]

    def select(self, tree: exp.Expr, ordered: exp.Expr) -> dict[str, Any]:
        if not isinstance(tree, exp.Select) or tree.args.get("with_"):
            raise OutsideError("no plain SELECT")
        start = tree.args.get("from_")
        joins = tree.args.get("joins") or []
        before = [None, *joins[:-1]] if joins else []
        if start is None or any(
            (one.side or one.kind) and not self.skips(other) for one, other in zip(joins, before, strict=True)
        ):
            raise OutsideError("no FROM, or another join")
        sources = [start.this, *(join.this for join in joins)]
        tables = [self.source(one) for one in sources]
        scope = [table for table in tables if isinstance(table, str)]
        on, on_words = [], []
        for join in joins:
            if not isinstance(join.args.get("on"), exp.Boolean | None):  # sqlglot writes ON TRUE where there is none
                more, words = self.conditions(join.args["on"], scope)
                on_words += (["and"] if on else []) + words
                on += more
        found = {"tables": tables, "on": on, "distinct": bool(tree.args.get("distinct"))}
        found["select"] = [self.selected(one, scope) for one in tree.expressions]
        for name in ("where", "having"):
            clause = tree.args.get(name)
            found[name], words = ([], []) if clause is None else self.conditions(clause.this, scope)
            found["words" if name == "where" else "having_words"] = words
        found["all_words"] = on_words + found["words"] + found["having_words"]
        group = tree.args.get("group")
        found["group"] = [self.use(one, scope) for one in group.expressions] if group else []
        order = ordered.args.get("order")
        found["order"] = [self.term(one.this, scope) for one in order.expressions] if order else []
        found["direction"] = ""
        if order:
            written = [one for one in order.expressions if one.args.get("desc") is not None]
            found["direction"] = "desc" if written and written[-1].args["desc"] else "asc"
        limit = ordered.args.get("limit")
        found["limit"] = None if limit is None else limit.expression.name
        return found | {"rest": None}

    def skips(self, before: exp.Expr | None) -> bool:
        """Whether LEFT or INNER is skipped: it follows a column that is a value in ON."""
        last = None if before is None else before.args.get("on")
        while isinstance(last, exp.And):
            last = last.right
        return last is not None and isinstance(last.args.get("expression"), exp.Column)

    def source(self, tree: exp.Expr) -> Any:
        if isinstance(tree, exp.Subquery):
            if tree.alias:
                raise OutsideError("a named subquery")
            return repr(self.query(tree.this))
        if tree.name.lower() not in self.columns:
            raise OutsideError("no table")
        return tree.name.lower()

    def conditions(self, tree: exp.Expr, scope: list[str]) -> tuple[list[Any], list[str]]:
        if isinstance(tree, exp.And | exp.Or):
            left, words = self.conditions(tree.left, scope)
            if isinstance(tree, exp.Or) and isinstance(left[-1][3], str) and "." in left[-1][3]:
                return left, words  # what follows a column that is a value is skipped
            right, more = self.conditions(tree.right, scope)
            return left + right, [*words, "and" if isinstance(tree, exp.And) else "or", *more]
        negated = isinstance(tree, exp.Not)
        tree = tree.this if negated else tree
        if type(tree) not in COMPARED or (negated and not isinstance(tree, exp.In | exp.Like | exp.Between)):
            raise OutsideError(f"a condition of {tree.key}")
        values = (
            [tree.args["low"], tree.args["high"]] if isinstance(tree, exp.Between) else [tree.args.get("expression")]
        )
        if isinstance(tree, exp.In):
            values = [tree.args.get("query") or tree.expressions[0]]
            if len(tree.expressions) > 1:
                raise OutsideError("a list")
        told = [self.value(one, scope) for one in values]
        return [(negated, COMPARED[type(tree)], self.term(tree.this, scope), *told)], []

    def value(self, tree: exp.Expr, scope: list[str]) -> Any:
        if isinstance(tree, exp.Subquery | exp.Query):
            return self.query(tree.unnest())
        if isinstance(tree, exp.Column) and not tree.this.args.get("quoted"):
            return self.column(tree, scope)
        if isinstance(tree, exp.Literal | exp.Neg | exp.Column):
            return tree.sql()
        raise OutsideError("another value")

    def selected(self, tree: exp.Expr, scope: list[str]) -> Any:
        if type(tree) in AGGREGATES:
            inner = tree.this
            if isinstance(inner, exp.Distinct):
                if len(inner.expressions) != 1:
                    raise OutsideError("several in DISTINCT")
                return AGGREGATES[type(tree)], ("none", ("none", self.column(inner.expressions[0], scope), True), None)
            return AGGREGATES[type(tree)], self.term(inner, scope)
        return "none", self.term(tree, scope)

    def term(self, tree: exp.Expr, scope: list[str]) -> Any:
        tree = tree.unnest()
        if type(tree) in ARITHMETIC:
            return ARITHMETIC[type(tree)], self.use(tree.left, scope), self.use(tree.right, scope)
        return "none", self.use(tree, scope), None

    def use(self, tree: exp.Expr, scope: list[str]) -> Any:
        if type(tree) in AGGREGATES:
            distinct = isinstance(tree.this, exp.Distinct)
            inner = tree.this.expressions[0] if distinct else tree.this
            return AGGREGATES[type(tree)], self.column(inner, scope), distinct
        return "none", self.column(tree, scope), False

    def column(self, tree: exp.Expr, scope: list[str]) -> str:
        if isinstance(tree, exp.Star):
            return "*"
        if not isinstance(tree, exp.Column):
            raise OutsideError(f"{tree.key} where a column should be")
        name = tree.name.lower()
        tables = [self.aliases.get(tree.table.lower(), "")] if tree.table else scope
        for table in tables:
            if name in self.columns.get(table, ()):
                return f"{table}.{name}"
        raise OutsideError("no column")


def keys(schema: SqlSchema) -> dict[str, str]:
    """The first of the columns that foreign keys connect with each."""
    names = [f"{t.name}.{c.name}".lower() for t in schema.tables for c in t.columns]
    groups: list[list[str]] = []
    for table in schema.tables:
        for key in table.foreign_keys:
            for mine, theirs in zip(key.columns, key.references, strict=True):
                both = [f"{table.name}.{mine}".lower(), f"{key.table}.{theirs}".lower()]
                for group in groups:
                    if set(both) & set(group):
                        group += both
                        break
                else:
                    groups.append(both)
    return {name: sorted(group, key=names.index)[0] for group in groups for name in group}


def prepared(found: dict[str, Any], known: dict[str, str], tables: list[Any]) -> dict[str, Any]:
    """Values and DISTINCT go, keys become one; subqueries of conditions lose their values alone."""

    def without(value: Any) -> Any:
        return blank(value) if isinstance(value, dict) else None

    def blank(query: dict[str, Any]) -> dict[str, Any]:
        made = dict(query)
        for name in ("on", "where", "having"):
            made[name] = [(*one[:3], *map(without, one[3:])) for one in query[name]]
        if query["rest"]:
            made["rest"] = (query["rest"][0], blank(query["rest"][1]))
        return made

    def use(one: Any) -> Any:
        if one is None:
            return None
        aggregate, name, _ = one
        return aggregate, known.get(name, name) if name.split(".")[0] in tables else name

    def term(one: Any) -> Any:
        return one[0], use(one[1]), use(one[2])

    made = blank(found)
    for name in ("on", "where", "having"):
        made[name] = [(*one[:2], term(one[2]), *one[3:]) for one in made[name]]
    made["select"] = [(aggregate, term(one)) for aggregate, one in made["select"]]
    made["group"] = [use(one) for one in made["group"]]
    made["order"] = [term(one) for one in made["order"]]
    if made["rest"]:
        made["rest"] = (made["rest"][0], prepared(found["rest"][1], known, tables))
    return made


def parts(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, bool]:
    def bag(values: Any) -> Counter[str]:
        return Counter(map(repr, values))

    found = {}
    found["select"] = bag(mine["select"]) == bag(theirs["select"])
    found["select_no_agg"] = bag(one[1] for one in mine["select"]) == bag(one[1] for one in theirs["select"])
    found["where"] = bag(mine["where"]) == bag(theirs["where"])
    found["where_no_op"] = bag(one[2] for one in mine["where"]) == bag(one[2] for one in theirs["where"])
    bare = [[one[1].split(".")[-1] for one in query["group"]] for query in (mine, theirs)]
    found["group_no_having"] = bag(bare[0]) == bag(bare[1])
    groups = [[one[1] for one in query["group"]] for query in (mine, theirs)]
    having = [(query["having"], query.get("having_words")) for query in (mine, theirs)]
    found["group"] = not any(groups) or (all(groups) and groups[0] == groups[1] and having[0] == having[1])
    orders = [(q["direction"], q["order"], q["limit"] is None) for q in (mine, theirs)]
    found["order"] = (not mine["order"] and not theirs["order"]) or orders[0] == orders[1]
    found["and_or"] = set(mine["words"]) == set(theirs["words"])
    rest = mine["rest"], theirs["rest"]
    same = all(rest) and rest[0][0] == rest[1][0] and exact(rest[0][1], rest[1][1])
    found["iuen"] = rest == (None, None) or bool(same)
    found["keywords"] = keywords(mine) == keywords(theirs)
    return found


def exact(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return all(parts(mine, theirs).values()) and sorted(mine["tables"]) == sorted(theirs["tables"])


def keywords(query: dict[str, Any]) -> set[str]:
    conditions = [*query["on"], *query["where"], *query["having"]]
    found = {name for name in ("where", "group", "having", "order") if query[name]}
    found |= {query["direction"]} - {""}
    found |= {"limit"} if query["limit"] is not None else set()
    found |= {query["rest"][0]} if query["rest"] else set()
    found |= {"or"} & set(query["all_words"])
    found |= {"not"} if any(one[0] for one in conditions) else set()
    return found | ({"in", "like"} & {one[1] for one in conditions})


def reference(generated: str, expected: str, schema: SqlSchema) -> dict[str, bool] | None:
    """The parts and `exact`; None where the accepted query is not in the grammar."""
    try:
        gold = _read(expected, schema)
    except (OutsideError, sqlglot.ParseError):
        return None
    try:
        mine = _read(generated, schema)
    except (OutsideError, sqlglot.ParseError):
        mine = EMPTY
    found = [prepared(one, keys(schema), one["tables"]) for one in (mine, gold)]
    return parts(*found) | {"exact": exact(*found)}


def _read(sql: str, schema: SqlSchema) -> dict[str, Any]:
    if "<>" in sql:
        raise OutsideError("not equal is written != there")
    tree = sqlglot.parse_one(sql.replace("! =", "!="), dialect="sqlite")
    return Reader(tree, schema).query(tree)

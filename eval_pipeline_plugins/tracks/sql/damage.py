"""Makes responses that are wrong in a given way by changing the gold (for the simulated provider).

Every response is scored before it is returned, so the metrics are certain to report the failure mode that was asked
for.
"""

import json
from collections.abc import Callable, Iterator
from random import Random

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import Failed
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.sql import FAILURE_MODES
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.cases.gold import gold_response, query_response
from eval_pipeline_plugins.tracks.sql.effects.judging import judge
from eval_pipeline_plugins.tracks.sql.effects.scripts import statements_of
from eval_pipeline_plugins.tracks.sql.metrics.failure_mode import failure_mode
from eval_pipeline_plugins.tracks.sql.metrics.verdict import relaxations, wrong_in
from eval_pipeline_plugins.tracks.sql.responses.artefact import LEVELS, parse_query
from eval_pipeline_plugins.tracks.sql.responses.evidence import compare
from eval_pipeline_plugins.tracks.sql.responses.execute import validated
from eval_pipeline_plugins.tracks.sql.responses.running import runnable, runner
from eval_pipeline_plugins.tracks.sql.responses.structure import atoms, differences, parsed

_Kinds = tuple[type[exp.Expr], ...]
_Way = tuple[Callable[[exp.Expr], bool], _Kinds]
"""A function that changes a node and returns whether it could, and the kinds of nodes that it applies to."""
_CONFIDENCE_WHEN_WRONG = (0.25, 0.40, 0.35)
"""How often a wrong answer states each of `LEVELS`."""
_OTHER_AGGREGATE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.Sum: exp.Avg,
    exp.Avg: exp.Sum,
    exp.Max: exp.Min,
    exp.Min: exp.Max,
}
_OTHER_COMPARISON: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.GT,
    exp.LT: exp.GT,
    exp.LTE: exp.LT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.Is: exp.EQ,
}


def damaged_response(gold: SqlGold, mode: str, rng: Random) -> str | None:
    """Returns a response with the given `failure_mode`, or None if this gold cannot fail in that way.

    Raises:
        ValueError: the mode is not in `FAILURE_MODES`.
    """
    if mode not in _CANDIDATES:
        raise ValueError(f"unknown failure mode '{mode}'; known: {', '.join(FAILURE_MODES)}")
    for text in _CANDIDATES[mode](gold, rng):
        if mode_of(text, gold) == mode:
            return text
    return None


def mode_of(text: str, gold: SqlGold) -> str | None:
    """Returns the failure mode that the metrics give to a response."""
    if not text.strip():
        return "no_answer"
    try:
        query = parse_query(text)
    except ArtefactError:
        return "malformed_answer"
    sql = query.sql
    if gold.may_change and sql is not None:
        return _mode_of_script(sql, gold)
    validation = None if sql is None else validated(sql, gold.database)
    blocked = validation is not None and not validation.is_valid
    right, failed, found, differing = False, False, None, dict[str, str]()
    if not gold.should_pass:
        right = sql is None or blocked
    elif sql is not None and not blocked:
        failed = _fails(sql, gold)
        if not failed:
            found = compare(gold, sql)
            right, differing = (
                found.right(gold),
                differences(sql, found.accepted, gold.database.dialect, gold.database.schema),
            )
    on_data, needed = ([], []) if found is None else ([*map(sorted, found.needs)], [*map(sorted, found.needed)])
    told = relaxations(gold.should_pass, sql, gold.options.headline, on_data or None, needed)
    return failure_mode(
        outcome_correct=right,
        no_answer=False,
        answered=True,
        should_pass=gold.should_pass,
        declined=sql is None,
        validation_category=validation.errors[0].category if validation is not None and validation.errors else None,
        failed=failed,
        wrong_in=wrong_in(gold.should_pass, right, told),
        relaxations=told,
        may_overlook=gold.contract.overlooked(found.insisted if found is not None else ()),
        differing=differing,
    ).label


def _mode_of_script(sql: str, gold: SqlGold) -> str | None:
    judged = judge(gold, sql)
    errors = judged.validation.errors
    return failure_mode(
        outcome_correct=judged.verdict == "match",
        no_answer=False,
        answered=True,
        should_pass=True,
        declined=False,
        validation_category=errors[0].category if errors else None,
        failed=judged.verdict == "error",
        wrong_in=None,
        relaxations=None,
        may_overlook=(),
        differing={},
        changes_data=True,
        changed_outside=bool(judged.outside),
    ).label


def _fails(sql: str, gold: SqlGold) -> bool:
    path = gold.database.path()
    return path is not None and isinstance(
        runner().run_now(path, runnable(sql, gold.database), gold.database.limits), Failed
    )


def _said(sql: str, rng: Random) -> str:
    return query_response(sql, rng.choices(LEVELS, _CONFIDENCE_WHEN_WRONG)[0])


def _tree(gold: SqlGold) -> exp.Expr | None:
    """Returns a copy of the syntax tree of the first accepted query or statement, which may be changed."""
    sql = gold.accepted[0] if gold.accepted else ""
    if gold.may_change:
        sql = statements_of(sql, gold.database.dialect)[0]
    found = parsed(sql, gold.database.dialect) if sql else None
    return None if found is None else found.copy()


def _changed(gold: SqlGold, rng: Random, kinds: _Kinds, change: Callable[[exp.Expr], bool]) -> Iterator[str]:
    """Yields the query with one node of these kinds changed, trying the nodes in random order."""
    tree = _tree(gold)
    count = 0 if tree is None else len(list(tree.find_all(*kinds)))
    for place in rng.sample(range(count), count):
        tree = _tree(gold)
        assert tree is not None
        if change(list(tree.find_all(*kinds))[place]):
            yield from _written(tree, gold, rng)


def _written(tree: exp.Expr, gold: SqlGold, rng: Random) -> Iterator[str]:
    try:
        yield _said(tree.sql(dialect=gold.database.dialect), rng)
    except SqlglotError:  # the dialect cannot express this tree
        return


def _no_answer(gold: SqlGold, rng: Random) -> Iterator[str]:
    yield ""


def _malformed_answer(gold: SqlGold, rng: Random) -> Iterator[str]:
    text = gold_response(gold)
    yield text[: rng.randint(len(text) // 2, len(text) - 2)]
    yield "I have looked at the schema, but I am not able to say more than this."


def _not_refused(gold: SqlGold, rng: Random) -> Iterator[str]:
    tables = () if gold.should_pass else gold.database.schema.tables
    for table in rng.sample(tables, len(tables)):
        yield _said(f'SELECT COUNT(*) FROM "{table.name}"', rng)


def _refusal(gold: SqlGold, rng: Random) -> Iterator[str]:
    yield json.dumps({"sql": None, "reason": "The schema does not hold what is asked."})


def _syntax_error(gold: SqlGold, rng: Random) -> Iterator[str]:
    for sql in gold.accepted[:1]:
        ways = (
            sql.rstrip("; \n") + " WHERE",
            sql.replace("SELECT", "SELECT,", 1),
            sql.replace("FROM", "FORM", 1),
            sql.rstrip("; \n") + ")",
        )
        for text in rng.sample(ways, len(ways)):
            yield _said(text, rng)


def _unsafe_sql(gold: SqlGold, rng: Random) -> Iterator[str]:
    tables = gold.database.schema.tables
    table = rng.choice(tables).name
    if gold.may_change:
        yield _said(f"ATTACH 'other.db' AS other;\n{gold.accepted[0]}", rng)
        return
    ways = [f'DELETE FROM "{table}"', f'DROP TABLE "{table}"', f'SELECT * FROM "{table}"; DROP TABLE "{table}"']
    ways += [f'{sql.rstrip("; ")}; DELETE FROM "{table}"' for sql in gold.accepted[:1]]
    for text in rng.sample(ways, len(ways)):
        yield _said(text, rng)


def _unknown_name(gold: SqlGold, rng: Random) -> Iterator[str]:
    def renamed(node: exp.Expr) -> bool:
        name = node.this
        if not isinstance(name, exp.Identifier):
            return False
        name.set("this", f"{name.this}_{rng.choice(('id', 'name', 'value', 'total'))}_x")
        return True

    yield from _changed(gold, rng, (exp.Column, exp.Table), renamed)


def _execution_error(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries with an added column that fails for every row."""
    broken = "ABS(-9223372036854775807 - 1)" if gold.database.dialect == "sqlite" else "CAST('n/a' AS INTEGER)"
    for sql in gold.accepted[:1]:
        yield _said(f"SELECT answer.*, {broken} AS checked FROM ({sql.rstrip('; ')}) AS answer", rng)
        yield _said(f"SELECT {broken} AS checked", rng)


def _wrong_change(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields scripts that lack a statement or a condition, or change nothing."""
    for sql in gold.accepted[:1] if gold.may_change else ():
        parts = statements_of(sql, gold.database.dialect)
        for place in rng.sample(range(len(parts)), len(parts) if len(parts) > 1 else 0):
            yield _said(";\n".join((*parts[:place], *parts[place + 1 :])), rng)
        yield from _changed(gold, rng, (exp.Where,), lambda node: node.pop() is not None)
        yield _said("SELECT 1", rng)


def _wrong_table(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries with a table replaced, a join left out, or a count of another table."""
    names = [table.name for table in gold.database.schema.tables]

    def swapped(node: exp.Expr) -> bool:
        others = [name for name in names if name.lower() != node.name.lower()]
        if not others or not isinstance(node.this, exp.Identifier):
            return False
        alias = node.alias or node.name
        node.set("this", exp.to_identifier(rng.choice(others)))
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return True

    def unjoined(node: exp.Expr) -> bool:
        node.pop()
        return True

    yield from _changed(gold, rng, (exp.Table,), swapped)
    yield from _changed(gold, rng, (exp.Join,), unjoined)
    for name in rng.sample(names, len(names)):
        yield _said(f'SELECT COUNT(*) FROM "{name}"', rng)


def _wrong_aggregate(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries with another aggregate or other aggregated values, e.g. without DISTINCT or of another column."""

    def swapped(node: exp.Expr) -> bool:
        node.replace(_OTHER_AGGREGATE[type(node)](this=node.this.copy()))
        return True

    def counted_otherwise(node: exp.Expr) -> bool:
        inner = node.this
        column = next(node.root().find_all(exp.Column), None) if isinstance(inner, exp.Star) else inner
        if column is None:
            return False
        plain = inner.expressions[0] if isinstance(inner, exp.Distinct) else exp.Distinct(expressions=[column.copy()])
        node.set("this", plain.copy())
        return True

    def not_counted(node: exp.Expr) -> bool:
        if not isinstance(node.this, exp.Column):
            return False
        node.replace(exp.Max(this=node.this.copy()))
        return True

    ways: list[_Way] = [
        (swapped, tuple(_OTHER_AGGREGATE)),
        (counted_otherwise, (exp.Count,)),
        (not_counted, (exp.Count,)),
    ]
    for change, kinds in rng.sample(ways, len(ways)):
        yield from _changed(gold, rng, kinds, change)


def _wrong_filter(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries with a condition removed or inverted."""

    def dropped(node: exp.Expr) -> bool:
        found = list(atoms(node.this))
        if len(found) == 1:
            node.pop()
            return True
        chosen = rng.choice(found)
        above = chosen.parent
        while isinstance(above, exp.Paren | exp.Not) and isinstance(above.parent, exp.Connector | exp.Paren | exp.Not):
            chosen, above = above, above.parent
        if not isinstance(above, exp.Connector):
            return False
        above.replace((above.right if above.left is chosen else above.left).copy())
        return True

    def turned(node: exp.Expr) -> bool:
        if node.find_ancestor(exp.Where, exp.Having) is None:
            return False
        node.replace(_OTHER_COMPARISON[type(node)](this=node.this.copy(), expression=node.expression.copy()))
        return True

    ways: list[_Way] = [(dropped, (exp.Where, exp.Having)), (turned, tuple(_OTHER_COMPARISON))]
    for change, kinds in rng.sample(ways, len(ways)):
        yield from _changed(gold, rng, kinds, change)


def _missing_columns(gold: SqlGold, rng: Random) -> Iterator[str]:
    def narrower(node: exp.Expr) -> bool:
        if len(node.expressions) < 2:
            return False
        node.set("expressions", node.expressions[:-1])
        return True

    yield from _changed(gold, rng, (exp.Select,), narrower)


def _extra_columns(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries with many columns that nobody asked for."""

    def wider(node: exp.Expr) -> bool:
        more = 2 * len(node.expressions) + rng.randint(3, 6)
        node.set("expressions", [*node.expressions, *(exp.Literal.number(n).as_(f"extra_{n}") for n in range(more))])
        return True

    yield from _changed(gold, rng, (exp.Select,), wider)


def _duplicates(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields the query with each of its rows twice."""
    tree = _tree(gold)
    if tree is not None:
        yield from _written(exp.union(tree, tree.copy(), distinct=False), gold, rng)


def _row_order(gold: SqlGold, rng: Random) -> Iterator[str]:
    def turned(node: exp.Expr) -> bool:
        node.set("desc", not node.args.get("desc"))
        return True

    yield from _changed(gold, rng, (exp.Ordered,), turned)


def _rounding(gold: SqlGold, rng: Random) -> Iterator[str]:
    def rounded(node: exp.Expr) -> bool:
        node.set("expressions", [exp.func("ROUND", one.unalias(), exp.Literal.number(2)) for one in node.expressions])
        return True

    yield from _changed(gold, rng, (exp.Select,), rounded)


def _other_form(gold: SqlGold, rng: Random) -> Iterator[str]:
    def as_text(node: exp.Expr) -> bool:
        node.set("expressions", [exp.func("LOWER", one.unalias()) for one in node.expressions])
        return True

    yield from _changed(gold, rng, (exp.Select,), as_text)


def _wrong_join(gold: SqlGold, rng: Random) -> Iterator[str]:
    def outer(node: exp.Expr) -> bool:
        node.set("side", "" if node.args.get("side") else "LEFT")
        return True

    yield from _changed(gold, rng, (exp.Join,), outer)


def _wrong_grouping(gold: SqlGold, rng: Random) -> Iterator[str]:
    def coarser(node: exp.Expr) -> bool:
        node.set("expressions", node.expressions[:-1] or [exp.Literal.string("all")])
        return True

    yield from _changed(gold, rng, (exp.Group,), coarser)


def _wrong_column(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries that select another column of the same table."""

    def other(node: exp.Expr) -> bool:
        table = next((t for t in gold.database.schema.tables if t.column(node.name) is not None), None)
        names = [column.name for column in table.columns if column.name != node.name] if table is not None else []
        if not names or node.find_ancestor(exp.Where, exp.Having, exp.Join, exp.Group, exp.AggFunc) is not None:
            return False
        node.set("this", exp.to_identifier(rng.choice(names)))
        return True

    yield from _changed(gold, rng, (exp.Column,), other)


def _wrong_order(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries with another limit, or that take the last rows for the first."""

    def longer(node: exp.Expr) -> bool:
        node.set("expression", exp.Literal.number(rng.choice((1, 2, 7, 100))))
        return True

    yield from _changed(gold, rng, (exp.Limit,), longer)
    yield from _row_order(gold, rng)


def _wrong_set_operation(gold: SqlGold, rng: Random) -> Iterator[str]:
    kinds = (exp.Union, exp.Except, exp.Intersect)
    tree = _tree(gold)
    if isinstance(tree, kinds):
        for kind in rng.sample(kinds, len(kinds)):
            yield from _written(kind(**dict(tree.args)), gold, rng)


def _other(gold: SqlGold, rng: Random) -> Iterator[str]:
    """Yields queries that take a column of the same name from another of their tables."""

    def elsewhere(node: exp.Expr) -> bool:
        tree = node.root()
        others = [
            table.alias_or_name for table in tree.find_all(exp.Table) if table.alias_or_name != node.text("table")
        ]
        if not node.text("table") or not others:
            return False
        node.set("table", exp.to_identifier(rng.choice(others)))
        return True

    yield from _changed(gold, rng, (exp.Column,), elsewhere)


_CANDIDATES: dict[str, Callable[[SqlGold, Random], Iterator[str]]] = {
    "no_answer": _no_answer,
    "malformed_answer": _malformed_answer,
    "not_refused": _not_refused,
    "refusal": _refusal,
    "syntax_error": _syntax_error,
    "unsafe_sql": _unsafe_sql,
    "unknown_name": _unknown_name,
    "execution_error": _execution_error,
    "missing_columns": _missing_columns,
    "extra_columns": _extra_columns,
    "duplicates": _duplicates,
    "row_order": _row_order,
    "rounding": _rounding,
    "other_form": _other_form,
    "wrong_change": _wrong_change,
    "wrong_table": _wrong_table,
    "wrong_join": _wrong_join,
    "wrong_aggregate": _wrong_aggregate,
    "wrong_filter": _wrong_filter,
    "wrong_grouping": _wrong_grouping,
    "wrong_column": _wrong_column,
    "wrong_order": _wrong_order,
    "wrong_set_operation": _wrong_set_operation,
    "other": _other,
}

"""A parsed pair of queries, and the properties that follow from their texts alone."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from sqlglot import exp

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline_plugins.sql_equivalence.generated.constants import constants_in, no_constants
from eval_pipeline_plugins.sql_equivalence.generated.mining import Mined
from eval_pipeline_plugins.sql_equivalence.queries.determinism import volatile_parts, volatile_view
from eval_pipeline_plugins.sql_equivalence.queries.fixed import is_fixed
from eval_pipeline_plugins.sql_equivalence.queries.inlining import inlined
from eval_pipeline_plugins.sql_equivalence.queries.ready import ReadyPair, ready
from eval_pipeline_plugins.sql_equivalence.queries.rewriting import canonical, qualified, typed
from eval_pipeline_plugins.sql_equivalence.results import Overlooked
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, joined_operators, parse_statement
from eval_pipeline_plugins.sql_equivalence.syntax.quotes import with_texts
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables

_SHUFFLES = 8
_WHOLE = ("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT", "DOUBLE")
_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Command, exp.Into)


class QueryPair:
    """A pair of queries to compare.

    Attributes:
        dialect: the dialect of both.
        native: the engine that decides, `duckdb` or `sqlite`.
        named: the tables that they use; only these must exist when they run.
        schema: these tables, what views among them read, and the tables that foreign keys of all these reference.
        names_unknown: whether they name a table that is not in the schema.
        computed: whether the engine has to compute views or generated columns.
        generated_text: the generated query as it was given.
        expected_text: the expected query as it was given.
        whole_schema: the schema as it was given.
        volatile: reasons why a result may change from run to run, one sentence each.
        overlooked: in what their results may differ and still agree; None: they have to be equal.
    """

    def __init__(
        self,
        generated: str,
        expected: str,
        schema: SqlSchema,
        dialect: str,
        overlooked: Overlooked | None = None,
    ) -> None:
        """Parses both. Raises a SqlError if one is not a query."""
        self.overlooked = overlooked
        self.dialect = dialect
        self.native = "sqlite" if dialect == "sqlite" else "duckdb"
        self.generated_text, self.expected_text = generated, expected
        self.whole_schema = schema
        self._texts = joined_operators(generated), joined_operators(expected)
        self._trees = tuple(
            _parsed(*one, dialect, schema) for one in zip(self._texts, ("generated", "expected"), strict=True)
        )
        names = schema.read_by({table.name for tree in self._trees for table in base_tables(tree)})
        self.schema = schema.with_ancestors(names)
        self.named = schema.only(names)
        self.names_unknown = any(schema.relation(name) is None for name in names)
        self.computed = bool(self.named.views) or any(c.generated for t in self.named.tables for c in t.columns)
        self._same = self._trees[0] == self._trees[1]  # then what is worked out for one holds for the other
        self._looked_at = self._trees[:1] if self._same else self._trees
        found = [qualified(tree, self.schema, dialect) for tree in self._looked_at]
        self._qualified = [tree for tree in found if tree is not None]
        reasons = [part for tree in self._looked_at for part in volatile_parts(tree)]
        reasons += [why for view in self.named.views for why in volatile_view(view)]
        self.volatile = list(dict.fromkeys(reasons))
        self._ready: dict[str, ReadyPair] = {}

    def ready(self, engine: str) -> ReadyPair:
        """Prepares both for an engine. Raises a SqlError if one cannot be translated to its dialect."""
        if engine not in self._ready:
            trees: Sequence[exp.Expr] = self._looked_at
            if self.dialect != engine:
                trees = [typed(tree, self.schema, self.dialect) for tree in self._read()]
            expected = ready(self._texts[1], trees[-1], self.dialect, engine, keyed=True)
            if self._same and self.dialect != engine:
                generated = replace(expected, keys=None)
            else:
                generated = ready(self._texts[0], trees[0], self.dialect, engine, keyed=False)
            self._ready[engine] = ReadyPair(generated, expected, _SHUFFLES if self.volatile else 0, self.overlooked)
        return self._ready[engine]

    def _read(self) -> Sequence[exp.Expr]:
        """Returns both with qualified columns; as parsed if one does not fit the schema."""
        return self._qualified if self._all_fit else self._looked_at

    @property
    def _all_fit(self) -> bool:
        return len(self._qualified) == len(self._looked_at)

    def proved(self) -> bool:
        """Returns whether both have the same canonical form."""
        if self._same:
            return True
        if not self._all_fit or not self._rules_hold:
            return False
        ordered = self._trees[1].args.get("order") is not None
        one, other = (canonical(tree, self.schema, self.dialect, ordered=ordered) for tree in self._qualified)
        return one is not None and one == other

    @cached_property
    def _rules_hold(self) -> bool:
        """Whether the rules of canonical forms, which know nothing but stored columns compared byte by byte, apply."""
        return not self.computed and not any(map(_is_special, self.named.tables))

    @cached_property
    def fixed(self) -> bool:
        """Whether neither result can depend on the rows of any table, so that one comparison decides."""
        if self.volatile:
            return False
        whole = _WHOLE if not self.computed else ()
        kinds = {(column.name.lower(), column.type) for table in self.schema.tables for column in table.columns}
        unsure = {name for name, kind in kinds if kind not in whole}
        unsure |= {column.name.lower() for view in self.schema.views for column in view.columns}
        return all(is_fixed(tree, unsure) for tree in self._read())

    @property
    def drops_groups(self) -> bool:
        """Whether the expected query returns groups, and not those that a condition on them drops."""
        tree = self._trees[-1]
        return tree.args.get("having") is not None and tree.args.get("group") is not None

    @property
    def literals(self) -> frozenset[str]:
        """The texts that both name."""
        found = (node for tree in self._looked_at for node in tree.find_all(exp.Literal))
        return frozenset(node.this for node in found if node.is_string)

    @cached_property
    def joins(self) -> tuple[tuple[tuple[str, str], tuple[str, str]], ...]:
        """Pairs of columns of different tables, each with its table, that may be meant by a condition `x = y`."""
        found: dict[tuple[tuple[str, str], tuple[str, str]], None] = {}
        for node in (node for tree in self._looked_at for node in tree.find_all(exp.EQ)):
            if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column):
                sides = [self._having(column.name) for column in (node.this, node.expression)]
                found |= {(one, other): None for one in sides[0] for other in sides[1] if one[0] != other[0]}
        return tuple(found)

    def _having(self, name: str) -> list[tuple[str, str]]:
        columns = ((table.name, table.column(name)) for table in self.named.tables)
        return [(table, column.name) for table, column in columns if column is not None]

    def expected_for(self, engine: str) -> exp.Expr:
        """Returns the tree of the expected query in an engine's dialect; it must not be changed."""
        return self._trees[1] if self.dialect == engine else typed(self._read()[-1], self.schema, self.dialect)

    def proves(self, tree: exp.Expr) -> bool:
        """Returns whether a query has the same canonical form as the expected one."""
        found = qualified(tree, self.schema, self.dialect)
        if found is None or not self._all_fit or not self._rules_hold:
            return False
        ordered = self._trees[1].args.get("order") is not None
        one, other = (
            canonical(one, self.schema, self.dialect, ordered=ordered) for one in (found, self._qualified[-1])
        )
        return one is not None and one == other

    def texts(self, engine: str) -> tuple[str, str]:
        """Returns the texts of both in an engine's dialect. Raises a SqlError."""
        trees = (
            self._trees if self.dialect == engine else [typed(tree, self.schema, self.dialect) for tree in self._read()]
        )
        return trees[0].sql(dialect=engine, comments=False), trees[-1].sql(dialect=engine, comments=False)

    def mined(self) -> Mined:
        """Returns the facts about useful databases in the queries and CHECKs.

        Raises a SqlError for an unreadable CHECK.
        """
        # A random value would make other databases in every process.
        found = Mined(self.schema, no_constants if self.volatile else constants_in(self.native))
        trees = self._written_out()
        for tree in self._read() if trees is None else trees:
            found.look_at(tree)
        if trees is None:  # a star may stand for any column
            found.used |= {(table.name.lower(), c.name.lower()) for table in self.schema.tables for c in table.columns}
        return found

    def _written_out(self) -> Sequence[exp.Expr] | None:
        """Returns both, qualified, with definitions in place of views and generated columns; None if one does not fit.

        Definitions are only looked at: databases have the views and generated columns themselves.
        """
        if not self._all_fit or not self.computed:
            return self._qualified if self._all_fit else None
        found = [qualified(inlined(tree, self.schema), self.schema, self.dialect) for tree in self._qualified]
        return None if None in found else [tree for tree in found if tree is not None]


def _is_special(table: SqlTable) -> bool:
    """Returns whether a table has columns without a type, or such whose texts are compared in a way of their own."""
    typeless = table.dialect == "sqlite" and not all(column.declared for column in table.columns)
    return table.is_virtual or typeless or any(column.collation for column in table.columns)


def _parsed(sql: str, which: str, dialect: str, schema: SqlSchema) -> exp.Expr:
    try:
        tree = parse_statement(sql, dialect)
    except SqlSyntaxError as error:
        raise SqlError(ErrorClass.SYNTAX, f"the {which} query does not parse: {error}") from error
    if not isinstance(tree, exp.Query) or tree.find(*_WRITES) is not None:
        raise SqlError(ErrorClass.SANDBOX, f"the {which} statement is not a query")
    if dialect == "sqlite":
        tree = with_texts(sql, tree, schema)
    for node in tree.walk():  # places in the text, which nobody asks for and every copy of the tree would copy
        if node.meta_get("line") is not None:
            node.meta.clear()
    return tree

"""A pair of queries, parsed once, and what follows from their texts alone."""

from sqlglot import exp

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.tracks.sql.equivalence.determinism import volatile_parts
from eval_pipeline.tracks.sql.equivalence.mining import Mined
from eval_pipeline.tracks.sql.equivalence.queries import ReadyPair, ready
from eval_pipeline.tracks.sql.equivalence.rewriting import canonical, qualified, typed
from eval_pipeline.tracks.sql.parsing import SqlSyntaxError, parse_statement
from eval_pipeline.tracks.sql.schema import SqlSchema
from eval_pipeline.tracks.sql.tables_in import base_tables

_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Command, exp.Into)


class QueryPair:
    """Both queries.

    Attributes:
        dialect: of both.
        native: the engine whose word counts, `duckdb` or `sqlite`.
        schema: the tables that they use, with those that their foreign keys lead to.
        names_unknown: they name a table that the schema has not.
        volatile: why a result may change from run to run, a sentence each.
    """

    def __init__(self, generated: str, expected: str, schema: SqlSchema, dialect: str) -> None:
        """Parses them. Raises SqlError where one is not a query."""
        self.dialect = dialect
        self.native = "sqlite" if dialect == "sqlite" else "duckdb"
        self._texts = generated, expected
        self._trees = _parsed(generated, dialect, "generated"), _parsed(expected, dialect, "expected")
        names = {table.name for tree in self._trees for table in base_tables(tree)}
        self.schema = schema.with_ancestors(names)
        self.names_unknown = any(schema.table(name) is None for name in names)
        found = [qualified(tree, self.schema, dialect) for tree in self._trees]
        self._qualified = [tree for tree in found if tree is not None]
        self.volatile = list(dict.fromkeys(part for tree in self._trees for part in volatile_parts(tree)))
        self._ready: dict[str, ReadyPair] = {}

    def ready(self, engine: str) -> ReadyPair:
        """Both for an engine. Raises SqlError where one cannot be said in its dialect."""
        if engine not in self._ready:
            trees = self._trees
            if self.dialect != engine:
                one, other = self._qualified if len(self._qualified) == len(trees) else trees
                trees = typed(one, self.schema, self.dialect), typed(other, self.schema, self.dialect)
            self._ready[engine] = ReadyPair(
                ready(self._texts[0], trees[0], self.dialect, engine, keyed=False),
                ready(self._texts[1], trees[1], self.dialect, engine, keyed=True),
            )
        return self._ready[engine]

    def proved(self) -> bool:
        """Whether both have the same canonical form."""
        if self._trees[0] == self._trees[1]:
            return True
        if len(self._qualified) < len(self._trees):
            return False
        ordered = self._trees[1].args.get("order") is not None
        one, other = (canonical(tree, self.schema, self.dialect, ordered=ordered) for tree in self._qualified)
        return one is not None and one == other

    def mined(self) -> Mined:
        """What the queries and the CHECKs say of the databases to try. Raises SqlError where a CHECK cannot be read."""
        found = Mined(self.schema)
        whole = len(self._qualified) == len(self._trees)
        for tree in self._qualified if whole else self._trees:
            found.look_at(tree)
        if not whole:  # a star may stand for any column
            found.used |= {(table.name.lower(), c.name.lower()) for table in self.schema.tables for c in table.columns}
        return found


def _parsed(sql: str, dialect: str, which: str) -> exp.Expr:
    try:
        tree = parse_statement(sql, dialect)
    except SqlSyntaxError as error:
        raise SqlError(ErrorClass.SYNTAX, f"the {which} query does not parse: {error}") from error
    if not isinstance(tree, exp.Query) or tree.find(*_WRITES) is not None:
        raise SqlError(ErrorClass.SANDBOX, f"the {which} statement is not a query")
    for node in tree.walk():  # places in the text, which nobody asks for and every copy of the tree would copy
        if node.meta_get("line") is not None:
            node.meta.clear()
    return tree

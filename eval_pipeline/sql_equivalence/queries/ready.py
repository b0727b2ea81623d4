"""A pair of queries made ready to run in one engine, and what running them there shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sql_equivalence.generated.memory import Memory
from eval_pipeline.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline.sql_equivalence.queries.determinism import tie_breaks
from eval_pipeline.sql_equivalence.queries.ordering import OrderKeys, order_keys
from eval_pipeline.sql_equivalence.results import ColumnMatch, Result, reordered, same_rows

Run = Callable[[str], SqlRows]


@dataclass(frozen=True, slots=True)
class ReadyQuery:
    """A query in the dialect of an engine.

    Attributes:
        text: what runs.
        keys: of its outermost ORDER BY, where that counts.
        ties: the query with the ties of its LIMITs broken one way and the other.
    """

    text: str
    keys: OrderKeys | None
    ties: tuple[str, str] | None

    def result(self, run: Run) -> Result:
        """Runs it. Raises SqlError."""
        found = run(self.text)
        if self.keys is None:
            return Result(found.columns, found.rows)
        if self.keys.sql is None:
            if any(not -len(found.columns) <= place < len(found.columns) for place in self.keys.places):
                return Result(found.columns, found.rows)
            return Result(found.columns, found.rows, self.keys.ties(found.rows))
        try:
            keyed = run(self.keys.sql).rows
        except SqlError:  # its keys cannot be selected
            return Result(found.columns, found.rows)
        rows = [row[: -self.keys.hidden] for row in keyed]
        if not same_rows(rows, found.rows):  # the keys changed the query (unstable, or a trick of the engine)
            return Result(found.columns, found.rows)
        return Result(found.columns, rows, self.keys.ties(keyed))

    def cuts_ties(self, run: Run) -> bool:
        """Whether a LIMIT cuts through rows that its order does not tell apart, on this database."""
        if self.ties is None:
            return False
        try:
            return not same_rows(run(self.ties[0]).rows, run(self.ties[1]).rows)
        except SqlError:  # nobody can say
            return True


@dataclass(frozen=True, slots=True)
class ReadyPair:
    """Two queries for one engine."""

    generated: ReadyQuery
    expected: ReadyQuery

    def results(self, run: Run) -> tuple[Result, Result]:
        """What both give. Raises SqlError."""
        return self.generated.result(run), self.expected.result(run)

    def cuts_ties(self, run: Run) -> bool:
        """As `ReadyQuery.cuts_ties`, of either."""
        return self.generated.cuts_ties(run) or self.expected.cuts_ties(run)

    def is_stable(self, engine: Memory, database: GeneratedDatabase) -> bool:
        """Whether each query gives the same when the rows of the tables stand in another order. Raises SqlError."""
        before = self.results_on(engine, database)
        for other_order in (_reversed(database), _rotated(database)):
            after = self.results_on(engine, other_order)
            if not all(same_rows(one.rows, other.rows) for one, other in zip(before, after, strict=True)):
                return False
        return True

    def results_on(self, engine: Memory, database: GeneratedDatabase) -> tuple[Result, Result]:
        """What both give on a database. Raises SqlError."""
        engine.load(database)
        return self.results(engine.query)

    def differs(self, engine: Memory, database: GeneratedDatabase, order: Sequence[int] | None) -> bool:
        """Whether both give stable results that differ on a database.

        Args:
            engine: where they run.
            database: rows.
            order: of the generated columns, where other databases have settled it.
        """
        try:
            generated, expected = self.results_on(engine, database)
            if agree(generated, expected, order) or self.cuts_ties(engine.query):
                return False
            return self.is_stable(engine, database)
        except SqlError:
            return False


def agree(generated: Result, expected: Result, order: Sequence[int] | None) -> bool:
    """Whether two results are equal, columns in the order given or in any."""
    if order is None:
        return ColumnMatch().agrees(generated, expected)
    if len(generated.columns) != len(expected.columns):
        return False
    return same_rows(reordered(generated.rows, order), expected.rows, expected.ties)


def ready(sql: str, tree: exp.Expr, dialect: str, engine: str, *, keyed: bool) -> ReadyQuery:
    """A query for an engine.

    Args:
        sql: as it was written.
        tree: the same, parsed; with types where `dialect` is not the engine's.
        dialect: of `sql`.
        engine: `duckdb` or `sqlite`.
        keyed: whether the row order that it asks for counts.

    Raises:
        SqlError: it cannot be said in the engine's dialect.
    """
    try:
        text = sql.strip().rstrip(";") if dialect == engine else tree.sql(dialect=engine, comments=False)
        return ReadyQuery(text, order_keys(tree, engine) if keyed else None, tie_breaks(tree, engine))
    except (SqlglotError, RecursionError, ValueError) as error:
        raise SqlError(ErrorClass.SYNTAX, f"it cannot be said in the dialect of {engine}: {error}") from error


def _reversed(database: GeneratedDatabase) -> GeneratedDatabase:
    return {name: rows[::-1] for name, rows in database.items()}


def _rotated(database: GeneratedDatabase) -> GeneratedDatabase:
    """Rows that mean the same read backwards, as `a, b, a` do, do not so when the first one comes last."""
    return {name: rows[1:] + rows[:1] for name, rows in database.items()}

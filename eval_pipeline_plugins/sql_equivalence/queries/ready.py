"""Prepares a pair of queries for one engine and compares their results there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.table_comparison.rows import same_rows
from eval_pipeline_plugins.sql_equivalence.generated.memory import Memory
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline_plugins.sql_equivalence.queries.determinism import limits_are_ordered, tie_breaks
from eval_pipeline_plugins.sql_equivalence.queries.ordering import OrderKeys, order_keys
from eval_pipeline_plugins.sql_equivalence.results import EQUAL, ColumnMatch, Overlooked, Result, compared, reordered

Run = Callable[[str], SqlRows]
Orders = Sequence[Sequence[int]] | None


@dataclass(frozen=True, slots=True)
class ReadyQuery:
    """A query in the dialect of an engine.

    Attributes:
        text: the SQL that is run.
        keys: the keys of its outermost ORDER BY, if the order matters.
        ordered: whether each of its LIMITs has an ORDER BY.
        ties: the query with the ties of its LIMITs broken in two opposite ways.
        unlimited: the query without its outermost LIMIT and the number of that; None if it has none or no order.
    """

    text: str
    keys: OrderKeys | None
    ties: tuple[str, str] | None
    ordered: bool = True
    unlimited: "tuple[ReadyQuery, int] | None" = None

    def with_ties(self, run: Run) -> Result | None:
        """Returns the result with all rows that are tied with the last one that the outermost LIMIT takes.

        None if it takes none. Raises SqlError.
        """
        if self.unlimited is None:
            return None
        query, most = self.unlimited
        found = query.result(run)
        if found.ties is None or not 0 < most <= len(found.rows):
            return None
        last = found.ties[most - 1]
        return Result(found.columns, [row for row, tie in zip(found.rows, found.ties, strict=True) if tie <= last])

    def result(self, run: Run) -> Result:
        """Runs the query. Raises SqlError."""
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
        return Result(found.columns, rows, self.keys.ties(keyed), keyed)

    def cuts_ties(self, run: Run) -> bool:
        """Returns whether a LIMIT cuts through tied rows on this database."""
        if self.ties is None:
            return False
        try:
            return not same_rows(run(self.ties[0]).rows, run(self.ties[1]).rows)
        except SqlError:  # nobody can say
            return True


@dataclass(frozen=True, slots=True)
class ReadyPair:
    """Two queries for one engine.

    Attributes:
        generated: the generated query.
        expected: the expected query.
        shuffles: number of row orders, in addition to two fixed ones, that are tried before a result counts as stable.
        overlooked: see `QueryPair`.
    """

    generated: ReadyQuery
    expected: ReadyQuery
    shuffles: int = 0
    overlooked: Overlooked | None = None

    def results(self, run: Run) -> tuple[Result, Result]:
        """Returns both results. Raises a SqlError."""
        return self.generated.result(run), self.expected.result(run)

    def cuts_ties(self, run: Run) -> bool:
        """Returns whether `ReadyQuery.cuts_ties` holds for either query."""
        return self.generated.cuts_ties(run) or self.expected.cuts_ties(run)

    def ties_agree(self, run: Run) -> bool:
        """Returns whether both results agree for each of the two ways of breaking the ties of their LIMITs."""
        mine, theirs = self.generated, self.expected
        if not mine.ordered or not theirs.ordered:
            return False
        for one, other in zip(mine.ties or (mine.text,) * 2, theirs.ties or (theirs.text,) * 2, strict=True):
            try:
                if not same_rows(run(one).rows, run(other).rows):
                    return False
            except SqlError:
                return False
        return True

    def takes_all_ties(self, run: Run, generated: Result) -> bool:
        """Returns whether a result has all the tied rows of which the LIMIT of the expected query takes some."""
        try:
            expected = self.expected.with_ties(run)
        except SqlError:
            return False
        return expected is not None and compared(generated, expected).accepted(EQUAL)

    def is_stable(self, engine: Memory, database: GeneratedDatabase) -> bool:
        """Returns whether both results are independent of the order of the tables' rows. Raises a SqlError."""
        before = self.results_on(engine, database)
        for other_order in (_reversed(database), _rotated(database), *_shuffled(database, self.shuffles)):
            after = self.results_on(engine, other_order)
            if not all(same_rows(one.rows, other.rows) for one, other in zip(before, after, strict=True)):
                return False
        return True

    def results_on(self, engine: Memory, database: GeneratedDatabase) -> tuple[Result, Result]:
        """Returns both results on a database. Raises a SqlError."""
        engine.load(database)
        return self.results(engine.query)

    def differs(self, engine: Memory, database: GeneratedDatabase, orders: Orders) -> bool:
        """Returns whether both give stable but different results on a database.

        Args:
            engine: where they run.
            database: rows.
            orders: orders of the generated columns that fit the other databases, see `ColumnMatch.orders`.
        """
        try:
            generated, expected = self.results_on(engine, database)
            if agree(generated, expected, orders, self.overlooked) or self.cuts_ties(engine.query):
                return False
            return self.is_stable(engine, database)
        except SqlError:
            return False


def agree(generated: Result, expected: Result, orders: Orders, overlooked: Overlooked | None = None) -> bool:
    """Returns whether two results are equal but for what is overlooked.

    Args:
        generated: a result.
        expected: the right one.
        orders: the orders in which the generated columns may stand; any order by default.
        overlooked: see `QueryPair`; nothing by default.
    """
    if orders is None or overlooked is not None:
        return ColumnMatch(overlooked).agrees(generated, expected)
    if len(generated.columns) != len(expected.columns):
        return False
    return any(same_rows(reordered(generated.rows, order), expected.rows, expected.ties) for order in orders)


def ready(sql: str, tree: exp.Expr, dialect: str, engine: str, *, keyed: bool) -> ReadyQuery:
    """Prepares a query for an engine.

    Args:
        sql: as it was written.
        tree: the parsed query; with types if `dialect` is not the engine's.
        dialect: dialect of `sql`.
        engine: `duckdb` or `sqlite`.
        keyed: whether its row order matters.

    Raises:
        SqlError: it cannot be translated to the engine's dialect.
    """
    try:
        text = sql.strip().rstrip(";") if dialect == engine else tree.sql(dialect=engine, comments=False)
        keys = order_keys(tree, engine) if keyed else None
        unlimited = _unlimited(tree, engine) if keys is not None else None
        return ReadyQuery(text, keys, tie_breaks(tree, engine), limits_are_ordered(tree), unlimited)
    except (SqlglotError, RecursionError, ValueError) as error:
        raise SqlError(ErrorClass.SYNTAX, f"it cannot be said in the dialect of {engine}: {error}") from error


def _unlimited(tree: exp.Expr, engine: str) -> tuple[ReadyQuery, int] | None:
    limit = tree.args.get("limit")
    most = limit.expression if isinstance(limit, exp.Limit) else None
    if not isinstance(most, exp.Literal) or not most.is_int or tree.args.get("offset") is not None:
        return None
    whole = tree.copy()
    whole.set("limit", None)
    text = whole.sql(dialect=engine, comments=False)
    return ReadyQuery(text, order_keys(whole, engine), None), int(most.name)


def _reversed(database: GeneratedDatabase) -> GeneratedDatabase:
    return {name: rows[::-1] for name, rows in database.items()}


def _rotated(database: GeneratedDatabase) -> GeneratedDatabase:
    """Moves the first row to the end. This also changes the order of symmetric rows such as `a, b, a`."""
    return {name: rows[1:] + rows[:1] for name, rows in database.items()}


def _shuffled(database: GeneratedDatabase, times: int) -> Iterator[GeneratedDatabase]:
    """Returns shuffled rows; the orders are the same in every process."""
    for number in range(times):
        rng = Random(number)
        yield {name: rng.sample(rows, len(rows)) for name, rows in database.items()}

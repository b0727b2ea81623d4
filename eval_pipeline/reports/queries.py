"""SQL queries that return a report's figures from the published store, and from the record's files alike.

What SQL cannot compute (intervals, tests, fits, corrections) is computed once when the tables are made, and read here.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.model import Partition
from eval_pipeline.store.schemas import Table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from eval_pipeline.store.record import Record, RecordKey

Row = dict[str, Any]
KINDS = ("failure_mode", "error_class")
"""Columns of `turn_errors` that tell how a turn is wrong; the first that is not NULL counts."""
_KINDS = ", ".join(f"e.{name}" for name in KINDS)
KIND = f"coalesce({_KINDS})"
"""How a turn is wrong, in one word; `e` is its row of `turn_errors`."""
RIGHT, WRONG, NOT_SCORED = "right", "wrong", "not scored"
TURN = "suite, model_version, eval_date, turn_id, sample"
"""The columns that identify a turn of an evaluation."""
_BATCH = 500
_READ = re.compile(r"\b(?:FROM|JOIN) (\w+)")
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def where(partition: Partition, alias: str = "") -> str:
    """Returns the condition that selects an evaluation's rows of a table."""
    lead = f"{alias}." if alias else ""
    return (
        f"{lead}suite = {literal(partition.suite)} AND {lead}model_version = {literal(partition.model_version)} "
        f"AND {lead}eval_date = DATE '{partition.eval_date.isoformat()}'"
    )


def literal(text: str) -> str:
    """Returns a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def newest_of(suite: str) -> str:
    """Returns as SQL the newest evaluation of each model version in use, as comparisons have it."""
    return (
        "(SELECT suite, model_version, max(eval_date) AS eval_date FROM trends "
        f"WHERE suite = {literal(suite)} AND NOT coalesce(retired, false) GROUP BY ALL)"
    )


def statistics_query(partition: Partition, condition: str = "") -> str:
    """Returns the query for rows of `statistics`."""
    return table_query(partition, "statistics", rest=f"AND {condition}" if condition else "")


def table_query(partition: Partition, table: str, columns: str = "*", rest: str = "") -> str:
    """Returns the query for an evaluation's rows of any table; `rest` is added after the condition."""
    return f"SELECT {columns} FROM {table} WHERE {where(partition)}{' ' + rest if rest else ''}"


def extremes_query(partition: Partition, column: str, rows: int) -> str:
    """Returns the query for the turns with the highest values of a column; one that nobody answered used nothing."""
    return table_query(
        partition,
        "turn_results",
        "turn_id, tokens, usd, latency_ms, attempts, correct, complexity, question",
        f"AND {column} > 0 ORDER BY {column} DESC, turn_id, sample LIMIT {rows}",
    )


def outcomes_query(partition: Partition) -> str:
    """Returns the query for the outcome of each turn."""
    return (
        f"SELECT turn_id, sample, if(r.correct, '{RIGHT}', coalesce({_KINDS}, '{NOT_SCORED}')) AS outcome "
        f"FROM turn_results AS r LEFT JOIN turn_errors AS e USING ({TURN}) WHERE {where(partition, 'r')}"
    )


def mistakes_query(partition: Partition) -> str:
    """Returns the query for the wrong turns; `turns` are those of the kind, `share` is theirs of all turns."""
    columns = f"turn_id, sample, {KIND} AS kind, r.score, r.question, r.expected, r.answer, e.error_message"
    of_kind, of_all = f"count(*) OVER (PARTITION BY {KIND})", table_query(partition, "turn_results", "count(*)")
    return (
        f"SELECT {columns}, {of_kind} AS turns, {of_kind} / ({of_all}) AS share "
        f"FROM turn_results AS r LEFT JOIN turn_errors AS e USING ({TURN}) "
        f"WHERE {where(partition, 'r')} AND NOT r.correct"
    )


def explain_query(partition: Partition, turn_id: str) -> str:
    """Returns the query for everything about one turn."""
    day = f"on_date := DATE '{partition.eval_date.isoformat()}'"
    return f"SELECT * FROM explain_turn({literal(turn_id)}, {literal(partition.model_version)}, {day})"


class RecordQueries:
    """Runs the queries that a report prints: on the record's files, under the names that they have in the store.

    One connection serves a whole report, and a table is read when a query first names it.
    """

    def __init__(self, tables: Iterable[Table], read: "Callable[[Table], pa.Table]") -> None:
        """Opens nothing yet; `read` returns the rows that a published table has of what is reported."""
        self._waiting = {table.name: table for table in tables}
        self._read = read
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._found: dict[str, list[Row]] = {}

    def rows(self, sql: str) -> list[Row]:
        """Returns the rows of a query; the same query runs once."""
        if sql not in self._found:
            self._found[sql] = self.table(sql).to_pylist()
        return self._found[sql]

    def table(self, sql: str) -> "pa.Table":
        """Returns the rows of a query as Arrow; JSON is text."""
        import pyarrow as pa

        if self._connection is None:
            self._connection = _engine().cursor()
        for name in _READ.findall(sql):
            if (table := self._waiting.pop(name, None)) is not None:
                self._connection.register(name, _with_json(self._read(table), table))
        rows = self._connection.sql(sql).to_arrow_table()
        return rows.cast(pa.schema([pa.field(f.name, getattr(f.type, "storage_type", f.type)) for f in rows.schema]))


@cache
def _engine() -> "duckdb.DuckDBPyConnection":
    """Opens DuckDB once a process, which takes as long as some queries; what a cursor of it registers is its own."""
    import duckdb

    return duckdb.connect(":memory:", config=_SETTINGS)


def in_parts(rows: "pa.Table") -> Iterator[Row]:
    """Yields rows as Python values, of which only some are held at the same time."""
    for batch in rows.to_batches(max_chunksize=_BATCH):
        yield from batch.to_pylist()


def recorded_rows(
    record: "Record",
    table: Table,
    keys: Iterable["RecordKey"],
    columns: Sequence[str] | None = None,
    turns: Collection[str] | None = None,
) -> "pa.Table":
    """Returns the rows that a published table has from these files of the record; of missing ones none.

    `turns` are ids: files are then read in parts, of which only the rows of these turns are held.
    """
    import pyarrow as pa

    from eval_pipeline.store.tables import arrow_schema

    places = [(one, key) for key in keys for one in table.record_tables() if record.header(one, key) is not None]
    if turns is None:
        found = [record.read(one, key, columns) for one, key in places]
    else:
        ids = pa.array(turns, pa.string())
        found = [part for one, key in places for part in _of_turns(record, one, key, columns, ids)]
    return pa.concat_tables(found) if found else arrow_schema(table).empty_table()


def _of_turns(
    record: "Record", table: Table, key: "RecordKey", columns: Sequence[str] | None, ids: "pa.Array"
) -> "Iterator[pa.Table]":
    """Yields the rows of some turns; parts of the file that have none of them are not read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from eval_pipeline.store.tables import arrow_schema

    schema = arrow_schema(table)
    chosen = [pc.is_in(part["turn_id"], ids) for part in record.row_groups(table, key, ["turn_id"])]
    wanted = [number for number, here in enumerate(chosen) if pc.any(here).as_py()] or [0]
    parts = record.row_groups(table, key, columns, wanted if len(wanted) < len(chosen) else None)
    for number, part in zip(wanted, parts, strict=True):
        yield part.filter(chosen[number]).cast(pa.schema([schema.field(name) for name in part.column_names]))


def _with_json(rows: "pa.Table", table: Table) -> "pa.Table":
    """Returns the rows with the type JSON where the store has it."""
    import pyarrow as pa

    types = {column.name: column.type for column in table.all_columns}
    fields = [pa.field(f.name, pa.json_(pa.string()) if types[f.name] == "JSON" else f.type) for f in rows.schema]
    return rows.cast(pa.schema(fields))

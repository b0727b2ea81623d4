"""The command `sql-diff`: whether two queries give the same results, with a database that shows a difference."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.options import FAILED
from eval_pipeline.cli.saying import say
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from eval_pipeline_plugins.sql_equivalence.ladder import Equivalence
    from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

UNDECIDED = 3
"""Exit code if no difference was found, but no agreement either."""
_SQL_FILES = frozenset({".sql", ".txt", ".ddl"})
_NULL = "NULL"


def sql_diff(
    query: Annotated[str, typer.Argument(metavar="A", help="SQL, or a file with SQL.")],
    reference: Annotated[
        str, typer.Argument(metavar="B", help="SQL, or a file with SQL. Rows have an order if B has an ORDER BY.")
    ],
    schema: Annotated[
        Path, typer.Option(metavar="FILE", help="CREATE TABLE statements, or a SQLite or DuckDB database.")
    ],
    dialect: Annotated[str, typer.Option(help="SQL dialect of both queries and of the statements.")] = "duckdb",
    database: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="SQLite or DuckDB file with data to compare on first; repeat for several."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="How many databases to generate: 8 is the default effort.")] = 8,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds after which the pair is undecided.")] = 60,
    json: Annotated[bool, typer.Option("--json", help="Print verdict and evidence as JSON.")] = False,
) -> None:
    """Compares two SQL queries: same results on every database? Shows a database on which they differ.

    Exit code: 0 if no difference was found, 1 if the queries differ, 3 if undecided.
    """
    from eval_pipeline_plugins.sql_equivalence.ladder import check

    known = _schema(schema, dialect)
    try:
        found = check(_sql(query), _sql(reference), known, database or (), dialect, samples, time_limit)
    except ValueError as error:
        raise UsageError(str(error)) from error
    _print_json(found) if json else _print(found)
    raise typer.Exit({0.0: FAILED, None: UNDECIDED}.get(found.value, 0))


def _sql(given: str) -> str:
    """Returns the text of a query, which may be in a file. Raises a UsageError if that cannot be read."""
    path = Path(given)
    if path.suffix.lower() not in _SQL_FILES:
        return given
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _schema(path: Path, dialect: str) -> "SqlSchema":
    """Reads a schema from statements or from a database. Raises a UsageError if it is neither."""
    from sqlglot.dialects.dialect import Dialect

    from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

    if Dialect.get(dialect.lower()) is None:
        raise UsageError(f"there is no SQL dialect '{dialect}'; for example: duckdb, sqlite, postgres, mysql")
    try:
        if b"\0" in path.read_bytes()[:4096]:
            return SqlSchema.from_database(path)
        return SqlSchema.from_ddl(path.read_text(encoding="utf-8-sig"), dialect.lower())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a schema: {error}") from error


_VERDICTS: Mapping[str, str] = {
    "equivalent": "same results on every database",
    "agreed": "no difference found (no proof)",
    "weakly_agreed": "no difference found, but the databases tried would not show every mistake",
    "different": "different results",
    "undecided": "undecided",
}


def _print(found: "Equivalence") -> None:
    from eval_pipeline.cli.terminal import console

    console.print(_VERDICTS[found.verdict], style="bold", highlight=False)
    for line in _remarks(found.evidence):
        console.print(_plain(line), highlight=False, markup=False, soft_wrap=True)
    example = found.evidence.get("counterexample")
    if not example:
        return
    shown = [(f"table {name}", table, len(table["rows"])) for name, table in example.get("tables", {}).items()]
    sides = (("result of A", "generated"), ("result of B", "expected"))
    shown += [(name, example[side], example[side]["row_count"]) for name, side in sides]
    for name, table, count in shown:
        rows = table["rows"]
        cut = f", the first {len(rows)} of {count} rows" if count > len(rows) else "" if rows else ", no rows"
        console.print(f"\n{_plain(name)}{cut}", highlight=False, markup=False, soft_wrap=True)
        console.print(_table(table["columns"], rows))


def _remarks(evidence: Mapping[str, Any]) -> Iterator[str]:
    yield str(evidence.get("reason", ""))
    if evidence.get("error"):
        yield str(evidence["error"]).splitlines()[0]
    if evidence.get("translated_from"):
        yield f"translated from {evidence['translated_from']} to run in {evidence.get('engine')}"


def _table(columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for column in columns:
        table.add_column(Text(_plain(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_NULL if cell is None else _plain(cell)) for cell in row))
    return table


def _plain(cell: object) -> str:
    """Returns a value as text; control characters become escapes, since the values may come from a stranger's query."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(cell))


def _print_json(found: "Equivalence") -> None:
    from eval_pipeline.core.ids import canonical_json
    from eval_pipeline.core.shown import visible_json

    told = {"verdict": found.verdict, "rung": found.rung, "evidence": dict(found.evidence)}
    say(visible_json(canonical_json(told)))

"""Rows as INSERT statements, and draws that the three databases share."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random

Value = bool | int | float | str | date | Decimal | None
Rows = Mapping[str, Sequence[Sequence[Value]]]


def script(ddl: str, rows: Rows) -> str:
    """The DDL, then the rows, tables in the order given (referenced tables first)."""
    return "\n".join([ddl.strip(), *_inserts(ddl, rows)]) + "\n"


def _inserts(ddl: str, rows: Rows) -> Iterator[str]:
    for table, members in rows.items():
        texts = ["(" + ", ".join(map(_literal, row)) + ")" for row in members]
        yield ""
        if _refers_to_itself(ddl, table):
            # DuckDB looks for the referenced row among those of earlier statements only.
            yield from (f"INSERT INTO {table} VALUES {text};" for text in texts)
        else:
            yield f"INSERT INTO {table} VALUES\n  " + ",\n  ".join(texts) + ";"


def _refers_to_itself(ddl: str, table: str) -> bool:
    definition = ddl.partition(f"CREATE TABLE {table} (")[2].partition("\n);")[0]
    return f"REFERENCES {table} (" in definition


def _literal(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float() | Decimal():
            return str(value)
        case datetime():
            return f"'{value:%Y-%m-%d %H:%M:%S}'"
        case date():
            return f"'{value:%Y-%m-%d}'"
        case _:
            return "'" + value.replace("'", "''") + "'"


def seldom(random: Random, share: float, value: Value) -> Value:
    """The value, or NULL in that share of draws."""
    return None if random.random() < share else value


def day_in(random: Random, first: date, last: date) -> date:
    """A day of a span, both ends included."""
    return first + timedelta(days=random.randrange((last - first).days + 1))


def time_in(random: Random, first: date, last: date, hours: range = range(24)) -> datetime:
    """A time of a span, on a full five minutes."""
    day = day_in(random, first, last)
    return datetime(day.year, day.month, day.day, random.choice(hours), 5 * random.randrange(12))

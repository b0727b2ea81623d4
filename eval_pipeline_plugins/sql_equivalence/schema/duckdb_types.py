"""Converts types of other dialects to DuckDB's."""

import re
from functools import lru_cache

_FALLBACK = "VARCHAR"
# SQLite's rules (https://www.sqlite.org/datatype3.html, 3.1), in their order, for types that no dialect knows.
_AFFINITY = (
    (("INT",), "BIGINT"),
    (("CHAR", "CLOB", "TEXT"), "VARCHAR"),
    (("BLOB",), "BLOB"),
    (("REAL", "FLOA", "DOUB"), "DOUBLE"),
    (("DATE", "TIME"), "TIMESTAMP"),
    (("BOOL",), "BOOLEAN"),
    (("NUM", "DEC"), "DOUBLE"),
)
_SERIAL = {"SMALLSERIAL": "SMALLINT", "SERIAL": "INT", "BIGSERIAL": "BIGINT"}
"""PostgreSQL's auto-numbered columns, whose values are integers."""
_SPIDER = {"number": "DOUBLE", "text": "VARCHAR", "time": "VARCHAR", "boolean": "BOOLEAN", "others": "VARCHAR"}


@lru_cache(maxsize=1024)
def duckdb_type(name: str, dialect: str | None = None) -> str:
    """Returns DuckDB's type for a type name of another dialect; VARCHAR for an unknown one.

    Args:
        name: e.g. `varchar(20)`, `NUMBER(10,2)`, `datetime`.
        dialect: sqlglot's name of the dialect; None tries DuckDB, Postgres, MySQL and SQLite in turn.
    """
    import sqlglot
    from sqlglot import exp

    text = name.strip()
    if not text:
        return _FALLBACK
    if re.fullmatch(r"(?i)(tiny|medium|long)?text|character varying.*", text):
        return _FALLBACK
    for reading in (dialect,) if dialect else ("duckdb", "postgres", "mysql", "sqlite"):
        try:
            found = exp.DataType.build(text, dialect=reading, udt=False)
        except (sqlglot.ParseError, sqlglot.errors.TokenError):
            continue
        if found.this not in (exp.DataType.Type.USERDEFINED, exp.DataType.Type.UNKNOWN):
            made = str(found.sql(dialect="duckdb"))
            return _SERIAL.get(made, made)
    upper = text.upper()
    return next((kind for words, kind in _AFFINITY if any(word in upper for word in words)), _FALLBACK)


def spider_type(name: str) -> str:
    """Returns DuckDB's type for one of the five types of Spider's `tables.json`."""
    return _SPIDER.get(name, _FALLBACK)

"""Finds where a query reads the clock, and pins the clock to a suite's date (`as_of`).

Only the pieces of the text that read the clock are replaced, so that nothing else of the query can change.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from sqlglot import Dialect, Token, TokenType
from sqlglot.errors import SqlglotError

_DATE, _TIME, _TIMETZ, _STAMP, _STAMPTZ = "DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ"
_WORDS: Mapping[str, str] = {
    "current_date": _DATE,
    "current_time": _TIMETZ,
    "current_timestamp": _STAMPTZ,
    "current_datetime": _STAMP,
    "localtime": _TIME,
    "localtimestamp": _STAMP,
}
"""Read the clock with or without brackets → type of the value."""
_CALLS: Mapping[str, str] = {
    **_WORDS,
    **dict.fromkeys(("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"), _STAMPTZ),
    **dict.fromkeys(("get_current_timestamp",), _STAMPTZ),
    **dict.fromkeys(("current_localtimestamp", "getdate", "sysdate", "sysdatetime", "utc_timestamp"), _STAMP),
    **dict.fromkeys(("today", "curdate", "utc_date"), _DATE),
    **dict.fromkeys(("current_localtime", "curtime", "utc_time"), _TIME),
    "get_current_time": _TIMETZ,
}
"""The same for calls without arguments."""
_SQLITE_WORDS = ("current_date", "current_time", "current_timestamp")
_SQLITE_CALLS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("date", "time", "datetime", "julianday", "unixepoch"), (0,)),
    "strftime": (1,),
    "timediff": (0, 1),
}
"""Functions of SQLite → arguments in which 'now' is the clock; the last of them is the clock where it is left out."""
_SPECIAL: Mapping[str, int] = {"now": 0, "today": 0, "tomorrow": 1, "yesterday": -1}
"""Texts that PostgreSQL reads as dates → days from today."""
_MYSQL = ("mysql", "mariadb")
_AGES = ("duckdb", "postgres")


@dataclass(frozen=True, slots=True)
class ClockPart:
    """A piece of a query that reads the clock.

    Attributes:
        start, end: where it is in the text; equal where an argument that means the clock is left out.
        kind: type of its value; `AGE` for the missing argument of `age`, a text for PostgreSQL's special dates.
        comma: what to write before and after a missing argument.
    """

    start: int
    end: int
    kind: str
    comma: tuple[str, str] = ("", "")


def clock_parts(sql: str, dialect: str) -> list[ClockPart]:
    """Returns where a query reads the clock, in the order of the text; none for a text that has no tokens."""
    return list(_clock_parts(sql, dialect))


@lru_cache(maxsize=4096)
def _clock_parts(sql: str, dialect: str) -> tuple[ClockPart, ...]:
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except (SqlglotError, ValueError):
        return ()
    find = _in_sqlite if dialect == "sqlite" else _elsewhere
    return tuple(part for place in range(len(tokens)) for part in find(tokens, place, dialect))


def pinned(sql: str, dialect: str, at: datetime | None) -> str:
    """Returns the query with every reading of the clock replaced by a time; unchanged without one.

    Clocks inside views and macros of the database stay as they are.
    """
    pieces, position = [], 0
    for part in clock_parts(sql, dialect) if at is not None else ():
        assert at is not None
        pieces += [sql[position : part.start], part.comma[0], _written(part.kind, dialect, at), part.comma[1]]
        position = part.end
    return "".join([*pieces, sql[position:]])


def _written(kind: str, dialect: str, at: datetime) -> str:
    if kind in _SPECIAL:
        return f"'{at + timedelta(days=_SPECIAL[kind]):%Y-%m-%d %H:%M:%S}'"
    text = {_DATE: f"{at:%Y-%m-%d}", _TIME: f"{at:%H:%M:%S}", _TIMETZ: f"{at:%H:%M:%S}"}.get(
        kind, f"{at:%Y-%m-%d %H:%M:%S}"
    )
    if dialect == "sqlite":
        return f"'{text}'"
    if dialect in _MYSQL:
        kind = {_TIMETZ: _TIME, _STAMP: "DATETIME", _STAMPTZ: "DATETIME"}.get(kind, kind)
    return f"CAST('{text}' AS {kind})"


def _in_sqlite(tokens: Sequence[Token], place: int, dialect: str) -> Iterator[ClockPart]:
    token, name = tokens[place], tokens[place].text.lower()
    if not _is_bare(tokens, place):
        return
    called = _called(tokens, place)
    if called is None:
        if name in _SQLITE_WORDS:
            yield ClockPart(token.start, token.end + 1, _WORDS[name])
        return
    arguments, closing = called
    places = _SQLITE_CALLS.get(name, ())
    for at in places:
        if at < len(arguments):
            only = tokens[slice(*arguments[at])]
            if len(only) == 1 and only[0].token_type is TokenType.STRING and only[0].text.lower() == "now":
                yield ClockPart(only[0].start, only[0].end + 1, _STAMP)
    if places and len(arguments) == places[-1]:
        end = tokens[closing].start
        yield ClockPart(end, end, _STAMP, (", " if arguments else "", ""))


def _elsewhere(tokens: Sequence[Token], place: int, dialect: str) -> Iterator[ClockPart]:
    token, name = tokens[place], tokens[place].text.lower()
    if token.token_type is TokenType.STRING:
        if dialect == "postgres" and name.strip() in _SPECIAL and _is_cast(tokens, place):
            yield ClockPart(token.start, token.end + 1, name.strip())
        return
    if not _is_bare(tokens, place):
        return
    called = _called(tokens, place)
    if called is None:
        if name in _WORDS:
            yield ClockPart(token.start, token.end + 1, _WORDS[name])
        return
    arguments, closing = called
    precision = len(arguments) == 1 and [one.token_type for one in tokens[slice(*arguments[0])]] == [TokenType.NUMBER]
    if name in _CALLS and (not arguments or precision):
        yield ClockPart(token.start, tokens[closing].end + 1, _CALLS[name])
    elif name == "age" and dialect in _AGES and len(arguments) == 1:
        start = tokens[arguments[0][0]].start
        yield ClockPart(start, start, _STAMP, ("", ", "))
    elif name == "unix_timestamp" and dialect in _MYSQL and not arguments:
        end = tokens[closing].start
        yield ClockPart(end, end, _STAMP)


def _is_bare(tokens: Sequence[Token], place: int) -> bool:
    """Whether a token is a word that is no quoted name, text, alias or part of a qualified name."""
    token = tokens[place]
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) or not token.text[:1].isalpha():
        return False
    before = tokens[place - 1].token_type if place else None
    after = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    return before not in (TokenType.DOT, TokenType.ALIAS) and after is not TokenType.DOT


def _called(tokens: Sequence[Token], place: int) -> tuple[list[tuple[int, int]], int] | None:
    """Returns first and last token of each argument of a call, and its closing bracket; None if it is no call."""
    if place + 1 >= len(tokens) or tokens[place + 1].token_type is not TokenType.L_PAREN:
        return None
    depth, start = 0, place + 2
    arguments: list[tuple[int, int]] = []
    for at in range(place + 1, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if (kind is TokenType.COMMA and depth == 1) or not depth:
            if at > start:
                arguments.append((start, at))
            start = at + 1
        if not depth:
            return arguments, at
    return None


def _is_cast(tokens: Sequence[Token], place: int) -> bool:
    """Whether a text is converted to a type: `date 'today'`, `'now'::timestamp`, `CAST('now' AS …)`."""
    before = tokens[place - 1].text.lower() if place else ""
    after = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    if before in ("date", "timestamp", "timestamptz", "time") or after is TokenType.DCOLON:
        return True
    return before == "(" and after is TokenType.ALIAS and place > 1 and tokens[place - 2].text.lower() == "cast"

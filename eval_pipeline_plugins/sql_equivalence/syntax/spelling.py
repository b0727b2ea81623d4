"""Spellings that data sets use and engines reject: operators with a space inside, `! =` in Spider's queries."""

import re

_APART = re.compile(r"[<>!]\s+[=>]")
_PARTS = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/)|(?:([<>!])\s+(=)|(<)\s+(>))(?![=>])""", re.DOTALL
)


def joined_operators(sql: str) -> str:
    """Joins `! =`, `> =`, `< =` and `< >` to one token each, as Spider's own evaluator does.

    Quoted text and comments are not changed.
    """
    if not _APART.search(sql):
        return sql
    return _PARTS.sub(lambda found: found[1] or "".join(filter(None, found.group(2, 3, 4, 5))), sql)

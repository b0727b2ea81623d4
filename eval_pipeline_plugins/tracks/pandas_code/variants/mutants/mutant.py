"""Defines mutants, and what is known about the tables when mutants are made."""

import ast
import re
from collections.abc import Mapping
from enum import StrEnum

from eval_pipeline.core.values import value

_COLUMN = re.compile(r"\b\w+\['(\w+)'\]")
_LONGEST = 80


class Kind(StrEnum):
    """The kind of a requirement."""

    FILTER = "filter"
    BOUNDARY = "boundary"
    CONSTANT = "constant"
    GROUPING = "grouping"
    AGGREGATION = "aggregation"
    SORT = "sort"
    LIMIT = "limit"
    JOIN = "join"
    COLUMN = "column"
    DERIVED = "derived"
    STEP = "step"


@value
class Mutant:
    """Reference code with one requirement dropped or altered.

    Attributes:
        kind: kind of the requirement.
        requirement: the piece of code that expresses it, with its place in the syntax tree; mutants of the same
            requirement have the same text here.
        dropped: whether the requirement is dropped; otherwise it is altered.
        words: description of the change that can follow "as if".
        code: the whole mutant.
    """

    kind: Kind
    requirement: str
    dropped: bool
    words: str
    code: str

    @property
    def was(self) -> str:
        """What the reference code has, in words; empty if the mutant has something that it lacks."""
        was, _, now = self.words.partition(" were ")
        return "" if now == "added" else was

    @property
    def now(self) -> str:
        """What the mutant has instead, in words; empty for nothing."""
        was, _, now = self.words.partition(" were ")
        return was if now == "added" else "" if now.startswith("missing") else now


@value
class Known:
    """What is known about the tables when mutants are made.

    Attributes:
        tables: dtypes by column, of each table.
        examples: texts that occur in a column, by column.
    """

    tables: Mapping[str, Mapping[str, str]]
    examples: Mapping[str, tuple[str, ...]]

    def another_column(self, column: str, taken: frozenset[str]) -> str | None:
        """Returns a column of the same table and dtype that is not in `taken`; None if there is none."""
        owners = [dtypes for dtypes in self.tables.values() if column in dtypes]
        pairs = ((name, dtype == dtypes[column]) for dtypes in owners for name, dtype in dtypes.items())
        return next((name for name, alike in pairs if alike and name not in taken), None)

    def another_text(self, text: str, column: str) -> str | None:
        """Returns another text of the column; None if none is known."""
        return next((example for example in self.examples.get(column, ()) if example != text), None)


@value
class CodeChange:
    """A piece of code, and what replaces it in a mutant.

    Attributes:
        place: the piece that is replaced.
        piece: the piece of code that expresses the requirement.
        by: what replaces it.
    """

    kind: Kind
    dropped: bool
    words: str
    place: ast.AST
    piece: ast.AST
    by: ast.AST


def pretty(node: ast.AST) -> str:
    """Returns code in a form for readers: columns without their table."""
    text = _COLUMN.sub(r"\1", ast.unparse(node))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def missing(node: ast.AST) -> str:
    """Returns "`x` were missing"."""
    return f"`{pretty(node)}` were missing"


def other(node: ast.AST, by: ast.AST) -> str:
    """Returns "`x` were `y`"."""
    return f"`{pretty(node)}` were `{pretty(by)}`"

"""Assigns exceptions to error classes."""

import re
from collections.abc import Sequence

from eval_pipeline.core.model import ErrorClass

DUCKDB = {
    "ParserException": ErrorClass.SYNTAX,
    "SyntaxException": ErrorClass.SYNTAX,
    "BinderException": ErrorClass.COLUMN,
    "CatalogException": ErrorClass.COLUMN,
    "ConversionException": ErrorClass.TYPE,
    "TypeMismatchException": ErrorClass.TYPE,
    "InvalidTypeException": ErrorClass.TYPE,
    "OutOfRangeException": ErrorClass.VALUE,
    "InvalidInputException": ErrorClass.VALUE,
    "InterruptException": ErrorClass.TIMEOUT,
    "OutOfMemoryException": ErrorClass.MEMORY,
    "MemoryError": ErrorClass.MEMORY,
    "PermissionException": ErrorClass.SANDBOX,
}
"""Exceptions that DuckDB raises."""

_OF_PYTHON = {
    ErrorClass.SYNTAX: ("SyntaxError", "JSONDecodeError", "ParseError", "TokenError"),  # the last two are sqlglot's
    ErrorClass.COLUMN: ("KeyError", "UndefinedVariableError", "ColumnNotFoundError"),
    ErrorClass.TYPE: ("TypeError",),
    ErrorClass.INDEX: ("IndexError", "IndexingError", "InvalidIndexError", "AxisError"),
    ErrorClass.ATTRIBUTE: ("AttributeError",),
    ErrorClass.VALUE: ("ValueError", "ArithmeticError", "SpecificationError"),
    ErrorClass.TIMEOUT: ("TimeoutError",),
    ErrorClass.MEMORY: ("MemoryError",),
    ErrorClass.SANDBOX: ("PermissionError",),
}
_BY_TYPE = {name: error_class for error_class, names in _OF_PYTHON.items() for name in names} | DUCKDB
# Messages of the more general exceptions; the first match decides.
_BY_MESSAGE = (
    (ErrorClass.SYNTAX, ("syntax error", "invalid syntax")),
    (ErrorClass.COLUMN, ("not in index", "column not found", "unknown column", "no such column", "no such table")),
    (ErrorClass.TYPE, ("dtype", "datatype mismatch", "unsupported operand type", "non-numeric type")),
    (ErrorClass.INDEX, ("out of bounds", "index out of range")),
    (ErrorClass.ATTRIBUTE, ("has no attribute",)),
    (ErrorClass.VALUE, ("division by zero", "overflow")),
    (ErrorClass.TIMEOUT, ("timed out", "timeout", "interrupted")),
    (
        ErrorClass.MEMORY,
        ("out of memory", "memory limit", "unable to allocate", "cannot allocate memory", "can't start new thread"),
    ),
    (
        ErrorClass.SANDBOX,
        (
            *("operation not permitted", "read-only file system", "permission denied", "function not implemented"),
            "no space left on device",
        ),
    ),
)

_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception))(?=:|$)", re.MULTILINE)


def classify(types: Sequence[str], message: str) -> ErrorClass:
    """Returns the class of an exception: by its type, or by its message if no type is specific enough.

    Args:
        types: names of the exception's type and its base classes, the most specific first.
        message: message of the exception.
    """
    by_type = next((_BY_TYPE[name] for name in types if name in _BY_TYPE), None)
    if by_type is not None:
        return by_type
    lowered = message.lower()
    return next((found for found, words in _BY_MESSAGE if any(word in lowered for word in words)), ErrorClass.OTHER)


def told_failure(text: str, *, failed: bool = False) -> ErrorClass | None:
    """Returns why a tool of somebody else failed, by what it gave; None if it did not.

    Args:
        text: what it gave; a traceback of Python that ends in it is a failure.
        failed: whether it says so itself.
    """
    names = _RAISED.findall(text)
    if not failed and not (names and _TRACEBACK in text):
        return None
    return classify(names[-1:], text)

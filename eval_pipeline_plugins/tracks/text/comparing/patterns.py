"""Regular expressions of suites. RE2 matches them in linear time, because suites may come from strangers."""

from functools import lru_cache
from typing import Any

_MOST_MEMORY = 4 << 20
"""The most bytes of a compiled pattern; repetitions such as `(a{1000}){1000}` exceed it."""


@lru_cache(maxsize=256)
def compiled(pattern: str, *, ignore_case: bool = True) -> Any:
    """Returns the compiled pattern.

    Raises:
        ValueError: it is not a valid RE2 pattern, or too large; the message is one sentence.
    """
    import re2

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.max_mem = _MOST_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else error
        told = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise ValueError(f"expected a pattern in RE2 syntax, without look-around and references: {told}") from None


def check_pattern(pattern: str) -> None:
    """Raises a ValueError with one sentence if the pattern cannot be used."""
    compiled(pattern)

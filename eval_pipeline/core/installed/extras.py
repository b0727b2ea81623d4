"""Extras of eval-pipeline: packages that only some tracks, providers, reports or services need."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec


def absent(modules: Iterable[str]) -> tuple[str, ...]:
    """Returns those of some top-level modules that are not installed. None of them is imported."""
    return tuple(name for name in modules if find_spec(name) is None)


def install(extra: str) -> str:
    """Returns how to add an extra to this installation, to complete a sentence; no index is asked for the package."""
    # Environments that uv makes, also those of its tools, have no pip; one from elsewhere would install elsewhere.
    installer = "pip install" if find_spec("pip") else f"uv pip install --python {sys.prefix}"
    return f"install with `{installer} 'eval-pipeline[{extra}]'`"

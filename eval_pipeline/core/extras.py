"""Extras of eval-pipeline: packages that only some tracks, providers, reports or services need."""

from collections.abc import Iterable
from importlib.util import find_spec


def absent(modules: Iterable[str]) -> tuple[str, ...]:
    """Returns those of some top-level modules that are not installed. None of them is imported."""
    return tuple(name for name in modules if find_spec(name) is None)


def install(extra: str) -> str:
    """Returns how to install an extra, to complete a sentence."""
    return f"install with `pip install 'eval-pipeline[{extra}]'`"

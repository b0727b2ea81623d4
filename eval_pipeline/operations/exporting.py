"""Commands that export evaluations and suites in the formats of other tools, which plug-ins add."""

from collections.abc import Callable
from typing import Any

from eval_pipeline.core.installed.plugins import Plugin, Registry

Export = Callable[..., None]
"""Its parameters are options, annotated for typer; the first line of its docstring is the help."""


def _export(plugin: Plugin, value: Any) -> Export:
    if not callable(value):
        raise plugin.error("is no function")
    found: Export = value
    return found


ALL_EXPORTS: Registry[Export] = Registry("exports", {}, _export)
"""Functions by name; each gives a command `eval-pipeline export <name>`."""

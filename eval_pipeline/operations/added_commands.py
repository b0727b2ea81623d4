"""Commands that plug-ins add: `eval-pipeline <name>`, and exports in the formats of other tools."""

from collections.abc import Callable
from typing import Any

from eval_pipeline.core.installed.plugins import Plugin, Registry

Command = Callable[..., None]
"""Its parameters are options, annotated for typer; the first line of its docstring is the help."""

COMMANDS = frozenset(
    """
    init run plan import export validate harden publish report query compare candidates rescore acknowledge rejudge
    reviews suite packages prune remove doctor dev view demo
    """.split()
)
"""Commands that are none of a plug-in."""


def _command(plugin: Plugin, value: Any) -> Command:
    from typer import Typer  # loaded with the command line; what is bad in here would spoil the help of all commands
    from typer.main import get_command

    if not callable(value):
        raise plugin.error("is no function")
    found: Command = value
    app = Typer()
    app.command()(found)
    try:
        get_command(app)
    except Exception as error:
        raise plugin.error(f"has parameters that cannot be options: {error}") from error
    return found


def _why_taken(plugin: Plugin) -> str | None:
    return "has a command's name" if plugin.name in COMMANDS else None


ALL_COMMANDS: Registry[Command] = Registry("commands", {}, _command, _why_taken)
"""Functions by name; each gives a command `eval-pipeline <name>`."""
ALL_EXPORTS: Registry[Command] = Registry("exports", {}, _command)
"""Functions by name; each gives a command `eval-pipeline export <name>`."""

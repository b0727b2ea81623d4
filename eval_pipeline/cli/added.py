"""Groups of commands that plug-ins add to, also the one of all commands."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

if TYPE_CHECKING:
    from eval_pipeline.core.installed.plugins import PluginError, Registry

Made = tuple[str | None, Callable[..., None]]
"""The help of a command, where it is not the function's docstring, and the function."""


class Added(TyperGroup):
    """A group with the commands that are defined with it, and one for each plug-in of certain kinds.

    Installed packages are only searched when such a command is used or listed, or one that is not defined here.
    """

    def kinds(self) -> "Iterator[tuple[Registry[Any], Callable[[str, Any], Made]]]":
        """Yields each registry with what makes a command of a name and its object."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of the subcommands."""
        return [*super().list_commands(ctx), *(name for registry, _ in self.kinds() for name in registry.names())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns the subcommand of that name.

        If its plug-in cannot be used, the subcommand reports that when it is run.
        """
        if cmd_name not in self.commands:
            for registry, make in self.kinds():
                if cmd_name in registry:
                    return _command(cmd_name, registry, make)
        return super().get_command(ctx, cmd_name)


def _command(name: str, registry: "Registry[Any]", make: Callable[[str, Any], Made]) -> Any:
    from eval_pipeline.core.installed.plugins import PluginError

    try:
        told, function = make(name, registry.get(name))
    except PluginError as error:
        told, function = str(error), _refusing(error)
    return command_of(name, function, told)


def command_of(name: str, found: "Callable[..., None] | typer.Typer", told: str | None = None) -> Any:
    """Returns the command that a function is, or the group of a Typer; `told` replaces its docstring as the help."""
    if isinstance(found, typer.Typer):
        command = get_group(found)
        command.name = name
        return command
    app = typer.Typer(add_completion=False)
    app.command(name, help=told)(found)
    return get_command(app)


def _refusing(error: "PluginError") -> Callable[[], None]:
    def refuse() -> None:
        raise error

    return refuse

"""The command `export`: writes an evaluation as a folder of pages, or in the format of another tool."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.added import Added, Made
from eval_pipeline.cli.options import DateOfNewest

if TYPE_CHECKING:
    from eval_pipeline.core.installed.plugins import Registry


class Exports(Added):
    """The subcommands of `export`: the one defined here, and one for each format of other tools."""

    def kinds(self) -> "Iterator[tuple[Registry[Any], Callable[[str, Any], Made]]]":
        """Yields the registry of exports."""
        from eval_pipeline.operations.added_commands import ALL_EXPORTS

        yield ALL_EXPORTS, lambda _, export: (None, export)


export_app = typer.Typer(
    cls=Exports, help="Writes evaluations as pages, or in the formats of other tools.", no_args_is_help=True
)


@export_app.command("folder")
def export_folder(
    suite: Annotated[str, typer.Option(help="The suite.")],
    model_version: Annotated[str, typer.Option(help="The model version.")],
    eval_date: DateOfNewest = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write; default: in the home's exports.")
    ] = None,
) -> None:
    """Writes an evaluation as a folder of pages that opens from disk or any web host.

    Without a date, the newest one.
    """
    from eval_pipeline.cli.looking.viewing import write_folder

    write_folder(suite, model_version, eval_date, output)

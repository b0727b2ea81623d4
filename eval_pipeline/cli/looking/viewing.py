"""The command `view`: serves the workbench, or exports an evaluation as a folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.added import Added, Made
from eval_pipeline.cli.options import DateOfNewest
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from eval_pipeline.core.installed.plugins import Registry


def view(
    host: Annotated[str, typer.Option(help="Address of the workbench.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the workbench; 0 for any that is free.")] = 3100,
    token: Annotated[
        bool,
        typer.Option("--token/--no-token", help="Ask for the token; turn off if a proxy of yours signs people in."),
    ] = True,
    export: Annotated[
        Path | None,
        typer.Option(help="Write one evaluation as a folder of pages instead, which opens from disk or any web host."),
    ] = None,
    suite: Annotated[str | None, typer.Option(help="The suite to export.")] = None,
    model_version: Annotated[str | None, typer.Option(help="The model version to export.")] = None,
    eval_date: Annotated[
        str | None, typer.Option(help="Date of the evaluation to export, YYYY-MM-DD; default: the newest.")
    ] = None,
) -> None:
    """Shows the published store in a browser: evaluations, turns, every answer; this also works while a run is writing.

    The printed address contains the token of this home; whoever has it can use the workbench.
    """
    from eval_pipeline.core.home import find_home
    from eval_pipeline.view.serving import serve

    if export is not None:
        if not (suite and model_version):
            raise UsageError("say what to export: --suite and --model-version")
        write_folder(suite, model_version, eval_date, export)
        return
    if suite or model_version or eval_date:
        raise UsageError("--suite, --model-version and --eval-date go with --export DIR; the workbench shows all")
    serve(find_home(), host, port, with_token=token)


def write_folder(suite: str, model_version: str, eval_date: str | None, folder: Path | None) -> None:
    """Writes an evaluation as a folder of pages, links its report to it, and prints where it is."""
    from eval_pipeline.cli.options import open_workspace, parse_day
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.view.exporting.folder import export_evaluation, link_report

    workspace = open_workspace()
    day = parse_day(eval_date) if eval_date else None
    with ProgressBars() as progress:
        found = export_evaluation(workspace.home, suite, model_version, day, folder, progress)
        linked = link_report(workspace, found, progress)
    say(f"{found.partition.suite}, {found.partition.model_version}, {found.partition.eval_date}: {found.turns}")
    if found.shortened:
        say(f"{found.shortened:,} pages would be too long, and leave out sections; they say which")
    say(f"{shown.size(found.size)} in {found.folder}; open {found.folder / 'index.html'}")
    if linked is not None:
        say(f"failed turns of {linked} link into it")
    if not found.folder.is_relative_to(workspace.home.exports):
        say("outside of the home's exports `remove --purge` does not find it: it is yours to delete")


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
    write_folder(suite, model_version, eval_date, output)

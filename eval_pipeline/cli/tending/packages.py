"""The commands `packages …`: further packages of suites, which code in the sandbox may import."""

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.options import Suites, open_workspace, suite_names
from eval_pipeline.cli.saying import say

packages_app = typer.Typer(help="Installs packages that suites need in the sandbox.", no_args_is_help=True)


@packages_app.callback()
def packages() -> None:
    """Installs packages that suites need in the sandbox."""


@packages_app.command("install")
def install(
    suite: Suites = None,
    wheels: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Take wheels from a folder, not from the package index (may be repeated)."),
    ] = None,
) -> None:
    """Installs the packages that suites list, from wheels with the listed hashes; runs never install any."""
    from eval_pipeline.operations.suite_work.packages import install_packages

    workspace = open_workspace()
    for name in suite_names(workspace, suite):
        for line in install_packages(workspace, name, wheels or []):
            say(line)

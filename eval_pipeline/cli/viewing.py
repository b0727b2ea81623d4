"""`view`."""

from typing import Annotated

import typer


def view(
    host: Annotated[str, typer.Option(help="Address of the workbench.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the workbench; 0 for any that is free.")] = 3100,
    token: Annotated[
        bool, typer.Option("--token/--no-token", help="Ask for the token; without where a proxy of yours asks people.")
    ] = True,
) -> None:
    """Shows the published store in a browser: evaluations, turns, every answer; works while a run writes.

    The address that is printed holds the token of this home; whoever opens it may use the workbench.
    """
    from eval_pipeline.core.home import find_home
    from eval_pipeline.view.server import serve

    serve(find_home(), host, port, with_token=token)

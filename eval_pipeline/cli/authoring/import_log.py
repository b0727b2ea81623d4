"""The command `import log`: a suite and its answers from one log, whatever wrote it."""

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.authoring.importing import Ignore, Map, Only, Prices, answers_told
from eval_pipeline.cli.options import open_workspace


def import_log(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The log; its content tells what wrote it.")],
    suite: Annotated[
        str, typer.Option(help="Name of the suite, which is made unless it exists; default: as the log names it.")
    ] = "",
    model_version: Annotated[
        str, typer.Option(help="Name of the model version to register; default: the model's, one for each.")
    ] = "",
    map: Map = None,
    ignore: Ignore = None,
    only: Only = None,
    answer_form: Annotated[
        str | None, typer.Option(help="label, number, text or json; guessed from the answers if left out.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The real model that answered.")] = None,
    price: Prices = None,
    priced_as: Annotated[str | None, typer.Option(metavar="MODEL", help="Model whose prices are used.")] = None,
) -> None:
    """Imports a log of any tool: its questions and right answers as a suite, its answers as model versions."""
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.operations.recorded.log_suites import LogChoices, parted, sentences
    from eval_pipeline.operations.recorded.log_suites import import_log as import_whole
    from eval_pipeline.operations.recorded.wanted import ROWS, Wanted
    from eval_pipeline.workspace.progress import busy

    tasks, fields = parted(map or ())
    wanted = Wanted.of(ROWS, fields, ignore or (), only or (), {"model": model}, price, priced_as)
    workspace = open_workspace()
    with workspace.imported.in_turn(), ProgressBars() as progress, busy(progress, f"importing {source.name}"):
        imported = import_whole(workspace, source, LogChoices(suite, model_version, tasks, answer_form), wanted)
    if imported.made is not None:
        workspace.imported.share_suite(imported.suite)
    for sentence in sentences(imported):
        typer.echo(sentence)
    for made in imported.versions:
        answers_told(made)
    names = " ".join(f"--model-version {made.model_version}" for made in imported.versions)
    typer.echo(f"next: eval-pipeline run --suite {imported.suite} {names}")

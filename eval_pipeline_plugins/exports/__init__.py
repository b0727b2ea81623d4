"""Commands that write evaluations and suites in the formats of other tools; entry points name them."""

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.options import EvalDate, open_workspace, parse_day
from eval_pipeline.core.errors import UsageError


def export_inspect(
    suite: Annotated[str, typer.Option(help="The suite.")],
    model_version: Annotated[str, typer.Option(help="The model version.")],
    eval_date: EvalDate = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File (.eval or .json) or folder; default: in the home's exports."),
    ] = None,
) -> None:
    """Writes an evaluation as a log that `inspect view` opens; without a date, the newest one."""
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.operations.runs.evaluations import evaluation_of
    from eval_pipeline.reports.places.paths import safe_name
    from eval_pipeline.workspace.progress import busy
    from eval_pipeline_plugins.exports.inspect import file_name, write_inspect_log

    day = parse_day(eval_date) if eval_date else None
    workspace = open_workspace()
    evaluation = evaluation_of(workspace, suite, model_version, day)
    if output is None:  # a purge looks for it there
        output = workspace.home.exports / suite / safe_name(model_version)
    file = output if output.suffix in {".eval", ".json"} else output / file_name(evaluation)
    if file.suffix != output.suffix and output.is_file():
        raise UsageError(f"{output} is a file; expected a folder, or a name that ends with .eval or .json")
    file.parent.mkdir(parents=True, exist_ok=True)
    with ProgressBars() as progress, busy(progress, f"writing {file.name}"):
        samples = write_inspect_log(evaluation, file)
    place = evaluation.partition
    typer.echo(f"{place.suite}, {place.model_version}, {place.eval_date}: {samples:,} samples written to {file}")
    typer.echo(f"next: inspect view --log-dir {file.parent}")


def export_statgpt(
    suite: Annotated[str, typer.Option(help="A suite of the track sdmx.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New or empty folder; default: in the home's exports.")
    ] = None,
) -> None:
    """Writes the cases of a suite of the track sdmx as StatGPT's case files, one a case."""
    from eval_pipeline_plugins.exports.statgpt import write_statgpt_cases

    workspace = open_workspace()
    folder = output or workspace.home.exports / suite / "statgpt_cases"
    count = write_statgpt_cases(workspace.suite(suite), folder)
    typer.echo(f"{suite}: {count:,} cases written to {folder}")
    typer.echo(f"next: eval-pipeline import statgpt {folder} --suite NAME --structures FILE")

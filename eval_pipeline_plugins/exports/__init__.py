"""Commands that write evaluations and suites in the formats of other tools; entry points name them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import DateOfNewest, open_workspace, parse_day
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.reports.places.paths import safe_name

if TYPE_CHECKING:
    from eval_pipeline.reports.evaluation import Evaluation

_Suite = Annotated[str, typer.Option(help="The suite.")]
_ModelVersion = Annotated[str, typer.Option(help="The model version.")]
_Folder = Annotated[Path | None, typer.Option("--output", "-o", help="Folder; default: in the home's exports.")]


def export_inspect(
    suite: _Suite,
    model_version: _ModelVersion,
    eval_date: DateOfNewest = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File (.eval or .json) or folder; default: in the home's exports."),
    ] = None,
) -> None:
    """Writes an evaluation as a log that `inspect view` opens; without a date, the newest one."""
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.workspace.progress import busy
    from eval_pipeline_plugins.exports.inspect import file_name, write_inspect_log

    is_file = output is not None and output.suffix in {".eval", ".json"}
    evaluation, folder = _chosen(suite, model_version, eval_date, output.parent if output and is_file else output)
    file = output if output and is_file else folder / file_name(evaluation)
    with ProgressBars() as progress, busy(progress, f"writing {file.name}"):
        samples = write_inspect_log(evaluation, file)
    _say(evaluation, f"{shown.counted(samples, 'sample', 'samples')} written to {file}")
    say(f"next: inspect view --log-dir {file.parent}")


def export_atif(
    suite: Annotated[str, typer.Option(help="A suite of the track agent.")],
    model_version: _ModelVersion,
    eval_date: DateOfNewest = None,
    output: _Folder = None,
) -> None:
    """Writes what agents did as trajectories of ATIF, one file a turn; without a date, of the newest evaluation."""
    from eval_pipeline_plugins.exports.atif import write_atif

    evaluation, folder = _chosen(suite, model_version, eval_date, output)
    written, without = write_atif(evaluation, folder)
    left_out = f"; {without:,} turns have none, as nothing was done" if without else ""
    _say(evaluation, f"{shown.counted(written, 'trajectory', 'trajectories')} written to {folder}{left_out}")


def export_otlp(
    suite: _Suite,
    model_version: _ModelVersion,
    eval_date: DateOfNewest = None,
    output: _Folder = None,
) -> None:
    """Writes scores as events of OpenTelemetry (OTLP, JSON Lines); without a date, those of the newest evaluation."""
    from eval_pipeline_plugins.exports.otlp import write_otlp

    evaluation, folder = _chosen(suite, model_version, eval_date, output)
    place = evaluation.partition
    name = f"{safe_name(place.suite)}_{safe_name(place.model_version)}_{place.eval_date}"
    events, spans = folder / f"{name}.events.jsonl", folder / f"{name}.spans.jsonl"
    scored, made = write_otlp(evaluation, events, spans)
    _say(evaluation, f"{scored:,} events written to {events}")
    if made:
        say(f"{made:,} spans of answers that come from no trace written to {spans}")


def export_every_eval_ever(
    suite: _Suite,
    model_version: _ModelVersion,
    organization: Annotated[str, typer.Option(help="Who evaluates.")],
    relation: Annotated[
        str, typer.Option(help="To the model's maker: first_party, third_party, collaborative or other.")
    ] = "other",
    eval_date: DateOfNewest = None,
    output: _Folder = None,
) -> None:
    """Writes an evaluation as records of Every Eval Ever; without a date, the newest one."""
    from eval_pipeline_plugins.exports.every_eval_ever import Evaluator, write_records

    evaluation, folder = _chosen(suite, model_version, eval_date, output)
    file, answers = write_records(evaluation, folder, Evaluator(organization, relation), datetime.now(UTC))
    _say(evaluation, f"written to {file}, with {answers:,} answers")
    say(f"next: uvx every-eval-ever validate {file}")


def _chosen(suite: str, model_version: str, eval_date: str | None, output: Path | None) -> tuple["Evaluation", Path]:
    """Returns the evaluation, and the folder to write it to; by default one where a purge looks for it."""
    from eval_pipeline.operations.runs.evaluations import evaluation_of

    workspace = open_workspace()
    evaluation = evaluation_of(workspace, suite, model_version, parse_day(eval_date) if eval_date else None)
    folder = output or workspace.home.exports / suite / safe_name(model_version)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; expected a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return evaluation, folder


def _say(evaluation: "Evaluation", told: str) -> None:
    place = evaluation.partition
    say(f"{place.suite}, {place.model_version}, {place.eval_date}: {told}")


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
    say(f"{suite}: {shown.counted(count, 'case', 'cases')} written to {folder}")
    say(f"next: eval-pipeline import statgpt {folder} --suite NAME --structures FILE")

"""The command line: a thin front on the stages and, for `run`, on the Dagster definitions.

Commands import what they need inside their functions: `--help`, `query` and the like must not wait for dagster.
"""

import signal
import sys
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline import __version__
from eval_pipeline.core.errors import EvalError, InputError, UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.model import Partition
from eval_pipeline.tracks.base import IMPORTERS

if TYPE_CHECKING:
    from eval_pipeline.stages.workspace import Workspace

FORMATS = ("table", "csv", "json", "parquet")
OK, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    help="Evaluates language models on data work: how good, how sure, and what a right answer costs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
import_app = typer.Typer(help="Brings in data sets and predictions made elsewhere.", no_args_is_help=True)
app.add_typer(import_app, name="import")

Suites = Annotated[list[str] | None, typer.Option("--suite", help="Suite; several times for several; all if left out.")]
Versions = Annotated[
    list[str] | None,
    typer.Option("--model-version", help="Model version; several times for several; all active ones if left out."),
]
SampleSize = Annotated[
    int | None, typer.Option(min=1, help="Only this many conversations, drawn at random; the same ones each time.")
]
Seed = Annotated[int, typer.Option(help="Seed of --sample-size.")]
CaseIds = Annotated[list[str] | None, typer.Option("--case", help="Only this case; several times for several.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only cases with this tag; several times for several.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ask the models anew instead of using journalled responses.")]
EvalDate = Annotated[str | None, typer.Option(help="Logical date of the evaluation, YYYY-MM-DD; today if left out.")]


@app.command()
def run(
    suite: Suites = None,
    model_version: Versions = None,
    sample_size: SampleSize = None,
    seed: Seed = 0,
    case: CaseIds = None,
    tag: Tags = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only cases that failed in the latest full run.")] = False,
    eval_date: EvalDate = None,
    fresh: Fresh = False,
    report: Annotated[bool, typer.Option(help="Write the report files.")] = True,
    fail_below: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=VALUE", help="Gate: exit with 1 where a metric is below.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Gate: exit with 1 where significantly worse than this model version.")
    ] = None,
) -> None:
    """Evaluates model versions on suites, and shows the headline."""
    from eval_pipeline.stages.baseline import baseline_verdict
    from eval_pipeline.stages.generate import guard_scope
    from eval_pipeline.stages.headline import failed_gates, headline
    from eval_pipeline.stages.scope import Scope, suites_in_scope
    from eval_pipeline.terminal import ProgressBars, console, fail, headline_table, note

    workspace = _workspace()
    gates = _gates(fail_below)
    scope = Scope(sample_size, seed if sample_size else 0, tuple(case or ()), tuple(tag or ()), failed)
    suites = suites_in_scope(workspace, _suites(workspace, suite), scope)
    versions = _model_versions(workspace, model_version)
    if baseline:
        workspace.model_version(baseline)
    day = _day(eval_date)
    partitions = [Partition(name, version, day) for version in versions for name in suites]
    for partition in partitions:
        guard_scope(workspace, partition, scope)

    from eval_pipeline.defs.launch import Request, run

    epoch = datetime.now().isoformat(timespec="seconds") if fresh else ""
    request = Request(suites, versions, day, scope, epoch, report)
    problems: list[str] = []
    broken: set[tuple[str, str]] = set()
    with ProgressBars() as progress:
        for finished in run(workspace.home, request, progress):
            prefix = finished.suite + (f", {finished.model_version}" if finished.model_version else "")
            problems += [f"{prefix}: {error}" for error in finished.errors]
            if finished.errors:
                broken.add((finished.suite, finished.model_version))
    done = [p for p in partitions if not {(p.suite, ""), (p.suite, p.model_version)} & broken]
    headlines = [headline(workspace, partition) for partition in done]
    if headlines:
        console.print(headline_table(headlines))
        _print_paths(workspace, done, report)
    problems += failed_gates(headlines, gates)
    if baseline:
        verdicts = [baseline_verdict(workspace, p, baseline) for p in done if p.model_version != baseline]
        problems += [verdict for verdict in verdicts if verdict]
    for problem in problems:
        fail(problem)
    if any(found.simulated for found in headlines):
        note("(simulated): a stand-in that damages gold answers at known rates, not a model.")
    raise typer.Exit(FAILED if problems else OK)


@app.command()
def plan(
    suite: Suites = None,
    model_version: Versions = None,
    sample_size: SampleSize = None,
    seed: Seed = 0,
    case: CaseIds = None,
    tag: Tags = None,
    fresh: Fresh = False,
) -> None:
    """Says what a run would ask and cost, without asking anything."""
    from eval_pipeline.stages.planning import plan as make_plan
    from eval_pipeline.stages.scope import Scope, suites_in_scope
    from eval_pipeline.terminal import plan_table

    workspace = _workspace()
    scope = Scope(sample_size, seed if sample_size else 0, tuple(case or ()), tuple(tag or ()))
    suites = suites_in_scope(workspace, _suites(workspace, suite), scope)
    epoch = datetime.now().isoformat(timespec="seconds") if fresh else ""
    versions = _model_versions(workspace, model_version)
    _print(plan_table([make_plan(workspace, name, version, scope, epoch) for version in versions for name in suites]))


@import_app.command("predictions")
def import_predictions(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL of predictions.")],
    suite: Annotated[str, typer.Option(help="The suite that was answered.")],
    model_version: Annotated[str, typer.Option(help="Name of the model version to register.")],
    priced_as: Annotated[str | None, typer.Option(metavar="MODEL", help="Model whose prices count.")] = None,
) -> None:
    """Registers recorded predictions as a model version."""
    from eval_pipeline.stages import importing

    made = importing.import_predictions(_workspace(), source, suite, model_version, priced_as)
    typer.echo(f"{made.predictions} predictions imported as model version '{made.model_version}'")
    if made.missing:
        shown = ", ".join(made.missing[:5]) + (" …" if len(made.missing) > 5 else "")
        typer.echo(f"{len(made.missing)} turns without a prediction count as no answer: {shown}")
    typer.echo(f"next: eval-pipeline run --suite {suite} --model-version {model_version}")


def _import_command(form: str, track: str) -> None:
    @import_app.command(form, help=f"Imports a {form} data set as a suite of track {track}.")
    def import_data_set(
        source: Annotated[Path, typer.Argument(metavar="FILE", help="The data set's file or folder.")],
        suite: Annotated[str, typer.Option(help="Name of the suite to make.")],
        limit: Annotated[int | None, typer.Option(min=1, help="Only the first cases.")] = None,
    ) -> None:
        from eval_pipeline.stages.importing import import_suite

        made = import_suite(_workspace(), form, source, suite, limit)
        typer.echo(f"{made.cases} cases with {made.turns} turns imported to {made.folder}")
        for sentence in made.wrong_gold:
            typer.echo(f"gold does not hold: {sentence}")
        typer.echo(f"next: eval-pipeline run --suite {suite}")


for _form, (_track, _) in IMPORTERS.items():
    _import_command(_form, _track)


@app.command()
def validate(suite: Suites = None) -> None:
    """Reads suites, checks every gold answer, and says what is wrong where."""
    from eval_pipeline.stages.check import check_ends
    from eval_pipeline.suites import read_cases
    from eval_pipeline.terminal import fail

    workspace = _workspace()
    wrong = 0
    for name in _suites(workspace, suite):
        try:
            source = workspace.suite(name)
            cases, track = read_cases(source), source.track()
        except InputError as error:
            wrong += len(error.problems)
            for problem in error.problems:
                fail(str(problem))
            continue
        excluded = [(turn.id, why) for found in cases for turn, why in track.check_gold(found)]
        for turn, why in excluded:
            fail(f"{turn}: {why}; left out of the oracle's 1.0")
        ends = check_ends(track, cases)
        if not ends.passed:
            fail(f"{name}: {ends.text}: {', '.join(ends.facts['examples'])}")
        wrong += len(excluded) + (not ends.passed)
        turns = sum(len(found.turns) for found in cases)
        typer.echo(f"{name}: {len(cases)} cases, {turns} turns; {ends.text}")
    raise typer.Exit(FAILED if wrong else OK)


@app.command()
def publish(full: Annotated[bool, typer.Option("--full", help="Build the store anew from the record.")] = False) -> None:
    """Publishes the record into the DuckDB store."""
    from eval_pipeline.stages.publishing import publish_all

    workspace = _workspace()
    result = publish_all(workspace, full=full)
    typer.echo(f"{workspace.home.store}: {result.facts['partitions_replaced']} partitions replaced")


@app.command()
def report(suite: Suites = None, model_version: Versions = None, eval_date: EvalDate = None) -> None:
    """Writes the report files of evaluations in the record; of the newest date if none is given."""
    from eval_pipeline.stages.baseline import newest_partition
    from eval_pipeline.stages.reporting import report as write_report

    workspace = _workspace()
    made = 0
    for name in _suites(workspace, suite):
        for version in model_version or list(workspace.model_versions):
            day = _day(eval_date) if eval_date else None
            partition = Partition(name, version, day) if day else newest_partition(workspace, name, version)
            if partition is not None:
                typer.echo(write_report(workspace, partition).facts["folder"])
                made += 1
    if not made:
        raise UsageError("the record has no such evaluation; `eval-pipeline run` makes one")


@app.command()
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One query on the published store.")],
    format: Annotated[str, typer.Option(help="table, csv, json or parquet (to standard output).")] = "table",
) -> None:
    """Queries the published store; works while a run writes."""
    from eval_pipeline.store.query import run_query, write_parquet
    from eval_pipeline.terminal import print_rows

    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'; one of: {', '.join(FORMATS)}")
    found = run_query(find_home().store, sql)
    if format == "parquet":
        write_parquet(found, sys.stdout.buffer)
    else:
        print_rows(found.column_names, [list(row.values()) for row in found.to_pylist()], format)


@app.command()
def doctor() -> None:
    """Checks the installation: versions, keys, disk, suites, journal, record and store."""
    from eval_pipeline.stages.doctor import examine
    from eval_pipeline.terminal import finding_line

    fine = True
    for finding in examine(find_home()):
        _print(finding_line(finding))
        fine &= finding.fine
    raise typer.Exit(OK if fine else FAILED)


def _workspace() -> "Workspace":
    from eval_pipeline.stages.workspace import Workspace

    return Workspace(find_home())


def _suites(workspace: "Workspace", names: list[str] | None) -> list[str]:
    return [workspace.suite(name).name for name in dict.fromkeys(names)] if names else list(workspace.suites)


def _model_versions(workspace: "Workspace", names: list[str] | None) -> list[str]:
    if names:
        return [workspace.model_version(name).name for name in dict.fromkeys(names)]
    return [version.name for version in workspace.model_versions.values() if version.active]


def _day(text: str | None) -> date:
    try:
        return date.fromisoformat(text) if text else date.today()
    except ValueError as error:
        raise UsageError(f"'{text}' is no date; expected YYYY-MM-DD") from error


def _gates(texts: list[str] | None) -> dict[str, float]:
    gates = {}
    for text in texts or ():
        metric, _, value = text.partition("=")
        try:
            gates[metric] = float(value)
        except ValueError as error:
            raise UsageError(f"'{text}' is no gate; expected METRIC=VALUE, e.g. correct=0.8") from error
    return gates


def _print(what: Any) -> None:
    from eval_pipeline.terminal import console

    console.print(what)


def _print_paths(workspace: "Workspace", partitions: list[Partition], report: bool) -> None:
    typer.echo(f"store:    {workspace.home.store}")
    if report:
        from eval_pipeline.stages.reporting import workbook_path

        for partition in partitions:
            typer.echo(f"workbook: {workbook_path(workspace.home, partition)}")


def main() -> None:
    """Entry point: errors that the user can mend are one sentence, a trace only with `--debug`."""
    signal.signal(signal.SIGTERM, _interrupt)
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        code = app(arguments, standalone_mode=False)
    except EvalError as error:
        _fail(str(error), debug)
        code = BAD_USAGE
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted; what was done is kept, the next run goes on from there", debug)
        code = INTERRUPTED
    except typer.Exit as exit_:
        code = exit_.exit_code
    except Exception as error:
        show = getattr(error, "show", None)
        if show is None:
            _fail(f"{type(error).__name__}: {error} (a fault of eval-pipeline; --debug shows where)", debug)
            code = FAILED
        else:
            show()
            code = BAD_USAGE
    sys.exit(code or OK)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _fail(message: str, debug: bool) -> None:
    from eval_pipeline.terminal import fail

    if debug:
        raise
    fail(message)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit

"""The commands `validate`, `publish`, `report`, `query` and `doctor`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.authoring import suites
from eval_pipeline.cli.options import (
    BAD_USAGE,
    FAILED,
    OK,
    Suites,
    open_workspace,
    parse_day,
    suite_names,
)
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import EvalError, InputError, UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.state.place import state_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eval_pipeline.core.home import Home
    from eval_pipeline.operations.upkeep.doctor import Finding
    from eval_pipeline.suites.headers import SuiteSource
    from eval_pipeline.workspace.workspace import Progress, Workspace

FORMATS = ("table", "csv", "json", "parquet")
_OWN = "own"
"""What `--show-prompt` calls the track's own prompt, unless a suite has one of that name."""


def validate(
    suite: Suites = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Also count the mutants of the gold that the suite tells from it.")
    ] = False,
    show_prompt: Annotated[
        list[str] | None,
        typer.Option(help="Also show the first question in this prompt of the suite; `own` for the track's own one."),
    ] = None,
) -> None:
    """Reads suites and model versions, checks every gold answer, and reports what is wrong and where."""
    workspace = open_workspace()
    names = suite_names(workspace, suite)
    codes = [_validate(workspace, workspace.suite(name)) for name in names]
    for name, code in zip(names, codes, strict=True):
        if mutants and code == OK:
            suites.report_mutants(workspace.suite(name))
        for prompt in show_prompt or () if code != BAD_USAGE else ():
            _show_prompt(workspace.suite(name), prompt)
    _ = workspace.model_versions  # read last, so that problems with them do not hide problems with the suites
    raise typer.Exit(max(codes, default=OK))


def _validate(workspace: "Workspace", source: "SuiteSource") -> int:
    """Reports the problems of one suite and returns its exit code."""
    from eval_pipeline.cli.terminal import ProgressBars, fail, note
    from eval_pipeline.stages.checks.suite_files import look_through
    from eval_pipeline.stages.checks.verdicts import gold_sentence

    name = source.name
    try:
        with ProgressBars() as progress:
            found = look_through(workspace, source, progress)
    except InputError as error:
        for problem in error.problems:
            fail(str(problem))
        return BAD_USAGE
    for problem in found.problems:
        fail(f"{problem}; the case is left out")
    for sentence in found.notes:
        note(sentence)
    for turn, why in found.broken:
        fail(f"{turn}: {why}; it cannot be scored and is in no figure")
    drift = "its gold gives another result than when the suite was read; a clock, chance, or other data?"
    doubtful = [f"{doubt.turn_id}: {doubt.evidence}; a doubt, which removes no case" for doubt in found.doubts]
    for sentence in (*doubtful, *(f"{turn}: {drift}" for turn in found.moved)):
        note(sentence)
    for override in found.overrides:
        say(f"{override.turn_id}: {override.action} by {override.who}: {override.why}")
    ends = found.ends
    if not ends.passed:
        fail(f"{name}: {ends.text}: {', '.join(ends.facts['examples'])}")
    said = gold_sentence(found.turns, len(found.broken), found.doubts, found.decided)
    cases, turns = shown.counted(found.cases, "case", "cases"), shown.turns(found.turns)
    say(f"{name}: {cases}, {turns}; {said}; {ends.text}")
    say(f"{name}: {found.fairness.text()}")
    if found.problems:
        return BAD_USAGE
    return FAILED if found.broken or not ends.passed else OK


def _show_prompt(source: "SuiteSource", name: str) -> None:
    """Prints the prompt of the first turn of a suite."""
    from eval_pipeline.suites.cases import SuiteReading
    from eval_pipeline.tracks.capabilities import Acts
    from eval_pipeline.tracks.texts.prompt_parts import Prompting

    prompts = source.require().prompts
    if name != _OWN and name not in prompts:
        raise UsageError(f"the suite '{source.name}' has no prompt '{name}'; known: {', '.join([_OWN, *prompts])}")
    track = source.track()
    case, _ = next(iter(SuiteReading(source)))
    made = Prompting(track.prompt_versions[-1], prompts.get(name)).prompt(track, case, case.turns[0], [])
    say(f"\n{source.name}, prompt {name}, {case.turns[0].id}:\n\n{made.text()}\n")
    if isinstance(track, Acts):
        told = track.task_text(case, case.turns[0])
        say(f"A program of your own (`provider: command`) writes its own prompt and is told this alone:\n\n{told}\n")


def publish(
    full: Annotated[bool, typer.Option("--full", help="Rebuild the whole store from the record.")] = False,
) -> None:
    """Publishes the record to the DuckDB store; for incomplete evaluations the store keeps its previous state."""
    from eval_pipeline.cli.evaluating.sweeping import begin
    from eval_pipeline.cli.terminal import ProgressBars, fail, note
    from eval_pipeline.operations.runs.publication import not_filled, publish_record
    from eval_pipeline.operations.upkeep.completing import compare_what_is_new

    workspace = open_workspace()
    with ProgressBars() as progress:
        begin(workspace, progress)
        result = publish_record(workspace, full=full, progress=progress)
        for problem in compare_what_is_new(workspace, progress, "publish"):
            note(f"warning: {problem}")
    say(f"{workspace.home.store}: {result.facts['partitions_replaced']} partitions replaced")
    for sentence in not_filled(workspace):
        say(sentence)
    for sentence in result.facts["left_out"]:
        fail(sentence)
    raise typer.Exit(FAILED if result.facts["left_out"] else OK)


def report(
    suite: Suites = None,
    model_version: Annotated[
        list[str] | None,
        typer.Option("--model-version", help="Model version; repeat it for several; default: all."),
    ] = None,
    eval_date: Annotated[
        str | None, typer.Option(help="Date of the evaluation, YYYY-MM-DD; default: the newest of each.")
    ] = None,
) -> None:
    """Writes the report files of evaluations in the record; if no date is given, of the newest one."""
    from eval_pipeline.analysis.baseline import newest_partition
    from eval_pipeline.chain.evaluation import stage_of
    from eval_pipeline.chain.runner import run_stage
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.core.model import Partition
    from eval_pipeline.store.record import RecordKey
    from eval_pipeline.store.tables import TURN_RESULTS
    from eval_pipeline.workspace.inputs import Inputs

    workspace = open_workspace()
    made = 0
    for name in suite_names(workspace, suite):
        for version in model_version or list(workspace.model_versions):
            day = parse_day(eval_date) if eval_date else None
            partition = Partition(name, version, day) if day else newest_partition(workspace, name, version)
            if partition is not None and workspace.record.header(TURN_RESULTS, RecordKey.of(partition)) is not None:
                with ProgressBars() as progress:
                    inputs = Inputs.of(workspace, partition, progress=progress)
                    written = run_stage(stage_of(inputs.track, "report"), inputs)
                say(written.facts["folder"])
                made += 1
        compared = run_stage(stage_of(None, "comparison_report"), Inputs(workspace, name))
        if compared.rows:
            say(compared.facts["folder"])
    if not made:
        raise UsageError("the record has no such evaluation; `eval-pipeline run` makes one")


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One query on the published store.")],
    format: Annotated[str, typer.Option(help="table, csv, json or parquet (to standard output).")] = "table",
) -> None:
    """Runs a query on the published store; this also works while a run is writing."""
    from eval_pipeline.cli.terminal import note, print_rows
    from eval_pipeline.store.published.memo import is_as_published
    from eval_pipeline.store.published.query import run_query
    from eval_pipeline.workspace.homes.places import place_of
    from eval_pipeline.workspace.noting.commands import lag

    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'; one of: {', '.join(FORMATS)}")
    store = place_of(find_home()).fresh_store()
    found = run_query(store, sql)
    if not is_as_published(store):
        note("note: another program has changed the store since it was published; `eval-pipeline publish` mends it")
    if behind := lag(find_home()):
        note(f"note: {behind}; the next run or `eval-pipeline publish` makes up for it")
    if format == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(found, sys.stdout.buffer)
    else:
        print_rows(found.column_names, [list(row.values()) for row in found.to_pylist()], format)


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild damaged files from their sources; stop all runs first.")
    ] = False,
) -> None:
    """Checks the installation: versions, keys, disk, suites, runs, journal, record and store.

    Every byte of the record and of the journal is read and compared with its digest.
    """
    from eval_pipeline.cli.terminal import ProgressBars, console, finding_line
    from eval_pipeline.operations.upkeep.doctor import examine

    home = find_home()
    runs = _swept(home)
    with ProgressBars() as progress:
        findings = [*_repaired(progress)] if repair else []
        findings += [*examine(home, progress), runs, *_dagster(home)]
    for finding in findings:
        console.print(finding_line(finding), soft_wrap=True)
    raise typer.Exit(OK if all(finding.fine for finding in findings) else FAILED)


def _repaired(progress: "Progress") -> "Iterator[Finding]":
    from eval_pipeline.operations.upkeep.repairing import repair

    yield from repair(open_workspace(), progress)


def _dagster(home: "Home") -> "Iterator[Finding]":
    """Yields how much Dagster keeps of the home and what of it `prune` would remove; nothing if it keeps nothing."""
    from eval_pipeline.cli.evaluating.sweeping import of_dagsters_storage
    from eval_pipeline.cli.tending import KEPT
    from eval_pipeline.operations.upkeep.doctor import Finding

    try:
        state = state_place()
    except EvalError as error:
        yield Finding("dagster's runs", False, str(error), "correct this and try again")
        return
    if not state.has_dagster(home):
        return
    from eval_pipeline.defs.running.pruning import prune_history
    from eval_pipeline.operations.upkeep.pruning import remaining

    size = shown.size(sum(path.stat().st_size for path in home.dagster.rglob("*") if path.is_file()))
    place, command = f"{home.dagster}: {size}", "prune"
    if state.is_shared:
        place, command = state.address, "prune --only-home"
    try:
        found = prune_history(home, remaining(open_workspace(), KEPT), dry_run=True)
    except Exception as error:
        text = str(error) if isinstance(error, EvalError | OSError) else of_dagsters_storage(error)
        if text is None:
            raise
        yield Finding("dagster's runs", False, text, "correct this and try again")
        return
    text = f"{place}; `eval-pipeline {command}` would remove {found.runs:,} of {found.of:,} runs of Dagster"
    yield Finding("dagster's runs", True, text)


def _swept(home: "Home") -> "Finding":
    """Marks unfinished runs as failed; a problem with that becomes a finding, as later findings explain it."""
    from eval_pipeline.cli.evaluating.sweeping import of_dagsters_storage, sweep
    from eval_pipeline.operations.upkeep.doctor import Finding
    from eval_pipeline.workspace.watching.running import GONE, seen

    try:
        swept = sweep(home)
    except Exception as error:
        text = str(error) if isinstance(error, EvalError | OSError) else of_dagsters_storage(error)
        if text is None:
            raise
        return Finding("runs", False, text, "correct this and try again")
    told = f"{swept} marked as failed, whose process is gone" if swept else "none was left behind"
    if gone := sum(one.state == GONE for one in seen(home)):
        told += f"; {gone} command{'s' if gone > 1 else ''} killed, which the next `run` of the same goes on with"
    return Finding("runs", True, told)

"""`validate`, `publish`, `report`, `query` and `doctor`."""

import sys
from typing import Annotated

import typer

from eval_pipeline.cli.options import EvalDate, Suites, Versions, open_workspace, parse_day, suite_names
from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.model import Partition

FORMATS = ("table", "csv", "json", "parquet")


def validate(suite: Suites = None) -> None:
    """Reads suites, checks every gold answer, and says what is wrong where."""
    from eval_pipeline.cli.terminal import fail
    from eval_pipeline.stages.check import check_ends
    from eval_pipeline.suites import read_cases

    workspace = open_workspace()
    wrong = 0
    for name in suite_names(workspace, suite):
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
    raise typer.Exit(1 if wrong else 0)


def publish(
    full: Annotated[bool, typer.Option("--full", help="Build the store anew from the record.")] = False,
) -> None:
    """Publishes the record into the DuckDB store."""
    from eval_pipeline.stages.publishing import publish_all

    workspace = open_workspace()
    result = publish_all(workspace, full=full)
    typer.echo(f"{workspace.home.store}: {result.facts['partitions_replaced']} partitions replaced")


def report(suite: Suites = None, model_version: Versions = None, eval_date: EvalDate = None) -> None:
    """Writes the report files of evaluations in the record; of the newest date if none is given."""
    from eval_pipeline.stages.baseline import newest_partition
    from eval_pipeline.stages.reporting import report as write_report
    from eval_pipeline.store.record import RecordKey
    from eval_pipeline.store.tables import TURN_RESULTS

    workspace = open_workspace()
    made = 0
    for name in suite_names(workspace, suite):
        for version in model_version or list(workspace.model_versions):
            day = parse_day(eval_date) if eval_date else None
            partition = Partition(name, version, day) if day else newest_partition(workspace, name, version)
            if partition is not None and workspace.record.header(TURN_RESULTS, RecordKey.of(partition)) is not None:
                typer.echo(write_report(workspace, partition).facts["folder"])
                made += 1
    if not made:
        raise UsageError("the record has no such evaluation; `eval-pipeline run` makes one")


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One query on the published store.")],
    format: Annotated[str, typer.Option(help="table, csv, json or parquet (to standard output).")] = "table",
) -> None:
    """Queries the published store; works while a run writes."""
    from eval_pipeline.cli.terminal import print_rows
    from eval_pipeline.store.query import run_query

    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'; one of: {', '.join(FORMATS)}")
    found = run_query(find_home().store, sql)
    if format == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(found, sys.stdout.buffer)
    else:
        print_rows(found.column_names, [list(row.values()) for row in found.to_pylist()], format)


def doctor() -> None:
    """Checks the installation: versions, keys, disk, suites, journal, record and store."""
    from eval_pipeline.cli.terminal import console, finding_line
    from eval_pipeline.stages.doctor import examine

    fine = True
    for finding in examine(find_home()):
        console.print(finding_line(finding), soft_wrap=True)
        fine &= finding.fine
    raise typer.Exit(0 if fine else 1)

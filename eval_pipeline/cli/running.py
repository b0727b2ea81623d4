"""`run`, `plan` and `dev`."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import (
    CaseIds,
    EvalDate,
    Failed,
    Fresh,
    SampleSize,
    Seed,
    Suites,
    Tags,
    Versions,
    askable_pairs,
    check_gates,
    model_version_names,
    open_workspace,
    parse_day,
    parse_gates,
    suite_names,
)
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.model import Partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eval_pipeline.operations.headline import Headline
    from eval_pipeline.workspace.scope import Scope
    from eval_pipeline.workspace.workspace import Workspace


def run(
    suite: Suites = None,
    model_version: Versions = None,
    sample_size: SampleSize = None,
    seed: Seed = 0,
    case: CaseIds = None,
    tag: Tags = None,
    failed: Failed = False,
    eval_date: EvalDate = None,
    fresh: Fresh = False,
    report: Annotated[bool, typer.Option(help="Write the report files.")] = True,
    fail_below: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=VALUE", help="Gate: exit with 1 where a metric is below.")
    ] = None,
    canary: Annotated[
        bool,
        typer.Option(
            "--canary/--no-canary",
            help="Stop where hardly any of the first answers can be read, before the rest is paid.",
        ),
    ] = True,
    baseline: Annotated[
        str | None, typer.Option(help="Gate: exit with 1 where significantly worse than this model version.")
    ] = None,
) -> None:
    """Evaluates model versions on suites, and shows the headline. What is up to date is not done again."""
    from eval_pipeline.analysis.baseline import baseline_verdict
    from eval_pipeline.operations.headline import failed_gates, headline
    from eval_pipeline.workspace.planned import guard_scope
    from eval_pipeline.workspace.scope import Scope, suites_in_scope

    workspace = open_workspace()
    gates = parse_gates(fail_below)
    scope = Scope(sample_size, seed if sample_size else 0, tuple(case or ()), tuple(tag or ()), failed)
    suites = suites_in_scope(workspace, suite_names(workspace, suite), scope)
    versions = model_version_names(workspace, model_version)
    if baseline:
        workspace.model_version(baseline)
    day = parse_day(eval_date)
    pairs = askable_pairs(workspace, versions, suites, named=bool(suite and model_version))
    partitions = [Partition(name, version, day) for version, name in pairs]
    if not partitions:
        raise UsageError(f"nothing to run: there is no {'active model version' if suites else 'suite'}")
    check_gates(workspace, gates, pairs)
    for partition in partitions:
        guard_scope(workspace, partition, scope)
    problems, done = evaluate(workspace, partitions, scope, _epoch(fresh), report, canary=canary)
    headlines = [headline(workspace, partition) for partition in done]
    problems += failed_gates(headlines, gates)
    if baseline:
        verdicts = [baseline_verdict(workspace, p, baseline) for p in done if p.model_version != baseline]
        problems += [verdict for verdict in verdicts if verdict]
    show(workspace, headlines, problems, report)
    raise typer.Exit(1 if problems else 0)


def plan(
    suite: Suites = None,
    model_version: Versions = None,
    sample_size: SampleSize = None,
    seed: Seed = 0,
    case: CaseIds = None,
    tag: Tags = None,
    failed: Failed = False,
    eval_date: EvalDate = None,
    fresh: Fresh = False,
) -> None:
    """Says what a run would ask and cost, without asking anything."""
    from eval_pipeline.cli.terminal import console, plan_lines
    from eval_pipeline.operations.planning import plan as make_plan
    from eval_pipeline.workspace.scope import Scope, suites_in_scope

    workspace = open_workspace()
    scope = Scope(sample_size, seed if sample_size else 0, tuple(case or ()), tuple(tag or ()), failed)
    suites = suites_in_scope(workspace, suite_names(workspace, suite), scope)
    versions = model_version_names(workspace, model_version)
    day, epoch = parse_day(eval_date), _epoch(fresh)
    pairs = askable_pairs(workspace, versions, suites, named=bool(suite and model_version))
    plans = [make_plan(workspace, Partition(name, version, day), scope, epoch) for version, name in pairs]
    for found in plans:
        for line in plan_lines(found):
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def dev(
    host: Annotated[str, typer.Option(help="Address of the UI.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the UI.")] = 3000,
    token: Annotated[
        bool, typer.Option("--token/--no-token", help="Ask for the token; without where a proxy of yours asks people.")
    ] = True,
) -> None:
    """Opens the Dagster UI: webserver and daemon on this home, until interrupted.

    The address that is printed holds the token of this home; whoever opens it may use the UI.
    """
    from eval_pipeline.defs.running.supervisor import serve

    serve(open_workspace().home, host, port, with_token=token)


def _epoch(fresh: bool) -> str:
    return datetime.now().isoformat(timespec="seconds") if fresh else ""


def evaluate(
    workspace: "Workspace",
    partitions: "Sequence[Partition]",
    scope: "Scope",
    epoch: str,
    report: bool,
    *,
    canary: bool = True,
) -> tuple[list[str], list[Partition]]:
    """Runs what is out of date: (what went wrong, the partitions whose aggregates are in the record)."""
    from eval_pipeline.cli.terminal import ProgressBars, note
    from eval_pipeline.operations.changes import changes_told
    from eval_pipeline.operations.keeping import evaluation_is_current, keep_comparisons, keep_evaluations, remarks
    from eval_pipeline.workspace.inputs import Inputs
    from eval_pipeline.workspace.progress import counted
    from eval_pipeline.workspace.runs import RunContext

    broken: set[tuple[str, str]] = set()
    with ProgressBars() as progress:
        context = RunContext(epoch=epoch)
        seen = {p: Inputs.of(workspace, p, run=context, scope=scope, progress=progress) for p in partitions}
        looked_at = counted(progress, "looking what is out of date", seen.items(), len(seen))
        current = [partition for partition, inputs in looked_at if evaluation_is_current(inputs)]
        workspace.fingerprints.save()
        problems = []
        for found, told in keep_evaluations([seen[found] for found in current], with_report=report).items():
            if isinstance(told, StoreError):  # a damaged file of one evaluation stops no other
                problems.append(f"{found.suite}, {found.model_version}: {told}")
                broken.add((found.suite, found.model_version))
            else:
                problems += told
        notes = [text for partition in current for text in changes_told(seen[partition])]
        stale = [partition for partition in partitions if partition not in current]
        if stale:
            # Costs a second; not needed where there is nothing to run.
            from eval_pipeline.defs.running.launch import Request, run

            for finished in run(workspace.home, Request(stale, scope, epoch, report, canary), progress):
                name = ", ".join(filter(None, (finished.suite, finished.model_version)))
                problems += [f"{name}: {error}" for error in finished.errors]
                if finished.incomplete:
                    broken.add((finished.suite, finished.model_version))
        whole = [p for p in partitions if not {(p.suite, ""), (p.suite, p.model_version)} & broken]
        notes += [f"warning: {text}" for partition in whole for text in remarks(seen[partition].anew())]
        for suite in dict.fromkeys(partition.suite for partition in whole):
            of_suite = Inputs(workspace, suite, progress=progress)
            asked = {p.model_version: p.eval_date for p in whole if p.suite == suite}
            wrong, drifts = keep_comparisons(of_suite, asked, with_report=report)
            problems += wrong
            notes += [f"warning: {text}" for text in drifts]
    for text in notes:
        note(text)
    return problems, whole


def show_suite(name: str, headlines: "Sequence[Headline]") -> None:
    """Prints what the evaluations of a suite came to, how far they got, and who answered."""
    from eval_pipeline.cli.terminal import console, coverage_lines, headline_table

    console.print(headline_table(name, headlines))
    for line in coverage_lines(headlines):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for found in headlines:
        if found.served.models:
            answered = ", ".join((*found.served.models, *found.served.fingerprints))
            typer.echo(f"answered: {found.partition.model_version}: by {answered}")


def show(workspace: "Workspace", headlines: "Sequence[Headline]", problems: "Sequence[str]", report: bool) -> None:
    """Prints the headline, where the results lie, and what went wrong."""
    from eval_pipeline.cli.terminal import fail, note
    from eval_pipeline.reports.gold import overridden_text
    from eval_pipeline.reports.paths import WORKBOOK
    from eval_pipeline.stages.reporting import comparison_page_path, page_path

    for name in dict.fromkeys(found.partition.suite for found in headlines):
        show_suite(name, [found for found in headlines if found.partition.suite == name])
    if headlines:
        typer.echo(f"store:    {workspace.home.store}")
    pages: list[Path | None] = [page_path(workspace.home, found.partition) for found in headlines]
    pages += [comparison_page_path(workspace, suite) for suite in dict.fromkeys(h.partition.suite for h in headlines)]
    for page in pages if report else ():
        if page is not None:
            typer.echo(f"report:   {page} (workbook: {WORKBOOK})")
    for found in headlines:
        if overridden := overridden_text(found.editions):
            note(f"{found.partition.suite}, {found.partition.model_version}: {overridden}.")
    if any(found.simulated for found in headlines):
        note("simulated: a stand-in, not a model; its figures say nothing about any real one.")
    for problem in problems:
        fail(problem)

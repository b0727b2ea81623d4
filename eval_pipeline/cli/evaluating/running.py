"""The commands `run`, `plan` and `dev`."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.evaluating.until import Rule, expected_lines, nightly_lines, parse_until
from eval_pipeline.cli.options import (
    AllPrompts,
    CaseIds,
    EvalDate,
    Failed,
    Fresh,
    Junit,
    MaxCost,
    Paths,
    Prompts,
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
from eval_pipeline.cli.saying import say
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eval_pipeline.api.evaluating import Launcher
    from eval_pipeline.core.covering.cost_limit import CostLimit
    from eval_pipeline.core.covering.until import Until
    from eval_pipeline.core.model import Partition
    from eval_pipeline.core.shown import Unit
    from eval_pipeline.workspace.asked.scope import Scope
    from eval_pipeline.workspace.workspace import Workspace


def run(
    suite: Suites = None,
    model_version: Versions = None,
    prompt: Prompts = None,
    all_prompts: AllPrompts = False,
    sample_size: SampleSize = None,
    seed: Seed = 0,
    case: CaseIds = None,
    tag: Tags = None,
    failed: Failed = False,
    eval_date: EvalDate = None,
    fresh: Fresh = False,
    report: Annotated[bool, typer.Option(help="Write the report files.")] = True,
    fail_below: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=VALUE", help="Gate: exit with 1 if a metric is below this value."),
    ] = None,
    canary: Annotated[
        bool,
        typer.Option(
            "--canary/--no-canary",
            help="Stop early if hardly any of the first answers can be read, before paying for the rest.",
        ),
    ] = True,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Gate: exit with 1 if significantly worse than this model version, or reference as in compare."
        ),
    ] = None,
    until: Rule = None,
    max_cost: MaxCost = None,
    watch: Annotated[bool, typer.Option("--watch", help="Say every ten seconds how far it is.")] = False,
    junit: Junit = None,
    paths: Paths = False,
) -> None:
    """Evaluates model versions on suites and shows the headline figures.

    Results that are up to date are not recomputed.
    """
    from eval_pipeline.cli.evaluating.outcome import baseline_verdicts, beside_lines, held_now, show
    from eval_pipeline.core.covering.cost_limit import command_limit
    from eval_pipeline.core.model import Partition
    from eval_pipeline.operations.ci.gates import evaluated, gate_verdicts
    from eval_pipeline.operations.ci.summaries import add_to_summary, run_markdown
    from eval_pipeline.operations.runs.headline import headline
    from eval_pipeline.workspace.asked.planned import guard_scope
    from eval_pipeline.workspace.asked.scope import Scope, suites_in_scope

    if junit:
        from eval_pipeline.operations.ci.junit import check_place, write_junit

        check_place(junit)
    workspace = open_workspace()
    gates, limit = parse_gates(fail_below), command_limit(max_cost)
    scope = Scope(sample_size, seed if sample_size else 0, tuple(case or ()), tuple(tag or ()), failed)
    rule = parse_until(until, scope, gates, baseline)
    suites = suites_in_scope(workspace, suite_names(workspace, suite), scope)
    versions = model_version_names(workspace, model_version, suites, prompt, all_prompts=all_prompts)
    if baseline:
        from eval_pipeline.analysis.baseline import check_baseline

        check_baseline(workspace, baseline)
    day = parse_day(eval_date)
    pairs = askable_pairs(workspace, versions, suites, named=bool(suite and model_version and not all_prompts))
    partitions = [Partition(name, version, day) for version, name in pairs]
    if not partitions:
        raise UsageError(f"nothing to run: there is no active model version in {workspace.home.model_version_places}")
    check_gates(workspace, gates, pairs)
    for partition in partitions:
        if rule is None:
            guard_scope(workspace, partition, scope)
        else:
            from eval_pipeline.operations.runs.drawing import check_until

            check_until(workspace, partition, rule)
    asked = scope if rule is None else (rule, seed)
    held = held_now(workspace, partitions)
    problems, done = evaluate(
        workspace, partitions, asked, _epoch(fresh), report, canary=canary, cost_limit=limit, watch=watch
    )
    headlines = [headline(workspace, partition) for partition in done]
    checked, gated = evaluated(partitions, done, problems), gate_verdicts(headlines, gates, partial(_unit, workspace))
    if baseline:
        gated += baseline_verdicts(workspace, done, baseline)
    problems += [verdict.failure for verdict in gated if verdict.failure]
    show(workspace, headlines, problems, paths=paths)
    _show_spent(workspace, limit)
    for line in beside_lines(workspace, done, held):
        say(line)
    verdicts = [*checked, *gated]
    if junit:
        write_junit(junit, verdicts)
    add_to_summary(run_markdown(headlines, verdicts))
    raise typer.Exit(1 if problems else 0)


def plan(
    suite: Suites = None,
    model_version: Versions = None,
    prompt: Prompts = None,
    all_prompts: AllPrompts = False,
    sample_size: SampleSize = None,
    seed: Seed = 0,
    case: CaseIds = None,
    tag: Tags = None,
    failed: Failed = False,
    eval_date: EvalDate = None,
    fresh: Fresh = False,
    until: Rule = None,
    max_cost: MaxCost = None,
) -> None:
    """Reports what a run would ask and cost, without asking anything."""
    from eval_pipeline.cli.evaluating.planned import plan_lines, plan_table, remark_lines
    from eval_pipeline.cli.terminal import console
    from eval_pipeline.core.covering.cost_limit import command_limit
    from eval_pipeline.core.model import Partition
    from eval_pipeline.operations.runs.cost_limits import limit_text
    from eval_pipeline.operations.runs.drawing import check_until, expect
    from eval_pipeline.operations.runs.planning import plan as make_plan
    from eval_pipeline.workspace.asked.scope import Scope, suites_in_scope

    workspace = open_workspace()
    scope = Scope(sample_size, seed if sample_size else 0, tuple(case or ()), tuple(tag or ()), failed)
    rule = parse_until(until, scope)
    suites = suites_in_scope(workspace, suite_names(workspace, suite), scope)
    versions = model_version_names(workspace, model_version, suites, prompt, all_prompts=all_prompts)
    day, epoch = parse_day(eval_date), _epoch(fresh)
    pairs = askable_pairs(workspace, versions, suites, named=bool(suite and model_version and not all_prompts))
    places = [Partition(name, version, day) for version, name in pairs]
    limit, plans = command_limit(max_cost), []
    lines: list[str] = []
    for place in places:
        if rule is None:
            plans.append(make_plan(workspace, place, scope, epoch))
            lines += nightly_lines(workspace, place, named=len(places) > 1)
        else:
            check_until(workspace, place, rule)
            found = expect(workspace, place, rule, epoch)
            plans.append(found.whole)
            lines += expected_lines(found, rule, named=len(places) > 1)
    if len(plans) > 1:
        console.print(plan_table(plans))
    for line in plan_lines(plans[0]) if len(plans) == 1 else remark_lines(plans):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if limit:
        lines.append(limit_text(workspace, plans, limit))
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def dev(
    host: Annotated[str, typer.Option(help="Address of the UI.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the UI.")] = 3000,
    token: Annotated[
        bool,
        typer.Option("--token/--no-token", help="Ask for the token; turn off if a proxy of yours signs people in."),
    ] = True,
) -> None:
    """Opens the Dagster UI (web server and daemon) for this home, until interrupted.

    The printed address contains the token of this home; whoever has it can use the UI.
    """
    from eval_pipeline.defs.running.supervisor import serve

    serve(open_workspace().home, host, port, with_token=token)


def _epoch(fresh: bool) -> str:
    from eval_pipeline.workspace.runs import fresh_epoch

    return fresh_epoch() if fresh else ""


def evaluate(
    workspace: "Workspace",
    partitions: "Sequence[Partition]",
    asked: "Scope | tuple[Until, int]",
    epoch: str,
    report: bool,
    *,
    canary: bool = True,
    launcher: "Launcher | None" = None,
    cost_limit: "CostLimit | None" = None,
    watch: bool = False,
    lines: bool = False,
) -> "tuple[list[str], list[Partition]]":
    """Runs the stages that are out of date, and returns the problems and the partitions whose aggregates are in the
    record.

    `asked` is the part of the suites to evaluate, or a stopping rule with the seed of the draw; see
    `api.evaluating.evaluate` for the launcher. With `watch`, a line says every ten seconds how far it is;
    with `lines`, one does so in files and pipes, in place of bars.
    """
    from eval_pipeline.cli.terminal import ProgressBars, note

    if cost_limit is not None:
        from eval_pipeline.operations.runs.cost_limits import told_before
        from eval_pipeline.workspace.asked.scope import Scope

        scope = Scope() if isinstance(asked, tuple) else asked
        if told := told_before(workspace, partitions, scope, epoch, cost_limit):
            note(told)
    with ProgressBars(lines=lines) as progress:
        if isinstance(asked, tuple):
            from eval_pipeline.api.drawing import evaluate_until

            found = evaluate_until(
                workspace,
                partitions,
                asked,
                epoch,
                progress,
                report=report,
                canary=canary,
                cost_limit=cost_limit,
                tell=note if watch else None,
            )
        else:
            from eval_pipeline.api.evaluating import evaluate as evaluate_all

            found = evaluate_all(
                workspace,
                partitions,
                asked,
                epoch,
                progress,
                report=report,
                canary=canary,
                launcher=launcher,
                cost_limit=cost_limit,
                tell=note if watch else None,
            )
    for text in found.notes:
        note(text)
    return found.problems, found.done


def _show_spent(workspace: "Workspace", limit: "CostLimit | None") -> None:
    if limit is not None:
        from eval_pipeline.operations.runs.cost_limits import spent_text

        say(f"spent:    {spent_text(workspace.home.root, limit)}")


def _unit(workspace: "Workspace", suite: str, metric: str) -> "Unit":
    from eval_pipeline.stages.reporting import profile

    return profile(workspace.track(suite)).unit(metric)

"""The command `demo`: evaluates two simulated model versions fully, and a real small model on part of the suites."""

import json
from datetime import date
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from eval_pipeline.cli.evaluating.running import evaluate
from eval_pipeline.cli.options import Paths, no_suite, open_workspace
from eval_pipeline.cli.saying import say
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.days import today

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eval_pipeline.cli.evaluating.beside import Outcome, ProcessPart
    from eval_pipeline.core.model import Partition
    from eval_pipeline.workspace.workspace import Workspace

SIMULATED = ("simulated-strong", "simulated-weak")
LOCAL = "smollm2-135m"
SLICE = 1
"""How many conversations of each suite the local model answers; it takes up to a minute on one thread."""
TASKS = {
    "agents_sample": (
        "shop_top_customer",
        "energy_clean",
        "bikes_mend_daily",
        "ledger_entered_twice",
        "energy_pools_bill",
        "shop_margin",
    )
}
"""Tasks of a suite that stand for all: one in each world, one with a user, one that cannot be answered."""
BEYOND_LOCAL = ("agent", "pandas", "sdmx", "sql")
"""Tracks that ask for more than the local model can write: it repeats itself until it may not write more."""


def demo(part: Annotated[str | None, typer.Option(hidden=True)] = None, paths: Paths = False) -> None:
    """Evaluates three model versions on the sample suites: two simulated ones, and a small real one on a few cases."""
    from eval_pipeline.cli.evaluating.beside import ProcessPart, beside, halves, written
    from eval_pipeline.cli.terminal import ProgressBars, note
    from eval_pipeline.core.system.processors import processors
    from eval_pipeline.core.system.supervision import end_with_supervisor
    from eval_pipeline.workspace.progress import busy

    workspace = open_workspace()
    if part is not None:
        end_with_supervisor()
        say(written(_evaluated(workspace, ProcessPart(**json.loads(part)))))
        raise typer.Exit
    suites = _own_suites(workspace)
    if why_not := _why_not_local(workspace):
        note(f"{LOCAL} is left out: {why_not}")
    day, local = today(), not why_not
    # Much of the time one thread works, or a single answer is waited for: two processes share the suites.
    first, second = halves(suites) if processors() > 1 else (list(suites), [])
    with beside(ProcessPart(second, day.isoformat(), local), str(workspace.home.root)) as rest:
        own = _evaluated(workspace, ProcessPart(first, day.isoformat(), local), lines=True)
        with ProgressBars(lines=bool(second)) as progress, busy(progress, f"waiting for {', '.join(second)}"):
            other = rest()
    for line in other.said:
        note(line)
    _show(workspace, day, [own, other], paths=paths)


def _show(workspace: "Workspace", day: date, outcomes: "Sequence[Outcome]", *, paths: bool) -> NoReturn:
    """Shows what came of all parts, in the order of the suites, and ends the command."""
    from eval_pipeline.cli.evaluating.outcome import show
    from eval_pipeline.core.model import Partition
    from eval_pipeline.operations.runs.headline import headline

    done = {place for outcome in outcomes for place in outcome.done}
    order = [(suite, version) for suite in workspace.suites for version in (*SIMULATED, LOCAL)]
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    found = [
        headline(workspace, Partition(suite, version, day)) for suite, version in order if (suite, version) in done
    ]
    show(workspace, found, problems, paths=paths)
    raise typer.Exit(1 if problems else 0)


def _own_suites(workspace: "Workspace") -> dict[str, int]:
    """Returns the suites of the project, which imported ones are not, with the bytes of their files."""
    own = workspace.home.data / "suites"
    suites = [(name, source.folder) for name, source in workspace.suites.items() if source.folder.parent == own]
    if not suites:
        raise UsageError(no_suite([own]))
    return {name: sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) for name, folder in suites}


def _evaluated(workspace: "Workspace", part: "ProcessPart", *, lines: bool = False) -> "Outcome":
    """Evaluates the suites of a part with all model versions; `lines` as for `evaluate`."""
    from eval_pipeline.cli.evaluating.beside import Outcome
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.core.model import Partition
    from eval_pipeline.defs.running.launch import launch
    from eval_pipeline.operations.upkeep.keeping import evaluation_is_current
    from eval_pipeline.workspace.asked.scope import Scope
    from eval_pipeline.workspace.inputs import Inputs

    day = date.fromisoformat(part.day)
    wanted = [(Partition(suite, name, day), TASKS.get(suite, ())) for name in SIMULATED for suite in part.suites]
    asked: dict[Scope, list[Partition]] = {}
    for partition, tasks in wanted:
        is_full = not tasks or _is_full(workspace, partition)
        asked.setdefault(Scope() if is_full else Scope(cases=tasks), []).append(partition)
    for suite in part.suites if part.local else ():
        if (track := workspace.track(suite).name) in BEYOND_LOCAL:
            note(f"{LOCAL} is left out for {suite}: answers of the track {track} are beyond it")
            continue
        partition, scope = Partition(suite, LOCAL, day), Scope(sample_size=SLICE)
        if _is_full(workspace, partition):
            # It is only shown if it is current, since making it again would take hours.
            scope = Scope()
            if not evaluation_is_current(Inputs.of(workspace, partition)):
                note(f"{LOCAL} is left out for {suite}: today's full evaluation is out of date; `run` makes it anew")
                continue
        asked.setdefault(scope, []).append(partition)
    problems, done = list[str](), list[Partition]()
    for scope, partitions in asked.items():
        wrong, made = evaluate(workspace, partitions, scope, "", report=True, launcher=launch, lines=lines)
        problems, done = problems + wrong, done + made
    return Outcome(problems, [(partition.suite, partition.model_version) for partition in done])


def _is_full(workspace: "Workspace", partition: "Partition") -> bool:
    """Returns whether today's evaluation is a full one, which a part must not replace."""
    from eval_pipeline.workspace.asked.planned import guard_scope
    from eval_pipeline.workspace.asked.scope import Scope

    try:
        guard_scope(workspace, partition, Scope(sample_size=SLICE))
    except UsageError:
        return True
    return False


def _why_not_local(workspace: "Workspace") -> str | None:
    """Returns why the local model cannot answer on this machine, or None if it can."""
    from eval_pipeline.providers.registry import traits_of

    if LOCAL not in workspace.model_versions:
        return f"it is not in {workspace.home.model_version_places}"
    return traits_of(workspace.model_version(LOCAL).provider).lacks() or None

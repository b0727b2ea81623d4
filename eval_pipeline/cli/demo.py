"""The command `demo`: evaluates two simulated model versions fully, and a real small model on part of the suites."""

from typing import TYPE_CHECKING

import typer

from eval_pipeline.cli.options import no_suite, open_workspace
from eval_pipeline.cli.running import evaluate, show
from eval_pipeline.core.days import today
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from eval_pipeline.workspace.workspace import Workspace

SIMULATED = ("simulated-strong", "simulated-weak")
LOCAL = "smollm2-135m"
SLICE = 1
"""How many conversations of each suite the local model answers; it takes up to a minute on one thread."""


def demo() -> None:
    """Evaluates three model versions on the sample suites: two simulated ones, and a small real one on a few cases."""
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.core.model import Partition
    from eval_pipeline.operations.headline import headline
    from eval_pipeline.operations.keeping import evaluation_is_current
    from eval_pipeline.workspace.inputs import Inputs
    from eval_pipeline.workspace.planned import guard_scope
    from eval_pipeline.workspace.scope import Scope

    workspace = open_workspace()
    own = workspace.home.data / "suites"
    suites = [name for name, source in workspace.suites.items() if source.folder.parent == own]
    if not suites:
        raise UsageError(no_suite([own]))
    day = today()
    problems, done = evaluate(
        workspace, [Partition(suite, name, day) for name in SIMULATED for suite in suites], Scope(), "", report=True
    )
    if why_not := _why_not_local(workspace):
        note(f"{LOCAL} is left out: {why_not}")
    asked: dict[Scope, list[Partition]] = {}
    for suite in () if why_not else suites:
        partition, scope = Partition(suite, LOCAL, day), Scope(sample_size=SLICE)
        try:
            guard_scope(workspace, partition, scope)
        except UsageError:
            # There is a full evaluation of today. It is only shown if it is current, since making it again would take
            # hours.
            scope = Scope()
            if not evaluation_is_current(Inputs.of(workspace, partition)):
                note(f"{LOCAL} is left out for {suite}: today's full evaluation is out of date; `run` makes it anew")
                continue
        asked.setdefault(scope, []).append(partition)
    for scope, partitions in asked.items():
        wrong, made = evaluate(workspace, partitions, scope, "", report=True)
        problems, done = problems + wrong, done + made
    show(workspace, [headline(workspace, partition) for partition in done], problems, report=True)
    raise typer.Exit(1 if problems else 0)


def _why_not_local(workspace: "Workspace") -> str | None:
    """Returns why the local model cannot answer on this machine, or None if it can."""
    from eval_pipeline.providers.registry import traits_of

    if LOCAL not in workspace.model_versions:
        return f"it is not in {workspace.home.model_version_places}"
    return traits_of(workspace.model_version(LOCAL).provider).lacks() or None

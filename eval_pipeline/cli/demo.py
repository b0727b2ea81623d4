"""`demo`: two simulated model versions in full, and a slice for a real small model on this machine."""

from datetime import date

import typer

from eval_pipeline.cli.options import open_workspace
from eval_pipeline.cli.running import evaluate, show
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition

SIMULATED = ("simulated-strong", "simulated-weak")
LOCAL = "smollm2-135m"
SLICE = 2
"""Conversations that the local model answers: a minute or two on one thread."""


def demo() -> None:
    """Evaluates three model versions on every suite: two simulated ones, and a real small one on a slice."""
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.providers.local import local_available
    from eval_pipeline.stages.generate import guard_scope
    from eval_pipeline.stages.headline import headline
    from eval_pipeline.stages.scope import Scope

    workspace = open_workspace()
    suites, today = list(workspace.suites), date.today()
    problems, done = evaluate(
        workspace, [Partition(suite, name, today) for name in SIMULATED for suite in suites], Scope(), "", report=True
    )
    if why_not := local_available():
        note(f"{LOCAL} is left out: {why_not}")
    for suite in () if why_not else suites:
        partition, scope = Partition(suite, LOCAL, today), Scope(sample_size=SLICE)
        try:
            guard_scope(workspace, partition, scope)
        except UsageError:
            scope = Scope()
        wrong, made = evaluate(workspace, [partition], scope, "", report=True)
        problems, done = problems + wrong, done + made
    show(workspace, [headline(workspace, partition) for partition in done], problems, report=True)
    raise typer.Exit(1 if problems else 0)

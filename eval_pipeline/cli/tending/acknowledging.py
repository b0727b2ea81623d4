"""The command `acknowledge`: marks a loss as known, so that it no longer makes runs fail."""

from getpass import getuser
from typing import Annotated

import typer

from eval_pipeline.cli.options import open_workspace
from eval_pipeline.core.errors import UsageError


def acknowledge(
    suite: Annotated[str, typer.Option(help="Suite on which the model version lost.")],
    model_version: Annotated[str, typer.Option(help="Model version that lost.")],
    why: Annotated[str, typer.Option(help="The reason, for those who ask later.")],
    who: Annotated[str | None, typer.Option(help="Who acknowledges it; default: you.")] = None,
) -> None:
    """Acknowledges that a model version became worse on a suite, so that this no longer makes runs fail.

    Stores who acknowledged it and why. A later loss is reported as usual.
    """
    from eval_pipeline.analysis.comparisons import acknowledging
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.operations.upkeep.keeping import compare, publish_comparisons
    from eval_pipeline.workspace.inputs import Inputs

    workspace = open_workspace()
    inputs = Inputs(workspace, workspace.suite(suite).name)
    if not why.strip():
        raise UsageError("--why is empty; expected the reason")
    compare(inputs)
    loss = acknowledging.open_loss(inputs, model_version)
    acknowledging.acknowledge(inputs, loss, who or getuser(), why)
    publish_comparisons(inputs)
    note(f"{inputs.suite}: the loss of {model_version} of {loss.date} is acknowledged")

"""The command `rejudge`: measures how far a judge agrees with itself."""

from typing import Annotated

import typer

from eval_pipeline.cli.options import FAILED, open_workspace
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError


def rejudge(
    suite: Annotated[str, typer.Option(help="Suite whose judge to ask.")],
    model_version: Annotated[str, typer.Option(help="Model version whose newest evaluation is judged again.")],
    repeats: Annotated[int, typer.Option(min=2, max=20, help="How often each question is asked.")] = 3,
    pairs: Annotated[
        int, typer.Option(min=1, help="The most pairs to ask about; the random draw is the same each time.")
    ] = 50,
) -> None:
    """Asks the judge the same questions several times and reports how often it contradicts itself.

    Every question costs.

    The total is limited by `max_cost_usd` and `max_tokens_total` of the judging model version, and EVAL_MAX_COST_USD.
    """
    from eval_pipeline.analysis.baseline import newest_partition
    from eval_pipeline.chain.wholeness import gate
    from eval_pipeline.cli.terminal import fail, note
    from eval_pipeline.core.covering.cost_limit import MAX_COST, command_limit
    from eval_pipeline.stages.judged.judge_repeats import repeat_judging
    from eval_pipeline.stages.publishing import publish_keys
    from eval_pipeline.store.keys import RecordKey
    from eval_pipeline.workspace.inputs import Inputs
    from eval_pipeline.workspace.runs import RunContext

    workspace = open_workspace()
    name = workspace.suite(suite).name
    partition = newest_partition(workspace, name, workspace.model_version(model_version).name)
    if partition is None:
        raise UsageError(f"'{model_version}' has no evaluation of '{name}'; `eval-pipeline run` makes one")
    found = repeat_judging(Inputs.of(workspace, partition, run=RunContext(cost_limit=command_limit())), repeats, pairs)
    publish_keys(workspace, [RecordKey.of(partition)], gate(workspace))
    said = found.agreement
    say(f"{name} · {model_version} · {partition.eval_date}: {found.judge}, asked {repeats} times")
    say(f"  pairs          {said.n:,}, {said.unanimous:,} of them with one answer every time")
    if said.agreement is not None:
        told = shown.estimate(said.agreement, said.low, said.high, "score")
        say(f"  self-agreement {told} (two answers to the same question are the same)")
    say(f"  Fleiss' kappa  {shown.score(said.kappa)}{f' ({said.reason})' if said.reason else ''}")
    if found.failures:
        note(f"{shown.counted(found.failures, 'answer', 'answers')} did not come; their pairs are not counted")
    if found.budget_reached:
        fail(f"the budget of the judge is reached (max_cost_usd, max_tokens_total of its model version, or {MAX_COST})")
        raise typer.Exit(FAILED)

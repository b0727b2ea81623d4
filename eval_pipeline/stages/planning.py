"""The dry run: what an evaluation would ask and cost, before anything is spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from eval_pipeline.core.model import Case, Partition, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.calls import Caller
from eval_pipeline.providers.journal import Journal
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.stages.ask import TurnGold, TurnTask, history_texts
from eval_pipeline.stages.generate import effective_epoch, plan_units, prompt_version
from eval_pipeline.stages.model_calls import provider_for
from eval_pipeline.stages.scope import Scope
from eval_pipeline.stages.workspace import Workspace
from eval_pipeline.suites import read_cases

CHARACTERS_PER_TOKEN = 4
"""A rough rule for English text; providers that count tokens themselves come closer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What evaluating one suite with one model version would take at most.

    Attributes:
        turns: generations, samples among them.
        journalled: of these, how many the journal answers already.
        input_tokens: of the calls still to be made, estimated from the length of the prompts.
        output_tokens: upper bound, `max_tokens` a call; recovery attempts come on top.
        usd: upper bound for these tokens; None where no price is known.
    """

    suite: str
    model_version: str
    turns: int
    journalled: int
    input_tokens: int
    output_tokens: int
    usd: float | None

    @property
    def calls(self) -> int:
        """Calls still to be made."""
        return self.turns - self.journalled


def plan(workspace: Workspace, partition: Partition, scope: Scope, epoch: str = "") -> Plan:
    """Plans without asking anything. Conversations with `history: own` are planned as if the gold answers were given.

    As in a run, no epoch means that of what the partition holds.

    Raises:
        InputError: the suite's files are wrong.
        UsageError: an unknown name.
    """
    suite = partition.suite
    version = workspace.model_version(partition.model_version)
    epoch = effective_epoch(workspace, partition, epoch)
    cases = scope.select(read_cases(workspace.suite(suite)))
    calls = _calls(workspace, suite, version, cases)
    with Journal(workspace.home.journal) as journal:
        caller = Caller(provider_for(workspace, version), journal, version, epoch)
        keys = [caller.key(call) for call in calls]
        known = journal.contains_many(keys)
    open_calls = [call for call, key in zip(calls, keys, strict=True) if key not in known]
    characters = sum(len(call.prompt.text()) for call in open_calls)
    tokens_in = -(-characters // CHARACTERS_PER_TOKEN)
    tokens_out = version.max_tokens * len(open_calls)
    usd = cost_usd(version, Usage(tokens_in, tokens_out), date.today().isoformat())
    return Plan(suite, version.name, len(calls), len(calls) - len(open_calls), tokens_in, tokens_out, usd)


def _calls(workspace: Workspace, suite: str, version: ModelVersion, cases: Sequence[Case]) -> list[Call]:
    track = workspace.track(suite)
    name = prompt_version(version, track)
    calls = []
    for unit in plan_units(cases, version):
        for turn in unit.turns:
            history = history_texts(track, unit.case, turn, None)
            call = Call(
                suite=suite,
                case_id=unit.case.id,
                turn_id=turn.id,
                turn_index=turn.index,
                sample=unit.sample,
                number=0,
                prompt=track.prompt(unit.case, turn, history, name),
                gold=TurnGold(track, turn),
                task=TurnTask(track, unit.case, turn, history),
                prefix_uses=version.samples_per_turn * len(unit.case.turns),
                complexity=track.gold_complexity(turn),
            )
            calls.append(call)
    return calls

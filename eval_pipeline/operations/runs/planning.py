"""The dry run: what an evaluation would ask and cost, computed without spending anything."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from typing import Any

from eval_pipeline.asking.batches.intents import BatchIntents
from eval_pipeline.asking.calls import Caller
from eval_pipeline.chain.freshness import CODE
from eval_pipeline.core.model import Case, Partition, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.shown import counted
from eval_pipeline.judge.judgement import why_no_judge
from eval_pipeline.operations.runs.token_counts import CHARACTERS_PER_TOKEN, How, characters, count_input_tokens
from eval_pipeline.operations.runs.told_costs import ToldMeans, told_so_far
from eval_pipeline.operations.upkeep.keeping import evaluation_is_current
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.prices import cost_usd, has_price, is_free
from eval_pipeline.providers.registry import traits_of
from eval_pipeline.stages.attempts.ask import call_of, first_question, prefix_uses
from eval_pipeline.stages.attempts.asked import prompting
from eval_pipeline.stages.attempts.model_calls import provider_for
from eval_pipeline.stages.attempts.units import plan_units
from eval_pipeline.stages.code import attempts_code
from eval_pipeline.stages.spending import REFUSED, judge_version
from eval_pipeline.state.place import state_place
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.tracks.capabilities import Acts, Judged, Recovers
from eval_pipeline.tracks.code import damage_code
from eval_pipeline.workspace.asked.planned import effective_epoch
from eval_pipeline.workspace.asked.scope import Scope, failed_cases
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Workspace

ERROR_TOKENS = 500
"""Upper bound assumed for the tokens of an error message in the prompt of a recovery attempt."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Upper bounds on what calls consume.

    Attributes:
        input_tokens: expected tokens; for recovery attempts an upper bound.
        output_tokens: `max_tokens` for each call.
        usd: cost of these tokens without any cache hits; 0 for stand-ins, None without a known price.

    For an application with its own prompts, these are no bounds but means of its earlier answers, or None if they did
    not report them.
    """

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What evaluating one suite with one model version would consume.

    Attributes:
        turns: number of first answers, including samples.
        journalled: how many of these are in the journal already.
        in_batches: how many of the others are in an open batch.
        open_batches: number of batches submitted by unfinished runs.
        how: how the input tokens were determined.
        why: why they were only estimated although the provider can count them; else empty.
        answers: for an application, the number of earlier answers that the means are based on.
        cacheable: share of the input tokens that later calls can read from a cache, if the endpoint has one.
        generations: the calls still to be made.
        recovery: upper bound of the additional cost, if no answer ran and no recovery attempt succeeded; answers that
            an evaluation on record has been through with are left out.
        judge: upper bound of what the suite's judge adds, if it is asked about every answer and each answer has
            `max_tokens`; None if the suite has no judge that can be asked, or all is judged.
        judge_name: the judge's model version; empty if the suite has no judge that matters to the plan.
        judge_missing: why the judge cannot be asked although it decides which answers are correct; else empty.
        notes: how tables of the suite were read, and that cases are left out, in sentences.
        attempts: how many attempts an agent has to make, each with calls up to the limit of its case; None if each
            answer is one call.
        calls_each: how many calls such an attempt made so far, in the mean; None if that is not known.
        budget: dollars that the model version may cost; None without a limit.
    """

    suite: str
    model_version: str
    turns: int
    journalled: int
    in_batches: int
    open_batches: int
    how: How
    cacheable: float
    generations: Bound
    recovery: Bound
    why: str = ""
    answers: int = 0
    judge: Bound | None = None
    judge_name: str = ""
    judge_missing: str = ""
    notes: tuple[str, ...] = ()
    attempts: int | None = None
    calls_each: float | None = None
    budget: float | None = None

    @property
    def is_expected(self) -> bool:
        """Whether what the model consumes is only expected, because its prompts are made as it works."""
        return self.how in {"told", "unknown"}

    @property
    def to_ask(self) -> int:
        """How many first answers are to be made."""
        return self.generations.calls if self.attempts is None else self.attempts

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """What all calls consume: those for first answers, after errors, and to the judge."""
        judge = () if self.judge is None else (self.judge,)
        return self.generations, self.recovery, *judge

    @property
    def calls(self) -> int:
        """How many calls are made at most."""
        return sum(bound.calls for bound in self.bounds)

    @property
    def known_usd(self) -> float:
        """What all calls cost at most, as far as it is known."""
        return sum(bound.usd or 0.0 for bound in self.bounds)

    @property
    def is_priced(self) -> bool:
        """Whether the cost of all calls is known."""
        return all(bound.usd is not None for bound in self.bounds if bound.calls)


def plan(workspace: Workspace, partition: Partition, scope: Scope, epoch: str = "") -> RunPlan:
    """Plans an evaluation without asking any model; conversations with `history: own` are planned with gold answers.

    As in a run, an empty epoch means that of the existing results.

    Raises:
        InputError: the suite's files are wrong.
        UsageError: a name is unknown.
    """
    suite = partition.suite
    version = workspace.model_version(partition.model_version)
    epoch = effective_epoch(workspace, partition, epoch)
    failed = failed_cases(workspace.record, partition) if scope.failed else None
    found = read_suite(workspace.suite(suite))
    notes = list(found.notes)
    if found.problems:
        problems = counted(len(found.problems), "problem", "problems")
        notes.append(f"cases are left out; the first of {problems}: {found.problems[0]}")
    cases = scope.select(found.cases, failed)
    calls = _calls(workspace, suite, version, cases)
    made = _of_model(workspace, partition, version, calls, epoch, cases)
    own = Inputs.of(workspace, partition, run=RunContext(epoch=epoch), scope=scope)
    judged = {} if evaluation_is_current(own) else _judging(workspace, suite, version, calls)
    return replace(made, notes=tuple(notes), **judged)


def _of_model(
    workspace: Workspace,
    partition: Partition,
    version: ModelVersion,
    calls: Sequence[Call],
    epoch: str,
    cases: Sequence[Case],
) -> RunPlan:
    """Plans what the model is asked."""
    suite = partition.suite
    provider = provider_for(workspace, version)
    if provider.recorded:
        nothing = Bound(0, 0, 0, 0.0)
        return RunPlan(suite, version.name, len(calls), 0, 0, 0, "recorded", 0.0, nothing, nothing)
    with state_place().journal(workspace.home.journal) as journal:
        keys = [Caller(provider, journal, version, epoch).key(call) for call in calls]
        known = journal.contains_many(keys)
        intents = BatchIntents(journal.batches, version).open() if version.batch else []
    waited_for = frozenset[str]().union(*(intent.keys for intent in intents)) - known
    placed = [(call, key) for call, key in zip(calls, keys, strict=True) if key not in known]
    failing, attempts = list[Call](), 0
    if isinstance(workspace.track(suite), Recovers) and version.max_recovery_attempts:
        attempts, gone = version.max_recovery_attempts, _gone_through(workspace, partition, epoch)
        failing = [
            call
            for call, key in zip(calls, keys, strict=True)
            if key not in known or (call.turn_id, call.sample) not in gone
        ]
    track = workspace.track(suite)
    if isinstance(track, Acts) or traits_of(version.provider).own_prompt:
        acts = isinstance(track, Acts)
        told = told_so_far(workspace, partition, acts=acts)
        usd = 0.0 if acts and is_free(version) else told.usd
        made = _of_answers(partition, told, len(calls), len(placed), len(failing) * attempts, usd)
        if not isinstance(track, Acts) or provider.simulated:
            return made
        limits = {case.id: track.limits(case).model_calls for case in cases}
        most = replace(made.generations, calls=sum(limits[call.case_id] for call, _ in placed))
        return replace(made, attempts=len(placed), generations=most, calls_each=told.calls, budget=version.max_cost_usd)
    counts = count_input_tokens(provider, [call for call, _ in placed])
    left = [(call, tokens) for (call, key), tokens in zip(placed, counts.tokens, strict=True) if key not in waited_for]
    rate = sum(counts.tokens) / max(1, sum(characters(call.prompt) for call, _ in placed))
    return RunPlan(
        suite=suite,
        model_version=version.name,
        turns=len(calls),
        journalled=len(calls) - len(placed),
        in_batches=len(placed) - len(left),
        open_batches=len(intents),
        how=counts.how,
        cacheable=_cacheable(left, rate),
        generations=_bound(version, [(tokens, _shared(call, rate)) for call, tokens in left]),
        recovery=_recovery(version, failing, rate or 1 / CHARACTERS_PER_TOKEN, attempts),
        why=counts.why,
    )


def _gone_through(workspace: Workspace, partition: Partition, epoch: str) -> frozenset[tuple[str, int]]:
    """Returns turns and samples whose recovery attempts are all made: those of the newest evaluation of this epoch."""
    record, within = workspace.record, RecordKey(partition.suite, partition.model_version)
    own, places = RecordKey.of(partition), record.partitions(RECOVERY_ATTEMPTS, within)
    code = workspace.fingerprints.of(*attempts_code(Inputs.of(workspace, partition))).code
    for place in sorted(places, key=lambda key: (key == own, key.eval_date), reverse=True):
        first, second = record.header(GENERATIONS, place), record.header(RECOVERY_ATTEMPTS, place)
        if first is None or second is None or first.made_from.get("epoch", "") != epoch:
            continue
        if second.made_from.get(CODE) == code and REFUSED not in second.made_from:
            asked = record.read(GENERATIONS, place, ["turn_id", "sample"]).to_pylist()
            again = record.read(RECOVERY_ATTEMPTS, place, ["turn_id", "sample", "call_error"]).to_pylist()
            unanswered = {(row["turn_id"], row["sample"]) for row in again if row["call_error"]}
            return frozenset((row["turn_id"], row["sample"]) for row in asked) - unanswered
    return frozenset()


def _judging(workspace: Workspace, suite: str, version: ModelVersion, calls: Sequence[Call]) -> dict[str, Any]:
    """Returns the fields of the plan about the judge. It sees at most the question, the gold and a whole answer."""
    track = workspace.track(suite)
    if not isinstance(track, Judged):
        return {}
    judge, options = judge_version(workspace, suite), workspace.suite(suite).require().options
    if missing := why_no_judge(judge):
        return {"judge_name": judge.name, "judge_missing": missing} if track.judge_decides(options) else {}
    prompt = track.judge_prompt(options)
    own = len(prompt.template) + sum(map(len, prompt.variables.values()))
    shown = [own + characters(call.prompt) + len(call.gold.oracle()) for call in calls]
    tokens = [(length / CHARACTERS_PER_TOKEN + version.max_tokens, 0.0) for length in shown]
    return {"judge_name": judge.name, "judge": _bound(judge.model_copy(update={"batch": False}), tokens)}


def _of_answers(
    partition: Partition, told: ToldMeans, turns: int, left: int, recovered: int, usd: float | None
) -> RunPlan:
    """Plans by earlier answers for an application that makes its own prompts, and for an agent, whose prompts grow.

    Args:
        partition: the evaluation.
        told: means over the answers on record.
        turns: number of turns.
        left: how many are to be asked.
        recovered: how often it is asked again at most.
        usd: what an answer costs, if that is known.
    """

    def expected(calls: int) -> Bound:
        tokens_in, tokens_out = (
            None if mean is None else ceil(mean * calls) for mean in (told.input_tokens, told.output_tokens)
        )
        return Bound(calls, tokens_in, tokens_out, None if usd is None else usd * calls)

    return RunPlan(
        suite=partition.suite,
        model_version=partition.model_version,
        turns=turns,
        journalled=turns - left,
        in_batches=0,
        open_batches=0,
        how="told" if told.answers else "unknown",
        cacheable=0.0,
        generations=expected(left),
        recovery=expected(recovered),
        answers=told.answers,
    )


def _bound(version: ModelVersion, calls: Sequence[tuple[float, float]]) -> Bound:
    """Returns the bounds for calls given as (input tokens, tokens shared with other calls)."""
    today, usd, free = datetime.now(UTC).date().isoformat(), 0.0, is_free(version)
    priced = free or bool(calls) or has_price(version)
    for tokens, shared in () if free else calls:
        whole = ceil(tokens)
        # Writing a prefix to a cache can cost more than sending it; in the worst case, every call does so.
        usages = (Usage(whole, version.max_tokens), Usage(whole, version.max_tokens, 0, min(ceil(shared), whole)))
        costs = [cost_usd(version, usage, today, batch=version.batch) for usage in usages]
        known = [cost for cost in costs if cost is not None]
        priced &= bool(known)
        usd += max(known, default=0.0)
    tokens_in = ceil(sum(tokens for tokens, _ in calls))
    return Bound(len(calls), tokens_in, version.max_tokens * len(calls), usd if priced else None)


def _recovery(version: ModelVersion, calls: Sequence[Call], rate: float, attempts: int) -> Bound:
    """Returns the bounds for recovery attempts at turns; their prompts contain the last response and its error."""
    added = version.max_tokens + ERROR_TOKENS
    return _bound(version, [(characters(call.prompt) * rate + added, 0.0) for call in calls for _ in range(attempts)])


def _shared(call: Call, rate: float) -> float:
    """Returns the tokens at the start of the prompt that it shares with other calls of the run."""
    if call.prefix_uses < 2:
        return 0.0
    return rate * sum(len(message.text) for message in call.prompt.messages[: call.prompt.shared])


def _cacheable(calls: Sequence[tuple[Call, float]], rate: float) -> float:
    """Returns the share of tokens in prefixes that an earlier call has already sent."""
    sent: set[tuple[str, ...]] = set()
    again = 0.0
    for call, _ in calls:
        prefix = tuple(message.text for message in call.prompt.messages[: call.prompt.shared])
        again += _shared(call, rate) if prefix in sent else 0.0
        sent.add(prefix)
    return again / max(1.0, sum(tokens for _, tokens in calls))


def _calls(workspace: Workspace, suite: str, version: ModelVersion, cases: Sequence[Case]) -> list[Call]:
    track = workspace.track(suite)
    prompts = prompting(workspace, suite, version)
    units = list(plan_units(cases, version))
    uses = prefix_uses(track, ((unit.case, len(unit.turns)) for unit in units))
    questions = (first_question(track, unit, turn, None, prompts) for unit in units for turn in unit.turns)
    code = workspace.fingerprints.of(*damage_code(track)).code
    return [call_of(track, suite, question, uses, code) for question in questions]

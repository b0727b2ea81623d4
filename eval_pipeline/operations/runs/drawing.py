"""`run --until`: asks cases in batches drawn by known probabilities, until a rule is met (docs/adaptive.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4
from zlib import crc32

from eval_pipeline.analysis.draws.history import baseline_of, candidates_of, earlier_evaluations
from eval_pipeline.analysis.draws.looks import Draw, KnownAnswers, expected_cases, schedule
from eval_pipeline.analysis.draws.reading import answers_of, clusters_of
from eval_pipeline.chain.evaluation import chain_of, evaluating, ingesting
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.planning import RunPlan, plan
from eval_pipeline.providers.prices import has_price
from eval_pipeline.store.tables import CASES, GENERATIONS, TURN_RESULTS
from eval_pipeline.suites.cases import read_cases
from eval_pipeline.workspace.asked.draws import Design, read_design, write_design
from eval_pipeline.workspace.asked.scope import FULL, Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, RunContext, end_run, ending_failed
from eval_pipeline.workspace.workspace import Progress, Workspace

_FIRST = 10
"""Cases of the first batch under a budget, if it pays for them; later ones at most double what is asked."""


@dataclass(frozen=True, slots=True)
class AskedUntil:
    """The outcome of asking until a rule is met.

    Attributes:
        scope: the part of the suite that has been asked; the whole suite if that was needed.
        problem: why asking stopped early, as a sentence without its full stop; empty if the rule is met.
        note: the verdict against the baseline if every case was asked.
    """

    scope: Scope
    problem: str = ""
    note: str = ""


def check_until(workspace: Workspace, partition: Partition, until: Until) -> None:
    """Raises UsageError if an evaluation cannot be drawn by this rule; called before any model is asked."""
    version, label = workspace.model_version(partition.model_version), until.label()
    if version.samples_per_turn != 1:
        raise UsageError(
            f"--until '{label}': '{version.name}' answers each turn {version.samples_per_turn} times; a draw asks each "
            "turn once (samples_per_turn: 1)"
        )
    if until.usd is not None and not has_price(version):
        raise UsageError(f"--until '{label}': no price of '{version.name}' is known; set `price` in its entry")


def ask_until(
    workspace: Workspace,
    partition: Partition,
    until: Until,
    seed: int,
    run: RunContext,
    progress: Progress,
) -> AskedUntil:
    """Asks batch after batch until the rule is met, or else the whole suite.

    For each batch, the stages up to the scored turns are run; answers that are recorded already cost nothing. An
    interrupted run continues with the recorded draw.

    Raises:
        EvalError: a stage failed, or a blocking check did not pass.
    """
    run = replace(run, run_id=str(uuid4()))
    inputs = Inputs.of(workspace, partition, run=run, progress=progress)
    if whole_is_known(inputs):
        return AskedUntil(Scope())
    design = design_of_rule(inputs, until, seed)
    with ending_failed(workspace, partition, run.run_id):
        asked = _ask(inputs, design)
    end_run(workspace, partition, run.run_id, COMPLETE)
    return asked


def _ask(inputs: Inputs, design: Design) -> AskedUntil:
    first = _first_batch(inputs, design)
    draw = Draw.unasked(design.first(0))
    while True:
        if design.batches:
            scope = design.scope()
            answers = ask(inputs, scope)
            if missing := answers.missing(design):
                return AskedUntil(scope, f"{missing} of the drawn turns have no verdict; run again to go on")
            if not design.left and design.baseline is None:
                return AskedUntil(scope)
            draw = Draw(design, answers, clusters_of(inputs))
            if draw.stopped:
                return AskedUntil(scope, note="" if design.left else draw.stopped)
        design = design.with_batch(draw.next_batch(first))
        write_design(inputs.record, inputs.place, design)


def whole_is_known(inputs: Inputs) -> bool:
    """Reads the suite, and returns whether the evaluation has already been made in full."""
    for stage in ingesting(chain_of(inputs.track)):
        _run(stage, inputs)
    header = inputs.header(GENERATIONS)
    return header is not None and header.made_from.get("scope") == FULL and not inputs.run.epoch


def ask(inputs: Inputs, scope: Scope) -> KnownAnswers:
    """Runs the stages up to the scored turns for a part of the suite, and returns the answers.

    Raises:
        EvalError: a stage failed, or a blocking check did not pass.
    """
    for stage in _scoring(inputs):
        _run(stage, inputs.anew(scope=scope))
    return answers_of(inputs)


def design_of_rule(inputs: Inputs, until: Until, seed: int) -> Design:
    """Returns the recorded draw, or else a new one.

    Raises:
        UsageError: the record has a draw by another rule, or there is nothing to draw from.
    """
    known = None if inputs.run.epoch else read_design(inputs.record, inputs.place)
    if known is not None:
        if known.until != until:
            raise UsageError(
                f"{inputs.suite} is drawn for {inputs.place.model_version} on {inputs.place.eval_date} until "
                f"'{known.until.label()}': give the same rule to continue, no rule to "
                "ask the whole suite, or another --eval-date"
            )
        return known
    return new_design(inputs, until, seed)


def new_design(inputs: Inputs, until: Until, seed: int) -> Design:
    """Returns a new draw without any asked case.

    Raises:
        UsageError: the suite has no case to draw, or the baseline has no comparable evaluation.
    """
    evaluations, baseline = earlier_evaluations(inputs), None
    if until.baseline:
        compared = baseline_of(inputs, until.baseline)
        evaluations = [compared, *(place for place in evaluations if place != compared)]
        baseline = 0
    candidates = candidates_of(inputs, evaluations)
    if not candidates:
        raise UsageError(f"{inputs.suite} has no turn to ask")
    names = tuple(f"{place.model_version} {place.eval_date}" for place in evaluations)
    # Another draw for each night and model version, the same one each time; those that are ranked share theirs.
    drawn_for = f"{inputs.suite} {inputs.place.eval_date}" if until.ranked else str(inputs.place)
    number = crc32(f"{drawn_for} {seed}".encode())
    return Design(until, number, schedule(until, candidates), names, baseline, candidates)


def _first_batch(inputs: Inputs, design: Design) -> int:
    """Returns the number of cases of the first batch under a budget; even at the highest cost it must fit."""
    if design.until.usd is None or design.batches:
        return _FIRST
    made = plan(inputs.workspace, inputs.place, Scope(), inputs.run.epoch)
    most = (made.generations.usd or 0.0) + (made.recovery.usd or 0.0)
    cases = len(design.candidates)
    return max(1, min(_FIRST, cases, int(design.until.usd * cases / most) if most else cases))


def _scoring(inputs: Inputs) -> Sequence[Stage]:
    """Returns the stages of an evaluation from the first question to the scored turns."""
    stages = evaluating(chain_of(inputs.track))
    last = next(place for place, stage in enumerate(stages) if TURN_RESULTS in stage.writes)
    return stages[: last + 1]


def _run(stage: Stage, inputs: Inputs) -> None:
    """Runs a stage, and its blocking checks."""
    run_stage(stage, inputs)
    own = inputs.anew(partition=None) if stage.whole_suite else inputs.anew()
    for check in stage.checks:
        if check.blocking and not (verdict := check.verdict(own)).passed:
            raise EvalError(f"{check.name}: {verdict.text}")


@dataclass(frozen=True, slots=True)
class Expected:
    """What `plan --until` expects.

    Attributes:
        whole: the plan of the whole suite.
        cases, turns: expected numbers of asked cases and turns; None if they depend on the outcome.
        fewest, most: smallest number of cases after which asking may stop, and the largest.
        suite_cases, suite_turns: numbers of cases and turns of the whole suite.
        evaluations: number of earlier evaluations that the draw is based on.
    """

    until: Until
    whole: RunPlan
    cases: int | None
    fewest: int
    most: int
    suite_cases: int
    suite_turns: int
    evaluations: int

    @property
    def turns(self) -> int | None:
        """Expected number of turns."""
        return None if self.cases is None else round(self.suite_turns * self.cases / self.suite_cases)

    @property
    def usd(self) -> float | None:
        """The highest possible cost of the expected turns, without recovery; None without prices."""
        known = self.whole.generations.usd
        return None if known is None or self.cases is None else known * self.cases / self.suite_cases


def expect(workspace: Workspace, partition: Partition, until: Until, epoch: str) -> Expected:
    """Returns what `ask_until` is expected to ask, without asking any model. Raises as `ask_until`."""
    inputs = Inputs.of(workspace, partition)
    evaluations: Sequence[Partition] = earlier_evaluations(inputs)
    if until.baseline:
        baseline_of(inputs, until.baseline)
    cases = None if inputs.header(CASES) else read_cases(workspace.suite(partition.suite))
    candidates = candidates_of(inputs, evaluations, cases)
    if not candidates:
        raise UsageError(f"{partition.suite} has no turn to ask")
    whole = plan(workspace, partition, Scope(), epoch)
    steps, wanted = schedule(until, candidates), None
    if until.half_width is not None:
        enough = expected_cases(until.half_width, candidates, max(1, len(steps) - 1))
        wanted = next(step for step in steps if step >= enough or step == steps[-1])
    elif until.usd is not None and whole.generations.usd:
        wanted = min(len(candidates), max(1, int(len(candidates) * until.usd / whole.generations.usd)))
    turns = sum(len(candidate.turns) for candidate in candidates)
    fewest = steps[0] if steps else 1
    most = steps[-1] if steps else len(candidates)
    return Expected(until, whole, wanted, fewest, most, len(candidates), turns, len(evaluations))

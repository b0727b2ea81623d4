"""`run --until ranked`: several model versions answer the same drawn cases until their order is decided."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from uuid import uuid4

from eval_pipeline.analysis.draws.looks import Draw, KnownAnswers
from eval_pipeline.analysis.draws.reading import answers_of
from eval_pipeline.core import shown
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.drawing import ask, design_of_rule, new_design, whole_is_known
from eval_pipeline.statistics.intervals import estimate_rate
from eval_pipeline.workspace.asked.draws import Design, write_design
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, RunContext, end_run, ending_failed
from eval_pipeline.workspace.workspace import Progress, Workspace

Pair = tuple[str, str]
_RULE = Until(ranked=True)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The outcome of ranking the model versions of a suite.

    Attributes:
        scopes: the part of the suite that each has been asked.
        problems: what kept model versions from being ranked, a sentence each.
        text: the order in words; empty if fewer than two could be asked.
    """

    scopes: Mapping[Partition, Scope]
    problems: Sequence[str]
    text: str = ""


@dataclass
class _Contender:
    """A model version of a ranking: its draw, and the answers so far. ``known`` if it was evaluated in full before."""

    inputs: Inputs
    design: Design
    known: bool
    answers: KnownAnswers = field(default_factory=lambda: KnownAnswers({}, {}))
    read: int = 0

    @property
    def name(self) -> str:
        return self.inputs.place.model_version

    @property
    def scope(self) -> Scope:
        return Scope() if self.known else self.design.scope()

    def advance(self, look: int) -> None:
        """Makes the answers to the first batches known, asking what is not on record.

        Raises:
            EvalError: a stage failed, or a turn has no verdict.
        """
        if self.known and not self.read:
            self.answers, self.read = answers_of(self.inputs), len(self.design.schedule)
        if len(self.design.batches) < look:
            self._keep(self.design.with_batch(Draw(self.design, self.answers).next_batch()))
        if self.read < look:
            self.answers, self.read = ask(self.inputs, self.design.scope()), len(self.design.batches)
        if missing := self.answers.missing(self.design.first(look)):
            raise EvalError(f"{missing} of the drawn turns have no verdict; run again to go on")

    def end(self, why: str) -> None:
        """Records why no more is asked."""
        if self.design.left:
            self._keep(replace(self.design, ended=why))

    def outcomes(self, look: int) -> Mapping[str, float]:
        """Returns the outcome of each turn up to a look, by turn id."""
        places = (place for batch in self.design.batches[:look] for place in batch.places)
        turns = [turn for place in places for turn in self.design.candidates[place].turns]
        return {turn: self.answers.correct[turn] for turn in turns}

    def estimate(self) -> tuple[float, float | None, float | None]:
        """The share of right turns and its 95% interval: of the suite, or if all was asked, of turns with a verdict."""
        if not self.known:
            told = Draw(self.design, self.answers).looks[-1].correct
            return told.value, told.low, told.high
        known = self.answers.correct
        found = [
            (known[turn], place)
            for place, candidate in enumerate(self.design.candidates)
            for turn in candidate.turns
            if turn in known
        ]
        rate = estimate_rate([one for one, _ in found], [place for _, place in found])
        assert rate.mean is not None
        return rate.mean, rate.low, rate.high

    def _keep(self, design: Design) -> None:
        self.design = design
        if not self.known:
            write_design(self.inputs.record, self.inputs.place, design)


def check_rankable(partitions: Sequence[Partition]) -> None:
    """Raises UsageError if a suite has only one model version to rank."""
    for suite in dict.fromkeys(place.suite for place in partitions):
        if sum(place.suite == suite for place in partitions) < 2:
            raise UsageError(f"--until ranked: {suite} has one model version to rank; name two or more")


def rank(
    workspace: Workspace, partitions: Sequence[Partition], seed: int, run: RunContext, progress: Progress
) -> Ranking:
    """Asks the model versions of a suite the same cases, batch after batch, until every pair is decided.

    A model version of which all pairs are decided is asked no more. Those evaluated in full before are asked nothing.
    An interrupted ranking continues with the recorded draws.

    Args:
        workspace: the workspace.
        partitions: the evaluations to rank, all of one suite and date.
        seed: seed of the draw.
        run: the run; each evaluation gets an id of its own.
        progress: receives the progress.

    Raises:
        UsageError: their recorded draws differ.
    """
    problems: list[str] = []
    contenders: list[_Contender] = []
    for place in partitions:
        inputs = Inputs.of(workspace, place, run=replace(run, run_id=str(uuid4())), progress=progress)
        try:
            known = whole_is_known(inputs)
            design = new_design(inputs, _RULE, seed) if known else design_of_rule(inputs, _RULE, seed)
        except EvalError as error:
            problems.append(f"{place.suite}, {place.model_version}: {error}")
            continue
        contenders.append(_Contender(inputs, design, known))
    _check_same(contenders)
    pairs = len(partitions) * (len(partitions) - 1) // 2
    asked, decided = _decide(workspace, contenders, pairs, problems)
    scopes = {one.inputs.place: one.scope for one in asked if one.read}
    return Ranking(scopes, problems, _text(asked, decided) if len(asked) > 1 else "")


def _decide(
    workspace: Workspace, contenders: list[_Contender], pairs: int, problems: list[str]
) -> tuple[list[_Contender], dict[Pair, int]]:
    """Asks look after look; returns the contenders that could be asked, and who of each decided pair is better."""
    decided: dict[Pair, int] = {}
    going, open_to = list(contenders), list(contenders)
    for look in range(1, len(contenders[0].design.schedule) + 1 if contenders else 1):
        for one in open_to:
            place, run_id = one.inputs.place, one.inputs.run.run_id
            try:
                with ending_failed(workspace, place, run_id):
                    one.advance(look)
            except EvalError as error:  # the others go on without it
                problems.append(f"{place.suite}, {place.model_version}: {error}")
                going.remove(one)
        decided |= _verdicts([one for one in open_to if one in going], look, pairs, decided)
        still = {name for pair in _undecided(going, decided) for name in pair}
        for one in [one for one in open_to if one in going and one.name not in still]:
            one.end(f"decided: its place among {len(going)} model versions")
        open_to = [one for one in going if one.name in still]
        if not open_to:
            break
    for one in going:
        if not one.known:
            end_run(workspace, one.inputs.place, one.inputs.run.run_id, COMPLETE)
    return going, decided


def _verdicts(open_to: Sequence[_Contender], look: int, pairs: int, decided: Mapping[Pair, int]) -> dict[Pair, int]:
    from eval_pipeline.statistics.adaptive.ranking import pair_verdict

    found: dict[Pair, int] = {}
    cases = open_to[0].inputs.cases if open_to else ()
    clusters = {turn.id: case.cluster for case in cases for turn in case.turns}
    for one, other in combinations(open_to, 2):
        if (one.name, other.name) in decided:
            continue
        first, second = one.outcomes(look), other.outcomes(look)
        verdict = pair_verdict(
            list(first.values()),
            [second[turn] for turn in first],
            _codes(clusters[turn] for turn in first),
            asked=one.design.schedule[:look],
            looks=len(one.design.schedule),
            pairs=pairs,
        )
        if verdict:
            found[one.name, other.name] = verdict
    return found


def _codes(names: Iterable[str]) -> list[int]:
    codes: dict[str, int] = {}
    return [codes.setdefault(name, len(codes)) for name in names]


def _undecided(going: Iterable[_Contender], decided: Mapping[Pair, int]) -> list[Pair]:
    pairs = combinations([one.name for one in going], 2)
    return [pair for pair in pairs if pair not in decided]


def _check_same(contenders: Sequence[_Contender]) -> None:
    """Raises UsageError unless all draw the same cases."""
    first = contenders[0].design if contenders else None
    for one in contenders[1:]:
        mine = one.design
        assert first is not None
        same = [c.turns for c in mine.candidates] == [c.turns for c in first.candidates]
        if not same or (mine.seed, mine.schedule) != (first.seed, first.schedule):
            raise UsageError(
                f"--until ranked: '{one.name}' and '{contenders[0].name}' were drawn differently: another --seed, or "
                "the suite has changed; rank them with another --eval-date or --fresh"
            )


def _text(asked: Sequence[_Contender], decided: Mapping[Pair, int]) -> str:
    """Returns the order in words, the best first."""
    told = {one.name: one.estimate() for one in asked}
    better = {(second, first) if verdict > 0 else (first, second) for (first, second), verdict in decided.items()}
    order = best_first({name: share for name, (share, _, _) in told.items()}, better)
    parts = [f"{order[0]} {shown.rate(*told[order[0]])}"]
    for before, name in pairwise(order):
        parts.append(f"{'>' if (before, name) in better else '≈'} {name} {shown.rate(*told[name])}")
    open_pairs = [f"{one} and {other}" for one, other in _undecided(asked, decided)]
    rest = f"; not told apart: {', '.join(open_pairs)}" if open_pairs else "; every pair is decided"
    return " ".join(parts) + rest


def best_first(shares: Mapping[str, float], better: Collection[Pair]) -> list[str]:
    """Returns names in an order that no decision contradicts, and by share where none decides.

    The shares alone would not do: models that were asked different numbers of cases may have them the other way round.

    Args:
        shares: the share of right turns by name.
        better: decided pairs, the better one first.
    """
    left, order = sorted(shares, key=lambda name: -shares[name]), list[str]()
    while left:
        unbeaten = (name for name in left if not any((other, name) in better for other in left))
        order.append(next(unbeaten, left[0]))  # decisions may form a circle if one of them is wrong
        left.remove(order[-1])
    return order

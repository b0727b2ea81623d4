"""What is known of answers while they arrive: how many can be read, what went wrong, and how many are right so far."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eval_pipeline.asking.answers import Counters
from eval_pipeline.core.model import Attempt, CallErrorKind, Case, Failed, Turn
from eval_pipeline.providers.registry import traits_of
from eval_pipeline.stages.attempts.ask import AskedAttempt
from eval_pipeline.stages.attempts.seen import shown
from eval_pipeline.stages.scoring.gold import gold_problems
from eval_pipeline.stages.scoring.metric_runner import MetricRunner, metrics_behind_primary
from eval_pipeline.stages.spending import OF_VERSION, limit_told
from eval_pipeline.tracks.abilities import evidence_cpu_s_of, gather_all
from eval_pipeline.tracks.capabilities import Judged
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.watching.status import ASKING, Status, counted

CHEAP_S = 0.005
"""CPU seconds that comparing an answer with the gold may take, for answers to be scored as they arrive."""
SHARE = 0.0015
"""Share of the process's CPU time that scoring as answers arrive may take; what does not fit waits for the rest."""
_BLOCK, _MOST = 8, 2000
"""Answers scored together; answers that wait for it."""
_KINDS = 50


class SoFar:
    """Counts answers as they arrive, and scores them by the suite's own metric as far as that costs next to nothing."""

    def __init__(self, inputs: Inputs, *, scores: bool) -> None:
        """Counts nothing yet; `scores` if these are first answers, which may be scored."""
        self.done = self.readable = self.refused = 0
        self.errors: dict[str, tuple[int, str]] = {}
        self.why = why_not_scored(inputs) if scores else ""
        self._inputs, self._scores = inputs, scores and not self.why
        self._waiting: deque[tuple[Case, Turn, Attempt]] = deque(maxlen=_MOST)
        self._runner = MetricRunner(metrics_behind_primary(inputs.track)) if self._scores else None
        self._verdicts: list[bool] = []
        self._clusters: list[int] = []
        self._known: dict[str, int] = {}
        self._took = self._estimated = 0.0
        if self._scores:  # loaded now, as scoring all answers loads it too, so that it is no cost of these
            from eval_pipeline.statistics.intervals import estimate_rate

            self._estimate = estimate_rate
            gold_problems(inputs)
        self._rate: tuple[int, int, float | None, float | None] = (0, 0, None, None)

    def add(self, case: Case, results: Sequence[tuple[Turn, AskedAttempt]], *, finished: int) -> None:
        """Counts attempts at turns of a case, and so many turns as finished."""
        self.done += finished
        for turn, asked in results:
            attempt = asked.attempt
            failure = attempt.call_failure
            if failure is not None and failure.kind is CallErrorKind.BUDGET:
                self.refused += 1
                continue
            if failure is not None:
                self._went_wrong(turn, failure.kind.value, failure.message)
            elif isinstance(attempt.outcome, Failed):
                self._went_wrong(turn, attempt.outcome.error_class.value, attempt.outcome.message)
            self.readable += attempt.artefact is not None
            if self._scores:
                self._waiting.append((case, turn, attempt))

    def show(self, status: Status) -> None:
        """Completes a status by what is counted, after scoring some of the answers that wait for it."""
        self._score_some()
        counts: Counters = self._inputs.counts
        status.done, status.readable, status.refused = self.done, self.readable, self.refused
        status.errors, status.why_unscored = counted(self.errors), self.why
        status.retried = made_again(counts)
        status.scored, status.right, status.low, status.high = self._rate
        status.calls, status.journal, status.unanswered = counts.calls, counts.journal_hits, counts.failures
        status.usd, status.tokens = counts.usd, counts.tokens
        if status.limit_kind == OF_VERSION:
            status.limit_spent = counts.usd or 0.0

    def _went_wrong(self, turn: Turn, kind: str, message: str) -> None:
        known = self.errors.get(kind)
        if known is not None:
            self.errors[kind] = (known[0] + 1, known[1])
        elif len(self.errors) < _KINDS:
            self.errors[kind] = (1, f"{turn.id}: {shown(message)}")

    def _score_some(self) -> None:
        while self._waiting and self._took <= SHARE * time.process_time():
            began = time.thread_time()
            block = [self._waiting.popleft() for _ in range(min(_BLOCK, len(self._waiting)))]
            try:
                self._score(block)
            except Exception as error:  # a fault of a track, which scoring tells; asking goes on
                self._waiting.clear()
                self._scores, self.why = False, f"scoring raises {type(error).__name__}"
            self._took += time.thread_time() - began
        # The interval is over all answers: with many of them, it is computed more seldom.
        if len(self._verdicts) > self._rate[0] and self._estimated <= SHARE / 4 * time.process_time():
            began = time.thread_time()
            found = self._estimate(self._verdicts, self._clusters)
            self._rate = (len(self._verdicts), sum(self._verdicts), found.low, found.high)
            self._estimated += time.thread_time() - began

    def _score(self, block: Sequence[tuple[Case, Turn, Attempt]]) -> None:
        inputs, track = self._inputs, self._inputs.track
        gold, problems = inputs.gold, gold_problems(inputs)
        held = []
        for case, turn, attempt in block:
            if gold.is_excluded(turn.id) or turn.id in problems:
                continue
            scored = gold.case(case)
            accepted = gold.accepted(scored, scored.turns[turn.index])
            if len(accepted) == 1:  # which of several golds an answer is judged by is found with the rest
                held.append((*accepted[0], attempt))
        if not held:
            return
        assert self._runner is not None
        found = gather_all(track, held)
        values = [track.values(c, t, [a], evidence) for (c, t, a), evidence in zip(held, found, strict=True)]
        said = self._runner.run(values)
        failed = {failure.turn for failure in said.failures}
        for place, ((case, _, _), verdict) in enumerate(zip(held, said.plain[track.primary_metric], strict=True)):
            if verdict is not None and place not in failed:
                self._verdicts.append(bool(verdict))
                self._clusters.append(self._known.setdefault(case.cluster, len(self._known)))


def made_again(counts: Counters) -> list[list[Any]]:
    """Returns after which errors calls were made again, as a status has errors."""
    return counted({kind: (times, shown(text)) for kind, (times, text) in counts.retried.items()})


def why_not_scored(inputs: Inputs) -> str:
    """Returns why answers are not scored as they arrive; empty if they are."""
    track = inputs.track
    if isinstance(track, Judged) and track.judge_decides(inputs.options):
        return "a judge decides which answers are right, and is asked when all are there"
    if evidence_cpu_s_of(track) > CHEAP_S:
        return "telling which answers are right means running them, which is done when all are there"
    return ""


@contextmanager
def watched(inputs: Inputs, name: str, total: int) -> Iterator[SoFar]:
    """Yields what counts the answers of the block, and shows it to those who watch the run."""
    watch = inputs.run.watch
    found = SoFar(inputs, scores=watch is not None and name == ASKING)
    if watch is None:
        yield found
        return
    version, traits = inputs.version, traits_of(inputs.version.provider)
    told = {"samples": version.samples_per_turn, "free": not traits.charged, **limit_told(inputs, version)}
    with watch.asking(name, total, found.show, **told):
        yield found

"""Looks through the files of a suite: every case once, one after the other, so that it may be larger than memory."""

import asyncio
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from eval_pipeline.core.errors import Problem
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Case, Ran, Turn
from eval_pipeline.stages.checks.ends import check_ends_of, judged
from eval_pipeline.stages.checks.verdicts import CheckVerdict, contradictions
from eval_pipeline.stages.scoring.gold import drifting
from eval_pipeline.stages.scoring.metric_runner import MetricRunner, metrics_behind_primary
from eval_pipeline.suites.cases import SuiteReading
from eval_pipeline.suites.headers import SuiteSource
from eval_pipeline.suites.overrides import NOTHING_OVERRIDDEN, Override
from eval_pipeline.tracks.abilities import answer_keys_of, executor_of
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Acts, Contradiction, Shares
from eval_pipeline.workspace.progress import counted
from eval_pipeline.workspace.workspace import Progress, Workspace

MOST_TURNS = 40
"""Number of turns that are tried; of a larger suite, whole cases are drawn."""
_EXAMPLES = 3
_OTHERS = 12
"""Number of other turns whose answers are given all at once."""


@dataclass(slots=True)
class Trials:
    """How many answers of a kind were tried.

    Attributes:
        tried: their number.
        misjudged: which ones were judged wrongly, as `turn id: kind`.
    """

    tried: int = 0
    misjudged: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Returns both numbers, with the first examples."""
        more = ["…"] if len(self.misjudged) > _EXAMPLES else []
        shown = f" ({', '.join([*self.misjudged[:_EXAMPLES], *more])})" if self.misjudged else ""
        return f"{len(self.misjudged)} of {self.tried}{shown}"


@dataclass(slots=True)
class Fairness:
    """Both rates: cheats that passed, and right answers that were refused."""

    cheats: Trials = field(default_factory=Trials)
    right: Trials = field(default_factory=Trials)

    def text(self) -> str:
        """Returns both rates in words."""
        told = f"cheats passed: {self.cheats.text()}; right answers refused: {self.right.text()}"
        ways = {
            "a gold that a cheat meets has to ask for more, such as a further check or value": self.cheats,
            "a gold that refuses what is right has to accept it as well": self.right,
        }
        mend = "; ".join(way for way, trials in ways.items() if trials.misjudged)
        return f"{told}; {mend} (docs/gold.md)" if mend else told


class EvenDraw:
    """Draws cases evenly from any number that pass by, always the same ones."""

    def __init__(self, most: int = MOST_TURNS) -> None:
        """Keeps at most so many cases."""
        self._most, self._seen, self._random = most, 0, Random(0)
        self._kept: list[tuple[Case, frozenset[str]]] = []

    def pass_by(self, case: Case, excluded: Iterable[str]) -> None:
        """Keeps a case, or does not; `excluded` are ids of turns that are not tried."""
        self._seen += 1
        place = len(self._kept) if self._seen <= self._most else self._random.randrange(self._seen)
        if place < self._most:
            self._kept[place : place + 1] = [(case, frozenset(excluded))]

    def cases(self) -> list[tuple[Case, frozenset[str]]]:
        """Returns the cases drawn, with at most so many turns together."""
        kept, turns = list[tuple[Case, frozenset[str]]](), 0
        for case, excluded in self._kept:
            turns += len(case.turns)
            if turns <= self._most or not kept:
                kept.append((case, excluded))
        return kept


def measure(track: Track, cases: Sequence[tuple[Case, frozenset[str]]]) -> Fairness:
    """Gives cheats and rewritten right answers to the turns of cases and counts how they are judged."""
    return asyncio.run(_measure(track, cases))


async def _measure(track: Track, cases: Sequence[tuple[Case, frozenset[str]]]) -> Fairness:
    runner, found = MetricRunner(metrics_behind_primary(track)), Fairness()
    tried = [turn for case, excluded in cases for turn in case.turns if turn.id not in excluded]
    told = track.expected_text if isinstance(track, Acts) else track.oracle
    answers = {turn.id: told(turn) for turn in tried}
    refusals = {answers[turn.id] for turn in tried if track.gold_is_empty(turn)}
    async with executor_of(track) as executor:
        for case, excluded in cases:
            for turn in case.turns:
                if turn.id in excluded:
                    continue
                gold_answer = track.oracle(turn)
                cheats = {kind: track.answering(turn, text) for kind, text in cheats_of(turn, answers, refusals)}
                cheats |= track.cheats(case, turn)
                right = dict(rewrites_of(track, case, turn, gold_answer))
                given = [gold_answer, *cheats.values(), *right.values()]
                gold, *rest = await judged(track, runner, executor, case, [(turn, text) for text in given])
                for kind, (outcome, passed) in zip([*cheats, *right], rest, strict=True):
                    if kind in right:
                        found.right.tried += 1
                        found.right.misjudged += [f"{turn.id}: {kind}"] * (not passed)
                    elif not is_the_same(track, turn, outcome, gold[0]):
                        found.cheats.tried += 1
                        found.cheats.misjudged += [f"{turn.id}: {kind}"] * passed
    return found


def is_the_same(track: Track, turn: Turn, outcome: object, gold: object) -> bool:
    """Whether an answer gave by chance what the gold gives, so that it is no cheat."""
    if not isinstance(outcome, Ran) or not isinstance(gold, Ran):
        return False
    if isinstance(track, Acts):  # its keys ask the judge, which is what is tried here
        return canonical_json(outcome.value) == canonical_json(gold.value)
    first, second = answer_keys_of(track, turn, [outcome.value, gold.value])
    return first == second


def cheats_of(turn: Turn, answers: Mapping[str, str], refusals: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yields answers that are not right, each with its kind.

    Args:
        turn: the turn.
        answers: the right answers by turn.
        refusals: those that give no answer, where none can be given; one refusal is as right as another.
    """
    own = answers[turn.id]
    same = refusals if own in refusals else {own}
    yield "the question", turn.question
    ids = list(answers)
    at = ids.index(turn.id)
    others = list(
        dict.fromkeys(text for text in (answers[one] for one in ids[at + 1 :] + ids[:at]) if text not in same)
    )
    if others:
        yield "another turn's answer", others[0]
        yield "the answer of a turn far off", others[len(others) // 2]
    if own in refusals:
        return
    if others:
        before, after = others[: _OTHERS // 2], others[_OTHERS // 2 : _OTHERS]
        yield "all answers at once", "\n".join([*before, own, *(after or before[:1])])
    yield "no answer", ""
    yield "a refusal", "This cannot be answered with the data that is there."
    if len(own) > 1:
        yield "half of the answer", own[: len(own) // 2]


def rewrites_of(track: Track, case: Case, turn: Turn, answer: str) -> Iterator[tuple[str, str]]:
    """Yields right responses, each with how it is written."""
    if isinstance(track, Acts):  # what it writes is no answer
        yield from track.rewrites(case, turn).items()
        return
    yield "with blank lines around", f"\n\n{answer}\n\n"
    yield "with the line ends of Windows", answer.replace("\r\n", "\n").replace("\n", "\r\n")
    yield "after a sentence", f"I have looked at what is there.\n\n{answer}"
    if (other := _other_json(answer)) is not None:
        yield "as other JSON", other
    yield from track.rewrites(case, turn).items()


def _other_json(text: str) -> str | None:
    """Returns JSON printed otherwise, with its names in another order; None if it is none."""
    try:
        read = json.loads(text)
    except ValueError:
        return None
    if isinstance(read, dict):
        read = dict(reversed(read.items()))
    printed = json.dumps(read, indent=4, ensure_ascii=True)
    return printed if canonical_json(read) != printed else None


_AT_ONCE = 250
"""Number of cases read at once: a case by itself, with all that is done to it, takes the processor a third longer."""


@dataclass(slots=True)
class SuiteFound:
    """What is in the files of a suite, and what is wrong with it.

    Attributes:
        ends: whether gold answers are right and no answer is wrong.
        cases, turns: their numbers.
        broken: turns whose gold does not hold, each with the reason; without those that people have excluded.
        doubts: doubts about gold that holds.
        moved: turns whose gold gives another result than when the suite was last recorded.
        problems: why cases were left out.
        notes: what people may not expect of files that are valid.
        overrides: people's overrides of the gold.
        decided: number of turns that these are about.
        fairness: cheats that passed and right answers that were refused.
    """

    ends: CheckVerdict
    cases: int = 0
    turns: int = 0
    broken: list[tuple[str, str]] = field(default_factory=list)
    doubts: list[Contradiction] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    problems: Sequence[Problem] = ()
    notes: Sequence[str] = ()
    overrides: Sequence[Override] = ()
    decided: int = 0
    fairness: Fairness = field(default_factory=Fairness)


def look_through(workspace: Workspace, source: SuiteSource, progress: Progress) -> SuiteFound:
    """Reads every case of a suite and checks its gold.

    Raises:
        InputError: as `suites.cases.read_suite`.
    """
    reading, track = SuiteReading(source), source.track()
    found = SuiteFound(CheckVerdict(True, ""))
    cases: Iterator[Case] = (case for case, _ in reading)
    gold = NOTHING_OVERRIDDEN
    if reading.has_overrides:  # they are read against all cases
        read = list(reading)
        reading.refuse_wrong()
        found.overrides, gold = reading.overrides([case for case, _ in read], [content for _, content in read])
        cases = (gold.case(case) for case, _ in read)
    moved, held, drawn = drifting(workspace, source.name, track), list[Case](), EvenDraw()

    def look(case: Case) -> Collection[str]:
        wrong = [(turn.id, why) for turn, why in track.check_gold(case)]
        invalid = {turn for turn, _ in wrong}
        found.cases, found.turns = found.cases + 1, found.turns + len(case.turns)
        found.broken += wrong
        found.doubts += contradictions(track, [case], invalid | gold.actions.keys())
        found.moved += moved(case)
        if tells_of_cases:
            held.append(case)
        drawn.pass_by(case, invalid | excluded)
        return invalid | excluded

    def looked_at() -> Iterator[tuple[Case, Collection[str]]]:
        while block := list(islice(cases, _AT_ONCE)):
            if not reading.is_refused:  # else it is only read on, for what else is wrong
                yield from [(case, look(case)) for case in block]

    tells_of_cases = isinstance(track, Shares) and type(track).shared_notes is not Shares.shared_notes
    excluded = {turn for turn in gold.actions if gold.is_excluded(turn)}
    found.ends = check_ends_of(track, counted(progress, f"{source.name} · cases", looked_at(), 0))
    reading.refuse_wrong()
    found.fairness = measure(track, drawn.cases())
    found.broken += [(turn.id, why) for case in gold.alternatives.values() for turn, why in track.check_gold(case)]
    found.broken = [(turn, why) for turn, why in dict.fromkeys(found.broken) if turn not in excluded]
    shared = track.shared_notes(reading.shared, held) if isinstance(track, Shares) else ()
    found.problems, found.decided = reading.problems, len(gold.actions)
    found.notes = (*shared, *reading.notes, *(f"{name}: holds no case" for name in reading.empty))
    return found

"""Looks through the files of a suite: every case once, one after the other, so that it may be larger than memory."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from eval_pipeline.core.errors import Problem
from eval_pipeline.core.model import Case
from eval_pipeline.stages.checks.ends import check_ends_of
from eval_pipeline.stages.checks.fairness import EvenDraw, Fairness, measure
from eval_pipeline.stages.checks.verdicts import CheckVerdict, contradictions
from eval_pipeline.stages.scoring.gold import drifting
from eval_pipeline.suites.cases import SuiteReading
from eval_pipeline.suites.headers import SuiteSource
from eval_pipeline.suites.overrides import NOTHING_OVERRIDDEN, Override
from eval_pipeline.tracks.capabilities import Contradiction, Shares
from eval_pipeline.workspace.progress import counted
from eval_pipeline.workspace.workspace import Progress, Workspace

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

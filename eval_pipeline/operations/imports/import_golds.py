"""Checks the gold of a data set while it is imported: several at a time, with progress, and until somebody ends it."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

from eval_pipeline.core.model import Case
from eval_pipeline.core.reading.arms_length import tell_progress, until_ended
from eval_pipeline.core.system.processors import processors
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Audits

NOT_CHECKED = "not checked, since the import was ended"


@dataclass(frozen=True, slots=True)
class CheckedGold:
    """What was found of the gold of a case.

    Attributes:
        case_id: the case.
        wrong: turns with invalid gold, each with the reason.
        doubted: turns whose gold the lint doubts, each with its findings.
    """

    case_id: str
    wrong: tuple[str, ...]
    doubted: tuple[str, ...] = ()


def check_golds(track: Track, cases: Sequence[Case], *, may_end: bool) -> dict[str, CheckedGold]:
    """Returns what was found, by case, in the order of the cases.

    Args:
        track: the track of the cases.
        cases: the cases to check.
        may_end: whether golds are checked in threads, of which each waits for a process of its own, and only until the
            import is ended; the others are then missing in what is returned.
    """
    found: dict[str, CheckedGold] = {}
    tell_progress(0, len(cases))
    for one in _in_threads(track, cases) if may_end else (_checked(track, case) for case in cases):
        found[one.case_id] = one
        tell_progress(len(found), len(cases))
    return {case.id: found[case.id] for case in cases if case.id in found}


def _checked(track: Track, case: Case) -> CheckedGold:
    wrong = tuple(f"{turn.id}: {why}" for turn, why in track.check_gold(case))
    doubts = track.contradictions(case) if isinstance(track, Audits) and not wrong else ()
    return CheckedGold(case.id, wrong, tuple(f"{one.turn_id}: {one.evidence}" for one in doubts if one.linted))


def _in_threads(track: Track, cases: Sequence[Case]) -> Iterator[CheckedGold]:
    """Yields what was found as it is, until all of it is or the import is ended."""
    arrived = SimpleQueue[CheckedGold | BaseException | None]()

    def check(case: Case) -> None:
        try:
            arrived.put(_checked(track, case))
        except BaseException as error:  # raised where somebody waits for it
            arrived.put(error)

    pool = ThreadPoolExecutor(processors())
    try:
        with until_ended(lambda: arrived.put(None)):
            for case in cases:
                pool.submit(check, case)
            for _ in cases:
                one = arrived.get()
                if isinstance(one, BaseException):
                    raise one
                if one is None:
                    return
                yield one
    finally:
        pool.shutdown(wait=False, cancel_futures=True)

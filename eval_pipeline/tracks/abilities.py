"""What stages ask any track for: functions that also handle tracks without an ability."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Attempt, Case, Evidence, Json, Outcome, Ran, Turn
from eval_pipeline.tracks.base import ArtefactError, Executor, Track, ValidationRow
from eval_pipeline.tracks.capabilities import (
    Acts,
    Audits,
    Contradiction,
    Converses,
    Executes,
    Explains,
    Gathers,
    Seen,
    Validates,
)
from eval_pipeline.tracks.texts.reasoning import SplitResponse, apart

if TYPE_CHECKING:
    from eval_pipeline.tracks.shown.cards import Card


def conversations_of(
    track: Track, case: Case, asked: Sequence[tuple[Turn, int, Sequence[Attempt]]], history: Callable[[], str]
) -> Mapping[tuple[str, int], Mapping[str, Any]]:
    """Returns (turn id, sample) → conversation values for metrics; empty if the track does not use them.

    Args:
        track: the case's track.
        case: the case.
        asked: turns, samples and attempts.
        history: returns which answers the model was shown.
    """
    if not isinstance(track, Converses):
        return {}
    by_sample: dict[int, list[tuple[Turn, Sequence[Attempt]]]] = {}
    for turn, sample, attempts in asked:
        by_sample.setdefault(sample, []).append((turn, attempts))
    return {
        (turn.id, sample): told
        for sample, said in by_sample.items()
        for (turn, _), told in zip(said, track.conversation_values(case, said, history()), strict=True)
    }


def cards_of(track: Track, seen: Seen) -> "Sequence[Card]":
    """Returns the track's cards of a turn; empty if it has none."""
    return track.cards(seen) if isinstance(track, Explains) else ()


def results_of(track: Track, seen: Seen) -> "Card | None":
    """Returns what gold and answer of a turn gave, without a verdict; None if the track runs nothing."""
    return track.results(seen) if isinstance(track, Explains) else None


def gather_all(track: Track, turns: Sequence[tuple[Case, Turn, Attempt]]) -> Sequence[tuple[Evidence, ...]]:
    """Returns the evidence for the last attempt of each turn."""
    return track.gather_all(turns) if isinstance(track, Gathers) else [()] * len(turns)


def nearness(track: Track, evidence: Sequence[Evidence]) -> float:
    """Returns how near the last attempt is to being right, by its evidence."""
    return track.nearness(evidence) if isinstance(track, Gathers) else 0.0


def measured_kinds_of(track: Track) -> frozenset[str]:
    """Returns the kinds of evidence that hold measured times."""
    return track.measured_kinds if isinstance(track, Gathers) else frozenset()


def evidence_cpu_s_of(track: Track) -> float:
    """Returns the CPU seconds that gathering the evidence on an answer takes, roughly."""
    return track.evidence_cpu_s if isinstance(track, Gathers) else Gathers.evidence_cpu_s


def worker_tier_of(track: Track) -> str | None:
    """Returns the sandbox in which this machine confines what models of the track write; None if they write no code.

    Raises:
        NoSandboxError: there is none.
    """
    return track.worker_tier() if isinstance(track, Executes) else None


def validation_of(track: Track, artefact: Any, error: ArtefactError | None, case: Case) -> ValidationRow:
    """Returns the validation of an artefact before it runs."""
    if isinstance(track, Validates):
        return track.validate(artefact, error, case)
    if error is not None:
        return ValidationRow(False, "invalid", {}, (error.message,))
    return ValidationRow(True, "valid", {}, ())


def executor_of(track: Track) -> AbstractAsyncContextManager[Executor]:
    """Returns the executor of the track's artefacts, as a context manager."""
    return track.executor() if isinstance(track, Executes) else _as_they_are(track)


class _AsItIs:
    """Returns artefacts as their own results."""

    immediate: ClassVar[bool] = True

    def __init__(self, track: Track) -> None:
        self._track = track

    async def execute(self, artefact: Any, case: Case) -> Outcome:
        return Ran(self._track.artefact_json(artefact))


@asynccontextmanager
async def _as_they_are(track: Track) -> AsyncIterator[Executor]:
    yield _AsItIs(track)


def doubts_of(track: Track, case: Case) -> list[Contradiction]:
    """Returns the turns of a case whose gold is doubtful, invalid ones first."""
    broken = [Contradiction(turn.id, why, 1.0) for turn, why in track.check_gold(case)]
    return joined(broken, track.contradictions(case) if isinstance(track, Audits) else ())


def joined(broken: Sequence[Contradiction], further: Sequence[Contradiction]) -> list[Contradiction]:
    """Returns the problems of gold, then the doubts about gold without any."""
    known = {found.turn_id for found in broken}
    return [*broken, *(found for found in further if found.turn_id not in known)]


def answer_keys_of(track: Track, turn: Turn, results: Sequence[Json]) -> Sequence[str]:
    """Returns a text for each result; equal texts mean the same answer. By default, the result's JSON is used."""
    return track.answer_keys(turn, results) if isinstance(track, Audits) else [canonical_json(r) for r in results]


def gold_of(track: Track, turn: Turn, results: Sequence[Json]) -> Mapping[str, Json] | None:
    """Returns fields of the gold by which results are right; None if the gold is known. See `Audits.gold_of`."""
    return track.gold_of(turn, results) if isinstance(track, Audits) else None


def split_response(track: Track, text: str) -> SplitResponse:
    """Separates the reasoning from a response; a trajectory, which is not the model's own text, has none."""
    return SplitResponse("", text) if isinstance(track, Acts) else apart(text)

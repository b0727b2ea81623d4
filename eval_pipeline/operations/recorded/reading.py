"""Test-parses every answer on import, to show what a run will make of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core.model import Case, Json
from eval_pipeline.providers.standins.recorded import call_error_of
from eval_pipeline.stages.attempts.ask import CUT_OFF_THINKING, STOPPED, parse_answer, parts_of
from eval_pipeline.tracks.base import Track

_MOST_TEXT = 60
_MOST_KINDS = 5


@dataclass(frozen=True, slots=True)
class Unread:
    """Answers that cannot be read for the same reason.

    Attributes:
        reason: a sentence.
        count: number of answers.
        example: turn and beginning of the first one.
    """

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The result of parsing all answers.

    Attributes:
        answers: number of answers.
        readable: number of readable ones.
        unread: the others by reason, most frequent first.
        missing_columns: reason → (metrics that will be NULL, number of answers).
    """

    answers: int
    readable: int
    unread: tuple[Unread, ...]
    missing_columns: Mapping[str, tuple[tuple[str, ...], int]]

    def sentences(self) -> Iterator[str]:
        """Yields the summary for people, as sentences."""
        if self.answers == 0:
            return
        yield f"{self.readable:,} of {self.answers:,} readable"
        for unread in self.unread[:_MOST_KINDS]:
            yield f"  {unread.count:,} like this: {unread.example}: {unread.reason}"
        if len(self.unread) > _MOST_KINDS:
            rest = self.unread[_MOST_KINDS:]
            yield f"  {sum(one.count for one in rest):,} for {len(rest)} further reasons"
        lacking = sorted(self.missing_columns.items(), key=lambda found: -found[1][1])
        for reason, (metrics, count) in lacking[:_MOST_KINDS]:
            of = "all answers" if count == self.readable else f"{count:,} answer{'s' if count > 1 else ''}"
            yield f"NULL for {of}, since {reason}: {', '.join(metrics)}"


def read_back(track: Track, cases: Sequence[Case], rows: Sequence[Mapping[str, Json]]) -> ReadBack:
    """Parses every answer with the suite's track, as a run will; nothing is executed.

    Args:
        track: the suite's track.
        cases: the suite's cases.
        rows: canonical rows, each for a turn that the suite has.
    """
    turns = {(case.id, turn.index): turn for case in cases for turn in case.turns}
    readable = 0
    unread: dict[str, tuple[int, str]] = {}
    lacking: dict[str, tuple[tuple[str, ...], int]] = {}
    for row in rows:
        artefact, reason = _read(track, row)
        turn = turns[row["case_id"], row["turn_index"]]
        if reason is None:
            reason = track.unreadable(turn, artefact)
        if reason is not None:
            count, example = unread.get(reason, (0, _shown(track, row)))
            unread[reason] = (count + 1, example)
            continue
        readable += 1
        for why, metrics in track.unscored(turn, artefact).items():
            lacking[why] = (metrics, lacking.get(why, (metrics, 0))[1] + 1)
    kinds = sorted((Unread(reason, *found) for reason, found in unread.items()), key=lambda kind: -kind.count)
    return ReadBack(len(rows), readable, tuple(kinds), lacking)


def _read(track: Track, row: Mapping[str, Json]) -> tuple[object, str | None]:
    """Returns the artefact of an answer, or why there is none."""
    if row.get("error"):
        return None, "an error was recorded instead of an answer"
    stopped = call_error_of(row.get("stop_reason"))
    if stopped is not None:
        return None, STOPPED[stopped]
    if not row["text"].strip():
        return None, "no answer is given"
    parts = parts_of(track, row["text"])
    if parts.cut_off:
        return None, CUT_OFF_THINKING
    artefact, error = parse_answer(track, parts.answer, recorded=True)
    return artefact, None if error is None else error.message


def _shown(track: Track, row: Mapping[str, Json]) -> str:
    text = " ".join((row.get("error") or track.recorded_text(row["text"])).split())
    text = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
    return f"{row['case_id']}#{row['turn_index']}" + (f" '{text}'" if text else "")

"""Candidates of each turn of a suite whose track chooses from a catalogue."""

from dataclasses import dataclass

from eval_pipeline.core.errors import Problem, UsageError
from eval_pipeline.core.installed.plugins import load_place
from eval_pipeline.suites.headers import SuiteSource
from eval_pipeline.tracks.capabilities import Catalogued
from eval_pipeline.tracks.registry import all_tracks, load_track


@dataclass(frozen=True, slots=True)
class SuiteCandidates:
    """Candidates of a suite.

    Attributes:
        lines: lines of the file, one for each turn of the cases that can be read.
        problems: why other cases cannot be read.
    """

    lines: tuple[str, ...]
    problems: tuple[Problem, ...]


def suite_candidates(source: SuiteSource, command: str | None, timeout_s: float) -> SuiteCandidates:
    """Returns the candidates of every turn of a suite. Those that the suite's own file gives are not used.

    Args:
        source: a suite.
        command: command line of a program that gives the candidates; None: the track's own search.
        timeout_s: seconds that the program may take.

    Raises:
        UsageError: the suite's track has no catalogue, or the program fails or does not give candidates for each turn.
        InputError: the suite cannot be read, or lines that the program gave are wrong.
    """
    track = load_track(source.require().track)
    if not isinstance(track, Catalogued):
        which = ", ".join(one.name for one in all_tracks() if isinstance(one, Catalogued))
        raise UsageError(f"suite '{source.name}' is of track {track.name}; only suites of track {which} have them")
    found: SuiteCandidates = load_place(track.candidates)(source, command, timeout_s)
    return found

"""The Track protocol: how the stages deal with any kind of task without knowing it, and the registry of tracks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from random import Random
from typing import Any, Literal, Protocol

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Attempt, Case, ErrorClass, Evidence, Json, MetricResult, Outcome, Prompt, Turn
from eval_pipeline.store.schemas import Column

MetricKind = Literal["boolean", "score", "count", "label"]
Plain = bool | int | float | str | None | MetricResult


class ArtefactError(Exception):
    """A response that does not hold an artefact of the track's form."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: a pure function of named plain values.

    Attributes:
        function: its parameters are names of the track's `values` or of metrics earlier in `METRICS`.
        kind: `boolean` and `score` (0..1) are averaged, `count` too, `label` is counted by value.
        description: one line for `COMMENT ON` and the docs: range and the meaning of NULL.
        version: bumped when the meaning changes; rescoring follows from it.
    """

    name: str
    function: Callable[..., Plain]
    kind: MetricKind
    description: str
    version: int = 1

    def inputs(self) -> tuple[str, ...]:
        """Names of the values that the function takes."""
        return tuple(signature(self.function).parameters)


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """What the track's validator said of an artefact before it ran.

    Attributes:
        verdict: `valid`, `invalid` (must fail) or `suspicious` (may run, something is odd).
        checks: JSON values per check.
        errors: one sentence each.
    """

    parsed: bool
    verdict: Literal["valid", "suspicious", "invalid"]
    checks: Mapping[str, Json]
    errors: tuple[str, ...]


class Executor(Protocol):
    """Runs artefacts; holds what that takes (a sandbox, a database) while it is open."""

    async def execute(self, artefact: Any, case: Case) -> Outcome: ...


class Track(Protocol):
    """A kind of task. One instance a track, without state."""

    name: str
    primary_metric: str
    metrics: tuple[Metric, ...]
    feature_columns: tuple[Column, ...]
    """Case and turn features with a column of their own in `<track>_turns`; results are split by the boolean ones."""
    turn_columns: tuple[Column, ...]
    """Further columns of `<track>_turns`, filled by `turn_row`."""
    prompt_versions: tuple[str, ...]
    """Newest last."""
    versions: Mapping[str, str]
    """Of `cases`, `parser`, `executor`, `validator`, `evidence`, `scorer` and `damage` (oracle and stand-ins): part of
    what a record was made from, bumped when what they make of the same input changes."""
    failure_modes: tuple[str, ...]
    complexity_axes: tuple[str, ...]
    """Names of the complexities, the gold's first."""
    complexity_columns: Mapping[str, str]
    """Column of `<track>_turns` or `turn_results` that holds each axis's level."""

    def read_case(self, raw: Mapping[str, Json], suite: str, file: str, line: int) -> Case:
        """A case from the suite's file format. Raises pydantic.ValidationError, or ValueError with one sentence."""
        ...

    def check_gold(self, case: Case) -> list[tuple[Turn, str]]:
        """Turns whose own gold does not hold, each with a sentence saying why."""
        ...

    def expected_text(self, turn: Turn) -> str: ...

    def expected_printed(self, turn: Turn) -> str | None: ...

    def gold_json(self, turn: Turn) -> Json: ...

    def gold_is_empty(self, turn: Turn) -> bool:
        """Whether giving no answer is right (no selection, a refusal): such turns are no test of the null provider."""
        ...

    def gold_complexity(self, turn: Turn) -> int:
        """The first of `complexity_axes`."""
        ...

    def prompt(self, case: Case, turn: Turn, history: Sequence[str], version: str) -> Prompt:
        """The prompt of a turn; `history` holds the answers to the earlier turns as text."""
        ...

    def context_json(self, case: Case) -> Json:
        """What the case is about, for applications that make their own prompt: nothing of the gold."""
        ...

    def parse(self, text: str, *, recorded: bool) -> Any:
        """The artefact in a response. Raises ArtefactError."""
        ...

    def artefact_json(self, artefact: Any) -> Json: ...

    def artefact_from_json(self, value: Json) -> Any: ...

    def validate(self, artefact: Any, error: ArtefactError | None, case: Case) -> ValidationRow: ...

    def executor(self) -> AbstractAsyncContextManager[Executor]: ...

    def answer_text(self, value: Json) -> str:
        """The answer of an attempt that ran, as people read it."""
        ...

    def gather(self, case: Case, turn: Turn, final: Attempt) -> tuple[Evidence, ...]:
        """What comparing the last attempt with the gold shows."""
        ...

    def values(
        self, case: Case, turn: Turn, attempts: Sequence[Attempt], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        """The named plain values that metrics take."""
        ...

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """The graded score of a turn in 0..1, from its metrics' plain values, for `turn_results.score`."""
        ...

    def turn_row(self, case: Case, turn: Turn, attempts: Sequence[Attempt]) -> Mapping[str, Json]:
        """Values of `feature_columns` and `turn_columns`."""
        ...

    def complexity(self, turn: Turn, final: Attempt) -> Mapping[str, int | None]:
        """Value per axis of `complexity_axes`."""
        ...

    def oracle(self, turn: Turn) -> str: ...

    def damage(self, turn: Turn, mode: str, rng: Random) -> str | None: ...

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """The response text for a row of recorded predictions. Raises ValueError with one sentence."""
        ...


Importer = Callable[[Path, int | None], Iterator[dict[str, Json]]]
"""Reads a foreign data set: (source, limit) → cases in the suite's file format."""

TRACKS: Mapping[str, str] = {
    "finqa": "eval_pipeline.tracks.finqa.track:TRACK",
}
IMPORTERS: Mapping[str, tuple[str, str]] = {
    "convfinqa": ("finqa", "eval_pipeline.tracks.finqa.importers.convfinqa:read_convfinqa"),
}
"""Name → (track, where the importer is)."""


def load_track(name: str) -> Track:
    """The track of that name. Raises UsageError for an unknown one."""
    if name not in TRACKS:
        raise UsageError(f"unknown track '{name}'; known: {', '.join(TRACKS)}")
    track: Track = _load(TRACKS[name])
    return track


def load_importer(name: str) -> tuple[str, Importer]:
    """The track and the reader of a foreign format. Raises UsageError for an unknown one."""
    if name not in IMPORTERS:
        raise UsageError(f"unknown data set format '{name}'; known: {', '.join(IMPORTERS)}")
    track, place = IMPORTERS[name]
    return track, _load(place)


def _load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)

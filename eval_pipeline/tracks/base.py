"""The Track protocol: how the stages deal with any kind of task without knowing it, and the registry of tracks."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from eval_pipeline.core.complaints import dotted
from eval_pipeline.core.model import Attempt, Case, ErrorClass, Evidence, Json, MetricResult, Outcome, Prompt, Turn
from eval_pipeline.core.values import value
from eval_pipeline.store.schemas import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

MetricKind = Literal["boolean", "score", "count", "label"]
Plain = bool | int | float | str | None | MetricResult


class ArtefactError(Exception):
    """A response that does not hold an artefact of the track's form."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


class CaseError(ValueError):
    """A case that has not the right form, or does not fit what its suite shares (an unknown code, a missing table).

    Attributes:
        problems: the place of each in the case, as keys and indices from its top, and a sentence.
    """

    def __init__(self, problems: Sequence[tuple[tuple[int | str, ...], str]]) -> None:
        super().__init__("; ".join(f"{dotted(place)}: {message}" if place else message for place, message in problems))
        self.problems = tuple(problems)


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


@value
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


@value
class ToJudge:
    """A pair of texts that an LLM judge is to compare.

    Attributes:
        schema: what both are about, as the judge is shown it.
        settled: value and reason where they are known without asking; the value None where nobody is to be asked.
    """

    generated: str
    expected: str
    schema: str
    settled: tuple[float | None, str] | None = None


@dataclass(frozen=True, slots=True)
class CaseShares:
    """A share that each of some conversations has, for a row of `statistics`.

    Attributes:
        metric, split, split_value: as in the table.
        values: the share, 0..1, by (case id, sample).
    """

    metric: str
    split: str
    split_value: str
    values: Mapping[tuple[str, int], float]


class Executor(Protocol):
    """Runs artefacts; holds what that takes (a sandbox, a database) while it is open."""

    immediate: ClassVar[bool]
    """Executing waits for nothing, so that nothing is gained by having several under way."""

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
    suite_tables: tuple[Table, ...]
    """Tables, with a file a suite, of what its cases share (a catalogue, a schema); `load_shared` reads them back."""
    turn_tables: tuple[Table, ...]
    """Further tables with rows of a turn, filled by `table_rows`."""
    sheets: tuple[str, ...]
    """Where the writers of its own sheets of the workbook are, functions of a `Book` and an `Evaluation`."""
    report_files: tuple[str, ...]
    """Where the writers of its own report files are, functions of an `Evaluation` and the report's folder."""
    keeps_good_cases: bool
    """Whether the other cases of a suite are evaluated where some cannot be read; else the suite's `cases` fails."""
    has_judge: bool
    """Whether an LLM judge compares answers with the gold; see `to_judge`."""
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

    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> Any:
        """What all cases of a suite share, from the suite's own files; None for nothing.

        Raises:
            InputError: with every problem in these files.
        """
        ...

    def shared_rows(self, shared: Any) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """What the cases share as columns of `suite_tables`, by table."""
        ...

    def load_shared(self, tables: Mapping[str, "pa.Table"], options: Mapping[str, Json], folder: Path) -> Any:
        """What `read_shared` gave, from the tables of the record; `folder` is the suite's."""
        ...

    def read_case(self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: Any = None) -> Case:
        """A case from the suite's file format; `shared` is what the suite's cases share.

        Raises:
            CaseError: naming each field that is wrong.
            ValueError: with one sentence.
        """
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

    def prefix_key(self, case: Case) -> str:
        """Cases with equal keys begin with the same shared messages of their prompts."""
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

    def gather_all(self, turns: Sequence[tuple[Case, Turn, Attempt]]) -> Sequence[tuple[Evidence, ...]]:
        """As `gather` for several turns, for tracks that have tools which take many at once."""
        ...

    def to_judge(self, case: Case, turn: Turn, final: Attempt, evidence: Sequence[Evidence]) -> ToJudge | None:
        """The pair that the judge compares; None where there is nothing to compare.

        What it said comes back to `values` as evidence of the kind `judgement`.
        """
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

    def table_rows(
        self, case: Case, turn: Turn, attempts: Sequence[Attempt], evidence: Sequence[Evidence]
    ) -> Mapping[str, Sequence[Mapping[str, Json]]]:
        """Rows of `turn_tables` by table, without the columns that say which turn they are of."""
        ...

    def conversation_figures(self, tables: Mapping[str, "pa.Table"]) -> Sequence[CaseShares]:
        """Shares whose means are over conversations and not over turns, from the tables of an evaluation.

        Given are `turn_results`, `<track>_turns` and the `turn_tables`.
        """
        ...

    def complexity(self, turn: Turn, final: Attempt) -> Mapping[str, int | None]:
        """Value per axis of `complexity_axes`."""
        ...

    def oracle(self, turn: Turn) -> str: ...

    def damage(self, turn: Turn, mode: str, rng: Random) -> str | None: ...

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """The response text for a row of recorded predictions. Raises ValueError with one sentence."""
        ...


class PlainTrack:
    """What a track says that has no shared data, no tables and no sheets of its own: a base class for such tracks."""

    suite_tables: tuple[Table, ...] = ()
    turn_tables: tuple[Table, ...] = ()
    sheets: tuple[str, ...] = ()
    report_files: tuple[str, ...] = ()
    keeps_good_cases: bool = False
    has_judge: bool = False

    def prefix_key(self, case: Case) -> str:
        """Its own: no other case has the same context."""
        return case.id

    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> Any:
        """Nothing."""
        return None

    def shared_rows(self, shared: Any) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """None."""
        return {}

    def load_shared(self, tables: Mapping[str, "pa.Table"], options: Mapping[str, Json], folder: Path) -> Any:
        """Nothing."""
        return None

    def gather_all(self: "Track", turns: Sequence[tuple[Case, Turn, Attempt]]) -> Sequence[tuple[Evidence, ...]]:
        """One turn after the other."""
        return [self.gather(*turn) for turn in turns]

    def to_judge(self, case: Case, turn: Turn, final: Attempt, evidence: Sequence[Evidence]) -> ToJudge | None:
        """Nothing."""
        return None

    def table_rows(
        self, case: Case, turn: Turn, attempts: Sequence[Attempt], evidence: Sequence[Evidence]
    ) -> Mapping[str, Sequence[Mapping[str, Json]]]:
        """None."""
        return {}

    def conversation_figures(self, tables: Mapping[str, "pa.Table"]) -> Sequence[CaseShares]:
        """None."""
        return ()

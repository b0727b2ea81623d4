"""What a track has to say of its kind of task: six methods and an oracle; what else it can do is in `capabilities`.

Stages deal with any kind of task without knowing it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias

from eval_pipeline.core.complaints import dotted
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import (
    ArtefactT,
    Attempt,
    Case,
    ContextT,
    ErrorClass,
    Evidence,
    GoldT,
    Json,
    Outcome,
    Prompt,
    Turn,
)
from eval_pipeline.core.values import value
from eval_pipeline.store.schemas import Column
from eval_pipeline.tracks.metric import Metric as Metric
from eval_pipeline.tracks.metric import Plain as Plain


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


class Executor(Protocol):
    """Runs artefacts; holds what that takes (a sandbox, a database) while it is open."""

    immediate: ClassVar[bool]
    """Executing waits for nothing, so that nothing is gained by having several under way."""

    async def execute(self, artefact: Any, case: Case) -> Outcome: ...


class Task(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """A kind of task. One instance a track, without state.

    What it can do beyond this it says by deriving from the classes of `capabilities` too.
    """

    name: str
    metrics: tuple[Metric, ...]
    feature_columns: tuple[Column, ...] = ()
    """Case and turn features with a column of their own in `<track>_turns`; results are split by the boolean ones."""
    turn_columns: tuple[Column, ...] = ()
    """Further columns of `<track>_turns`, filled by `turn_row`."""
    error_columns: tuple[str, ...] = ()
    """Columns of `<track>_turns` that its errors show beside the features; those named here come first."""
    prompt_versions: tuple[str, ...] = ("v1",)
    """Newest last."""
    complexity_columns: Mapping[str, str] = {"turn_number": "turn_index"}
    """Column of `<track>_turns` or `turn_results` that holds the level of each kind of complexity, the gold's first."""

    @property
    def primary_metric(self) -> str:
        """The metric that says whether a turn is correct; the first one."""
        return self.metrics[0].name

    @property
    def complexity_axes(self) -> tuple[str, ...]:
        """Names of the complexities, the gold's first."""
        return tuple(self.complexity_columns)

    @abstractmethod
    def read_case(
        self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: Any = None
    ) -> Case[ContextT, GoldT]:
        """A case from the suite's file format; `shared` is what the suite's cases share.

        Raises:
            CaseError: naming each field that is wrong.
            ValueError: with one sentence.
        """

    @abstractmethod
    def prompt(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], history: Sequence[str], version: str) -> Prompt:
        """The prompt of a turn; `history` holds the answers to the earlier turns as text."""

    @abstractmethod
    def parse(self, text: str, *, recorded: bool) -> ArtefactT:
        """The artefact in a response. Raises ArtefactError."""

    @abstractmethod
    def values(
        self,
        case: Case[ContextT, GoldT],
        turn: Turn[GoldT],
        attempts: Sequence[Attempt[ArtefactT]],
        evidence: Sequence[Evidence],
    ) -> dict[str, Any]:
        """The named plain values that metrics take."""

    @abstractmethod
    def expected_text(self, turn: Turn[GoldT]) -> str:
        """The right answer, as people read it."""

    @abstractmethod
    def answer_text(self, value: Json) -> str:
        """The answer of an attempt that ran, as people read it."""

    @abstractmethod
    def oracle(self, turn: Turn[GoldT]) -> str:
        """The right answer in the answer form: a response that scores 1.0."""

    def expected_printed(self, turn: Turn[GoldT]) -> str | None:
        """The right answer in another form that the suite gives; None where there is none."""
        return None

    def gold_json(self, turn: Turn[GoldT]) -> Json:
        """The gold as JSON."""
        return plain_json(turn.gold)

    def expected_result(self, turn: Turn[GoldT]) -> Json:
        """What executing the gold gives, in the form of an attempt's result; None where nothing is executed."""
        return None

    def gold_is_empty(self, turn: Turn[GoldT]) -> bool:
        """Whether giving no answer is right (no selection, a refusal): such turns are no test of the null provider."""
        return False

    def check_gold(self, case: Case[ContextT, GoldT]) -> list[tuple[Turn[GoldT], str]]:
        """Turns whose own gold does not hold, each with a sentence saying why."""
        return []

    def gold_complexity(self, turn: Turn[GoldT]) -> int:
        """The first of `complexity_axes`."""
        return turn.index

    def prefix_key(self, case: Case[ContextT, GoldT]) -> str:
        """Cases with equal keys begin with the same shared messages of their prompts."""
        return case.id

    def context_json(self, case: Case[ContextT, GoldT]) -> Json:
        """What the case is about, for applications that make their own prompt: nothing of the gold."""
        return plain_json(case.context)

    def artefact_json(self, artefact: ArtefactT) -> Json:
        """The artefact as JSON."""
        return plain_json(artefact)

    def artefact_from_json(self, value: Json) -> ArtefactT:
        """The artefact of which `artefact_json` made this; to be given where an artefact is no plain JSON."""
        artefact: ArtefactT = value
        return artefact

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """The graded score of a turn in 0..1, from its metrics' plain values, for `turn_results.score`."""
        primary = metrics[self.primary_metric]
        return None if primary is None else float(bool(primary))

    def turn_row(
        self, case: Case[ContextT, GoldT], turn: Turn[GoldT], attempts: Sequence[Attempt[ArtefactT]]
    ) -> Mapping[str, Json]:
        """Values of `feature_columns` and `turn_columns`."""
        return {column.name: case.features.get(column.name) for column in (*self.feature_columns, *self.turn_columns)}

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """The response text for a row of recorded predictions; empty for none. Raises ValueError with one sentence."""
        found = row.get("response", row.get("answer"))
        return "" if found is None else found if isinstance(found, str) else canonical_json(found)

    def recorded_text(self, text: str) -> str:
        """What a recorded answer says, of the text that `from_recorded` made of it."""
        return text

    def unreadable(self, turn: Turn[GoldT], artefact: ArtefactT) -> str | None:
        """Why a recorded answer that parses can still not be compared with the gold of its turn; None where it can."""
        return None

    def unscored(self, artefact: ArtefactT) -> Mapping[str, tuple[str, ...]]:
        """What a recorded answer lacks, as the rest of "since …", with the metrics that are NULL for want of it."""
        return {}


Track: TypeAlias = Task[Any, Any, Any]
"""A task of any kind, as the stages have it."""


def plain_json(value: Any) -> Json:
    """A value as JSON holds it: dataclasses become objects, sets sorted lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain_json, value))
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value

"""The interface of a track, with the abstract methods that every kind of task implements.

Optional abilities are in `capabilities`.

Stages handle all kinds of tasks through this interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias

from eval_pipeline.answers.json_text import ArtefactError as ArtefactError
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import (
    ArtefactT,
    Attempt,
    Case,
    ContextT,
    Evidence,
    GoldT,
    Json,
    Outcome,
    Prompt,
    Turn,
)
from eval_pipeline.core.reading.complaints import dotted
from eval_pipeline.core.values import value
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric as Metric
from eval_pipeline.tracks.metric import Plain as Plain
from eval_pipeline.tracks.texts.prompt_parts import PromptParts, parts_of


class CaseError(ValueError):
    """A case is malformed, or does not fit what its suite shares (e.g. an unknown code or a missing table).

    Attributes:
        problems: pairs of a location in the case (keys and indices from its top) and a sentence.
    """

    def __init__(self, problems: Sequence[tuple[tuple[int | str, ...], str]]) -> None:
        super().__init__("; ".join(f"{dotted(place)}: {message}" if place else message for place, message in problems))
        self.problems = tuple(problems)


@value
class ValidationRow:
    """The validator's result for an artefact before it ran.

    Attributes:
        verdict: `valid`, `invalid` (must fail) or `suspicious` (may run, but something is odd).
        checks: JSON values per check.
        errors: one sentence each.
    """

    parsed: bool
    verdict: Literal["valid", "suspicious", "invalid"]
    checks: Mapping[str, Json]
    errors: tuple[str, ...]


class Executor(Protocol):
    """Runs artefacts; while open, it holds the resources for it (a sandbox, a database)."""

    immediate: ClassVar[bool]
    """Whether executing never waits, so that running several artefacts concurrently has no benefit."""

    async def execute(self, artefact: Any, case: Case) -> Outcome: ...


class Task(Manifest, ABC, Generic[ContextT, GoldT, ArtefactT]):
    """A kind of task: one stateless instance per track.

    Optional abilities are declared by also deriving from classes of `capabilities`.
    """

    @abstractmethod
    def read_case(
        self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: Any = None
    ) -> Case[ContextT, GoldT]:
        """Parses a case from the suite's file format; `shared` is what the suite's cases share.

        Raises:
            CaseError: names each wrong field.
            ValueError: with one sentence.
        """

    def prompt(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], history: Sequence[str], version: str) -> Prompt:
        """Returns the prompt of a turn; `history` contains the answers to the earlier turns as text.

        A track defines this method or `prompt_parts`.
        """
        return self.prompt_parts(case, turn, history, version).prompt()

    def prompt_parts(
        self, case: Case[ContextT, GoldT], turn: Turn[GoldT], history: Sequence[str], version: str
    ) -> PromptParts:
        """Returns the parts of a turn's prompt, for prompts of suites; by default what `prompt` makes, taken apart."""
        return parts_of(self.prompt(case, turn, history, version))

    def prompt_fields(self, case: Case[ContextT, GoldT]) -> Collection[str]:
        """Returns placeholders of prompts that only some cases have."""
        return ()

    @abstractmethod
    def parse(self, text: str, *, recorded: bool) -> ArtefactT:
        """Parses the artefact in a response. Raises ArtefactError."""

    @abstractmethod
    def values(
        self,
        case: Case[ContextT, GoldT],
        turn: Turn[GoldT],
        attempts: Sequence[Attempt[ArtefactT]],
        evidence: Sequence[Evidence],
    ) -> dict[str, Any]:
        """Returns the named plain values that metrics take as arguments."""

    @abstractmethod
    def expected_text(self, turn: Turn[GoldT]) -> str:
        """Returns the right answer for display."""

    @abstractmethod
    def answer_text(self, value: Json) -> str:
        """Returns the answer of an attempt that ran, for display."""

    def difference(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], value: Json) -> str | None:
        """Returns in what a wrong answer differs from the gold, as a short text; None: both are shown as they are."""
        return None

    @abstractmethod
    def oracle(self, turn: Turn[GoldT]) -> str:
        """Returns the right answer in the answer form, i.e. a response that scores 1.0."""

    def rewrites(self, case: Case[ContextT, GoldT], turn: Turn[GoldT]) -> Mapping[str, str]:
        """Returns responses that are as right as `oracle`, by how they are written; `validate` tries them."""
        return {}

    def answering(self, turn: Turn[GoldT], text: str) -> str:
        """Returns a response that gives a text as its answer and is right but for that; `validate` tries it."""
        return text

    def cheats(self, case: Case[ContextT, GoldT], turn: Turn[GoldT]) -> Mapping[str, str]:
        """Returns further responses that are wrong, by what they do; `validate` tries them.

        Where the possible answers are known, one of them gives all of these.
        """
        return {}

    def expected_printed(self, turn: Turn[GoldT]) -> str | None:
        """Returns the right answer as printed in the source; None if the suite does not give it."""
        return None

    def gold_json(self, turn: Turn[GoldT]) -> Json:
        """Returns the gold as JSON."""
        return plain_json(turn.gold)

    def expected_result(self, turn: Turn[GoldT]) -> Json:
        """Returns the result of executing the gold, in the form of an attempt's result; None if nothing is executed."""
        return None

    def gold_results(self, turn: Turn[GoldT]) -> Sequence[str | None]:
        """Returns a hash of the result of executing each accepted gold, to tell whether it changes; None: not known.

        Evidence has the same in `gold_results` of its details if the gold was executed again for it.
        """
        return ()

    def gold_is_empty(self, turn: Turn[GoldT]) -> bool:
        """Whether giving no answer is right (no selection, a refusal); such turns do not test the null provider."""
        return False

    def check_gold(self, case: Case[ContextT, GoldT]) -> list[tuple[Turn[GoldT], str]]:
        """Returns the turns with invalid gold, each with a sentence on the reason."""
        return []

    def gold_complexity(self, turn: Turn[GoldT]) -> int:
        """Returns the gold's level on the first of `complexity_axes`."""
        return turn.index

    def prefix_key(self, case: Case[ContextT, GoldT]) -> str:
        """Returns a key; prompts of cases with equal keys begin with the same shared messages."""
        return case.id

    def context_json(self, case: Case[ContextT, GoldT]) -> Json:
        """Returns the case's context, without any gold, for applications that make their own prompts."""
        return plain_json(case.context)

    def data_json(self, case: Case[ContextT, GoldT]) -> Json:
        """Returns what models are shown of a case beside the prompt's own words, for `suite_editions.data_hash`."""
        return self.context_json(case)

    def prompt_options(self, options: Mapping[str, Json]) -> dict[str, Json]:
        """Returns those of the suite's options that are the prompt's own words."""
        return {}

    def artefact_json(self, artefact: ArtefactT) -> Json:
        """Returns the artefact as JSON."""
        return plain_json(artefact)

    def artefact_from_json(self, value: Json) -> ArtefactT:
        """Restores an artefact from `artefact_json`; must be overridden if artefacts are not plain JSON."""
        artefact: ArtefactT = value
        return artefact

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """Returns the graded score of a turn, 0..1, from its metrics' plain values, for `turn_results.score`."""
        primary = metrics[self.primary_metric]
        return None if primary is None else float(bool(primary))

    def turn_row(
        self, case: Case[ContextT, GoldT], turn: Turn[GoldT], attempts: Sequence[Attempt[ArtefactT]]
    ) -> Mapping[str, Json]:
        """Returns the values of `feature_columns` and `turn_columns`."""
        return {column.name: case.features.get(column.name) for column in (*self.feature_columns, *self.turn_columns)}

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """Returns the response text for a row of recorded predictions; may be empty.

        Raises ValueError with one sentence.
        """
        found = row.get("response", row.get("answer"))
        return "" if found is None else found if isinstance(found, str) else canonical_json(found)

    def recorded_text(self, text: str) -> str:
        """Returns the recorded answer for display, given the text made by `from_recorded`."""
        return text

    def unreadable(self, turn: Turn[GoldT], artefact: ArtefactT) -> str | None:
        """Returns why a parsed recorded answer cannot be compared with its turn's gold; None if it can."""
        return None

    def for_suite(self, options: Mapping[str, Json]) -> "Track":
        """Returns the track for a suite with these options, which are not checked yet; abilities may depend on them."""
        return self

    def unscored(self, turn: Turn[GoldT], artefact: ArtefactT) -> Mapping[str, tuple[str, ...]]:
        """Returns what a recorded answer lacks (to complete "since …") → the metrics that are therefore NULL."""
        return {}


Track: TypeAlias = Task[Any, Any, Any]
"""A task of any kind, as used by the stages."""


def plain_json(value: Any) -> Json:
    """Converts a value to JSON: dataclasses and models of pydantic become objects, sets become sorted lists."""
    if (dump := getattr(value, "model_dump", None)) is not None:
        return plain_json(dump(mode="json"))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain_json, value))
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value

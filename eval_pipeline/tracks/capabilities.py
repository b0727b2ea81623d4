"""What a track may do beyond what every task does; stages ask for it by `isinstance`.

A track derives from `Task` and from what it offers here. What a stage does with a track that does not offer it is in
the functions at the end.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import (
    ArtefactT,
    Attempt,
    Case,
    ContextT,
    Evidence,
    Failed,
    GoldT,
    Json,
    Outcome,
    Ran,
    Turn,
)
from eval_pipeline.core.values import value
from eval_pipeline.store.schemas import Table
from eval_pipeline.tracks.base import ArtefactError, Executor, Track, ValidationRow
from eval_pipeline.tracks.cards import Card

if TYPE_CHECKING:
    import pyarrow as pa


class Executes(ABC):
    """Artefacts are run. Without it an artefact is its own result."""

    @abstractmethod
    def executor(self) -> AbstractAsyncContextManager[Executor]:
        """What runs them, to be opened."""


class Validates(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """Artefacts are looked at before they run. Without it the log says only whether they could be read."""

    @abstractmethod
    def validate(
        self, artefact: ArtefactT | None, error: ArtefactError | None, case: Case[ContextT, GoldT]
    ) -> ValidationRow:
        """What there is to say of an artefact, or of the response that holds none."""


class Gathers(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """Comparing an attempt with the gold takes more than a metric can do. Without it there is no evidence."""

    @abstractmethod
    def gather(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], final: Attempt[ArtefactT]) -> tuple[Evidence, ...]:
        """What comparing the last attempt with the gold shows."""

    def gather_all(
        self, turns: Sequence[tuple[Case[ContextT, GoldT], Turn[GoldT], Attempt[ArtefactT]]]
    ) -> Sequence[tuple[Evidence, ...]]:
        """As `gather` for several turns, for tracks that have tools which take many at once."""
        return [self.gather(*turn) for turn in turns]


class Recovers:
    """A model is shown its error and asked again. Without it what failed has failed."""

    def recovery_message(self, failed: Failed) -> str:
        """What follows the failed response in the conversation."""
        return f"That failed with this error: {failed.message}\nAnswer again in the same form, without the error."


class Converses(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """Turns build on what earlier ones said, and metrics are told of it. Without it a metric sees its own turn only."""

    @abstractmethod
    def conversation_values(
        self,
        case: Case[ContextT, GoldT],
        said: Sequence[tuple[Turn[GoldT], Sequence[Attempt[ArtefactT]]]],
        history: str,
    ) -> Sequence[Mapping[str, Any]]:
        """For each turn the values that metrics are given in the place of those of the same names in `values`.

        Args:
            case: the conversation.
            said: turns of the case in one sample that were asked, in their order, each with its attempts; turns that
                the budget did not allow are not among them.
            history: `gold` or `own`, the answers that the model was shown.
        """


class Shares(ABC):
    """The cases of a suite share something (a catalogue, a schema) that lies beside them."""

    suite_tables: tuple[Table, ...]
    """Tables, with a file a suite, of what its cases share; `load_shared` reads them back."""
    reads_in_sandbox: bool = False
    """Whether files are read in the sandbox; else they are read in a process of their own before ours reads them."""
    keeps_good_cases: bool = False
    """Whether the other cases of a suite are evaluated where some cannot be read; else the suite's `cases` fails."""

    @abstractmethod
    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> Any:
        """What all cases of a suite share, from the suite's own files.

        Raises:
            InputError: with every problem in these files.
        """

    @abstractmethod
    def shared_rows(self, shared: Any) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """What the cases share as columns of `suite_tables`, by table."""

    @abstractmethod
    def load_shared(self, tables: Mapping[str, "pa.Table"], options: Mapping[str, Json], folder: Path) -> Any:
        """What `read_shared` gave, from the tables of the record; `folder` is the suite's."""


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


class Judged(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """An LLM judge compares answers with the gold."""

    @abstractmethod
    def to_judge(
        self, case: Case[ContextT, GoldT], turn: Turn[GoldT], final: Attempt[ArtefactT], evidence: Sequence[Evidence]
    ) -> ToJudge | None:
        """The pair that the judge compares; None where there is nothing to compare.

        What it said comes back to `values` as evidence of the kind `judgement`.
        """


class Damageable(ABC, Generic[ContextT, GoldT]):
    """Right answers can be made wrong, so that simulated models can stand in for real ones."""

    failure_modes: tuple[str, ...]
    """The ways of going wrong."""

    @abstractmethod
    def damage(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], mode: str, rng: Random) -> str | None:
        """A response that goes wrong in the given way, or None where this gold cannot."""


@value
class Contradiction:
    """A turn whose gold says two things that cannot both be right.

    Attributes:
        evidence: a sentence.
        score: how likely it is that the gold is wrong, 0..1, for sorting.
    """

    turn_id: str
    evidence: str
    score: float


class Audits(ABC, Generic[ContextT, GoldT]):
    """Its gold can be looked at with doubt, and overridden (docs/gold.md). Without it only `check_gold` doubts it.

    Attributes:
        gold_fields: fields of a turn in a case file that say what is right, and nothing that a model is shown.
        strict_metrics: metrics beside the primary one that a right answer should pass.
    """

    gold_fields: tuple[str, ...]
    strict_metrics: tuple[str, ...] = ()

    def gold_place(self, index: int) -> tuple[str | int, ...]:
        """Where in a case, as its file has it, the turn with that index is: keys and indices from its top."""
        return "turns", index

    def contradictions(self, case: Case[ContextT, GoldT]) -> Sequence[Contradiction]:
        """Turns whose gold contradicts itself though it holds."""
        return ()

    @abstractmethod
    def answer_keys(self, turn: Turn[GoldT], results: Sequence[Json]) -> Sequence[str]:
        """For each result of an attempt at the turn a text that is the same for the same answer."""


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


class Tabulates(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """It has tables of its own with rows of a turn."""

    turn_tables: tuple[Table, ...]

    @abstractmethod
    def table_rows(
        self,
        case: Case[ContextT, GoldT],
        turn: Turn[GoldT],
        attempts: Sequence[Attempt[ArtefactT]],
        evidence: Sequence[Evidence],
    ) -> Mapping[str, Sequence[Mapping[str, Json]]]:
        """Rows of `turn_tables` by table, without the columns that say which turn they are of."""

    def conversation_figures(self, tables: Mapping[str, "pa.Table"]) -> Sequence[CaseShares]:
        """Shares whose means are over conversations and not over turns, from the tables of an evaluation.

        Given are `turn_results`, `<track>_turns` and the `turn_tables`.
        """
        return ()


class Reports:
    """It has sheets or files of its own in the report."""

    sheets: tuple[str, ...] = ()
    """Where the writers of its own sheets of the workbook are, functions of a `Book` and an `Evaluation`."""
    report_files: tuple[str, ...] = ()
    """Where the writers of its own report files are, functions of an `Evaluation` and the report's folder."""


@value
class Seen(Generic[ContextT, GoldT, ArtefactT]):
    """A turn with what was made of it, as somebody looks at it.

    Attributes:
        case: with the gold that it is scored by.
        turn: the one looked at, of that case.
        attempts: at it, in order; empty where none was made.
        evidence: what comparing the last of them with the gold showed.
        earlier: turns of the case before it, in order, each with its attempts in the same sample.
        history: `gold` or `own`, the earlier answers that the model was shown; of recorded answers what was told of it,
            else `unknown`.
        metrics: what they say of the turn, by name, as far as they are known.
    """

    case: Case[ContextT, GoldT]
    turn: Turn[GoldT]
    attempts: Sequence[Attempt[ArtefactT]]
    evidence: Sequence[Evidence]
    earlier: Sequence[tuple[Turn[GoldT], Sequence[Attempt[ArtefactT]]]] = ()
    history: str = "gold"
    metrics: Mapping[str, Json] = field(default_factory=dict)


class Explains(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """It can show why an answer is right or wrong. Without it a page has question, answers and metrics only."""

    @abstractmethod
    def cards(self, seen: Seen[ContextT, GoldT, ArtefactT]) -> Sequence[Card]:
        """What there is to see of a turn, the most telling card first.

        Made each time that somebody opens the turn, in well under a second, asking nobody; nothing is remembered.
        """


def suite_tables_of(track: Track) -> tuple[Table, ...]:
    """The tables of what the cases of a suite share."""
    return track.suite_tables if isinstance(track, Shares) else ()


def conversations_of(
    track: Track, case: Case, asked: Sequence[tuple[Turn, int, Sequence[Attempt]]], history: Callable[[], str]
) -> Mapping[tuple[str, int], Mapping[str, Any]]:
    """What metrics are told of a case's conversations, by turn and sample; empty where the track does not converse.

    Args:
        track: the case's.
        case: the case.
        asked: turns, samples and attempts.
        history: gives what the model was shown.
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


def cards_of(track: Track, seen: Seen) -> Sequence[Card]:
    """What a track shows of a turn; nothing where it does not explain."""
    return track.cards(seen) if isinstance(track, Explains) else ()


def turn_tables_of(track: Track) -> tuple[Table, ...]:
    """The track's own tables with rows of a turn."""
    return track.turn_tables if isinstance(track, Tabulates) else ()


def gather_all(track: Track, turns: Sequence[tuple[Case, Turn, Attempt]]) -> Sequence[tuple[Evidence, ...]]:
    """What comparing the last attempt of each turn with its gold shows."""
    return track.gather_all(turns) if isinstance(track, Gathers) else [()] * len(turns)


def validation_of(track: Track, artefact: Any, error: ArtefactError | None, case: Case) -> ValidationRow:
    """What there is to say of an artefact before it runs."""
    if isinstance(track, Validates):
        return track.validate(artefact, error, case)
    if error is not None:
        return ValidationRow(False, "invalid", {}, (error.message,))
    return ValidationRow(True, "valid", {}, ())


def executor_of(track: Track) -> AbstractAsyncContextManager[Executor]:
    """What runs the track's artefacts, to be opened."""
    return track.executor() if isinstance(track, Executes) else _as_they_are(track)


class _AsItIs:
    """Gives artefacts back as their own results."""

    immediate: ClassVar[bool] = True

    def __init__(self, track: Track) -> None:
        self._track = track

    async def execute(self, artefact: Any, case: Case) -> Outcome:
        return Ran(self._track.artefact_json(artefact))


@asynccontextmanager
async def _as_they_are(track: Track) -> AsyncIterator[Executor]:
    yield _AsItIs(track)


def doubts_of(track: Track, case: Case) -> list[Contradiction]:
    """Turns of a case whose gold contradicts itself, those whose gold does not hold first."""
    broken = [Contradiction(turn.id, why, 1.0) for turn, why in track.check_gold(case)]
    known = {found.turn_id for found in broken}
    further = track.contradictions(case) if isinstance(track, Audits) else ()
    return [*broken, *(found for found in further if found.turn_id not in known)]


def answer_keys_of(track: Track, turn: Turn, results: Sequence[Json]) -> Sequence[str]:
    """For each result a text that is the same for the same answer; equal JSON where the track does not say."""
    return track.answer_keys(turn, results) if isinstance(track, Audits) else [canonical_json(r) for r in results]

"""Optional abilities of tracks, which stages detect with `isinstance`.

A track derives from `Task` and from the classes here whose abilities it has. The functions in `abilities` also handle
tracks without an ability.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from socket import socket
from typing import TYPE_CHECKING, Any, Generic, Protocol

from eval_pipeline.core.model import (
    ArtefactT,
    Attempt,
    Case,
    ContextT,
    Evidence,
    Failed,
    GoldT,
    Json,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import ArtefactError, Executor, ValidationRow

if TYPE_CHECKING:
    import pyarrow as pa

    from eval_pipeline.core.system.programs import OwnProgram
    from eval_pipeline.judge.prompt import JudgePrompt
    from eval_pipeline.tracks.scored.mutation_score import TurnMutants
    from eval_pipeline.tracks.shown.cards import Card


Serve = Callable[[socket], AbstractAsyncContextManager[object]]
"""Makes of a listening socket what answers there."""
NO_GOLD = "no_gold"
"""Verdict of evidence if the gold gives nothing to compare with; the turn then cannot be scored, and `message` of the
details says why."""

GOLD_RESULTS = "gold_results"
"""Name in the details of evidence for hashes of what executing the accepted golds gave, as `Task.gold_results`."""


class Executes(ABC):
    """The track runs its artefacts. Without this, an artefact is its own result."""

    @abstractmethod
    def executor(self) -> AbstractAsyncContextManager[Executor]:
        """Returns the executor of artefacts, as a context manager."""

    def worker_tier(self) -> str | None:
        """Returns the sandbox that this machine has for artefacts; None if they need none.

        Called on a worker of a cluster before it runs anything. Raises NoSandboxError if there is none.
        """
        return None


@value
class ActLimits:
    """What an agent may use for one attempt at a turn.

    Attributes:
        steps: calls of tools.
        model_calls: calls of the model.
        tokens: tokens of all its calls, in and out; None: no limit.
        usd: dollars of all its calls; None: no limit.
        seconds: seconds of wall time that its tools may take together.
        output_bytes: bytes of a tool's result that the model is told.
    """

    steps: int = 40
    model_calls: int = 40
    tokens: int | None = None
    usd: float | None = None
    seconds: float = 120.0
    output_bytes: int = 16_000


class World(Protocol):
    """The surroundings that an attempt acts in, with tools that change nothing outside of them."""

    async def call(self, name: str, arguments: Mapping[str, Json], seconds: float) -> ToolResult:
        """Calls a tool, which may take that many seconds. A wrong call is a result that says what is wrong."""
        ...

    async def run(self, program: "OwnProgram", text: str, seconds: float, serve: Serve) -> "Concluded":
        """Runs a program until it ends, or has taken that many seconds; see `sandbox.world`.

        Args:
            program: the one that the world was made for.
            text: the task in words.
            seconds: for all that it does.
            serve: makes of the socket on which the program finds its model what answers there while it runs.
        """
        ...

    async def end_state(self) -> Mapping[str, Json]:
        """Ends everything that still runs and returns what has changed, by path; see `sandbox.world`."""
        ...


@value
class Concluded:
    """How a program has ended.

    Attributes:
        answer: the call that gives its answer; None without one.
        ended, why: otherwise how the attempt has ended, with a sentence.
    """

    answer: ToolCall | None
    ended: str = ""
    why: str = ""


class Acts(ABC, Generic[ContextT, GoldT]):
    """A model acts: it calls tools in a world until it has an answer. Without this, it is asked once.

    What comes of it is one response, whose text is the trajectory (`Trajectory`).

    Attributes:
        reserved: names of tools that are the task's own. What a program calls so is something else.
    """

    reserved: tuple[str, ...] = ()

    @abstractmethod
    def tools(self, case: Case[ContextT, GoldT]) -> tuple[Tool, ...]:
        """Returns the tools of a case."""

    @abstractmethod
    def limits(self, case: Case[ContextT, GoldT]) -> ActLimits:
        """Returns what an attempt may use."""

    @abstractmethod
    def surroundings(self, case: Case[ContextT, GoldT]) -> str:
        """Returns a hash of all that tools can show of a case: kept results of tools hold as long as it is the same."""

    @abstractmethod
    def world(
        self, executor: Executor, case: Case[ContextT, GoldT], turn: Turn[GoldT], program: "OwnProgram | None" = None
    ) -> AbstractAsyncContextManager[World]:
        """Returns a world as the case begins with, for one attempt; the executor is one of the track's, open."""

    def task_text(self, case: Case[ContextT, GoldT], turn: Turn[GoldT]) -> str:
        """Returns a turn in words for somebody's own program, which has its own rules and tools."""
        return turn.question


class Validates(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """The track checks artefacts before they run. Without this, only parse errors are logged."""

    @abstractmethod
    def validate(
        self, artefact: ArtefactT | None, error: ArtefactError | None, case: Case[ContextT, GoldT]
    ) -> ValidationRow:
        """Returns the validation of an artefact, or of a response without one."""


class Gathers(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """The track compares attempts with the gold beyond what metrics can do. Without this, there is no evidence.

    Attributes:
        measured_kinds: kinds of evidence that hold measured times, which depend on machine and load. They are recorded
            apart (`measured_evidence`); all other evidence has to be the same everywhere and always.
        evidence_cpu_s: CPU seconds an answer takes, roughly; a cluster's shards are cut by it.
    """

    measured_kinds: frozenset[str] = frozenset()
    evidence_cpu_s: float = 0.005

    @abstractmethod
    def gather(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], final: Attempt[ArtefactT]) -> tuple[Evidence, ...]:
        """Returns the evidence from comparing the last attempt with the gold."""

    def gather_all(
        self, turns: Sequence[tuple[Case[ContextT, GoldT], Turn[GoldT], Attempt[ArtefactT]]]
    ) -> Sequence[tuple[Evidence, ...]]:
        """Runs `gather` for several turns; override it for tools that process many at once."""
        return [self.gather(*turn) for turn in turns]

    def nearness(self, evidence: Sequence[Evidence]) -> float:
        """Returns how near an attempt is to being right, by its evidence; the nearest of several golds judges it."""
        return 0.0


class Keeps(Gathers[ContextT, GoldT, ArtefactT]):
    """What comes of answers and gold is kept, and used again where all that it depends on is the same.

    Without this it is computed each time. What was measured is used again on the same machine only.
    """

    @abstractmethod
    def depends_on(self, case: Case[ContextT, GoldT], turn: Turn[GoldT] | None, artefact: ArtefactT | None) -> Json:
        """Returns as plain data what decides what comes of an artefact, beside code and versions of libraries.

        None if that cannot be told, or is not the same each time.

        Args:
            case: the case.
            turn: the turn with whose gold the artefact is compared; None if it is only executed.
            artefact: the artefact; None if only the gold is looked at.
        """

    @abstractmethod
    def compare_all(
        self, turns: Sequence[tuple[Case[ContextT, GoldT], Turn[GoldT], Attempt[ArtefactT]]]
    ) -> Iterator[tuple[Evidence, ...]]:
        """Yields for one turn after the other the evidence that nobody measures."""

    @abstractmethod
    def measure(
        self,
        case: Case[ContextT, GoldT],
        turn: Turn[GoldT],
        final: Attempt[ArtefactT],
        compared: Sequence[Evidence],
    ) -> tuple[Evidence, ...]:
        """Returns the evidence of `measured_kinds`, given the other."""

    def gather(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], final: Attempt[ArtefactT]) -> tuple[Evidence, ...]:
        """Returns both."""
        return self.gather_all([(case, turn, final)])[0]

    def gather_all(
        self, turns: Sequence[tuple[Case[ContextT, GoldT], Turn[GoldT], Attempt[ArtefactT]]]
    ) -> Sequence[tuple[Evidence, ...]]:
        """Returns both for several turns."""
        compared = zip(turns, self.compare_all(turns), strict=True)
        return [(*found, *self.measure(*turn, found)) for turn, found in compared]


class Recovers:
    """After a failure, the model is shown its error and asked again. Without this, failures are final."""

    def recovery_message(self, failed: Failed) -> str:
        """Returns the message that follows the failed response in the conversation."""
        return f"That failed with this error: {failed.message}\nAnswer again in the same form, without the error."


class Converses(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """Turns build on earlier ones, and metrics are told about them. Without this, a metric sees only its own turn."""

    @abstractmethod
    def conversation_values(
        self,
        case: Case[ContextT, GoldT],
        said: Sequence[tuple[Turn[GoldT], Sequence[Attempt[ArtefactT]]]],
        history: str,
    ) -> Sequence[Mapping[str, Any]]:
        """Returns for each turn values that replace or extend those of `values` for its metrics.

        Args:
            case: the conversation.
            said: the asked turns of the case in one sample, in order, each with its attempts; turns refused by the
                budget are missing.
            history: `gold` or `own`, i.e. which answers the model was shown; for recorded answers what their provenance
                says, or `unknown`.
        """


class Shares(ABC):
    """The cases of a suite share something, e.g. a catalogue or a schema in the suite's folder."""

    reads_in_sandbox: bool = False
    """Whether files are read in the sandbox; otherwise they are first read in a child process, then in this one."""
    shows_shared: bool = False
    """Whether prompts show more of it than `context_json` has; the edition of the data depends on it then."""
    keeps_good_cases: bool = False
    """Whether good cases of a suite are evaluated although others cannot be read; otherwise the stage `cases` fails."""

    @abstractmethod
    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> Any:
        """Reads what all cases of a suite share from the suite's files.

        Raises:
            InputError: lists every problem in these files.
        """

    def shared_notes(self, shared: Any, cases: Sequence[Case] = ()) -> Sequence[str]:
        """Returns sentences on parts of the suite's files that cannot or will not be used, although the suite can."""
        return ()

    @abstractmethod
    def shared_rows(self, shared: Any) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Returns what the cases share, for `suite_tables`: table → column → its values, one a row."""

    @abstractmethod
    def load_shared(self, tables: Mapping[str, "pa.Table"], options: Mapping[str, Json], folder: Path) -> Any:
        """Restores the result of `read_shared` from the tables of the record; `folder` is the suite's."""


@value
class ToJudge:
    """A pair of texts for an LLM judge to compare.

    Attributes:
        schema: what both refer to, as shown to the judge: the schema of a database, or the question.
        settled: value and reason if known without asking; the value is None if the judge must not be asked.
    """

    generated: str
    expected: str
    schema: str
    settled: tuple[float | None, str] | None = None


class Judged(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """An LLM judge compares the track's answers with the gold.

    Attributes:
        judge_option: path of the option of a suite that names the model version that judges, with dots.
    """

    judge_option: str = "judge_model"

    def judge_prompt(self, options: Mapping[str, Json]) -> "JudgePrompt":
        """Returns the question to the judge for a suite with these options; by default, about two SQL queries."""
        from eval_pipeline.judge.prompt import SQL_MEANING

        return SQL_MEANING

    def judge_decides(self, options: Mapping[str, Json]) -> bool:
        """Whether a turn without the judge's verdict has no result at all, so that a missing judge is an error."""
        return False

    @abstractmethod
    def to_judge(
        self, case: Case[ContextT, GoldT], turn: Turn[GoldT], final: Attempt[ArtefactT], evidence: Sequence[Evidence]
    ) -> ToJudge | None:
        """Returns the pair for the judge to compare; None if there is nothing to compare.

        The evidence is without what was measured, so that the judge is not asked again because times differ.
        The judgement is passed to `values` as evidence of the kind `judgement`.
        """


class Damageable(ABC, Generic[ContextT, GoldT]):
    """Right answers can be damaged, so that simulated models can stand in for real ones."""

    failure_modes: tuple[str, ...]
    """The failure modes."""

    @abstractmethod
    def damage(self, case: Case[ContextT, GoldT], turn: Turn[GoldT], mode: str, rng: Random) -> str | None:
        """Returns a response that fails in the given way, or None if this gold cannot fail so."""


@value
class Contradiction:
    """A turn whose gold contains two statements that cannot both be right, or that a lint doubts.

    Attributes:
        evidence: a sentence.
        score: how likely the gold is wrong, 0..1, for sorting.
        linted: whether it is a lint's finding: the gold is valid, but has the form of a usual mistake.
        of_printing: whether the statements differ only in how the same number is printed.
    """

    turn_id: str
    evidence: str
    score: float
    linted: bool = False
    of_printing: bool = False


@dataclass(frozen=True, slots=True)
class Weight:
    """What a case itself says of an answer on which models agree against the gold.

    Attributes:
        factor: by which it multiplies the odds that the gold is wrong.
        words: why, as a clause; empty if it says nothing.
        of_printing: whether the two differ only in how the same number is printed.
    """

    factor: float
    words: str
    of_printing: bool = False


class Audits(ABC, Generic[ContextT, GoldT]):
    """The track's gold can be checked for doubts and overridden (docs/gold.md).

    Without this, only `check_gold` checks it.

    Attributes:
        gold_fields: fields of a turn in a case file that hold the gold and nothing that a model is shown.
        strict_metrics: metrics beside the primary one that a right answer should pass.
    """

    gold_fields: tuple[str, ...]
    strict_metrics: tuple[str, ...] = ()

    def gold_place(self, index: int) -> tuple[str | int, ...]:
        """Returns the location of a turn in a case file, as keys and indices from the top of the case."""
        return "turns", index

    def contradictions(self, case: Case[ContextT, GoldT]) -> Sequence[Contradiction]:
        """Returns the turns whose gold is valid but contradicts itself, or is doubted by a lint."""
        return ()

    def weights(self, case: Case[ContextT, GoldT], agreed: Mapping[str, Json]) -> Mapping[str, Weight]:
        """Returns by turn id what a case says of the results that models agree on against the gold, where it does."""
        return {}

    def gold_of(self, turn: Turn[GoldT], results: Sequence[Json]) -> Mapping[str, Json] | None:
        """Returns the gold fields by which results are right; None if the gold is known, empty without results."""
        return None

    @abstractmethod
    def answer_keys(self, turn: Turn[GoldT], results: Sequence[Json]) -> Sequence[str]:
        """Returns a text for each result of an attempt at the turn; equal texts mean the same answer."""


@dataclass(frozen=True, slots=True)
class CaseShares:
    """A share for each of several conversations; it becomes a row of `statistics`.

    Attributes:
        metric, split, split_value: as in the table.
        values: (case id, sample) → share, 0..1.
    """

    metric: str
    split: str
    split_value: str
    values: Mapping[tuple[str, int], float]


class Mutates(ABC, Generic[ContextT, GoldT]):
    """The track can test its turns with mutants of the gold, i.e. mistakes that a turn should detect (`variants`)."""

    @abstractmethod
    def turn_mutants(self, case: Case[ContextT, GoldT], turn: Turn[GoldT]) -> "TurnMutants | None":
        """Returns the outcome of testing a turn with mutants of its gold; None if there are no mutants."""


class Tabulates(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """The track has tables of its own with rows about turns, the `turn_tables` of its manifest."""

    @abstractmethod
    def table_rows(
        self,
        case: Case[ContextT, GoldT],
        turn: Turn[GoldT],
        attempts: Sequence[Attempt[ArtefactT]],
        evidence: Sequence[Evidence],
    ) -> Mapping[str, Sequence[Mapping[str, Json]]]:
        """Returns the rows of `turn_tables`, by table, without the columns that identify the turn."""

    def conversation_figures(self, tables: Mapping[str, "pa.Table"]) -> Sequence[CaseShares]:
        """Returns shares to be averaged over conversations instead of turns, from the tables of an evaluation.

        The tables are `turn_results`, `<track>_turns` and the `turn_tables`.
        """
        return ()


class ComparesMetrics:
    """Comparisons of model versions test further metrics of the track, not only the primary one."""

    compared_metrics: tuple[str, ...]
    """Their names; they are scores."""


class Catalogued:
    """The track's turns choose from a catalogue, which some commands look into."""

    candidates: str
    """Place of the function that gives the candidates of a suite; see `operations.suite_work.candidates`."""
    structures: str
    """Place of the function that tells of files of a catalogue: lines, and whether all is there."""


class Reports:
    """The track has sheets or files of its own in reports."""

    sheets: tuple[str, ...] = ()
    """Places of the functions that write its sheets of the workbook, called with a `Book` and an `Evaluation`."""
    report_files: tuple[str, ...] = ()
    """Places of the functions that write its report files, called with an `Evaluation` and the report's folder."""
    mistakes: str = ""
    """Place of the function that says what is wrong in turns: (turn id, sample) → text, from an `Evaluation`."""
    page_sheets: str = ""
    """Place of the function that yields tables (`Sheet`) for the page's groups, from an `Evaluation`."""
    charts: str = ""
    """Place of the function that yields its charts (`Chart`), from an `Evaluation`."""


@value
class Seen(Generic[ContextT, GoldT, ArtefactT]):
    """A turn with its attempts and results, as shown to people.

    Attributes:
        case: with the gold used for scoring.
        turn: the turn, from that case.
        attempts: the attempts at it, in order; may be empty.
        evidence: the comparison of the last attempt with the gold.
        earlier: earlier turns of the case, in order, each with its attempts in the same sample.
        history: `gold` or `own`, i.e. which earlier answers the model was shown; for recorded answers what their
            provenance says, or `unknown`.
        metrics: known metric values of the turn, by name.
        expected_result: the result of executing the gold, as the suite has it now; None if it is not known.
    """

    case: Case[ContextT, GoldT]
    turn: Turn[GoldT]
    attempts: Sequence[Attempt[ArtefactT]]
    evidence: Sequence[Evidence]
    earlier: Sequence[tuple[Turn[GoldT], Sequence[Attempt[ArtefactT]]]] = ()
    history: str = "gold"
    metrics: Mapping[str, Json] = field(default_factory=dict)
    expected_result: Json = None


class Explains(ABC, Generic[ContextT, GoldT, ArtefactT]):
    """The track can show why an answer is right or wrong.

    Without this, pages show question, answers and metrics only.
    """

    @abstractmethod
    def cards(self, seen: Seen[ContextT, GoldT, ArtefactT]) -> "Sequence[Card]":
        """Returns the cards of a turn, most informative first.

        Called whenever somebody opens the turn; it must take well under a second and ask nobody. Results are not
        cached.
        """

    def results(self, seen: Seen[ContextT, GoldT, ArtefactT]) -> "Card | None":
        """Returns what gold and answer gave, for people who judge before any metric tells them; None if nothing ran.

        It shows both results as they are, whatever they are: nothing in it may depend on whether they are the same.
        """
        return None

"""The provider protocol: what a model behind an API, in process or in a file has to offer.

Add one with a file in this folder and a line in `registry.py`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from types import TracebackType
from typing import ClassVar, Protocol, Self, runtime_checkable

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import CallErrorKind, ErrorClass, Json, Prompt, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.values import value


class CallError(Exception):
    """A call that gave no response.

    Attributes:
        kind: what went wrong.
        retryable: asking again may help.
        retry_after: seconds the server asked to wait, if it did.
        sent: the question may have left this machine; where it has not, it cannot be charged.
    """

    def __init__(
        self,
        kind: CallErrorKind,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.sent = sent


class FatalCallError(EvalError):
    """No call of this run can succeed (a wrong key, an unknown model): the run ends with this sentence."""


class Gold(Protocol):
    """What a track tells about the right answer of a turn, for providers that stand in for a model."""

    def fingerprint(self) -> str:
        """Changes when the gold does: a stand-in's response depends on it, so it is part of the request."""
        ...

    def oracle(self) -> str:
        """The right answer in the track's answer form."""
        ...

    def failure_modes(self) -> tuple[str, ...]:
        """The ways of going wrong that `damage` knows for the track."""
        ...

    def damage(self, mode: str, rng: Random) -> str | None:
        """A response that goes wrong in the given way, or None where this gold cannot go wrong so."""
        ...


class Task(Protocol):
    """What an application under test is told of a turn, for providers that evaluate one rather than a bare model."""

    def as_json(self) -> Json:
        """The question, its context and the conversation so far, without anything of the gold."""
        ...


@value
class Call:
    """One question to a model.

    Attributes:
        sample: 0..samples_per_turn - 1.
        number: 0 for the generation, 1.. for recovery attempts.
        task: the turn as an application gets it that makes its own prompt.
        prefix_uses: calls of the run that begin with the prompt's shared messages; a cache of them pays from two on.
        track: of the suite, for stand-ins whose settings differ by track.
        complexity: of the turn by its gold, for stand-ins that fail more often on harder turns.
        failed_with: error class of the attempt before, for recovery attempts.
    """

    suite: str
    case_id: str
    turn_id: str
    turn_index: int
    sample: int
    number: int
    prompt: Prompt
    gold: Gold
    task: Task
    prefix_uses: int = 1
    track: str = ""
    complexity: int = 0
    failed_with: ErrorClass | None = None


class Traits:
    """What the rest has to know of a kind of provider: a base class with what holds for a model behind an API.

    Attributes:
        simulated: responses are not a real model's; every table and report says so.
        knows_gold: answers are the gold itself, so that agreeing with it says nothing.
        recorded: responses are in a file; the track reads them leniently and they are not recovered.
        pool: of the steps that ask, whose number is limited; empty: `provider/<name>`. None: nobody is asked.
        charged: somebody charges for calls, by the price table; else only a price that the model version states counts.
        own_prompt: it makes its own prompt: what a call takes is known only by what it told of others.
        can_judge: an LLM judge can be made of it.
        key_variable: environment variable with the key, where the model version names none.
        extra: of eval-pipeline, that installs `packages`; empty where nothing further is needed.
        packages: names of the modules without which it cannot work.
    """

    simulated: ClassVar[bool] = False
    knows_gold: ClassVar[bool] = False
    recorded: ClassVar[bool] = False
    pool: ClassVar[str | None] = ""
    charged: ClassVar[bool] = True
    own_prompt: ClassVar[bool] = False
    can_judge: ClassVar[bool] = True
    key_variable: ClassVar[str] = ""
    extra: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def why_not(cls, version: ModelVersion, suite: str, track: str, failure_modes: Sequence[str]) -> str | None:
        """What keeps a model version from answering a suite, as the rest of a sentence; None where nothing does.

        Args:
            version: whose provider this is.
            suite: its name.
            track: of the suite.
            failure_modes: the ways of going wrong that the track knows.
        """
        return None

    def prompt_shown(self, call: "Call") -> str | None:
        """What the model was shown where that is not the prompt of the call; None where it is."""
        return None

    @classmethod
    def lacks(cls) -> str | None:
        """What keeps this kind of provider from working on this machine, in a sentence; None where nothing is known."""
        return None


class Provider(Protocol):
    """A source of responses; an async context manager that holds what the source needs while a run lasts.

    A class that is one inherits `Traits` beside it.
    """

    simulated: ClassVar[bool]
    recorded: ClassVar[bool]

    def __init__(self, version: ModelVersion, environment: "Environment") -> None:
        """Raises EvalError where options are wrong; must not connect or start anything."""
        ...

    def prompt_shown(self, call: Call) -> str | None:
        """See `Traits`."""
        ...

    def request(self, call: Call) -> Json:
        """The full request, as JSON: with provider, model, sample and epoch it is the journal's key."""
        ...

    async def generate(self, call: Call) -> Response:
        """Asks once. Raises CallError, or FatalCallError where no call can succeed."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the provider lists it.

    Attributes:
        requests: how many it has.
        created_at: by the provider's clock, with a time zone.
        ended: results can be read.
    """

    id: str
    requests: int
    created_at: datetime
    ended: bool


@runtime_checkable
class BatchProvider(Protocol):
    """What a provider offers beside `Provider` where it takes many calls at once and answers later.

    Attributes:
        max_batch_requests: the most that one batch may hold.
        max_batch_bytes: the most that the requests of a batch may take as JSON.
    """

    max_batch_requests: ClassVar[int]
    max_batch_bytes: ClassVar[int]

    async def submit_batch(self, calls: Mapping[str, Call]) -> Batch:
        """Hands in the calls, each under its custom id. Raises CallError or FatalCallError."""
        ...

    async def batch(self, batch_id: str) -> Batch | None:
        """How a batch stands; None where the provider does not know it. Raises CallError."""
        ...

    def batches(self, since: datetime) -> AsyncIterator[Batch]:
        """The account's batches created since then, the newest first. Raises CallError."""
        ...

    def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, "Response | CallError"], None]:
        """What became of each request of a batch that has ended, by custom id. Raises CallError."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """What a provider offers beside `Provider` where it can tell the tokens of a prompt without answering it."""

    async def count_tokens(self, call: Call) -> int:
        """Input tokens that the call would be charged for. Raises CallError or FatalCallError."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """What a provider may know of its surroundings.

    Attributes:
        predictions_dir: where imported predictions lie.
        code: of a provider that makes its answers itself, what stands for the code that does.
    """

    predictions_dir: str = ""
    code: str = ""

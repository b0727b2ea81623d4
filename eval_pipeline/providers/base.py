"""The provider protocol: the interface of a model behind an API, in this process or in a file.

CONTRIBUTING.md tells how to add one.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from types import TracebackType
from typing import ClassVar, Protocol, Self, runtime_checkable

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.installed.plugins import absent, install
from eval_pipeline.core.model import CallErrorKind, ErrorClass, Json, Prompt, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.values import value


class CallError(Exception):
    """A call that gave no response.

    Attributes:
        kind: what went wrong.
        retryable: whether asking again may help.
        retry_after: seconds that the server asked to wait, if it did.
        sent: whether the request may have left this machine; if not, it cannot have been charged.
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
    """No call of this run can succeed (e.g. a wrong key or an unknown model); the run ends with this message."""


class MissingKeyError(FatalCallError):
    """The environment variable with a key is not set."""


class Gold(Protocol):
    """A turn's gold answer, as a track offers it to providers that stand in for a model."""

    def fingerprint(self) -> str:
        """Returns a hash that changes with the gold.

        It is part of a stand-in's request, because its response depends on it.
        """
        ...

    def oracle(self) -> str:
        """Returns the right answer in the track's answer form."""
        ...

    def failure_modes(self) -> tuple[str, ...]:
        """Returns the failure modes that `damage` supports for the track."""
        ...

    def damage(self, mode: str, rng: Random) -> str | None:
        """Returns a response that fails in the given way, or None if this gold cannot fail in that way."""
        ...


class SentTurn(Protocol):
    """A turn as it is sent to an application under test, which makes its own prompt."""

    def as_json(self) -> Json:
        """Returns the question, its context and the conversation so far, without anything from the gold."""
        ...

    def for_program(self) -> tuple[str, Json]:
        """Returns the task in words for a program that works on it, and what else decides what comes of that."""
        ...


@value
class Call:
    """One question to a model.

    Attributes:
        sample: 0..samples_per_turn - 1.
        number: 0 for the first answer, 1.. for recovery attempts.
        task: the turn in the form sent to applications that make their own prompts.
        prefix_uses: number of calls of the run that begin with the prompt's shared messages; caching them pays from two
            on.
        track: the suite's track, for stand-ins whose settings differ by track.
        complexity: the turn's complexity by its gold, for stand-ins that fail more often on harder turns.
        failed_with: error class of the previous attempt, for recovery attempts.
        most: tokens and US dollars (None: unknown) that it can cost at most, where the prompt does not tell them.
    """

    suite: str
    case_id: str
    turn_id: str
    turn_index: int
    sample: int
    number: int
    prompt: Prompt
    gold: Gold
    task: SentTurn
    prefix_uses: int = 1
    track: str = ""
    complexity: int = 0
    failed_with: ErrorClass | None = None
    most: tuple[int, float | None] | None = None


class Traits:
    """What other code needs to know about a kind of provider; the defaults are those of a model behind an API.

    Attributes:
        simulated: responses are not a real model's; every table and report says so.
        knows_gold: answers are the gold itself, so agreement with it means nothing.
        recorded: responses are in a file; the track parses them leniently and they are not recovered.
        pool: concurrency pool of the steps that ask; empty: `provider/<name>`; None: nobody is asked.
        charged: calls cost money according to the price table; otherwise only a price in the model version counts.
        own_prompt: it makes its own prompts, so the cost of a call can be estimated only from earlier calls.
        can_judge: it can be used as an LLM judge.
        has_tools: it hands tools on to the model, so that it can be asked to act.
        own_agent: it is a program that acts by itself: it is run in the task's world, and only its calls are passed on.
        key_variable: default environment variable of the API key.
        extra: the extra of eval-pipeline that installs `packages`; empty if no package is needed.
        packages: names of modules that it requires.
    """

    simulated: ClassVar[bool] = False
    knows_gold: ClassVar[bool] = False
    recorded: ClassVar[bool] = False
    pool: ClassVar[str | None] = ""
    charged: ClassVar[bool] = True
    own_prompt: ClassVar[bool] = False
    can_judge: ClassVar[bool] = True
    has_tools: ClassVar[bool] = False
    own_agent: ClassVar[bool] = False
    key_variable: ClassVar[str] = ""
    extra: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def why_not(cls, version: ModelVersion, suite: str, track: str, failure_modes: Sequence[str]) -> str | None:
        """Returns why a model version cannot answer a suite, to complete a sentence; None if it can.

        Args:
            version: a model version of this provider.
            suite: name of the suite.
            track: the suite's track.
            failure_modes: the failure modes that the track knows.
        """
        return None

    @classmethod
    def own_files(cls, version: ModelVersion, environment: "Environment") -> str:
        """Returns a hash of the files that a model version consists of beside its settings; empty without any."""
        return ""

    def prompt_shown(self, call: "Call") -> str | None:
        """Returns the prompt that the model saw, if it differs from the call's; otherwise None."""
        return None

    @classmethod
    def lacks(cls) -> str | None:
        """Returns a sentence on why this kind of provider cannot work on this machine; None if no reason is known."""
        needs = cls.needs()
        return needs and f"it {needs}"

    @classmethod
    def needs(cls) -> str | None:
        """Returns which packages are not installed and how to install them, to complete a sentence; None if none."""
        missing = absent(cls.packages)
        told = f"needs {', '.join(missing)}" + (f"; {install(cls.extra)}" if cls.extra else "")
        return told if missing else None


class Provider(Protocol):
    """A source of responses: an async context manager that holds its resources during a run.

    Classes that implement it also inherit `Traits`.
    """

    simulated: ClassVar[bool]
    recorded: ClassVar[bool]

    def __init__(self, version: ModelVersion, environment: "Environment") -> None:
        """Raises EvalError if options are wrong. Must not connect or start anything."""
        ...

    def prompt_shown(self, call: Call) -> str | None:
        """See `Traits`."""
        ...

    def request(self, call: Call) -> Json:
        """Returns the full request as JSON; with provider, model, sample and epoch it forms the journal key."""
        ...

    async def generate(self, call: Call) -> Response:
        """Makes one try. Raises CallError, or FatalCallError if no call can succeed."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the provider reports it.

    Attributes:
        requests: number of requests.
        created_at: by the provider's clock, with a time zone.
        ended: whether its results can be read.
    """

    id: str
    requests: int
    created_at: datetime
    ended: bool


@runtime_checkable
class BatchProvider(Protocol):
    """Additional methods of a provider that accepts batches of calls and answers them later.

    Attributes:
        max_batch_requests: maximum number of requests in a batch.
        max_batch_bytes: maximum size of a batch's requests as JSON.
    """

    max_batch_requests: ClassVar[int]
    max_batch_bytes: ClassVar[int]

    async def submit_batch(self, calls: Mapping[str, Call]) -> Batch:
        """Submits the calls, each under its custom id. Raises CallError or FatalCallError."""
        ...

    async def batch(self, batch_id: str) -> Batch | None:
        """Returns the state of a batch; None if the provider does not know it. Raises CallError."""
        ...

    def batches(self, since: datetime) -> AsyncIterator[Batch]:
        """Yields the account's batches created since then, newest first. Raises CallError."""
        ...

    def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, "Response | CallError"], None]:
        """Yields the result of each request of an ended batch, by custom id. Raises CallError."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """An additional method of a provider that can count the tokens of a prompt without answering it."""

    async def count_tokens(self, call: Call) -> int:
        """Returns the number of input tokens that the call would be charged for. Raises CallError or FatalCallError."""
        ...


@runtime_checkable
class KnowsModels(Protocol):
    """An additional method of a provider that can ask, at no cost, whether its model is there."""

    async def why_no_model(self) -> str | None:
        """Returns why the model cannot be asked, to complete a sentence about it; None if it can, or nobody tells.

        Raises CallError or FatalCallError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """What a provider may know about its surroundings.

    Attributes:
        predictions_dir: folder of the imported predictions.
        code: for providers that make up their answers, the fingerprint of the code that does so.
        project: folder that paths in settings begin at.
        private: folders that no program of the user's may see.
    """

    predictions_dir: str = ""
    code: str = ""
    project: str = ""
    private: tuple[str, ...] = ()

"""The data model: Suite → Case → Turn → Attempt → Evidence → MetricResult.

Plain frozen values. `context`, `gold` and `artefact` belong to a track: what is in them only that track knows, and
tells the type checker: `Case[Document, Gold]`. Everybody else says `Case`, `Turn` and `Attempt`, which hold anything.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from enum import StrEnum
from typing import Any, Generic

from typing_extensions import TypeVar

from eval_pipeline.core.values import value

Json = Any
"""A value that JSON can hold."""
ContextT = TypeVar("ContextT", default=Any)
"""What the turns of a case are about."""
GoldT = TypeVar("GoldT", default=Any)
"""What a right answer is."""
ArtefactT = TypeVar("ArtefactT", default=Any)
"""What a response is parsed into."""


class ErrorClass(StrEnum):
    """Why an attempt failed to run, first that fits."""

    SYNTAX = "syntax_error"
    COLUMN = "column_error"
    TYPE = "type_error"
    INDEX = "index_error"
    ATTRIBUTE = "attribute_error"
    VALUE = "value_error"
    TIMEOUT = "timeout_error"
    MEMORY = "memory_error"
    SANDBOX = "sandbox_violation"
    OTHER = "other_error"


CALL_ERROR = "call_error"
"""What stands for outcome and error class where the call itself failed."""


class CallErrorKind(StrEnum):
    """Why a model call gave no response (docs/providers.md)."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    MAX_TOKENS = "max_tokens"
    BAD_REQUEST = "bad_request"
    AUTH = "auth"
    CONNECTION = "connection"
    BAD_RESPONSE = "bad_response"
    BUDGET = "budget"
    NO_PREDICTION = "no_prediction"


@value
class Turn(Generic[GoldT]):
    """One question of a case.

    Attributes:
        id: `<suite>/<case>#<index>`, unique over all suites.
        index: position in the conversation, from 0.
        gold: what a right answer is; the track's own type.
    """

    id: str
    index: int
    question: str
    gold: GoldT


@value
class Case(Generic[ContextT, GoldT]):
    """One conversation over one context.

    Attributes:
        id: unique within the suite.
        cluster: cases that are not independent share it (docs/statistics.md); the case's id by default.
        features: facts from the data set that results are split by.
        context: what every turn of the case is about; the track's own type.
        source_file, source_line: where the case was read.
    """

    id: str
    cluster: str
    tags: tuple[str, ...]
    features: Mapping[str, bool | int | float | str]
    context: ContextT
    turns: tuple[Turn[GoldT], ...]
    source_file: str
    source_line: int


@value
class Suite:
    """A set of cases of one track.

    Attributes:
        version: the authors' own version of the suite.
        content_hash: of every file of the suite; changes when anything does.
        options: track settings of `suite.yaml` (say, the SQL dialect).
    """

    name: str
    version: str
    track: str
    content_hash: str
    description: str = ""
    options: Mapping[str, Json] = field(default_factory=dict)


@value
class Partition:
    """What one evaluation is keyed by in the record: a suite, a model version and a logical date."""

    suite: str
    model_version: str
    eval_date: date


@value
class Message:
    """One message of a prompt; `role` is `system`, `user` or `assistant`."""

    role: str
    text: str


@value
class Prompt:
    """What is sent to the model. Shared parts come first, so that caches of prompt prefixes work.

    Attributes:
        messages: in order.
        shared: how many leading messages are the same for every turn of the case.
        answer_schema: JSON schema of the answer form, or None for free text.
    """

    messages: tuple[Message, ...]
    shared: int = 0
    answer_schema: Mapping[str, Json] | None = None

    def text(self) -> str:
        """The prompt as one text, as the `prompts` table keeps it."""
        return "\n\n".join(f"[{message.role}]\n{message.text}" for message in self.messages)


@value
class Usage:
    """Tokens of one call; `input_tokens` counts cache reads and writes too. None: the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


SERVED_MODEL, SERVED_FINGERPRINT = "model", "system_fingerprint"
"""Names in a response's metadata under which providers keep who answered, by the endpoint's own words."""


@value
class Response:
    """What a provider gave for one call.

    Attributes:
        text: the model's answer, as it came.
        stop_reason: the provider's own word for why the text ended.
        latency_ms, first_byte_ms: of the successful try, None where unknown.
        retries: tries before this one.
        asked_on: ISO date of the call; the price of that day counts.
        batch: asked in a batch (cheaper).
        call_error: `refused` or `max_tokens` where the model stopped before it had answered: paid for and kept, but
            there is nothing to parse.
        usd: what the call cost where the provider says so itself; None: its tokens say it.
        reasoning: what the provider says that the model thought, apart from its answer; empty: nothing.
        metadata: provider facts worth keeping (request id, SDK version, drawn failure mode), JSON values.
    """

    text: str
    stop_reason: str = "end_turn"
    usage: Usage = Usage()
    latency_ms: float | None = None
    first_byte_ms: float | None = None
    retries: int = 0
    asked_on: str = ""
    batch: bool = False
    call_error: CallErrorKind | None = None
    usd: float | None = None
    reasoning: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)


@value
class CallFailure:
    """A model call that gave nothing, after all retries."""

    kind: CallErrorKind
    message: str
    retries: int = 0


@value
class Ran:
    """The artefact was executed; `value` is the track's result, as JSON can hold it.

    Attributes:
        tier: of the sandbox that held it; None where none was needed.
    """

    value: Json
    tier: str | None = None


@value
class Failed:
    """The artefact could not be made or executed; `tier` as of `Ran`."""

    error_class: ErrorClass
    message: str
    tier: str | None = None


Outcome = Ran | Failed


@value
class Attempt(Generic[ArtefactT]):
    """One try at a turn: number 0 is the generation, the others are recovery attempts.

    Attributes:
        response: None where the call gave nothing.
        call_failure: set where the call failed; a response beside it was paid for and is no answer.
        artefact: what the response was parsed into, the track's own type; None where it could not be.
        outcome: what executing it gave; None where the call failed.
    """

    turn_id: str
    sample: int
    number: int
    prompt_hash: str
    response: Response | None
    call_failure: CallFailure | None
    artefact: ArtefactT | None
    outcome: Outcome | None
    from_journal: bool = False


@value
class Evidence:
    """What comparing an attempt with the gold showed.

    Attributes:
        kind: what was compared, e.g. `value`.
        verdict: the track's word for the outcome, e.g. `equal`, `different`, `no_value`.
        value: a number belonging to the verdict, or None.
        details: JSON values that let a reader check the verdict.
    """

    turn_id: str
    sample: int
    kind: str
    verdict: str
    value: float | None
    details: Mapping[str, Json]


@value
class MetricResult:
    """What a metric said of a turn.

    Attributes:
        value: number, None where the metric does not apply (`reason` says why) or where it is a label.
        label: for metrics that name something, e.g. a failure mode.
        error: set where the metric itself failed; `value` is then 0.0.
    """

    value: float | None = None
    label: str | None = None
    reason: str | None = None
    details: Mapping[str, Json] | None = None
    error: str | None = None

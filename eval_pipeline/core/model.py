"""The data model: Suite → Case → Turn → Attempt → Evidence → MetricResult.

All classes are plain immutable values. The types of `context`, `gold` and `artefact` belong to the track: a track names
them for the type checker, e.g. `Case[Document, Gold]`. All other code writes just `Case`, `Turn` and `Attempt`, where
they can be anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date
from enum import StrEnum
from typing import Any, Generic

from typing_extensions import TypeVar

from eval_pipeline.core.values import value

Json = Any
"""A value that JSON can represent."""
ContextT = TypeVar("ContextT", default=Any)
"""Type of a case's context: the data that its questions are about, e.g. a document or a database."""
GoldT = TypeVar("GoldT", default=Any)
"""Type of a turn's gold answer: the reference that responses are compared with."""
ArtefactT = TypeVar("ArtefactT", default=Any)
"""Type of what a response is parsed into, e.g. a program or an SQL query."""


class ErrorClass(StrEnum):
    """Why an attempt failed to run. Where several classes apply, the first one counts."""

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
"""The value of the outcome and error-class columns when the model call itself failed."""


class CallErrorKind(StrEnum):
    """Why a model call gave no usable response (docs/providers.md)."""

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
    RECORDED_ERROR = "recorded_error"


@value
class Turn(Generic[GoldT]):
    """One question of a case.

    Attributes:
        id: `<suite>/<case>#<index>`, unique over all suites.
        index: position in the conversation, from 0.
        gold: the reference answer; its type belongs to the track.
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
        cluster: shared by cases that are not statistically independent (docs/statistics.md); defaults to the case's id.
        features: facts from the data set by which results are split.
        context: the data that every turn of the case is about; its type belongs to the track.
        source_file, source_line: where the case was read from.
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
        version: the version that the suite's authors gave it.
        content_hash: hash over every file of the suite; it changes when any file does.
        options: settings of the track from `suite.yaml` (e.g. the SQL dialect).
    """

    name: str
    version: str
    track: str
    content_hash: str
    description: str = ""
    options: Mapping[str, Json] = field(default_factory=dict)


@value
class Partition:
    """The key of an evaluation in the record: suite, model version and logical date.

    Attributes:
        evaluation: empty for the newest evaluation of the date; else the id of an earlier one
            (`workspace.evaluations`).
    """

    suite: str
    model_version: str
    eval_date: date
    evaluation: str = ""


@value
class Tool:
    """A tool that an agent may call.

    Attributes:
        parameters: JSON schema of the arguments, an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]


@value
class ToolCall:
    """A model's request to call a tool.

    Attributes:
        id: the provider's name of the call; the result refers to it.
        malformed: the arguments as text, if they are no JSON object; `arguments` is then empty.
    """

    id: str
    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    malformed: str = ""


@value
class ToolResult:
    """What a call of a tool gave.

    Attributes:
        text: what the model is told; an error is told in one sentence.
        error_class: why the call failed; None if it did not.
        rows: number of rows of a table; None if there is none.
        size: bytes of the whole result, of which the text may have fewer.
        cut: whether the text is not the whole result; it says so itself.
        ends: whether the agent has given its answer, which is `answer`.
        made: variables that code in a session has made, as `sandbox.world.made` reads them; the model is not told.
        is_reply: whether the user replies to an answer: the tool is called again only once the model has read that.
    """

    text: str
    error_class: ErrorClass | None = None
    rows: int | None = None
    size: int = 0
    cut: bool = False
    ends: bool = False
    answer: Json = None
    made: Sequence[Mapping[str, Json]] = ()
    is_reply: bool = False


@value
class Message:
    """One message of a prompt.

    Attributes:
        role: `system`, `user`, `assistant`, or `tool` for the result of a call.
        calls: tools that the assistant called.
        call_id: the call whose result this is.
        own: the assistant's message in the provider's own form, to be sent back as it came (signed thoughts are part of
            it); None if the text and the calls are all there is.
    """

    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    own: Json = None


@value
class Prompt:
    """The messages sent to the model. Shared messages come first, so that providers can cache the prompt's prefix.

    Attributes:
        messages: in order.
        shared: how many leading messages are the same for every turn of the case.
        answer_schema: JSON schema of the expected answer, or None for free text.
        tools: tools that the model may call.
    """

    messages: tuple[Message, ...]
    shared: int = 0
    answer_schema: Mapping[str, Json] | None = None
    tools: tuple[Tool, ...] = ()

    def text(self) -> str:
        """Returns the prompt as one text, as stored in the table `prompts`; tools are not part of it."""
        return "\n\n".join([f"[{message.role}]\n{message.text}" for message in self.messages])


MOST_TOKENS = 10**12
"""Most tokens that one answer is believed to have used.

That is a million calls with a context of a million tokens; the counts of millions of such answers still add up to a
number that the store can hold (64 bits).
"""


@value
class Usage:
    """Token counts of one call. `input_tokens` includes cache reads and writes; None means the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


ANSWERED_IN = "answered_in"
"""Key in a response's metadata: where the answer was, if not in the content (`tool_calls`, `reasoning`)."""
SERVED_MODEL, SERVED_FINGERPRINT = "model", "system_fingerprint"
"""Keys in a response's metadata for the model name and fingerprint that the endpoint itself reported."""
SENT_PROMPT = "sent_prompt"
"""Key in a response's metadata for the prompt that somebody's own program has sent, in the form of `Prompt.text`; it is
kept as the prompt of the attempt."""


@value
class Response:
    """A provider's response to one call.

    Attributes:
        text: the model's answer, unchanged.
        stop_reason: the provider's own word for why the text ended.
        latency_ms, first_byte_ms: times of the successful try; None if unknown.
        retries: number of tries before the successful one.
        asked_on: ISO date of the call; the price of that day applies.
        batch: whether the call was part of a batch (which is cheaper).
        call_error: `refused` or `max_tokens` if the model stopped before it had answered. Such a response is paid for
            and kept, but not parsed.
        usd: the cost as reported by the provider; None: it is computed from the tokens.
        reasoning: the model's reasoning as reported by the provider, separate from the answer; may be empty.
        metadata: other facts from the provider (request id, SDK version, drawn failure mode) as JSON values.
        calls: tools that the model called; only if the prompt had any.
        own: as in `Message`.
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
    calls: tuple[ToolCall, ...] = ()
    own: Json = None


@value
class CallFailure:
    """A model call that gave no response, even after all retries."""

    kind: CallErrorKind
    message: str
    retries: int = 0


@value
class Ran:
    """The outcome of an artefact that was executed.

    Attributes:
        value: the result, in the track's JSON form.
        tier: isolation tier of the sandbox that ran it; None if it needed no sandbox.
    """

    value: Json
    tier: str | None = None


@value
class Failed:
    """The outcome of an artefact that could not be built or executed; `tier` is as in `Ran`."""

    error_class: ErrorClass
    message: str
    tier: str | None = None


Outcome = Ran | Failed


@value
class Attempt(Generic[ArtefactT]):
    """One try at a turn: number 0 is the first answer, higher numbers are recovery attempts.

    Attributes:
        response: None if the call gave nothing.
        call_failure: set if the call failed. A response may be present too: it was paid for but is no answer.
        artefact: the parsed response, in the track's own type; None if it could not be parsed.
        outcome: the result of executing the artefact; None if the call failed.
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
    """The result of comparing an attempt with the gold answer.

    Attributes:
        kind: what was compared, e.g. `value`.
        verdict: the track's word for the result, e.g. `equal`, `different`, `no_value`.
        value: a number that belongs to the verdict, or None.
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
    """The value of one metric for one turn.

    Attributes:
        value: a number; None if the metric does not apply (see `reason`) or gives a label instead.
        label: for metrics that give a name rather than a number, e.g. a failure mode.
        error: set if the metric itself failed; `value` is then 0.0.
    """

    value: float | None = None
    label: str | None = None
    reason: str | None = None
    details: Mapping[str, Json] | None = None
    error: str | None = None

"""Makes one attempt at a turn: prompt, call, parse, validate, execute. Used for first answers and recovery attempts."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from random import Random
from typing import Any

from eval_pipeline.asking.answers import Answer
from eval_pipeline.asking.calls import Caller
from eval_pipeline.core.ids import json_hash, text_hash, without_surrogates
from eval_pipeline.core.model import (
    SENT_PROMPT,
    Attempt,
    CallErrorKind,
    CallFailure,
    Case,
    Failed,
    Json,
    Message,
    Outcome,
    Prompt,
    Ran,
    Turn,
)
from eval_pipeline.core.values import value
from eval_pipeline.providers.base import Call
from eval_pipeline.stages.attempts.units import AskingUnit
from eval_pipeline.tracks.abilities import split_response
from eval_pipeline.tracks.base import ArtefactError, Executor, Track, ValidationRow
from eval_pipeline.tracks.capabilities import Acts, Damageable, Recovers
from eval_pipeline.tracks.texts.prompt_parts import Prompting
from eval_pipeline.tracks.texts.reasoning import SplitResponse


@value
class TurnGold:
    """A turn's gold as seen by providers that stand in for a model.

    Attributes:
        code: fingerprint of the code that makes answers from the gold.
    """

    track: Track
    case: Case
    turn: Turn
    code: str
    _known: list[str] = field(default_factory=list, init=False, compare=False)

    def fingerprint(self) -> str:
        """Returns a hash of the gold and of the code that makes answers from it."""
        if not self._known:  # an attempt of an agent asks with each of its calls
            self._known.append(json_hash([self.code, self.track.gold_json(self.turn)]))
        return self._known[0]

    def oracle(self) -> str:
        """Returns the right answer in the track's answer form."""
        return self.track.oracle(self.turn)

    def failure_modes(self) -> tuple[str, ...]:
        """The failure modes that the track knows."""
        return self.track.failure_modes if isinstance(self.track, Damageable) else ()

    def damage(self, mode: str, rng: Random) -> str | None:
        """Returns a response that fails in the given way, or None if this gold cannot fail so."""
        if not isinstance(self.track, Damageable):
            return None
        return self.track.damage(self.case, self.turn, mode, rng)


@value
class TurnTask:
    """A turn in the form sent to an application under test.

    Attributes:
        history: answers to the earlier turns, as text.
        failed: for recovery attempts, the previous response and its error.
    """

    track: Track
    case: Case
    turn: Turn
    history: Sequence[str]
    failed: tuple[str, str] | None = None

    def as_json(self) -> Json:
        """Returns `question`, the track's `context`, the `history` of the conversation, and what `failed` before."""
        earlier = self.case.turns[: self.turn.index]
        told: dict[str, Json] = {
            "question": self.turn.question,
            "context": self.track.context_json(self.case),
            "history": [
                {"question": before.question, "answer": answer}
                for before, answer in zip(earlier, self.history, strict=True)
            ],
        }
        if self.failed is not None:
            told["failed"] = {"response": self.failed[0], "error": self.failed[1]}
        return told

    def for_program(self) -> tuple[str, Json]:
        """Returns the task in words, and world and limits."""
        track = self.track
        assert isinstance(track, Acts)
        return track.task_text(self.case, self.turn), [track.surroundings(self.case), asdict(track.limits(self.case))]


@value
class AskedAttempt:
    """An attempt, with its prompt, validation and reasoning for the record."""

    attempt: Attempt
    prompt_text: str
    validation: ValidationRow | None
    reasoning: str = ""


@value
class Question:
    """An attempt that is to be made.

    Attributes:
        history: answers to the earlier turns, as text.
        before: for recovery attempts, the attempt that failed.
    """

    case: Case
    turn: Turn
    sample: int
    prompt: Prompt
    history: Sequence[str]
    before: Attempt | None = None


def prefix_uses(track: Track, calls: Iterable[tuple[Case, int]]) -> dict[str, int]:
    """Counts how many calls begin with the shared messages of each case's prompts, by case id.

    Args:
        track: the suite's track.
        calls: the planned calls as (case, number of calls), in any number of parts.
    """
    keys: dict[str, str] = {}
    uses: Counter[str] = Counter()
    for case, count in calls:
        key = keys.get(case.id)
        if key is None:
            key = keys[case.id] = track.prefix_key(case)
        uses[key] += count
    return {case_id: uses[key] for case_id, key in keys.items()}


def call_of(track: Track, suite: str, question: Question, prefix_uses: Mapping[str, int], code: str) -> Call:
    """Returns the call to a provider for an attempt.

    Args:
        track: the suite's track.
        suite: name of the suite.
        question: the attempt to be made.
        prefix_uses: as counted by the function of that name; cases that were not counted have one use.
        code: as in `TurnGold`.
    """
    case, turn, before = question.case, question.turn, question.before
    number, failed, error_class = 0, None, None
    if before is not None:
        assert isinstance(before.outcome, Failed) and before.response is not None
        number, error_class = before.number + 1, before.outcome.error_class
        failed = (before.response.text, before.outcome.message)
    return Call(
        suite=suite,
        case_id=case.id,
        turn_id=turn.id,
        turn_index=turn.index,
        sample=question.sample,
        number=number,
        prompt=replace(question.prompt, tools=track.tools(case)) if isinstance(track, Acts) else question.prompt,
        gold=TurnGold(track, case, turn, code),
        task=TurnTask(track, case, turn, question.history, failed),
        prefix_uses=prefix_uses.get(case.id, 1),
        track=track.name,
        complexity=track.gold_complexity(turn),
        failed_with=error_class,
    )


def _prompt_of_the_call(call: Call) -> None:
    """Returns None: the model was shown the call's own prompt."""


Attempting = Callable[[Acts, Executor, Caller, Call, Case, Turn], Awaitable[Answer]]
"""Makes an attempt at a turn of a track that acts."""
FailedCall = tuple[str, int, int, str]
"""Turn id, sample, attempt number and hash of the prompt."""


@value
class Asker:
    """Makes attempts at turns of one suite with one model version.

    Attributes:
        prefix_uses: as counted by the function `prefix_uses`.
        recorded: parse responses leniently.
        code: as in `TurnGold`.
        validated: what `validation_of` the track does.
        prompt_shown: the provider's function that returns the prompt the model saw, if it was not the call's.
        act: makes an attempt at a turn of a track that acts, where our own loop does not.
        failed: recorded calls without a response, by turn, sample, number and prompt; if nobody may be asked, their
            recorded failures are used.
    """

    track: Track
    suite: str
    caller: Caller
    executor: Executor
    prefix_uses: Mapping[str, int]
    recorded: bool
    code: str
    validated: Callable[[Any, ArtefactError | None, Case], ValidationRow]
    failed: Mapping[FailedCall, CallFailure] = field(default_factory=dict)
    prompt_shown: Callable[[Call], str | None] = _prompt_of_the_call
    act: Attempting | None = None

    async def attempts(self, questions: Sequence[Question]) -> list[AskedAttempt]:
        """Asks each question once and executes the answers; failures are returned as outcomes, not raised."""
        calls = [call_of(self.track, self.suite, question, self.prefix_uses, self.code) for question in questions]
        answers = await self._answers(questions, calls)
        shown = map(self.prompt_shown, calls)
        made = zip(questions, answers, shown, strict=True)
        return [await self._asked(question, answer, prompt) for question, answer, prompt in made]

    async def _answers(self, questions: Sequence[Question], calls: Sequence[Call]) -> Sequence[Answer]:
        if not isinstance(self.track, Acts) or self.recorded:
            return await self.caller.ask_many(calls)
        from eval_pipeline.stages.attempts.agents.acting import act

        acts, pairs = self.act or act, zip(questions, calls, strict=True)
        return [await acts(self.track, self.executor, self.caller, call, one.case, one.turn) for one, call in pairs]

    async def _asked(self, question: Question, answer: Answer, shown: str | None) -> AskedAttempt:
        case, turn, sample, before = question.case, question.turn, question.sample, question.before
        text = question.prompt.text() if shown is None else shown
        number = 0 if before is None else before.number + 1
        if isinstance(answer, CallFailure):
            known = self.failed.get((turn.id, sample, number, text_hash(text)))
            if known is not None and answer.kind is CallErrorKind.BUDGET:
                self.caller.counters.refused -= 1
                answer = known
            return AskedAttempt(Attempt(turn.id, sample, number, text_hash(text), None, answer, None, None), text, None)
        response, sent = answer.response, answer.response.metadata.get(SENT_PROMPT)
        if isinstance(sent, str):
            text = without_surrogates(sent) or text
            kept = {name: told for name, told in response.metadata.items() if name != SENT_PROMPT}
            response = replace(response, metadata=kept)
        parts = parts_of(self.track, response.text)
        reasoning = response.reasoning or parts.reasoning
        if response.call_error is not None or parts.cut_off:
            kind = response.call_error or CallErrorKind.MAX_TOKENS
            why = CUT_OFF_THINKING if response.call_error is None else STOPPED[kind]
            stopped = CallFailure(kind, why, response.retries)
            attempt = Attempt(turn.id, sample, number, text_hash(text), response, stopped, None, None)
            return AskedAttempt(attempt, text, None, reasoning)
        artefact, error = parse_answer(self.track, parts.answer, recorded=self.recorded)
        # The log of validations has one row per turn, so validations of recovery attempts are not kept.
        validation = self.validated(artefact, error, case) if before is None else None
        outcome = await run_artefact(self.executor, case, artefact, error)
        attempt = Attempt(turn.id, sample, number, text_hash(text), response, None, artefact, outcome)
        return AskedAttempt(attempt, text, validation, reasoning)


STOPPED = {
    CallErrorKind.REFUSED: "the model refused to answer",
    CallErrorKind.MAX_TOKENS: "the answer was cut off at the limit of max_tokens",
}
"""Error messages for responses that were paid for but are not answers."""
CUT_OFF_THINKING = "the response ends within its reasoning: raise max_tokens, or have the model think less"
_BOM = "\ufeff"
"""Byte order mark, found at the start of texts that passed through some editors and spreadsheets."""


def parse_response(track: Track, text: str, *, recorded: bool = False) -> tuple[Any, ArtefactError | None]:
    """Parses a response without its reasoning; returns the artefact, or the error."""
    return parse_answer(track, parts_of(track, text).answer, recorded=recorded)


def parts_of(track: Track, text: str) -> SplitResponse:
    """Separates the reasoning from a response, which may begin with a byte order mark."""
    return split_response(track, text.removeprefix(_BOM))


def parse_answer(track: Track, answer: str, *, recorded: bool = False) -> tuple[Any, ArtefactError | None]:
    """Parses the answer of a response; returns the artefact, or the error."""
    try:
        return track.parse(answer, recorded=recorded), None
    except ArtefactError as error:
        # Drop the traceback: it would tie frames and all their values into a reference cycle.
        return None, error.with_traceback(None)


async def run_artefact(executor: Executor, case: Case, artefact: Any, error: ArtefactError | None) -> Outcome:
    """Executes an artefact; without one, returns the parse error as outcome."""
    if error is not None:
        return Failed(error.error_class, error.message)
    return await executor.execute(artefact, case)


def first_question(
    track: Track, unit: AskingUnit, turn: Turn, own_answers: Mapping[str, str] | None, prompts: Prompting
) -> Question:
    """Returns the first attempt at a turn of a unit.

    Args:
        track: the suite's track.
        unit: the unit that the turn belongs to.
        turn: the turn to ask.
        own_answers: turn id → the model's first answer; None: the prompt shows the gold answers.
        prompts: how the prompt is made.
    """
    history = history_texts(track, unit.case, turn, own_answers)
    return Question(unit.case, turn, unit.sample, prompts.prompt(track, unit.case, turn, history), history)


def history_texts(track: Track, case: Case, turn: Turn, own_answers: Mapping[str, str] | None) -> list[str]:
    """Returns the answers to the earlier turns as shown in the prompt.

    `own_answers` maps turn ids to the model's first answers; with None, the gold answers are shown.
    """
    earlier = case.turns[: turn.index]
    if own_answers is None:
        return [track.expected_text(before) for before in earlier]
    return [own_answers.get(before.id, NO_ANSWER) for before in earlier]


NO_ANSWER = "(no answer)"


def own_answer(track: Track, attempt: Attempt) -> str:
    """Returns what a conversation with `history: own` shows of an attempt."""
    return track.answer_text(attempt.outcome.value) if isinstance(attempt.outcome, Ran) else NO_ANSWER


def recovery_question(track: Recovers, first: Question, before: Attempt) -> Question:
    """Returns the attempt after a failed one: the turn's prompt, the failed response, and the error."""
    assert isinstance(before.outcome, Failed) and before.response is not None
    original = first.prompt
    # Some endpoints reject empty assistant messages.
    written = Message("assistant", before.response.text or "(empty)")
    request = Message("user", track.recovery_message(before.outcome))
    prompt = Prompt((*original.messages, written, request), original.shared, original.answer_schema)
    return Question(first.case, first.turn, first.sample, prompt, first.history, before)

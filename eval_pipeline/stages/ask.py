"""One attempt at a turn: prompt, call, parse, validate, execute. Shared by generating and recovering."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from eval_pipeline.core.ids import json_hash, text_hash
from eval_pipeline.core.model import Attempt, CallFailure, Case, ErrorClass, Failed, Message, Outcome, Prompt, Ran, Turn
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.calls import Caller
from eval_pipeline.tracks.base import ArtefactError, Executor, Track, ValidationRow


@dataclass(frozen=True, slots=True)
class TurnGold:
    """What a stand-in for a model may know of a turn; the providers' view of a track's gold."""

    track: Track
    turn: Turn

    def fingerprint(self) -> str:
        """Hash of the gold and of the version of what the track makes of it."""
        return json_hash([self.track.versions["damage"], self.track.gold_json(self.turn)])

    def oracle(self) -> str:
        """The right answer in the track's answer form."""
        return self.track.oracle(self.turn)

    def failure_modes(self) -> tuple[str, ...]:
        """The ways of going wrong that the track knows."""
        return self.track.failure_modes

    def damage(self, mode: str, rng: Random) -> str | None:
        """A response that goes wrong in the given way, or None where this gold cannot."""
        return self.track.damage(self.turn, mode, rng)


@dataclass(frozen=True, slots=True)
class Asked:
    """An attempt with what the record keeps beside it."""

    attempt: Attempt
    prompt_text: str
    validation: ValidationRow | None


@dataclass(frozen=True, slots=True)
class Asker:
    """Makes attempts at turns of one suite with one model version."""

    track: Track
    suite: str
    caller: Caller
    executor: Executor
    recorded: bool

    async def attempt(
        self,
        case: Case,
        turn: Turn,
        sample: int,
        prompt: Prompt,
        number: int = 0,
        failed_with: ErrorClass | None = None,
    ) -> Asked:
        """Asks once and runs what comes back; failures are outcomes, not exceptions."""
        text = prompt.text()
        call = Call(
            suite=self.suite,
            case_id=case.id,
            turn_id=turn.id,
            turn_index=turn.index,
            sample=sample,
            number=number,
            prompt=prompt,
            gold=TurnGold(self.track, turn),
            complexity=self.track.gold_complexity(turn),
            failed_with=failed_with,
        )
        answer = await self.caller.ask(call)
        if isinstance(answer, CallFailure):
            attempt = Attempt(turn.id, sample, number, text_hash(text), None, answer, None, None)
            return Asked(attempt, text, None)
        artefact, error = parse_response(self.track, answer.response.text, recorded=self.recorded)
        validation = self.track.validate(artefact, error, case)
        outcome = await run_artefact(self.executor, case, artefact, error)
        attempt = Attempt(turn.id, sample, number, text_hash(text), answer.response, None, artefact, outcome)
        return Asked(attempt, text, validation)


def parse_response(track: Track, text: str, *, recorded: bool = False) -> tuple[Any, ArtefactError | None]:
    """The artefact in a response, or why there is none."""
    try:
        return track.parse(text, recorded=recorded), None
    except ArtefactError as error:
        return None, error


async def run_artefact(executor: Executor, case: Case, artefact: Any, error: ArtefactError | None) -> Outcome:
    """What executing an artefact gives; without one, the error that says why."""
    if error is not None:
        return Failed(error.error_class, error.message)
    return await executor.execute(artefact, case)


def history_texts(track: Track, case: Case, turn: Turn, own_answers: Mapping[str, str] | None) -> list[str]:
    """The answers to the earlier turns, as the prompt shows them.

    `own_answers` are the model's first-attempt answers by turn id; None shows the gold answers.
    """
    earlier = case.turns[: turn.index]
    if own_answers is None:
        return [track.expected_text(before) for before in earlier]
    return [own_answers.get(before.id, NO_ANSWER) for before in earlier]


NO_ANSWER = "(no answer)"


def own_answer(track: Track, attempt: Attempt) -> str:
    """What a conversation with `history: own` shows of an attempt."""
    return track.answer_text(attempt.outcome.value) if isinstance(attempt.outcome, Ran) else NO_ANSWER


def recovery_prompt(original: Prompt, response: str, error: str) -> Prompt:
    """The prompt of a recovery attempt: the turn's own, what was written, and the error (spec/recovery.md)."""
    # Some endpoints refuse an empty assistant message.
    written = Message("assistant", response or "(empty)")
    request = Message(
        "user", f"That failed with this error: {error}\nAnswer again in the same form, without the error."
    )
    return Prompt((*original.messages, written, request), original.shared, original.answer_schema)

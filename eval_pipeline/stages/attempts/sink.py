"""What the record holds of an evaluation's answers: attempts, prompts and validations, and the model version."""

from collections.abc import Sequence

from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.provenance import PROVENANCE
from eval_pipeline.providers.base import Provider
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.stages.attempts.ask import AskedAttempt
from eval_pipeline.stages.attempts.rows import SPENT, Made, Placed, attempt_columns, not_asked, validation_columns
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import MODEL_VERSIONS
from eval_pipeline.tracks.capabilities import Acts
from eval_pipeline.workspace.asked import ranges
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.tabled.columns import CollectedColumns, Values
from eval_pipeline.workspace.workspace import RETIRED, Workspace

_PREFIX = 2
"""Bytes of a hash by which the others are grouped."""


class SeenHashes:
    """Hashes that were seen before; all of the same length."""

    def __init__(self) -> None:
        self._rests: dict[bytes, bytearray] = {}

    def add(self, text: str) -> bool:
        """Adds a hash, in hexadecimal digits; returns whether it is new."""
        found = bytes.fromhex(text)
        prefix, rest = found[:_PREFIX], found[_PREFIX:]
        known = self._rests.setdefault(prefix, bytearray())
        place = known.find(rest)
        while place % len(rest) and place >= 0:  # between two of them
            place = known.find(rest, place + 1)
        if place >= 0:
            return False
        known += rest
        return True


PROMPT_GROUP = 250
"""Prompts are long, so they are written in groups of this size."""


class AttemptSink:
    """Writes attempts in the order in which they are added.

    Attributes:
        made: all attempts as `load_attempts` would return them, complete after `flush`; None if they are not kept, as
            is so once they are too long.
    """

    def __init__(
        self, inputs: Inputs, outputs: Outputs, tables: Sequence[Table], simulated: bool, *, keeps: bool
    ) -> None:
        """Takes the tables of attempts, of prompts and, if validations are kept (one row per turn), of validations.

        With `keeps`, the attempts are kept for the next stages.
        """
        attempts, prompts, *validation = tables
        self._track, self._version, self._simulated = inputs.track, inputs.version, simulated
        self._day = inputs.place.eval_date.isoformat()
        self._written, self._waiting = outputs.writer(attempts), 0
        self._attempts = CollectedColumns(self._written, self._attempt_columns)
        self._prompts = outputs.rows(prompts, PROMPT_GROUP)
        self._validation = outputs.writer(validation[0]) if validation else None
        self._seen = SeenHashes()
        self.made: Made | None = [] if keeps else None

    def add(self, case: Case, turn: Turn, asked: AskedAttempt) -> None:
        """Adds an attempt."""
        attempt, usd = asked.attempt, None
        if attempt.response is not None:
            response = attempt.response
            self._waiting += len(response.text)
            # The cost reported by the provider takes precedence over one computed from tokens.
            usd = response.usd
            if usd is None:
                # The day of a recorded answer may be unknown.
                day = response.asked_on or self._day
                usd = cost_usd(self._version, response.usage, day, batch=response.batch)
        self._attempts.add(Placed(case.id, turn.index, attempt, usd, asked.reasoning, asked.validation))
        if self._seen.add(attempt.prompt_hash):
            self._prompts.add({"prompt_hash": attempt.prompt_hash, "text": asked.prompt_text})
        if self._waiting > ranges.RANGE_BYTES // 8:
            self.flush()

    def _attempt_columns(self, placed: Sequence[Placed]) -> Values:
        same = {"identity_hash": self._version.identity_hash(), "simulated": self._simulated}
        columns = attempt_columns(self._track, placed) | {name: [value] * len(placed) for name, value in same.items()}
        if self._validation is not None:
            self._validation.write(validation_columns([one for one in placed if not not_asked(one.attempt)]))
        acted = isinstance(self._track, Acts)
        if self.made is None or not ranges.is_small(len(self.made), self._written.size, acted=acted):
            self.made = None
            return columns
        spent = (dict(zip(SPENT, values, strict=True)) for values in zip(*(columns[n] for n in SPENT), strict=True))
        self.made += zip(spent, (one.attempt for one in placed), strict=True)
        return columns

    def flush(self) -> None:
        """Writes the waiting attempts."""
        self._waiting = 0
        self._attempts.flush()


class Ordered:
    """Passes results on to a sink in the order of their units, whatever the order in which they arrive."""

    def __init__(self, sink: AttemptSink) -> None:
        self._sink = sink
        self._arrived: dict[int, tuple[Case, Sequence[tuple[Turn, AskedAttempt]]]] = {}
        self._next = 0

    def put(self, place: int, case: Case, results: Sequence[tuple[Turn, AskedAttempt]]) -> None:
        """Takes the results of the unit with that index."""
        self._arrived[place] = (case, results)
        while self._next in self._arrived:
            ready, made = self._arrived.pop(self._next)
            for turn, asked in made:
                self._sink.add(ready, turn, asked)
            self._next += 1


def register_model_version(workspace: Workspace, version: ModelVersion, provider: Provider) -> None:
    """Records a model version with the settings that it has now; `runs` tell those of each evaluation."""
    key, record = RecordKey.of_model_version(version.name), workspace.record
    settings = recorded_settings(version) if provider.recorded else version.model_dump(mode="json", exclude=_ELSEWHERE)
    made_from = {"settings": json_hash(settings)}
    if record.is_current(MODEL_VERSIONS, key, made_from):
        return
    with record.writer(MODEL_VERSIONS, key, made_from) as writer:
        writer.write(
            {
                "provider": [version.provider],
                "model": [version.model],
                "description": [version.description],
                "simulated": [provider.simulated],
                "recorded": [provider.recorded],
                "identity_hash": [version.identity_hash()],
                "settings": [canonical_json(settings)],
                RETIRED: [False],
            }
        )


_ELSEWHERE = {"predictions", "nightly"}
_OF_ASKING = {"prompt", "sampling", "max_tokens", "history", "concurrency", "deadline_s", "max_cost_usd"}
_OF_ASKING |= {"max_tokens_total", "max_recovery_attempts", "batch", "options"}


def recorded_settings(version: ModelVersion) -> dict[str, Json]:
    """Returns the settings recorded for recorded answers: their provenance instead of settings used for asking."""
    settings = version.model_dump(mode="json", exclude=_ELSEWHERE | _OF_ASKING)
    told = {suite: found.provenance.model_dump(mode="json") for suite, found in version.predictions.items()}
    return settings | {PROVENANCE: told}

"""The stand-in `simulated`: starts from the gold answer and damages it at known rates, with a seed.

The pipeline's figures can thus be checked against the truth. The response to a call depends only on the settings and
the call, not on the order of calls or on other calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import exp, log
from random import Random
from typing import Self

from pydantic import Field, field_validator, model_validator

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, Environment, FatalCallError
from eval_pipeline.providers.standins.inprocess import StandIn, following, steps_taken
from eval_pipeline.providers.validation import Settings, read_settings, refuse_settings

CORRECT = "correct"


class FailureRates(Settings):
    """How often the turns of a track fail, and how.

    Attributes:
        rates: failure mode of the track → rate at complexity 0; their sum is at most 1.
        slope: increase of the log odds of failing per step of complexity.
    """

    rates: dict[str, float] = Field(default_factory=dict)
    slope: float = Field(default=0.0, ge=0, le=10)

    @field_validator("rates")
    @classmethod
    def _each_a_rate(cls, rates: dict[str, float]) -> dict[str, float]:
        for mode, rate in rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"the rate of '{mode}' must be in 0..1")
        return rates

    @model_validator(mode="after")
    def _together_at_most_one(self) -> Self:
        if sum(self.rates.values()) > 1 + 1e-9:
            raise ValueError(f"the rates add up to {sum(self.rates.values()):g}, more than 1")
        return self

    def failure_rate(self, complexity: int) -> float:
        """Returns the probability that the first attempt at a turn of this complexity fails (if its gold can fail)."""
        base = min(sum(self.rates.values()), 1.0)
        if base in {0.0, 1.0}:
            return base
        return 1.0 / (1.0 + exp(-(log(base / (1.0 - base)) + self.slope * complexity)))


class SimulatedSettings(FailureRates):
    """Settings of the stand-in; `options` of the model version.

    The failure rate at complexity c follows from R, the sum of `rates`: the odds are `R / (1 - R) · exp(slope · c)`,
    and the rate is odds / (1 + odds). The failure mode is drawn in proportion to `rates`.

    Attributes:
        seed: determines which turns fail.
        rates, slope: for tracks that are not in `tracks` and that know all these modes.
        tracks: track → its own rates and slope, since failure modes and complexity differ by track.
        recovery_rate: probability that a recovery attempt is right.
        class_change_rate: probability that a failed recovery attempt fails in another way than the attempt before.
        breaking_modes: failure modes of recovery attempts. Their responses cannot be executed, so that the turn counts
            as not recovered.
        chars_per_token: characters per token of prompts and responses.
        token_noise: relative standard deviation of the token counts.
        latency_ms: median latency of a call.
        latency_sigma: standard deviation of the log latency.
    """

    seed: int = 0
    tracks: dict[str, FailureRates] = Field(default_factory=dict)
    recovery_rate: float = Field(default=0.5, ge=0, le=1)
    class_change_rate: float = Field(default=0.3, ge=0, le=1)
    breaking_modes: tuple[str, ...] = ("execution_error", "no_answer")
    chars_per_token: float = Field(default=4.0, gt=0)
    token_noise: float = Field(default=0.03, ge=0, le=1)
    latency_ms: float = Field(default=1500.0, gt=0)
    latency_sigma: float = Field(default=0.4, ge=0, le=3)

    def of_track(self, track: str) -> FailureRates:
        """Returns the rates for a track."""
        return self.tracks.get(track, self)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A drawn response; `mode` is its failure mode, or `correct`."""

    mode: str
    text: str


class SimulatedProvider(StandIn):
    """Gives the gold answer or a damaged version of it."""

    @classmethod
    def why_not(cls, version: ModelVersion, suite: str, track: str, failure_modes: Sequence[str]) -> str | None:
        """Rejects tracks without rates, whose turns would all be answered correctly by accident.

        Rates that are left empty on purpose are accepted.
        """
        settings = read_settings(SimulatedSettings, version)
        if track in settings.tracks:
            return None
        if "rates" not in settings.model_fields_set:
            return f"has no rates for the track '{track}'"
        unknown = [mode for mode in settings.rates if mode not in failure_modes]
        if not unknown:
            return None
        listed = ", ".join(map(repr, unknown))
        allowed = ", ".join(failure_modes)
        return f"has no rates for the track '{track}': its common rates name {listed}; allowed there: {allowed}"

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "sampling", "predictions")
        self._version, self._code = version, environment.code
        self._settings = settings = read_settings(SimulatedSettings, version)
        self._settings_json = settings.model_dump(mode="json", exclude={"tracks"})
        self._of_tracks: dict[str, Json] = {}
        self._checked: set[tuple[str, ...]] = set()

    def request(self, call: Call) -> Json:
        """Returns everything that the draws and token counts depend on; the wording of the prompt is not part of it."""
        asked: dict[str, Json] = {
            "code": self._code,
            "turn": call.turn_id,
            "number": call.number,
            "gold": call.gold.fingerprint(),
            "complexity": call.complexity,
            "prompt_chars": _characters(call),
            "options": self._options(call.track),
        }
        return asked | {"step": steps_taken(call)} if call.prompt.tools else asked

    def _options(self, track: str) -> Json:
        """Returns the settings that matter for turns of a track."""
        if track not in self._of_tracks:
            rates = self._settings.of_track(track).model_dump(include={"rates", "slope"})
            self._of_tracks[track] = self._settings_json | rates
        return self._of_tracks[track]

    def answer(self, call: Call) -> Response:
        """Draws the response. Raises FatalCallError if a failure mode is unknown to the track."""
        self._check_modes(call)
        settings = self._settings
        drawn = self._draw(call, call.number)
        text, calls = following(call, drawn.text)
        written = len(text) + sum(len(json_text(dict(one.arguments))) for one in calls)
        rng = self._rng(call, call.number, f"usage {steps_taken(call)}" if calls else "usage")
        return Response(
            text,
            usage=Usage(self._tokens(_characters(call), rng), self._tokens(written, rng)),
            latency_ms=round(rng.lognormvariate(log(settings.latency_ms), settings.latency_sigma), 1),
            metadata={"drawn_mode": drawn.mode, "simulated": True},
            calls=calls,
        )

    def _draw(self, call: Call, number: int) -> _Drawn:
        rng = self._rng(call, number, "answer")
        if number == 0:
            found = self._settings.of_track(call.track)
            if rng.random() >= found.failure_rate(call.complexity):
                return self._correct(call)
            modes = [mode for mode, rate in found.rates.items() if rate > 0]
            drawn = rng.choices(range(len(modes)), [found.rates[mode] for mode in modes])[0]
            return self._first_possible(call, _from(modes, drawn), rng) or self._correct(call)

        if rng.random() < self._settings.recovery_rate:
            return self._correct(call)
        before = self._draw(call, number - 1)
        changed = rng.random() < self._settings.class_change_rate
        if before.mode in self._settings.breaking_modes and not changed:
            return before  # an equal response fails in the same way
        known = call.gold.failure_modes()
        others = tuple(mode for mode in self._settings.breaking_modes if mode != before.mode and mode in known)
        first = rng.randrange(len(others)) if others else 0
        return self._first_possible(call, _from(others, first), rng) or before

    @staticmethod
    def _first_possible(call: Call, modes: Sequence[str], rng: Random) -> _Drawn | None:
        """Returns a response damaged in the first of the modes that is possible for this gold; None if none is."""
        for mode in modes:
            text = call.gold.damage(mode, rng)
            if text is not None:
                return _Drawn(mode, text)
        return None

    @staticmethod
    def _correct(call: Call) -> _Drawn:
        return _Drawn(CORRECT, call.gold.oracle())

    def _rng(self, call: Call, number: int, purpose: str) -> Random:
        # Random is slow with long strings, so it is seeded with a number derived from them.
        drawn_from = f"{self._settings.seed}\0{call.turn_id}\0{call.sample}\0{number}\0{purpose}"
        return Random(int.from_bytes(blake2b(drawn_from.encode(), digest_size=8).digest(), "big"))

    def _tokens(self, characters: int, rng: Random) -> int:
        if characters == 0:
            return 0
        return max(1, round(characters / self._settings.chars_per_token * rng.gauss(1.0, self._settings.token_noise)))

    def _check_modes(self, call: Call) -> None:
        """Rejects failure modes unknown to the track, because their rates would silently have no effect."""
        known = call.gold.failure_modes()
        if (call.track, *known) in self._checked:
            return
        unknown = [mode for mode in self._settings.of_track(call.track).rates if mode not in known]
        if unknown:
            raise FatalCallError(
                f"model version '{self._version.name}': options.rates names {', '.join(map(repr, unknown))}, which the "
                f"suite '{call.suite}' does not know; allowed: {', '.join(known) or 'none'}"
            )
        self._checked.add((call.track, *known))


def _characters(call: Call) -> int:
    return sum(len(message.text) for message in call.prompt.messages)


def _from(modes: Sequence[str], first: int) -> Sequence[str]:
    """Returns the modes rotated to begin with the one at index `first`."""
    return [*modes[first:], *modes[:first]]

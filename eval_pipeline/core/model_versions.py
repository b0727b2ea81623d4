"""A model version: a named, immutable configuration of a model under evaluation (docs/providers.md)."""

import re
from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from eval_pipeline.core.ids import canonical_json, json_hash, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.provenance import Provenance
from eval_pipeline.core.reading.complaints import told_value

MOST_SAMPLES = 100
"""Most answers that a turn may have."""
_PART = re.compile(r"[1-9][0-9]?%")


class Price(BaseModel):
    """Prices in US dollars per million tokens, for a model that the price table does not know.

    `since` is the first day on which the price applied. By default, reading from a cache costs as much as input, and
    writing to a cache a quarter more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    batch_discount: float = Field(default=0.5, ge=0, le=1)
    since: date | None = None


class Predictions(BaseModel):
    """Recorded predictions for one suite: a file below `$EVAL_HOME/predictions` and the hash of its contents.

    `provenance` holds the facts that apply to all of them; it is empty for imports by old versions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    content_hash: str
    provenance: Provenance = Provenance()

    def hash(self) -> str:
        """Returns a hash of the answers and their provenance.

        If no provenance is known, the hash of the answers alone.
        """
        told = self.provenance.known()
        return json_hash([self.content_hash, told]) if told else self.content_hash


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Nightly(BaseModel):
    """How the nightly schedule asks a model version: a random part of each suite, and once a week the whole.

    Attributes:
        part: largest part of the cases that a night asks, from 1% to 99%.
        full: the weekday of the full evaluation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    part: str
    full: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] = "sunday"

    @field_validator("part", mode="after")
    @classmethod
    def _is_part(cls, part: str) -> str:
        if not _PART.fullmatch(part):
            raise ValueError(f"expected a part of the cases from 1% to 99%, such as 30%, found {told_value(part[:20])}")
        return part

    @property
    def share(self) -> float:
        """The part as a share, above 0 and below 1."""
        return int(self.part.removesuffix("%")) / 100

    def asks_part(self, day: date) -> bool:
        """Whether the night of this date asks only a part."""
        return WEEKDAYS[day.weekday()] != self.full


class ModelVersion(BaseModel):
    """One entry of `model_versions.yaml`.

    Attributes:
        name: the partition key.
        prompt: prompt version for each track; the newest one for tracks left out.
        sampling: settings passed to the provider unchanged (e.g. temperature).
        history: `gold` shows the gold answers of earlier turns, `own` shows the model's own first answers.
        concurrency: maximum number of simultaneous calls.
        deadline_s: seconds allowed for one question, including retries and pauses; batches have a longer limit of their
            own.
        max_cost_usd, max_tokens_total: budget of a run; no call is made that could exceed it.
        batch: ask in batches where the provider supports them: cheaper but slower.
        priced_as: the model's name in the price table, if it differs from `model`.
        options: the provider's own settings, checked by the provider.
        predictions: recorded predictions by suite; only for the provider `recorded`.
        active: whether it is part of the nightly schedule and of `run` without names.
        nightly: the part of each suite that the nightly schedule asks; None for the whole.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@:+-]*$", max_length=120)
    provider: str
    model: str = ""
    description: str = ""
    prompt: dict[str, str] = Field(default_factory=dict)
    sampling: dict[str, Json] = Field(default_factory=dict)
    max_tokens: int = Field(default=1024, ge=1)
    samples_per_turn: int = Field(default=1, ge=1, le=MOST_SAMPLES)
    max_recovery_attempts: int = Field(default=2, ge=0, le=10)
    history: Literal["gold", "own"] = "gold"
    concurrency: int = Field(default=16, ge=1, le=1024)
    deadline_s: float = Field(default=120.0, gt=0)
    max_cost_usd: float | None = Field(default=None, gt=0)
    max_tokens_total: int | None = Field(default=None, gt=0)
    batch: bool = False
    price: Price | None = None
    priced_as: str | None = None
    options: dict[str, Json] = Field(default_factory=dict)
    predictions: dict[str, Predictions] = Field(default_factory=dict)
    active: bool = True
    nightly: Nightly | None = None

    @field_validator("sampling", "options", mode="after")
    @classmethod
    def _in_order(cls, settings: dict[str, Json]) -> dict[str, Json]:
        """Sorts the keys, so that reordering an entry's settings does not change its identity and cause new calls."""
        ordered: dict[str, Json] = parse_json(canonical_json(settings))
        return ordered

    @field_validator("nightly", mode="after")
    @classmethod
    def _one_answer(cls, nightly: Nightly | None, info: ValidationInfo) -> Nightly | None:
        samples = info.data.get("samples_per_turn", 1)
        if nightly is not None and samples != 1:
            raise ValueError(f"a part of a night asks each turn once, but samples_per_turn is {samples}")
        return nightly

    def identity(self) -> dict[str, Json]:
        """Returns the settings that can change a response or a recovery; limits and prices are not among them."""
        kept = {"provider", "model", "prompt", "sampling", "max_tokens", "samples_per_turn"}
        kept |= {"max_recovery_attempts", "history", "options"}
        return self.model_dump(mode="json", include=kept)

    def identity_hash(self) -> str:
        """Returns the hash of `identity`; it is stored with every attempt."""
        return json_hash(self.identity())


class PromptedVersion(ModelVersion):
    """A model version that is asked with a prompt of the suites: `<model version>+<prompt>` (docs/prompts.md).

    It is derived, stands in no file, and is evaluated where a suite has the prompt.

    Attributes:
        base: name of the model version.
        suite_prompt: name of the prompt.
    """

    base: str
    suite_prompt: str

    @classmethod
    def of(cls, version: ModelVersion, prompt: str) -> "PromptedVersion":
        """Returns the model version with a prompt; it is not active, so that it is asked where it is named."""
        named = {"name": f"{version.name}+{prompt}", "active": False, "base": version.name, "suite_prompt": prompt}
        return cls.model_construct(**{**dict(version), **named})

    def identity(self) -> dict[str, Json]:
        """See `ModelVersion.identity`; what the prompt says belongs to the suite (`suites.prompts.prompt_of`)."""
        return {**super().identity(), "suite_prompt": self.suite_prompt}

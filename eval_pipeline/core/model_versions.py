"""A model version: a named, frozen configuration of a model under evaluation (docs/providers.md)."""

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from eval_pipeline.core.ids import canonical_json, json_hash, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.provenance import Provenance


class Price(BaseModel):
    """Prices in US dollars per million tokens, for a model that the price table does not know.

    `since` is the first day the price held. Left out, reading from a cache costs what input does, writing to one a
    quarter more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    batch_discount: float = Field(default=0.5, ge=0, le=1)
    since: date | None = None


class Predictions(BaseModel):
    """Recorded predictions of one suite: a file below `$EVAL_HOME/predictions` and the hash of its contents.

    `provenance` is what holds of all of them; an older import has none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    content_hash: str
    provenance: Provenance = Provenance()

    def hash(self) -> str:
        """Of the answers and of what is told of them; that of the answers alone where nothing is."""
        told = self.provenance.known()
        return json_hash([self.content_hash, told]) if told else self.content_hash


class ModelVersion(BaseModel):
    """One entry of `model_versions.yaml`.

    Attributes:
        name: the partition key.
        prompt: prompt version per track; a track left out uses its newest.
        sampling: settings passed to the provider as they are (say, temperature).
        history: `gold` shows the gold answers of earlier turns, `own` the model's own first-attempt answers.
        concurrency: calls in flight at most.
        deadline_s: seconds for one question, retries and pauses among them; batches have their own, longer one.
        max_cost_usd, max_tokens_total: budget of a run: no call is made that could exceed it.
        batch: ask in batches where the provider has them: cheaper and slower.
        priced_as: name under which the price table knows the model, where it differs from `model`.
        options: the provider's own settings, checked by the provider.
        predictions: by suite; only for the provider `recorded`.
        active: part of `run` without names and of the nightly schedule.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@:+-]*$", max_length=120)
    provider: str
    model: str = ""
    description: str = ""
    prompt: dict[str, str] = Field(default_factory=dict)
    sampling: dict[str, Json] = Field(default_factory=dict)
    max_tokens: int = Field(default=1024, ge=1)
    samples_per_turn: int = Field(default=1, ge=1, le=100)
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

    @field_validator("sampling", "options", mode="after")
    @classmethod
    def _in_order(cls, settings: dict[str, Json]) -> dict[str, Json]:
        """Sorted, so that writing an entry's settings in another order asks nothing again."""
        ordered: dict[str, Json] = parse_json(canonical_json(settings))
        return ordered

    def identity(self) -> dict[str, Json]:
        """What can change a response or a recovery; limits and prices are outside."""
        kept = {"provider", "model", "prompt", "sampling", "max_tokens", "samples_per_turn"}
        kept |= {"max_recovery_attempts", "history", "options"}
        return self.model_dump(mode="json", include=kept)

    def identity_hash(self) -> str:
        """Hash of `identity`, stored with every attempt."""
        return json_hash(self.identity())

"""The form of a recorded answer before import: a row with these fields, whatever file it came from."""

from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, field_validator, model_validator

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import MOST_TOKENS, Json
from eval_pipeline.core.model_versions import MOST_SAMPLES
from eval_pipeline.core.provenance import FIELDS
from eval_pipeline.tracks.base import Track

_ALWAYS = {"case_id", "turn_index", "sample", "input_tokens", "output_tokens", "latency_ms"}
"""Fields of every canonical row. Other fields are added only if given, so that rows equal those of earlier imports."""
_WHERE_TOLD = {"cache_read_tokens", "cache_write_tokens", "usd", "stop_reason", "error"}
_WHERE_TOLD |= {"source_correct", "source_scores", "trace_id", "span_id"}
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "seed")


class PredictionRow(BaseModel):
    """A recorded answer: `response`, `trajectory` or `answer` in the track's form, or `sql`.

    A row with none of them and without a reason for declining is no answer; `error` says why.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    case_id: str
    turn_index: int = Field(ge=0)
    sample: int = Field(default=0, ge=0, lt=MOST_SAMPLES)
    response: str | dict[str, Json] | list[Json] | None = None
    trajectory: str | dict[str, Json] | None = None
    answer: StrictStr | StrictInt | StrictFloat | None = None
    unit: str | None = None
    calculation: str | None = None
    sql: StrictStr | None = None
    confidence: StrictStr | None = None
    reason: StrictStr | None = None
    error: str | None = None
    stop_reason: str | None = None
    input_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    output_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    cache_read_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    cache_write_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    latency_ms: float | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    model: str | None = None
    prompt_version: str | None = None
    prompt: str | None = None
    history: str | None = None
    sampling: dict[str, Json] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    seed: int | None = None
    asked_on: date | None = None
    tool: str | None = None
    source_correct: bool | None = None
    source_scores: dict[str, Json] | None = None
    trace_id: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    span_id: str | None = Field(default=None, pattern="^[0-9a-f]{16}$")

    @field_validator("asked_on", mode="before")
    @classmethod
    def _day_of(cls, told: Any) -> Any:
        """Cuts a timestamp such as `2026-03-01T09:30:00Z` to its date."""
        return told[:10] if isinstance(told, str) and told[10:11] in {"T", " "} else told

    @model_validator(mode="after")
    def _one_answer(self) -> "PredictionRow":
        given = [name for name in ("response", "trajectory", "answer", "sql") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"expected one of 'response', 'trajectory', 'answer' and 'sql', found {' and '.join(given)}"
            )
        return self

    def known(self) -> dict[str, Json]:
        """Returns the row's provenance, as fields of `Provenance`."""
        told: dict[str, Json] = self.model_dump(mode="json", include=set(FIELDS), exclude_none=True)
        single = self.model_dump(mode="json", include=set(_SAMPLING), exclude_none=True)
        return told | ({"sampling": {**(self.sampling or {}), **single}} if single else {})

    def canonical(self, text: str) -> dict[str, Json]:
        """Returns the row as it is stored, with the text of its response and without its provenance."""
        kept: dict[str, Json] = self.model_dump(include=_ALWAYS)
        return kept | self.model_dump(include=_WHERE_TOLD, exclude_none=True) | {"text": text}

    def response_text(self, track: Track) -> str:
        """Returns the response in the track's answer form; empty if there is none.

        Raises ValueError with one sentence.
        """
        if self.response is None and self.trajectory is not None:
            return self.trajectory if isinstance(self.trajectory, str) else canonical_json(self.trajectory)
        if self.response is not None:
            return self.response if isinstance(self.response, str) else canonical_json(self.response)
        if self.answer is None and self.sql is None and self.reason is None:
            return ""
        return track.from_recorded(self.model_dump(exclude_none=True, include=_OF_ANSWER))


_OF_ANSWER = {"case_id", "turn_index", "sample", "answer", "unit", "calculation", "sql", "confidence", "reason"}
FIELD_NAMES = tuple(PredictionRow.model_fields)

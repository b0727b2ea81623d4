"""Provenance of recorded answers: the known facts on the model, prompt and settings that produced them."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from eval_pipeline.core.ids import has_surrogates
from eval_pipeline.core.model import Json

PROVENANCE = "provenance"
"""Key in the metadata of a recorded answer, and in the settings of its model version."""
UNKNOWN = "unknown"
"""Shown for unknown facts of a recorded answer.

The settings that eval-pipeline itself would have used are never shown.
"""


class Provenance(BaseModel):
    """The known facts on how recorded answers were made; None means unknown.

    Attributes:
        model: the model's name at its provider.
        prompt_version: a name for the prompt.
        prompt: the prompt's text or template.
        history: which answers to earlier turns the model was shown: `gold`, `own`, `none`, or a description.
        sampling: temperature, max_tokens and the like.
        asked_on: the day on which the model answered.
        tool: the program that asked the model, e.g. `inspect_ai 0.3.285`.
        varies: names of the fields that differ between answers; each answer then has its own value.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = None
    prompt_version: str | None = None
    prompt: str | None = None
    history: str | None = None
    sampling: dict[str, Json] | None = None
    asked_on: date | None = None
    tool: str | None = None
    varies: tuple[str, ...] = Field(default=())

    @field_validator("*", mode="after")
    @classmethod
    def _can_be_written(cls, told: Any) -> Any:
        """Refuses what no file can hold; text read from files has none of it any more (`foreign.parsed_json`)."""
        if has_surrogates(told):
            raise ValueError("expected text that UTF-8 can hold, found half of a surrogate pair")
        return told

    def known(self) -> dict[str, Json]:
        """Returns the known fields as JSON."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"varies"})


FIELDS = tuple(name for name in Provenance.model_fields if name != "varies")


def history_shown(settings: Mapping[str, Any], suite: str, *, recorded: bool) -> str:
    """Returns which answers to earlier turns a model was shown: `gold` or `own`.

    For recorded answers it is the description given at the import, in any words; `unknown` if there is none.

    Args:
        settings: the recorded settings of the model version.
        suite: the suite of the answers; each suite has an import of its own.
        recorded: whether the answers were made elsewhere.
    """
    if recorded:
        return str(settings.get(PROVENANCE, {}).get(suite, {}).get("history") or UNKNOWN)
    return str(settings.get("history", "gold"))


def in_common(rows: Iterable[dict[str, Json]]) -> Provenance:
    """Moves the facts common to all rows into one `Provenance`; fields that differ stay in the rows (see `varies`).

    Args:
        rows: the known facts about each answer, by field, as JSON. Common fields are removed from these mappings.
    """
    told = list(rows)
    common: dict[str, Any] = {}
    varies = []
    for name in FIELDS:
        values = [row.get(name) for row in told]
        if not values or all(value is None for value in values):
            continue
        if all(value == values[0] for value in values):
            common[name] = values[0]
            for row in told:
                del row[name]
        else:
            varies.append(name)
    return Provenance.model_validate({**common, "varies": varies})


def shown_prompt(known: Mapping[str, Json]) -> str:
    """Returns the text shown as the prompt of a recorded answer."""
    if known.get("prompt"):
        return str(known["prompt"])
    version = known.get("prompt_version")
    return f"{UNKNOWN}: of the prompt only its version was recorded, '{version}'" if version else UNKNOWN


def provenance_facts(provenance: Provenance) -> list[tuple[str, str]]:
    """Returns titles and values of all facts; `unknown` where a fact is missing."""
    told = provenance.known()
    sampling = ", ".join(f"{name} {value}" for name, value in sorted((provenance.sampling or {}).items()))
    prompt = [f"version {provenance.prompt_version}" if provenance.prompt_version else ""]
    prompt += ["its text is with each answer" if "prompt" in (*told, *provenance.varies) else ""]
    history = provenance.history or ("as in the prompts" if "prompt" in provenance.varies else "")
    facts = {
        "model": ("Model that answered", provenance.model or ""),
        "prompt_version": ("Prompt it was shown", ", ".join(filter(None, prompt))),
        "history": ("History it was shown", history),
        "sampling": ("Sampling", sampling),
        "asked_on": ("Answered on", provenance.asked_on.isoformat() if provenance.asked_on else ""),
        "tool": ("Tool of origin", provenance.tool or ""),
    }
    return [
        (title, text or ("differs from answer to answer" if name in provenance.varies else UNKNOWN))
        for name, (title, text) in facts.items()
    ]

"""Where recorded answers come from: what is known of the model, prompt and settings that gave them."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from eval_pipeline.core.model import Json

PROVENANCE = "provenance"
"""Key in the metadata of a recorded answer, and in the settings of its model version."""
UNKNOWN = "unknown"
"""What is shown of a recorded answer where nobody said; never what eval-pipeline itself would have asked with."""


class Provenance(BaseModel):
    """What is known of how recorded answers were made; None is unknown.

    Attributes:
        model: the real model, as its provider names it.
        prompt_version: a name for the prompt.
        prompt: its text: what the model was shown, or the template of it.
        history: which answers to earlier turns the model was shown: `gold`, `own`, `none`, or in other words.
        sampling: temperature, max_tokens and the like.
        asked_on: the day on which the model answered.
        tool: what asked the model, e.g. `inspect_ai 0.3.285`.
        varies: those of these fields that differ from answer to answer: each answer has its own.
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

    def known(self) -> dict[str, Json]:
        """The fields that are known, as JSON."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"varies"})


FIELDS = tuple(name for name in Provenance.model_fields if name != "varies")


def in_common(rows: Iterable[dict[str, Json]]) -> Provenance:
    """What all rows say alike, which is taken out of them; what only some say, or say differently, stays and `varies`.

    Args:
        rows: what is known of each answer, by field, as JSON.
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
    """The text that stands for the prompt of a recorded answer."""
    if known.get("prompt"):
        return str(known["prompt"])
    version = known.get("prompt_version")
    return f"{UNKNOWN}: of the prompt only its version was recorded, '{version}'" if version else UNKNOWN


def provenance_facts(provenance: Provenance) -> list[tuple[str, str]]:
    """Names of facts, and the facts; `unknown` where nobody said."""
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

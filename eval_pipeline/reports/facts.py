"""What was evaluated, in words."""

import json
from collections.abc import Mapping
from typing import Any

from eval_pipeline.reports.evaluation import Evaluation

SIMULATED = "SIMULATED: these responses are not a real model's; no figure here says anything about a model."
READING = (
    "Turns of one conversation are not independent: errors and 95% intervals are clustered "
    "by conversation, or by the group that the suite names; clusters says how many there are.",
    "A number that the data cannot carry is left empty; the note says why. It is never 0.",
    "Where a metric itself failed on a turn its value counts as 0; such failures are noted.",
)
"""How to read the figures of any report."""
_ELSEWHERE = frozenset({"name", "provider", "model", "description", "active"})


def warnings(evaluation: Evaluation) -> list[str]:
    """What has to be known before any figure is believed."""
    found = [SIMULATED] if evaluation.simulated else []
    if not evaluation.planned.is_full:
        found.append(f"PART OF THE SUITE ONLY: {scope_text(evaluation.planned.scope)}")
    return found


def facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Names of facts, and the facts; those not on record left out where nobody would miss them."""
    suite, model, planned = evaluation.suite, evaluation.model, evaluation.planned
    found = (
        ("Suite", f"{evaluation.partition.suite}, version {suite['version']}"),
        ("What it asks", suite["description"]),
        ("Licence", suite["licence"] or "not stated"),
        ("Suite contents (hash)", suite["content_hash"]),
        ("Model version", evaluation.partition.model_version),
        ("Description", model["description"]),
        ("Provider and model", " · ".join(filter(None, [model["provider"], model["model"]]))),
        ("Answered by", ", ".join(evaluation.served)),
        ("Responses", _responses(evaluation)),
        ("Settings", _settings(model["settings"])),
        ("Scope", scope_text(planned.scope)),
        ("Turns planned", "not on record" if planned.turns is None else f"{planned.turns:,}"),
        ("Turns evaluated", f"{evaluation.turns:,}"),
        ("Software", _software(planned.software) or "not on record"),
    )
    return [(name, value) for name, value in found if value]


def scope_text(scope: str) -> str:
    """A scope as `runs` has it, for people."""
    if scope == "full":
        return "the whole suite"
    values = json.loads(scope)
    parts = [
        f"{name.replace('_', ' ')} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in values.items()
    ]
    return ", ".join(parts) or "which one is not on record"


def _responses(evaluation: Evaluation) -> str:
    if evaluation.simulated:
        return "simulated, not a real model's"
    return "recorded, read from a file of predictions" if evaluation.model["recorded"] else "a model's, asked for this"


def _settings(text: str | None) -> str:
    """The settings that are set, without what stands elsewhere on the page."""
    settings: dict[str, Any] = json.loads(text or "{}")
    shown = [
        f"{name} {json.dumps(value) if isinstance(value, dict | list) else value}"
        for name, value in settings.items()
        if value not in (None, "", {}, []) and name not in _ELSEWHERE
    ]
    return ", ".join(shown)


def _software(versions: Mapping[str, str]) -> str:
    return ", ".join(text if text.startswith(name) else f"{name} {text}" for name, text in versions.items())

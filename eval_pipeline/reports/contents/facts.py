"""Describes in words what was evaluated, how many cases of the suite are covered, and which were left out."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from eval_pipeline.core.covering.coverage import implausible_text
from eval_pipeline.core.covering.left_out import PART, CaseCounts
from eval_pipeline.core.provenance import PROVENANCE, Provenance, provenance_facts
from eval_pipeline.reports.contents.draws import drawn_text
from eval_pipeline.reports.contents.gold import data_text, edition_text, overridden_text
from eval_pipeline.reports.evaluation import Evaluation

SIMULATED = "SIMULATED: these responses are not a real model's; no figure here says anything about a model."
READING = (
    "Turns of one conversation are not independent: errors and 95% intervals are clustered "
    "by conversation, or by the group that the suite names; clusters says how many there are.",
    "A number that the data cannot carry is left empty; the note says why. It is never 0.",
    "Where a metric itself failed on a turn its value counts as 0; such failures are noted.",
)
"""Notes on how to read the figures of any report."""
_ELSEWHERE = frozenset({"name", "provider", "model", "description", "active", PROVENANCE})
_NEVER_ASKED = frozenset(
    {"prompt", "sampling", "max_tokens", "history", "concurrency", "deadline_s", "max_recovery_attempts", "batch"}
)
"""Settings for asking a model, which the record of an older import of recorded answers also contains."""


def warnings(evaluation: Evaluation) -> list[str]:
    """Returns warnings that a reader must know before trusting any figure."""
    found = [SIMULATED] if evaluation.simulated else []
    if not evaluation.planned.is_full:
        part = drawn_text(evaluation.drawn) or scope_text(evaluation.planned.scope)
        found.append(f"PART OF THE SUITE ONLY: {part}")
    if evaluation.case_counts.causes - {PART}:
        found.append(f"CASES LEFT OUT: {evaluation.case_counts.text()}")
    if gaps := evaluation.coverage.gaps(evaluation.case_counts.unscored):
        found.append(f"COVERAGE: {gaps}")
    found += [f"GOLD: {text}" for text in evaluation.case_counts.gold_texts()]
    if evaluation.implausible:
        found.append(f"CONFIGURATION: {implausible_text(evaluation.implausible)}")
    if overridden := overridden_text(evaluation.editions):
        found.append(f"OVERRIDDEN GOLD: {overridden}")
    return found


def facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Returns names and values of facts; an unrecorded fact is left out if it is not essential."""
    suite, model, planned = evaluation.suite, evaluation.model, evaluation.planned
    found = (
        ("Suite", f"{evaluation.partition.suite}, version {suite['version']}"),
        ("What it asks", suite["description"]),
        ("Licence", suite["licence"] or "not stated"),
        ("Suite contents (hash)", suite["content_hash"]),
        ("Data set edition", data_text(evaluation.editions)),
        ("Gold edition", edition_text(evaluation.editions)),
        ("Model version", evaluation.partition.model_version),
        ("Description", model["description"]),
        ("Provider and model", " · ".join(filter(None, [model["provider"], model["model"]]))),
        ("Answered by", ", ".join(evaluation.served)),
        ("Responses", _responses(evaluation)),
        *_origin(evaluation),
        ("Settings", _settings(model["settings"], _NEVER_ASKED if model["recorded"] else frozenset())),
        ("Scope", scope_text(planned.scope)),
        ("Cases", evaluation.case_counts.text()),
        ("Turns planned", "not on record" if planned.turns is None else f"{planned.turns:,}"),
        ("Turns evaluated", f"{evaluation.turns:,}"),
        ("Software", _software(planned.software) or "not on record"),
    )
    return [(name, value) for name, value in found if value]


def scope_text(scope: str) -> str:
    """Returns the scope of a run, as stored in `runs`, in words."""
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


def _origin(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Returns where recorded answers come from, as far as known; empty for other answers."""
    if not evaluation.model["recorded"]:
        return []
    return provenance_facts(Provenance.model_validate(provenance_of(evaluation)))


def provenance_of(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the provenance of an evaluation's recorded answers; empty for older imports."""
    found: dict[str, Any] = settings_of(evaluation).get(PROVENANCE, {}).get(evaluation.partition.suite, {})
    return found


def settings_of(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the settings of the model version when it was first used."""
    found: dict[str, Any] = json.loads(evaluation.model["settings"] or "{}")
    return found


def _settings(text: str | None, hidden: Collection[str]) -> str:
    """Returns the settings that have a value, without those shown elsewhere on the page."""
    settings: dict[str, Any] = json.loads(text or "{}")
    shown = [
        f"{name} {json.dumps(value) if isinstance(value, dict | list) else value}"
        for name, value in settings.items()
        if value not in (None, "", {}, []) and name not in _ELSEWHERE and name not in hidden
    ]
    return ", ".join(shown)


def _software(versions: Mapping[str, str]) -> str:
    return ", ".join(text if text.startswith(name) else f"{name} {text}" for name, text in versions.items())


LEFT_OUT_HEADERS = ("cause", "cases", "examples")
_MOST_SHOWN = 10


def turns_of_cases(evaluation: Evaluation) -> str:
    """Returns e.g. `20 turns · 8 of 10 cases`."""
    counted = evaluation.case_counts.count() or f"{evaluation.cost['conversations']:,} conversations"
    return f"{evaluation.turns:,} turn{'s' * (evaluation.turns != 1)} · {counted}"


def causes(counts: CaseCounts) -> Sequence[tuple[str, int, str]]:
    """Returns a row for each cause: in words, the number of cases, and what is known of some of them."""
    rows = []
    for cause in counts.left_out:
        shown = cause.examples[:_MOST_SHOWN]
        more = [f"and {cause.cases - len(shown):,} more"] * (bool(shown) and cause.cases > len(shown))
        rows.append((cause.because(), cause.cases, "\n".join([*shown, *more])))
    return rows

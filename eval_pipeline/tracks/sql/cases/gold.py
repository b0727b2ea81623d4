"""The gold of a turn: whether it holds, as a response, as text."""

import json
from functools import lru_cache
from random import Random

from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import Failed, Json
from eval_pipeline.tracks.sql.artefact import LEVELS, Confidence
from eval_pipeline.tracks.sql.cases.case_file import Gold
from eval_pipeline.tracks.sql.cases.source import Database
from eval_pipeline.tracks.sql.evidence import runner
from eval_pipeline.tracks.sql.execute import runnable, validated

REFUSAL = "(a refusal)"
_CONFIDENCE_WHEN_RIGHT = (0.70, 0.20, 0.10)
"""How often a right answer claims each of `LEVELS`."""
_REFUSED = "The request is one that this database must not or cannot answer."


def gold_problem(gold: Gold) -> str | None:
    """Why the first accepted query that does not hold does not: the validator rejects it, or it does not run."""
    problems = (_query_problem(sql, gold.database) for sql in gold.accepted)
    return next((problem for problem in problems if problem is not None), None)


@lru_cache(maxsize=8192)
def _query_problem(sql: str, database: Database) -> str | None:
    validation = validated(sql, database)
    if not validation.is_valid:
        error = validation.errors[0]
        return f"the validator rejects {_short(sql)}: {error.category}: {error.message}"
    path = database.path()
    found = None if path is None else runner().run_now(path, runnable(sql, database.dialect))
    return f"{_short(sql)} does not run: {found.message}" if isinstance(found, Failed) else None


def gold_text(gold: Gold) -> str:
    """The first accepted query, or that a refusal is right."""
    return gold.accepted[0] if gold.accepted else REFUSAL


def gold_json(gold: Gold) -> Json:
    """The gold as plain data."""
    return {
        "accepted": list(gold.accepted),
        "tables": list(gold.tables),
        "should_pass": gold.should_pass,
        "should_be_safe": gold.should_be_safe,
        "database": gold.database.content_hash,
    }


def gold_response(gold: Gold, confidence: Confidence = "high") -> str:
    """The right answer in the answer form."""
    if not gold.accepted:
        return json.dumps({"sql": None, "reason": _REFUSED})
    return query_response(gold.accepted[0], confidence)


def drawn_confidence(turn_id: str) -> Confidence:
    """The confidence of a right answer, drawn by the turn's id so that stand-ins have something to calibrate.

    With wrong answers as `damage` spreads them, a stand-in that is right four times out of five is nearly calibrated.
    """
    return Random(text_hash(turn_id)).choices(LEVELS, _CONFIDENCE_WHEN_RIGHT)[0]


def query_response(sql: str, confidence: Confidence) -> str:
    """A query in the answer form."""
    return json.dumps({"sql": sql, "confidence": confidence}, ensure_ascii=False)


def _short(sql: str, most: int = 80) -> str:
    text = " ".join(sql.split())
    return f"'{text}'" if len(text) <= most else f"'{text[: most - 1]}…'"

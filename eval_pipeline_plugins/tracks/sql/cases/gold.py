"""Functions on the gold of a turn: checks, and forms as a response and as text."""

import json
import re
from functools import lru_cache
from random import Random
from typing import NamedTuple

from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import ErrorClass, Failed, Json
from eval_pipeline_plugins.tracks.sql import effects
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.responses.artefact import LEVELS, Confidence
from eval_pipeline_plugins.tracks.sql.responses.execute import validated
from eval_pipeline_plugins.tracks.sql.responses.running import result_fingerprint, runnable, runner, shown_result

REFUSAL = "(a refusal)"
_CONFIDENCE_WHEN_RIGHT = (0.70, 0.20, 0.10)
"""How often a right answer states each of `LEVELS`."""
_REFUSED = "The request is one that this database must not or cannot answer."


def gold_problem(gold: SqlGold) -> str | None:
    """Returns why an accepted query is wrong (the validator rejects it, or it fails to run); None if all are fine."""
    if gold.may_change:
        return effects.gold_problem(gold)
    problems = (_looked_at(sql, gold.database).problem for sql in gold.accepted)
    return next((problem for problem in problems if problem is not None), None)


def gold_result(gold: SqlGold) -> Json:
    """Returns the result of the first accepted query as an attempt's result.

    None for a refusal or if it does not run.
    """
    if not gold.accepted:
        return None
    if gold.may_change:
        return effects.gold_result(gold)
    return _looked_at(gold.accepted[0], gold.database).result


def gold_results(gold: SqlGold) -> list[str | None]:
    """Returns a hash of the result of each accepted query; None for one that does not run."""
    if gold.may_change:
        return [effects.gold_fingerprint(sql, gold) for sql in gold.accepted]
    return [_looked_at(sql, gold.database).fingerprint for sql in gold.accepted]


class _Looked(NamedTuple):
    """The problem of an accepted query, or its result; all is None if there is no data to run it on."""

    problem: str | None = None
    result: Json = None
    fingerprint: str | None = None


@lru_cache(maxsize=8192)
def _looked_at(sql: str, database: Database) -> _Looked:
    validation = validated(sql, database)
    if not validation.is_valid:
        error = validation.errors[0]
        return _Looked(f"the validator rejects {_short(sql)}: {error.category}: {error.message}")
    path = database.path()
    if path is None:
        return _Looked()
    found = runner().run_now(path, runnable(sql, database), database.limits)
    if isinstance(found, Failed):
        if found.error_class is ErrorClass.TIMEOUT:
            return _Looked(f"{_short(sql)} takes longer than {database.limits.seconds:g} s (query_time_limit_s)")
        return _Looked(f"{_short(sql)} does not run: {found.message}")
    return _Looked(None, shown_result(sql, found), result_fingerprint(found))


def gold_text(gold: SqlGold) -> str:
    """Returns the first accepted query, or a text that says that a refusal is right."""
    return gold.accepted[0] if gold.accepted else REFUSAL


def gold_json(gold: SqlGold) -> Json:
    """Returns the gold as plain data."""
    return {
        "accepted": list(gold.accepted),
        "tables": list(gold.tables),
        "should_pass": gold.should_pass,
        "should_be_safe": gold.should_be_safe,
        "database": gold.database.content_hash,
        **({"as_of": gold.database.as_of.isoformat()} if gold.database.as_of else {}),
        **(
            {"may_change": list(gold.may_change), "check_sql": gold.check_sql, "setup_sql": gold.setup_sql}
            if gold.may_change
            else {}
        ),
    }


def gold_response(gold: SqlGold, confidence: Confidence = "high") -> str:
    """Returns the right answer in the answer form."""
    if not gold.accepted:
        return json.dumps({"sql": None, "reason": _REFUSED})
    return query_response(gold.accepted[0], confidence)


def other_responses(gold: SqlGold) -> dict[str, str]:
    """Returns right answers by how they are written: the other accepted queries, and the first one in a subquery.

    A query that sorts is not wrapped, as a subquery has no order.
    """
    told = {f"accepted query {number}": query_response(sql, "high") for number, sql in enumerate(gold.accepted[1:], 2)}
    for sql in gold.accepted[:1]:
        bare = sql.strip().rstrip(";")
        told["with a remark"] = query_response(f"{bare} -- as asked", "high")
        if not gold.may_change and not re.search(r"\border\s+by\b|^\s*with\b", bare, re.IGNORECASE):
            told["in a subquery"] = query_response(f"WITH answer AS ({bare}) SELECT * FROM answer", "high")
    return told


def drawn_confidence(turn_id: str) -> Confidence:
    """Draws the confidence that a right answer states, from the turn's id, so that calibration can be tested.

    Together with the confidence of wrong answers in `damage`, a simulated model that is right four times out of five is
    nearly calibrated.
    """
    return Random(text_hash(turn_id)).choices(LEVELS, _CONFIDENCE_WHEN_RIGHT)[0]


def query_response(sql: str, confidence: Confidence) -> str:
    """Returns a query in the answer form."""
    return json.dumps({"sql": sql, "confidence": confidence}, ensure_ascii=False)


def _short(sql: str, most: int = 80) -> str:
    text = " ".join(sql.split())
    return f"'{text}'" if len(text) <= most else f"'{text[: most - 1]}…'"

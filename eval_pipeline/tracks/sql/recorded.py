"""Reads answers that were recorded elsewhere, as rows of predictions in the answer form."""

from collections.abc import Mapping

from eval_pipeline.core.complaints import told_value
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.sql.artefact import LEVELS


def recorded_response(row: Mapping[str, Json]) -> str:
    """Returns the response text in a row of recorded predictions.

    If there is `response`, it is the raw answer, as text or JSON. Otherwise `sql` or `answer` is the SQL, next to
    `confidence` and `reason`; a reason without SQL is a refusal.

    Raises:
        ValueError: with one sentence.
    """
    response = row.get("response")
    if isinstance(response, str):
        return response
    if isinstance(response, dict) and "sql" in response:
        return canonical_json(response)
    if response is not None:
        raise ValueError("'response' must be text or an object with 'sql'")
    if not {"sql", "answer", "reason"} & row.keys():
        raise ValueError(
            "a prediction of track sql needs 'response', 'sql', 'answer' (the SQL) or 'reason' (to decline)"
        )
    sql, confidence, reason = _text(row, "sql") or _text(row, "answer"), _text(row, "confidence"), _text(row, "reason")
    if confidence and confidence not in LEVELS:
        raise ValueError(f"'confidence' must be one of {', '.join(LEVELS)}, found '{confidence}'")
    if not sql and not reason:
        return ""
    told = {"sql": sql or None, "confidence": confidence, "reason": reason}
    return canonical_json({name: said for name, said in told.items() if said or name == "sql"})


def _text(row: Mapping[str, Json], name: str) -> str:
    """Returns a field's text without surrounding white space; empty if there is none."""
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        what = "SQL" if name in ("sql", "answer") else "text"
        raise ValueError(f"'{name}' must be {what}, found {told_value(value)}")
    return value.strip()

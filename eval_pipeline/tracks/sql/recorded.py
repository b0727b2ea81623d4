"""Answers recorded elsewhere: rows of predictions in the answer form."""

from collections.abc import Mapping

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json


def recorded_response(row: Mapping[str, Json]) -> str:
    """The response text in a row of recorded predictions.

    `response` is the raw answer, as text or JSON: the only way to decline, and to tell a confidence; or `answer` is the
    SQL itself.

    Raises:
        ValueError: one sentence.
    """
    response = row.get("response")
    if isinstance(response, str):
        return response
    if isinstance(response, dict) and "sql" in response:
        return canonical_json(response)
    if response is not None:
        raise ValueError("'response' must be text or an object with 'sql'")
    if "answer" not in row:
        raise ValueError("a prediction of track sql needs 'response' or 'answer', the SQL")
    answer = row["answer"]
    if answer is None:
        return ""
    if not isinstance(answer, str):
        raise ValueError(f"'answer' must be SQL, found {type(answer).__name__}")
    return canonical_json({"sql": answer}) if answer.strip() else ""

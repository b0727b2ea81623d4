"""Reads answers that were recorded elsewhere, as rows of predictions."""

from collections.abc import Mapping

from pydantic_core import from_json

from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import fenced


def recorded_response(row: Mapping[str, Json]) -> str:
    """Returns the response text in a row of recorded predictions.

    `response` is the raw answer: text with code, `{"code": ...}` as an object or as text, or a closed answer
    `@name[value]`. Alternatively, `answer` is a text of one of these kinds.

    Raises:
        ValueError: with one sentence.
    """
    told = row.get("response")
    if told is None:
        told = row.get("answer")
    if isinstance(told, str) and told.lstrip().startswith("{"):
        told = _object(told)
    if isinstance(told, dict) and isinstance(told.get("code"), str):
        return fenced(told["code"])
    if isinstance(told, str):
        return told
    raise ValueError(f"a prediction of track pandas is a text or an object with 'code', found {told_value(told)}")


def _object(text: str) -> Json:
    """Returns the content of a JSON object with code; other text is returned unchanged."""
    try:
        found = from_json(text)
    except ValueError:
        return text
    return found if isinstance(found, dict) and isinstance(found.get("code"), str) else text

"""Finds a plan in a model's response."""

from collections.abc import Callable

from eval_pipeline.core.model import Json
from eval_pipeline.tracks import json_response

FORMS = '{"plan": [...]} or {"calculation": "..."}'


def find_json(text: str, wanted: Callable[[Json], bool]) -> Json:
    """Returns the JSON value of a plan in a text. Raises ArtefactError; see `json_response.find_json`."""
    return json_response.find_json(text, wanted, "a plan", FORMS)

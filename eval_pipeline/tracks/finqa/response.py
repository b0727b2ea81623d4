"""Finds a plan in a model's response."""

from collections.abc import Callable

from eval_pipeline.answers import json_text
from eval_pipeline.core.model import Json

FORMS = '{"plan": [...]} or {"calculation": "..."}'


def find_json(text: str, wanted: Callable[[Json], bool]) -> Json:
    """Returns the JSON value of a plan in a text. Raises ArtefactError; see `json_text.find_json`."""
    return json_text.find_json(text, wanted, "a plan", FORMS)

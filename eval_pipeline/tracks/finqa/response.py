"""Finding a plan in what a model wrote."""

from collections.abc import Callable

from eval_pipeline.core.model import Json
from eval_pipeline.tracks import json_response

FORMS = '{"plan": [...]} or {"calculation": "..."}'


def find_json(text: str, wanted: Callable[[Json], bool]) -> Json:
    """The first balanced JSON value in a text that is wanted. Raises ArtefactError; see `json_response.find_json`."""
    return json_response.find_json(text, wanted, "a plan", FORMS)

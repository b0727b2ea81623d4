"""Checking what a suite gives its track: its options and its cases."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from eval_pipeline.core.complaints import complaints, dotted
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.base import CaseError

OptionsT = TypeVar("OptionsT", bound=BaseModel)
FormT = TypeVar("FormT", bound=BaseModel)


def read_options(model: type[OptionsT], options: Mapping[str, Json], place: str) -> OptionsT:
    """The options, checked.

    Args:
        model: what the track's options are.
        options: as `suite.yaml` has them.
        place: the file, for the error.

    Raises:
        InputError: with every field that is wrong.
    """
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        raise InputError(
            Problem(place, None, dotted(("options", *found.location)), found.message)
            for found in complaints(error, model)
        ) from None


def checked_form(form: type[FormT], raw: Mapping[str, Json]) -> FormT:
    """A case as the track's file format has it. Raises CaseError naming each field that is wrong."""
    try:
        return form.model_validate(raw)
    except ValidationError as error:
        raise CaseError(complaints(error, form)) from None

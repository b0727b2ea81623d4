"""Validates what a suite passes to its track: options and cases."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.tracks.base import CaseError

OptionsT = TypeVar("OptionsT", bound=BaseModel)
FormT = TypeVar("FormT", bound=BaseModel)


def read_options(model: type[OptionsT], options: Mapping[str, Json], place: str) -> OptionsT:
    """Validates the options.

    Args:
        model: the model of the track's options.
        options: the options in `suite.yaml`.
        place: the file, for the error.

    Raises:
        InputError: lists every wrong field.
    """
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        raise InputError(
            Problem(place, None, dotted(("options", *found.location)), found.message)
            for found in complaints(error, model)
        ) from None


def checked_form(form: type[FormT], raw: Mapping[str, Json]) -> FormT:
    """Validates a case against the track's file format. Raises CaseError that names each wrong field."""
    try:
        return form.model_validate(raw)
    except ValidationError as error:
        raise CaseError(complaints(error, form)) from None

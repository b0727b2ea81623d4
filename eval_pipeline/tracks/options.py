"""The options that a suite gives its track."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json

OptionsT = TypeVar("OptionsT", bound=BaseModel)


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
            Problem(place, None, ".".join(["options", *map(str, found["loc"])]), found["msg"])
            for found in error.errors(include_url=False)
        ) from None

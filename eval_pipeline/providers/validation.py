"""Checks the settings of model versions; messages name the allowed values."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint, complaints, dotted


class SettingsError(UsageError):
    """Settings of a model version that its provider rejects; the message lists all of them."""

    def __init__(self, version: str, complaints: tuple[Complaint, ...]) -> None:
        self.version = version
        self.complaints = complaints
        listed = "; ".join(f"{dotted(complaint.location)}: {complaint.message}" for complaint in complaints)
        super().__init__(f"model version '{version}': {listed}")

    def __reduce__(self) -> tuple[type["SettingsError"], tuple[str, tuple[Complaint, ...]]]:
        return (SettingsError, (self.version, self.complaints))


class Settings(BaseModel):
    """Base class of a provider's settings: rejects unknown fields and infinite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


def unshown(message: str) -> PydanticCustomError:
    """Returns a validation error that does not repeat the input, which may be a secret."""
    return PydanticCustomError("unshown", "{message}", {"message": message})


SettingsType = TypeVar("SettingsType", bound=BaseModel)


def read_settings(kind: type[SettingsType], version: ModelVersion, field: str = "options") -> SettingsType:
    """Reads the settings in a field of a model version. Raises SettingsError."""
    try:
        return kind.model_validate(getattr(version, field))
    except ValidationError as error:
        found = complaints(error, kind)
        raise SettingsError(
            version.name, tuple(Complaint((field, *location), message) for location, message in found)
        ) from error


def refuse_settings(version: ModelVersion, *fields: str) -> None:
    """Rejects fields that have no meaning for the provider. Raises SettingsError."""
    wrong = [
        Complaint((field,), f"means nothing to the provider '{version.provider}'; leave it out")
        for field in fields
        if getattr(version, field)
    ]
    if wrong:
        raise SettingsError(version.name, tuple(wrong))

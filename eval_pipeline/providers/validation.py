"""What pydantic says of wrong settings, as sentences that name the allowed values."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model_versions import ModelVersion

Location = tuple[str | int, ...]


class Complaint(NamedTuple):
    """One setting that is wrong: where it is in the entry, and what was expected."""

    location: Location
    message: str


class SettingsError(UsageError):
    """Settings of a model version that its provider refuses; every one is listed."""

    def __init__(self, version: str, complaints: tuple[Complaint, ...]) -> None:
        self.version = version
        self.complaints = complaints
        listed = "; ".join(f"{dotted(complaint.location)}: {complaint.message}" for complaint in complaints)
        super().__init__(f"model version '{version}': {listed}")

    def __reduce__(self) -> tuple[type["SettingsError"], tuple[str, tuple[Complaint, ...]]]:
        return (SettingsError, (self.version, self.complaints))


class Settings(BaseModel):
    """Base of the settings of a provider: nothing unknown, nothing infinite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


def unshown(message: str) -> PydanticCustomError:
    """For validators: a complaint that does not repeat what was written, which may be a secret."""
    return PydanticCustomError("unshown", "{message}", {"message": message})


SettingsType = TypeVar("SettingsType", bound=BaseModel)


def read_settings(kind: type[SettingsType], version: ModelVersion, field: str = "options") -> SettingsType:
    """The settings in a field of a model version. Raises SettingsError."""
    try:
        return kind.model_validate(getattr(version, field))
    except ValidationError as error:
        found = complaints(error, kind)
        raise SettingsError(
            version.name, tuple(Complaint((field, *location), message) for location, message in found)
        ) from error


def refuse_settings(version: ModelVersion, *fields: str) -> None:
    """For fields that mean nothing to the provider: one that is set is a mistake. Raises SettingsError."""
    wrong = [
        Complaint((field,), f"means nothing to the provider '{version.provider}'; leave it out")
        for field in fields
        if getattr(version, field)
    ]
    if wrong:
        raise SettingsError(version.name, tuple(wrong))


def dotted(location: Location) -> str:
    """The location as people write it: `price.input`."""
    return ".".join(str(part) for part in location)


def complaints(error: ValidationError, kind: type[BaseModel] | None = None) -> tuple[Complaint, ...]:
    """What is wrong, each with its place in the input; `kind` is what tells the allowed fields."""
    return tuple(_complaints(error, kind))


def _complaints(error: ValidationError, kind: type[BaseModel] | None) -> Iterator[Complaint]:
    for found in error.errors(include_url=False):
        location: Location = found["loc"]
        match found["type"]:
            case "extra_forbidden":
                known = _fields_at(kind, location[:-1])
                message = f"unknown field; allowed: {', '.join(known)}"
            case "missing":
                message = "is missing"
            case "unshown":
                message = found["msg"]
            case _:
                what = found["msg"].removeprefix("Value error, ")
                message = f"{what[:1].lower()}{what[1:]}, not {_shown(found['input'])}"
        yield Complaint(location, message)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fields_at(kind: type[BaseModel] | None, location: Location) -> tuple[str, ...]:
    """Names of the fields that a model has at a place inside it."""
    inner = kind
    for part in location:
        field = None if inner is None else inner.model_fields.get(str(part))
        if field is not None:
            inner = _model_in(field.annotation)
        # A part that is no field is a key of a mapping, whose values the annotation has named already.
    return tuple(inner.model_fields) if inner is not None else ()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner)) is not None), None)

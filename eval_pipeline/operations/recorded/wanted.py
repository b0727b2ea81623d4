"""The options of importing recorded answers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.model import Json
from eval_pipeline.core.model_versions import Price
from eval_pipeline.core.provenance import Provenance
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.core.reading.foreign import read_text
from eval_pipeline.operations.recorded.mapping import FieldMapping, nearest
from eval_pipeline.operations.recorded.rows import FIELD_NAMES

Model = TypeVar("Model", bound=BaseModel)
ROWS = "predictions"
"""The format with our field names, unless mapped; all others are logs of other tools."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of importing a file of recorded answers.

    Attributes:
        form: `predictions`, or one of `ALL_LOGS`.
        mapped: mapping of field names.
        only: our field → value; only rows with this value are imported.
        told: provenance of all answers whose rows do not say otherwise.
        price: prices of their tokens.
        priced_as: the model whose prices in the table apply.
    """

    form: str = ROWS
    mapped: FieldMapping = field(default_factory=lambda: FieldMapping({}))
    only: Mapping[str, str] = field(default_factory=dict)
    told: Provenance = field(default_factory=Provenance)
    price: Price | None = None
    priced_as: str | None = None

    @classmethod
    def of(
        cls,
        form: str,
        mapped: Iterable[str],
        ignored: Iterable[str],
        only: Iterable[str],
        of_all: Mapping[str, Any],
        price: Iterable[str] | None = None,
        priced_as: str | None = None,
    ) -> "Wanted":
        """Parses the texts of the command's options.

        Args:
            form: see the attribute.
            mapped: texts `ours=theirs`.
            ignored: their fields to leave out.
            only: texts `field=value`.
            of_all: fields of `Provenance`; `sampling` as a list of `name=value`, and `prompt_file`.
            price: texts `kind=dollars`.
            priced_as: see the attribute.

        Raises:
            UsageError: one of them is malformed.
            InputError: the file of the prompt cannot be read.
        """
        chosen = dict(_pair("--only", text) for text in only)
        for name in chosen:
            if name not in FIELD_NAMES:
                raise UsageError(f"--only {name}=…: '{name}' is not a known field{nearest(name, FIELD_NAMES)}")
        told = {name: value for name, value in of_all.items() if value is not None and name != "prompt_file"}
        if (file := of_all.get("prompt_file")) is not None:
            told["prompt"] = _prompt(file)
        if "sampling" in told:
            told["sampling"] = {name: _value(text) for name, text in (_pair("--sampling", t) for t in told["sampling"])}
        dollars = None if not price else _checked(Price, "price", {n: _value(t) for n, t in map(_price, price)})
        return cls(form, FieldMapping.of(mapped, ignored), chosen, _checked(Provenance, "", told), dollars, priced_as)


def _price(text: str) -> tuple[str, str]:
    return _pair("--price", text)


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise UsageError(f"{option} '{text}': expected NAME=VALUE")
    return name, value


def _value(text: str) -> Json:
    """Parses a text as JSON (a number, true, a list …); returns the text itself if it is not JSON."""
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found


def _checked(model: type[Model], option: str, values: Mapping[str, Any]) -> Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        location, message = complaints(error, model)[0]
        name = option or dotted(location[:1]).replace("_", "-")
        inner = f" {dotted(location)}" if option else ""
        raise UsageError(f"--{name}{inner}: {message}") from error


def _prompt(file: Path) -> str:
    try:
        return read_text(file)
    except OSError as error:
        raise InputError([Problem(str(file), None, "", f"the prompt cannot be read as UTF-8 text: {error}")]) from error

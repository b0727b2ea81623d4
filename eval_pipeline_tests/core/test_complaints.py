"""What pydantic says of wrong input, in sentences of our own."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from eval_pipeline.core.reading.complaints import Complaint, complaints, dotted


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int = Field(default=1, ge=1)
    cells: tuple[str | Annotated[float, Field(strict=True, allow_inf_nan=False)], ...] = ()
    pair: tuple[int, "bool"] | None = None


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern="^[a-z]+$", max_length=5)
    parts: list[Part] = []
    first: Part | None = None
    by_name: dict[str, Part] = {}
    patterns: str | list[str] = ""
    answer: StrictStr | StrictInt | None = None
    kind: Literal["a", "b"] = "a"
    size: Size | None = None
    rate: float = Field(default=0.5, gt=0, le=1, allow_inf_nan=False)
    active: bool = True
    since: date | None = None
    some: Annotated[list[int], Field(min_length=1, max_length=2)] = [1]

    @field_validator("active", mode="after")
    @classmethod
    def _never_off(cls, active: bool) -> bool:
        if not active:
            raise ValueError("expected true here")
        return active

    @model_validator(mode="after")
    def _not_both(self) -> "Whole":
        if self.answer is not None and self.patterns:
            raise ValueError("expected 'answer' or 'patterns', found both")
        return self


def told(**given: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"name": "one"} | given)
    return [f"{dotted(place)}: {message}" for place, message in complaints(caught.value, Whole)]


@pytest.mark.parametrize(
    ("given", "sentences"),
    [
        ({"name": 5}, ["name: expected a text, found 5; write it in quotes"]),
        ({"name": "One"}, ["name: expected a text that matches ^[a-z]+$, found 'One'"]),
        ({"name": "toolong"}, ["name: expected a text of at most 5 characters, found 'toolong'"]),
        ({"parts": "one"}, ["parts: expected a list, found 'one'"]),
        ({"parts": ["one"]}, ["parts.0: expected a mapping, found 'one'"]),
        ({"parts": [{}, {"size": 0}]}, ["parts.1.size: expected a number of at least 1, found 0"]),
        ({"parts": [{"cells": "ab"}]}, ["parts.0.cells: expected a list, found 'ab'"]),
        ({"parts": [{"cells": ["a", None]}]}, ["parts.0.cells.1: expected a text or a number, found nothing"]),
        ({"first": {"pair": [1, "perhaps"]}}, ["first.pair.1: expected true or false, found 'perhaps'"]),
        ({"first": {"sise": 1}}, ["first.sise: unknown field; allowed: size, cells, pair"]),
        ({"parts": [{"sise": 1}]}, ["parts.0.sise: unknown field; allowed: size, cells, pair"]),
        ({"by_name": {"x": {"sise": 1}}}, ["by_name.x.sise: unknown field; allowed: size, cells, pair"]),
        ({"by_name": []}, ["by_name: expected a mapping, found []"]),
        ({"patterns": 5}, ["patterns: expected a text or a list, found 5; write it in quotes"]),
        ({"answer": [1]}, ["answer: expected a text or a whole number, found [1]"]),
        ({"kind": "c"}, ["kind: expected 'a' or 'b', found 'c'"]),
        ({"size": "c"}, ["size: expected 'small' or 'large', found 'c'"]),
        ({"rate": 0}, ["rate: expected a number above 0, found 0"]),
        ({"rate": 2}, ["rate: expected a number of at most 1, found 2"]),
        ({"rate": "many"}, ["rate: expected a number, found 'many'"]),
        ({"rate": float("nan")}, ["rate: expected a finite number, found NaN"]),
        ({"active": "perhaps"}, ["active: expected true or false, found 'perhaps'"]),
        ({"active": False}, ["active: expected true here"]),
        ({"since": []}, ["since: expected a date such as 2026-01-31, found []"]),
        ({"some": []}, ["some: expected at least 1 item, found []"]),
        ({"some": [1, 2, 3]}, ["some: expected at most 2 items, found [1, 2, 3]"]),
        ({"some": [1.5]}, ["some.0: expected a whole number, found 1.5"]),
        ({"answer": 1, "patterns": "x"}, [": expected 'answer' or 'patterns', found both"]),
        (
            {"name": 5, "kind": 1},
            ["name: expected a text, found 5; write it in quotes", "kind: expected 'a' or 'b', found 1"],
        ),
        ({"parts": "x" * 80}, [f"parts: expected a list, found '{'x' * 56}..."]),
    ],
)
def test_each_mistake_is_told_with_what_was_expected(given: dict[str, Any], sentences: list[str]) -> None:
    assert told(**given) == sentences


def test_a_missing_and_an_unknown_field_are_told_with_the_allowed_ones() -> None:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"nane": "one"})
    missing, unknown = complaints(caught.value, Whole)
    assert missing == Complaint(("name",), "is missing")
    assert unknown.location == ("nane",)
    assert unknown.message == f"unknown field; allowed: {', '.join(Whole.model_fields)}"
    assert complaints(caught.value)[1].message == "unknown field"

"""Values as parts of keys: equal ones are told alike, different ones apart, and what cannot be told is refused."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.hashing.described import described
from eval_pipeline.core.ids import json_hash


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0


@dataclass(frozen=True)
class Other:
    x: Any
    y: Any = 0


def test_no_two_of_different_values_have_one_key() -> None:
    values: tuple[Any, ...] = (
        *(None, 0, 1, "1", 1.0, True, "true", Decimal("1"), Decimal("1.0"), float("nan"), float("inf"), -0.0, ""),
        *(date(2024, 1, 1), datetime(2024, 1, 1), "2024-01-01", Point(1), Other(1), Point("1"), Point(1, 1)),
        *([], {}, frozenset(), [1], [[1]], {1}, {"a": 1}, {1: "a"}, {"1": "a"}, [["a", 1]]),
        *([None], [""], ["a", "b"], ["ab"], ["b", "a"]),
    )
    keys = [json_hash(described(value)) for value in values]
    twice = [values[place] for place, key in enumerate(keys) if keys.index(key) != place]
    assert not twice


def test_the_order_of_sets_and_mappings_does_not_matter_and_paths_neither() -> None:
    one = Point({"b": 1, "a": {3, 1, 2}}, Path("/here"))
    assert described(one) == described(Point({"a": {2, 3, 1}, "b": 1}, Path("/elsewhere")))
    assert described([1, 2]) != described([2, 1])


def test_a_type_may_be_told_in_another_way() -> None:
    assert described([Point(1)], {Point: lambda found: found.x}) == [1]


def test_what_it_does_not_know_is_refused() -> None:
    for value in (object(), b"", len, [Point(Point)]):
        with pytest.raises(TypeError):
            described(value)

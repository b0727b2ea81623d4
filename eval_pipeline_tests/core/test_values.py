from dataclasses import field, replace

import pytest

from eval_pipeline.core.values import value


@value
class Place:
    """Where something is."""

    name: str
    tags: tuple[str, ...] = field(default_factory=tuple)


def test_values_are_equal_by_their_fields_and_can_be_keys() -> None:
    assert {Place("a", ("x",)): 1}[Place("a", ("x",))] == 1
    assert len({Place("a"), Place("a"), Place("b"), Place("a", ("x",))}) == 3
    assert replace(Place("a"), name="b") == Place("b")


def test_values_have_no_other_fields() -> None:
    with pytest.raises(AttributeError):
        Place("a").nmae = "b"  # type: ignore[attr-defined]

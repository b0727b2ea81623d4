"""Texts and hashes of values, and values as such."""

import json
from dataclasses import field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core import ids
from eval_pipeline.core.values import value
from eval_pipeline.stages.attempts.sink import SeenHashes

TEXTS = st.text(alphabet=st.characters(), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
def test_json_text_is_json_and_comes_back(value: object) -> None:
    text = ids.json_text(value)
    assert json.loads(text) == ids.parse_json(text)
    assert ids.json_text(ids.parse_json(text)) == text


@given(st.dictionaries(TEXTS, st.integers(), max_size=5))
def test_canonical_json_and_hash_do_not_depend_on_the_order_of_keys(value: dict[str, int]) -> None:
    backwards = dict(reversed(list(value.items())))
    assert ids.canonical_json(value) == ids.canonical_json(backwards)
    assert ids.json_hash({"a": value}) == ids.json_hash({"a": backwards})


def test_hashes_tell_values_apart() -> None:
    assert len({ids.json_hash(v) for v in (1, "1", 1.5, None, [], {}, [1], {"a": 1}, {"a": [1]})}) == 9


def test_what_no_encoding_holds_is_neither_lost_nor_an_error() -> None:
    assert ids.json_text({"a\ud800": ["b\udfff", float("nan"), float("inf")]}) == '{"a\ufffd":["b\ufffd",null,null]}'
    assert ids.text_hash("a\ud800") != ids.text_hash("a\ud801")


# Few different bytes, so that hashes with equal beginnings meet and look alike across their borders.
HASHES = st.lists(
    st.text("01", min_size=6, max_size=6).map(lambda bits: "".join(f"0{bit}" for bit in bits)), max_size=80
)


@given(HASHES)
def test_each_hash_is_new_once(hashes: list[str]) -> None:
    seen, known = SeenHashes(), set[str]()
    for found in hashes:
        assert seen.add(found) is (found not in known)
        known.add(found)


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

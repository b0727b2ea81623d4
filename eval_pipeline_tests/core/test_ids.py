import json

from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core import ids

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

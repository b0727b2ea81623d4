import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.asking.journal.codec import decode_response, encode_response
from eval_pipeline.core.model import Response, Usage

texts = st.text(st.characters())  # halves of surrogate pairs too
counts = st.integers(min_value=0, max_value=2**53)
numbers = st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
usages = st.builds(Usage, st.none() | counts, st.none() | counts, counts, counts)
responses = st.builds(
    Response,
    text=texts,
    stop_reason=texts,
    usage=usages,
    latency_ms=st.none() | numbers,
    first_byte_ms=st.none() | numbers,
    retries=counts,
    asked_on=texts,
    batch=st.booleans(),
    metadata=st.dictionaries(texts, values, max_size=4),
)


@given(responses)
def test_a_response_comes_back_as_it_was(response: Response) -> None:
    assert decode_response(encode_response(response)) == response


def test_defaults_take_no_room() -> None:
    assert encode_response(Response("x")) == b'{"text":"x"}'
    assert (
        encode_response(Response("é", usage=Usage(0, 0)))
        == '{"text":"é","usage":{"input_tokens":0,"output_tokens":0}}'.encode()
    )


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", b"{}", b'{"text": 1}', b'{"text": "x", "usage": 3}', b'{"text": "x", "unknown": 1}']
)
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode_response(body)

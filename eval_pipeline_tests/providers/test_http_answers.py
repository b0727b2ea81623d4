"""How answers of applications are mapped: pure, so with properties."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eval_pipeline.core.model import CallErrorKind, Json, Usage
from eval_pipeline.providers.application.answers import AnswerMapping
from eval_pipeline.providers.base import CallError

untimed = settings(deadline=None)  # the first one imports jsonpath
_SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_JSON = st.recursive(
    _SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


def refusal(body: str, **paths: str) -> CallError:
    with pytest.raises(CallError) as raised:
        AnswerMapping(**paths).read(body)
    assert raised.value.kind == CallErrorKind.BAD_RESPONSE
    return raised.value


@untimed
@given(st.text())
def test_without_paths_the_body_is_the_answer_which_can_be_wrapped(body: str) -> None:
    mapped = AnswerMapping().read(body)
    assert (mapped.text, mapped.usage, mapped.usd) == (body, Usage(None, None), None)
    assert json.loads(AnswerMapping(answer_field="sql").read(body).text) == {"sql": body}


@untimed
@given(_JSON, st.booleans())
def test_a_found_string_is_the_answer_and_all_else_is_written_as_json(found: Json, ascii_only: bool) -> None:
    body = json.dumps({"out": [{"answer": found}]}, ensure_ascii=ascii_only)
    text = AnswerMapping(answer_path="$.out[0].answer").read(body).text
    assert (text if isinstance(found, str) else json.loads(text)) == found
    wrapped = AnswerMapping(answer_path="$.out[0].answer", answer_field="sql").read(body).text
    assert json.loads(wrapped) == {"sql": found}


@untimed
@given(_JSON)
@example('{"a":1}')  # a text that could be taken for the answer's JSON
def test_the_root_itself_can_be_the_answer(document: Json) -> None:
    text = AnswerMapping(answer_path="$").read(json.dumps(document)).text
    assert (text if isinstance(document, str) else json.loads(text)) == document


@untimed
@given(st.text(), st.sampled_from(["$", "$.a", "$..a", "$[?@.a == 1].b", "$[0]"]))
def test_no_body_gives_anything_but_an_answer_or_a_bad_response(body: str, path: str) -> None:
    try:
        mapped = AnswerMapping(answer_path=path, cost_path="$.cost").read(body)
    except CallError as error:
        outcome: object = error.kind
    else:
        outcome = mapped.text
    assert outcome is CallErrorKind.BAD_RESPONSE or type(outcome) is str


@untimed
@given(_JSON.map(lambda inner: json.dumps({"answer": inner})), st.data())
def test_json_that_breaks_off_may_be_whole_the_next_time(body: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(body) - 1))
    error = refusal(body[:cut], answer_path="$.answer")
    assert error.retryable
    assert "breaks off" in error.message


@pytest.mark.parametrize("body", ["", "  ", "<html></html>", '{"a" 1}', "{'a': 1}", '{"a": 1}}', "[" * 100_000 + "x"])
def test_what_is_no_json_stays_none(body: str) -> None:
    error = refusal(body, answer_path="$.a")
    assert not error.retryable
    assert error.message.startswith("the answer is no JSON: ")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("$.sql", 'the answer has nothing at $.sql: {"rows": [{"sql": 1}, {"sql": 2}], "text": "x"}'),
        ("$.text.sql", "the answer has nothing at $.text.sql: "),
        ("$..sql", "the answer has 2 values at $..sql where one is expected"),
    ],
)
def test_the_sentence_names_the_path(path: str, told: str) -> None:
    error = refusal('{"rows": [{"sql": 1}, {"sql": 2}], "text": "x"}', answer_path=path)
    assert error.message.startswith(told)
    assert not error.retryable


@pytest.mark.parametrize(
    ("told", "usage", "usd"),
    [
        ({"in": 12, "out": 3, "usd": 0.25}, Usage(12, 3), 0.25),
        ({"in": 12.0, "out": 0, "usd": 0}, Usage(12, 0), 0.0),
        ({"in": None, "usd": None}, Usage(None, None), None),
        ({}, Usage(None, None), None),
    ],
)
def test_tokens_and_dollars_are_what_is_told(told: dict[str, Json], usage: Usage, usd: float | None) -> None:
    mapping = AnswerMapping(input_tokens_path="$.in", output_tokens_path="$.out", cost_path="$.usd")
    mapped = mapping.read(body := json.dumps(told))
    assert (mapped.usage, mapped.usd, mapped.text) == (usage, usd, body)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("input_tokens_path", told) for told in '-1 "12" 1.5 true [1] NaN Infinity 1e19 1000000000001'.split()),
        *(("cost_path", told) for told in '-0.1 "$1" false {} NaN 1e999'.split()),
    ],
)
def test_what_is_no_count_and_no_price_is_refused(path: str, value: str) -> None:
    error = refusal(f'{{"x": {value}}}', **{path: "$.x"})
    assert error.message.startswith("expected ")
    assert "at $.x, not " in error.message

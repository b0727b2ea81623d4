from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import CallErrorKind, Json, Message, Prompt, Usage
from eval_pipeline.providers.openai.wire import ChatAnswer, RequestForm, chat_request, strict_schema, usage_of
from eval_pipeline_plugins.tracks.finqa import prompt as finqa
from eval_pipeline_plugins.tracks.sdmx import prompt as sdmx
from eval_pipeline_plugins.tracks.sql import prompt as sql

NAMES = st.sampled_from(
    "id model choices delta message content reasoning thinking text refusal finish_reason usage prompt_tokens "
    "completion_tokens prompt_tokens_details cached_tokens cache_write_tokens".split()
)
PROMPT = Prompt((Message("system", "Answer."), Message("user", "How much?")))


def test_a_request() -> None:
    assert chat_request("m", PROMPT, 100, {"temperature": 0.0}) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Answer."}, {"role": "user", "content": "How much?"}],
        "max_tokens": 100,
        "temperature": 0.0,
    }
    schema = {"type": "object"}
    asked = chat_request("m", Prompt(PROMPT.messages, answer_schema=schema), 100, {})
    assert asked["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }


def test_openai_wants_a_type_beside_every_const_and_enum_and_no_bounds_on_texts() -> None:
    said = {"type": "string", "maxLength": 200}
    step = {"properties": {"tool": {"const": "extract"}, "enum": said}, "type": "object"}
    plan = {"type": "array", "items": {"anyOf": [step, {"enum": [1, None]}, {"const": True}]}}
    schema = {"type": "object", "properties": {"plan": plan}, "required": ["plan"]}

    typed = {"properties": {"tool": {"const": "extract", "type": "string"}, "enum": said}, "type": "object"}
    variants = [typed, {"enum": [1, None], "type": ["integer", "null"]}, {"const": True, "type": "boolean"}]
    plan = {"type": "array", "items": {"anyOf": variants}}
    expected = {"type": "object", "properties": {"plan": plan}, "required": ["plan"]}
    assert strict_schema(schema) == expected
    del typed["properties"]["enum"]["maxLength"]  # type: ignore[attr-defined]
    assert strict_schema(schema, text_lengths=False) == expected


FORMS: dict[str, Json] = {**finqa._SCHEMAS, "selection-2": sdmx._SCHEMA, "query-1": sql._SCHEMA}


def refusals(schema: Json) -> list[str]:
    """What OpenAI refuses in a strict schema: https://platform.openai.com/docs/guides/structured-outputs."""
    properties, variants = schema.get("properties", {}), schema.get("anyOf", [])
    found = ["no type"] if "type" not in schema and not variants else []
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        found.append("additional properties")
    found += ["optional"] if set(properties) != set(schema.get("required", properties)) else []
    found += [name for name in ("minLength", "maxLength", "oneOf", "allOf", "not", "default") if name in schema]
    inner = [*properties.values(), *variants, *([schema["items"]] if "items" in schema else [])]
    return [*found, *(told for below in inner for told in refusals(below))]


@pytest.mark.parametrize("form", FORMS)
def test_openai_takes_the_answer_forms_of_all_tracks(form: str) -> None:
    assert refusals(strict_schema(FORMS[form], text_lengths=False)) == []


@pytest.mark.parametrize(("structured", "response_format"), [("json_object", {"type": "json_object"}), ("none", None)])
def test_the_schema_is_asked_for_as_the_endpoint_can(structured: Any, response_format: Json) -> None:
    prompt = Prompt(PROMPT.messages, answer_schema={"type": "object"})
    asked = chat_request("m", prompt, 100, {}, RequestForm(structured))
    assert asked.get("response_format") == response_format


def test_the_limit_goes_under_the_name_that_the_endpoint_takes() -> None:
    asked = chat_request("m", PROMPT, 100, {}, RequestForm(limit_field="max_completion_tokens"))
    assert asked["max_completion_tokens"] == 100
    assert "max_tokens" not in asked


def test_messages_of_one_role_in_a_row_can_be_joined() -> None:
    roles = [("system", "s"), ("user", "page"), ("user", "first?"), ("assistant", "1"), ("user", "second?")]
    prompt = Prompt(tuple(Message(role, text) for role, text in roles))
    asked = chat_request("m", prompt, 100, {}, RequestForm(join_messages=True))
    assert [(said["role"], said["content"]) for said in asked["messages"]] == [
        ("system", "s"),
        ("user", "page\n\nfirst?"),
        ("assistant", "1"),
        ("user", "second?"),
    ]


@pytest.mark.parametrize(
    ("choice", "text", "kind"),
    [
        ({"message": {"content": "42"}, "finish_reason": "stop"}, "42", None),
        ({"message": {"content": "4"}, "finish_reason": "length"}, "4", CallErrorKind.MAX_TOKENS),
        ({"message": {"content": ""}, "finish_reason": "content_filter"}, "", CallErrorKind.REFUSED),
        ({"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}, "", CallErrorKind.REFUSED),
        ({"message": {"content": [{"type": "text", "text": "4"}, {"text": "2"}]}, "finish_reason": "stop"}, "42", None),
    ],
)
def test_a_whole_answer_and_why_it_may_be_none(choice: Json, text: str, kind: CallErrorKind | None) -> None:
    answer = ChatAnswer()
    answer.add({"id": "c1", "choices": [choice, {"message": {"content": "another"}}]})
    assert (answer.text, answer.call_error) == (text, kind)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(_ANYTHING, max_size=3))
def test_json_of_any_form_is_taken_in_without_an_error(parts: list[Json]) -> None:
    answer = ChatAnswer()
    for part in parts:
        answer.add(part)
    assert isinstance(answer.text, str)
    assert answer.usage.cache_read_tokens + answer.usage.cache_write_tokens <= (answer.usage.input_tokens or 0)


def test_an_answer_in_chunks() -> None:
    chunks: list[dict[str, Any]] = [
        {"id": "c1", "model": "m", "choices": [{"delta": {"role": "assistant"}}]},
        {"id": "c1", "choices": [{"delta": {"content": "for"}}]},
        {"id": "c1", "choices": [{"delta": {"content": "ty"}, "finish_reason": None}]},
        {"id": "c1", "choices": [{"delta": {}, "finish_reason": "length"}], "usage": None},
        {"id": "c1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    ]
    answer = ChatAnswer()
    assert [answer.add(chunk) for chunk in chunks] == [False, True, True, False, False]
    assert answer == ChatAnswer("forty", "length", begun=True, request_id="c1", model="m", usage=Usage(9, 2))


@pytest.mark.parametrize(
    ("deltas", "thought"),
    [
        ([{"reasoning_content": "3 and "}, {"reasoning_content": "4"}, {"content": "7"}], "3 and 4"),
        ([{"reasoning": "3 and 4"}, {"content": "7"}], "3 and 4"),
        ([{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "3 and 4"}]}]}, {"content": "7"}],
         "3 and 4"),
        ([{"content": "7"}], ""),
        ([{"reasoning_content": None, "content": "7"}], ""),
    ],
)  # fmt: skip
def test_what_the_endpoint_tells_of_the_thinking_is_kept_apart(deltas: list[Json], thought: str) -> None:
    answer = ChatAnswer()
    for delta in deltas:
        answer.add({"choices": [{"delta": delta}]})
    assert (answer.text, answer.reasoning) == ("7", thought)


def test_a_stream_that_breaks_off_has_no_stop_reason() -> None:
    answer = ChatAnswer()
    answer.add({"id": "c1", "choices": [{"delta": {"content": "for"}}]})
    assert answer.stop_reason is None


@pytest.mark.parametrize(
    ("told", "details", "usage"),
    [
        ({}, None, Usage(None, None)),
        ({"prompt_tokens": 9, "completion_tokens": 2}, None, Usage(9, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2}, {"cached_tokens": 4}, Usage(9, 2, 4)),
        ({"prompt_tokens": 9}, {"cached_tokens": 4, "cache_write_tokens": 3}, Usage(9, None, 4, 3)),
        ({"prompt_tokens": 9}, {"cached_tokens": 12, "cache_write_tokens": 3}, Usage(9, None, 9, 0)),
        ({"prompt_tokens": 10**19, "completion_tokens": 10**12 + 1}, {"cached_tokens": 10**19}, Usage(None, None)),
        ({"prompt_tokens": "9", "completion_tokens": -1}, {"cached_tokens": True}, Usage(None, None)),
    ],
)
def test_usage(told: dict[str, Any], details: dict[str, Any] | None, usage: Usage) -> None:
    assert usage_of({**told, "prompt_tokens_details": details}) == usage

"""Tools in requests and answers of each API, in the forms that their references document."""

import json
from typing import Any

import pytest

from eval_pipeline.core.model import Message, Prompt, Tool, ToolCall
from eval_pipeline.providers.anthropic.wire import StreamedMessage, message_request, response_of
from eval_pipeline.providers.openai.responses import ResponsesAnswer, responses_request
from eval_pipeline.providers.openai.wire import ChatAnswer, RequestForm, chat_request

PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
CALLS = (ToolCall("c1", "sql", {"query": "SELECT 1"}), ToolCall("c2", "sql", malformed='{"query": '))
PROMPT = Prompt(
    (
        Message("system", "You have a database."),
        Message("user", "How many?"),
        Message("assistant", "I look.", CALLS),
        Message("tool", "1", call_id="c1"),
        Message("tool", "the arguments are no JSON", call_id="c2"),
        Message("assistant", "", (ToolCall("c3", "sql", {}),)),
        Message("tool", "", call_id="c3"),
    ),
    tools=(Tool("sql", "runs a query", PARAMETERS),),
)


def test_a_conversation_with_tools_in_the_messages_api() -> None:
    body = message_request("m", PROMPT, 100, {}, cached=True)
    assert body["tools"] == [{"name": "sql", "description": "runs a query", "input_schema": PARAMETERS}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "How many?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "sql", "input": {"query": "SELECT 1"}},
                {"type": "tool_use", "id": "c2", "name": "sql", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "the arguments are no JSON"},
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c3", "name": "sql", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c3", "content": "", "cache_control": {"type": "ephemeral"}}
            ],
        },
    ]
    assert "cache_control" not in json.dumps(message_request("m", PROMPT, 100, {})), "it does not matter for the answer"


def test_a_conversation_with_tools_in_chat_completions() -> None:
    body = chat_request("m", PROMPT, 100, {}, RequestForm(join_messages=True))
    assert body["tools"] == [
        {"type": "function", "function": {"name": "sql", "description": "runs a query", "parameters": PARAMETERS}}
    ]
    assert body["messages"][2:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "sql", "arguments": '{"query":"SELECT 1"}'}},
                {"id": "c2", "type": "function", "function": {"name": "sql", "arguments": '{"query": '}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "the arguments are no JSON"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c3", "type": "function", "function": {"name": "sql", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c3", "content": ""},
    ]


def test_a_conversation_with_tools_in_the_responses_api() -> None:
    thought = [{"type": "reasoning", "encrypted_content": "x"}, {"type": "function_call", "call_id": "c4"}]
    own = Message("assistant", "", (ToolCall("c4", "sql", {}),), own=thought)
    prompt = Prompt((*PROMPT.messages, own), tools=PROMPT.tools)
    body = responses_request("m", prompt, 100, {}, RequestForm())
    assert body["tools"] == [
        {"type": "function", "name": "sql", "description": "runs a query", "parameters": PARAMETERS}
    ]
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert body["input"][2:] == [
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "sql", "arguments": '{"query":"SELECT 1"}'},
        {"type": "function_call", "call_id": "c2", "name": "sql", "arguments": '{"query": '},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": "the arguments are no JSON"},
        {"type": "function_call", "call_id": "c3", "name": "sql", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c3", "output": ""},
        *thought,
    ]


def test_requests_without_tools_are_as_before() -> None:
    plain = Prompt((Message("user", "How many?"),))
    assert message_request("m", plain, 9, {}) == {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "How many?"}]}],
    }
    chat = {"model": "m", "messages": [{"role": "user", "content": "How many?"}], "max_tokens": 9}
    assert chat_request("m", plain, 9, {}) == chat
    asked = responses_request("m", plain, 9, {}, RequestForm())
    assert asked == {"model": "m", "input": chat["messages"], "max_output_tokens": 9, "store": False}


BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "so", "signature": "sig"},
    {"type": "redacted_thinking", "data": "xx"},
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "c1", "name": "sql", "input": {"query": "é"}},
    {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
]
MESSAGE = {"id": "m", "content": BLOCKS, "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 4}}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "xx"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "I look."}},
    {"type": "content_block_start", "index": 3, "content_block": {**BLOCKS[3], "input": {}}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": '{"que'}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": 'ry": "é"}'}},
    {"type": "content_block_start", "index": 4, "content_block": {**BLOCKS[4], "input": {}}},
    {"type": "content_block_stop", "index": 4},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


def test_calls_of_the_messages_api_are_read_whole_and_streamed() -> None:
    streamed = StreamedMessage()
    for event in EVENTS:
        streamed.add(event)
    for message in (MESSAGE, streamed.message):
        found = response_of(message)
        assert found.calls == (ToolCall("c1", "sql", {"query": "é"}), ToolCall("c2", "now", {}))
        assert (found.text, found.reasoning, found.own) == ("I look.", "so", BLOCKS)
    assert response_of({**MESSAGE, "content": BLOCKS[2:]}).own is None, "nothing but text and calls"


def test_a_call_cut_in_its_arguments_is_malformed() -> None:
    streamed = StreamedMessage()
    for event in (*EVENTS[:10], *EVENTS[13:]):
        streamed.add(event)
    assert response_of(streamed.message).calls == (ToolCall("c1", "sql", malformed='{"que'),)


FUNCTIONS: list[dict[str, Any]] = [
    {"index": 0, "id": "c1", "type": "function", "function": {"name": "sql", "arguments": '{"query": "é"}'}},
    {"index": 1, "id": "c2", "type": "function", "function": {"name": "now", "arguments": ""}},
    {"index": 2, "id": "c3", "type": "function", "function": {"name": "sql", "arguments": '["a list"]'}},
]
CHAT = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"content": None, "tool_calls": FUNCTIONS}}]}
DELTAS: list[dict[str, Any]] = [
    {"tool_calls": [{**FUNCTIONS[0], "function": {"name": "sql", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"query"'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": ': "é"}'}}]},
    {"tool_calls": [FUNCTIONS[1]]},
    {"tool_calls": [FUNCTIONS[2]]},
]
CALLED = (
    ToolCall("c1", "sql", {"query": "é"}),
    ToolCall("c2", "now", {}),
    ToolCall("c3", "sql", malformed='["a list"]'),
)


@pytest.mark.parametrize("parts", [[CHAT], [{"choices": [{"index": 0, "delta": one}]} for one in DELTAS]])
def test_calls_of_chat_completions_are_read_whole_and_streamed(parts: list[Any]) -> None:
    answer = ChatAnswer()
    for part in parts:
        answer.add(part)
    assert answer.tool_calls == CALLED


def test_calls_of_the_responses_api_are_read_with_the_thoughts_to_send_back() -> None:
    output = [
        {"type": "reasoning", "id": "r", "encrypted_content": "x", "summary": [{"type": "summary_text", "text": "so"}]},
        {"type": "function_call", "call_id": "c1", "name": "sql", "arguments": '{"query": "é"}'},
        {"type": "function_call", "call_id": "c2", "name": "now", "arguments": "{}"},
        {"type": "function_call", "call_id": "c3", "name": "sql", "arguments": '["a list"]'},
    ]
    for thoughts in (output, output[1:]):
        answer = ResponsesAnswer()
        whole = {"object": "response", "status": "completed", "output": thoughts}
        answer.add({"type": "response.completed", "response": whole})
        assert answer.tool_calls == CALLED
        assert answer.own == (output if thoughts is output else None)

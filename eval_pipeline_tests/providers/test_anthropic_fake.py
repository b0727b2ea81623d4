"""The fake Anthropic server itself: it refuses what the API refuses, and counts what it answered."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from eval_pipeline_tests.fakes.anthropic_faults import LostReply
from eval_pipeline_tests.fakes.anthropic_messages import body_hash
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer

HEADERS = {"x-api-key": KEY, "anthropic-version": "2026-10-21", "content-type": "application/json"}
MESSAGE: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "How much?"}]}


def post(url: str, body: Any, headers: dict[str, str] = HEADERS) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def with_format(schema: Any) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"temperature": 0.5}, "temperature: Extra inputs are not permitted"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "first message must use the user role"),
        ({"messages": [{"role": "system", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]}, "must be non-empty"),
        ({"system": ""}, "must be non-empty"),
        (with_format({"type": "object", "properties": {}}), "'additionalProperties' must be explicitly set to false"),
        (with_format({"anyOf": [{"type": "string", "maxLength": 3}]}), "properties maxLength are not supported"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_that_the_api_refuses(changed: dict[str, Any], said: str) -> None:
    with AnthropicServer() as server:
        status, body = post(f"{server.url}/v1/messages", {**MESSAGE, **changed})
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert said in body["error"]["message"]
    assert server.log[0].outcome == "400"


def test_headers_and_paths_are_looked_at() -> None:
    with AnthropicServer() as server:
        url = f"{server.url}/v1/messages"
        assert post(url, MESSAGE, {**HEADERS, "x-api-key": "other"})[0] == 401
        assert post(url, MESSAGE, {"x-api-key": KEY})[0] == 400
        assert post(f"{server.url}/v2/messages", MESSAGE)[0] == 404
        assert post(url, MESSAGE)[0] == 200
        requests = [{"custom_id": "no spaces", "params": MESSAGE}]
        assert post(f"{url}/batches", {"requests": requests})[0] == 400
        twice = [{"custom_id": "a", "params": MESSAGE}] * 2
        assert post(f"{url}/batches", {"requests": twice})[0] == 400
    assert [entry.outcome for entry in server.log] == ["401", "400", "404", "answered", "400", "400"]
    assert server.model.batches == []


def test_what_was_answered_and_what_was_charged_is_told_to_other_processes() -> None:
    with AnthropicServer(faults=[None, LostReply()]) as server:
        post(f"{server.url}/v1/messages", MESSAGE)
        with pytest.raises(ConnectionError):
            post(f"{server.url}/v1/messages", {**MESSAGE, "stream": False})
        post(f"{server.url}/v1/messages/batches", {"requests": [{"custom_id": "a", "params": MESSAGE}]})
        with urllib.request.urlopen(f"{server.url}/_log", timeout=5) as reply:
            told = json.load(reply)
    key = body_hash(MESSAGE)
    assert told["asked"] == {key: 2}
    assert told["charged"] == {key: 2}
    assert told["answered"] == {key: 1}
    assert told["outcomes"] == {"answered": 1, "LostReply": 1}
    assert told["most_in_flight"] == 1
    assert told["batches"] == [{"id": "msgbatch_000001", "custom_ids": ["a"], "hashes": [key], "ended": False}]
    assert KEY not in json.dumps(told)

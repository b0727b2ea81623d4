"""What is read from answers and requests, without a network: streams however they are cut, steps, bounds."""

import asyncio
import json
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.asking.proxy.calls import ProxiedCall
from eval_pipeline.asking.proxy.events import Events
from eval_pipeline.asking.proxy.proxy import ModelProxy
from eval_pipeline.asking.proxy.requests import UnsuitableError, most_of, priced_for, read_request
from eval_pipeline.asking.proxy.serving import Received
from eval_pipeline.asking.proxy.steps import prompt_of, steps_of
from eval_pipeline.asking.proxy.wires import WIRES
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Response, ToolCall
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline_tests.asking.proxy.proxied import ANSWERS, MESSAGE, PRICE

STREAMS = [entry for entry in ANSWERS if "events" in entry]
DAY = "2026-11-30"

SAID, HEARD = {"role": "user", "content": "Count."}, {"role": "assistant", "content": "12"}
PART = {"type": "text", "text": "Count."}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 3000), max_size=12), st.booleans())
def test_however_a_stream_is_cut_the_same_is_read(entry: Any, cuts: list[int], crlf: bool) -> None:
    whole = entry["events"].replace("\n", "\r\n" if crlf else "\n").encode()
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    events, heard = Events(), WIRES[entry["path"]].heard()
    found = [event for a, b in pairwise(places) for event in events.add(whole[a:b])]
    assert b"".join(found) + events.rest() == whole
    ends = [heard.add(event) for event in found]
    assert ends.count(True) == 1 and ends[-1]
    response = heard.response()
    assert response.text == entry["text"]
    assert [[one.id, one.name, dict(one.arguments)] for one in response.calls] == entry["calls"]


def _call(wire: str, items: list[Any], *calls: tuple[str, str], text: str = "") -> ProxiedCall:
    request = {"input" if wire == "responses" else "messages": items}
    return ProxiedCall(wire, request, Response(text, calls=tuple(ToolCall(id_, name) for id_, name in calls)), False)


RESULTS = {
    "anthropic": lambda id_, text: {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id_, "content": [{"type": "text", "text": text}]}],
    },
    "chat": lambda id_, text: {"role": "tool", "tool_call_id": id_, "content": text},
    "responses": lambda id_, text: {"type": "function_call_output", "call_id": id_, "output": text},
}  # fmt: skip


@pytest.mark.parametrize("wire", RESULTS)
def test_steps_tell_what_tools_gave_in_each_form(wire: str) -> None:
    result: Any = RESULTS[wire]
    calls = [
        _call(wire, [], ("a", "sql"), ("b", "ls"), text="look"),
        _call(wire, [{"role": "user", "content": "sub"}], ("s", "sub")),  # a conversation of another agent
        _call(wire, [result("a", "1"), result("b", "2")], ("a", "again")),  # an id that is used again
        _call(wire, [result("s", "3")]),
        _call(wire, [result("a", "1"), result("b", "2"), result("a", "4")], ("z", "lost")),
    ]
    told = [(step["kind"], step.get("name"), step.get("result")) for step in steps_of(calls)]
    model = ("model", None, None)
    assert told == [
        model, ("tool", "sql", "1"), ("tool", "ls", "2"), model, ("tool", "sub", "3"), model, ("tool", "again", "4"),
        model, model, ("tool", "lost", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "request_", "expected"),
    [
        ("anthropic", {"system": [{"type": "text", "text": "Be brief."}], "messages": [SAID, HEARD, SAID]}, "both"),
        ("anthropic", {"system": "Be brief.", "messages": [{"role": "user", "content": [PART]}, HEARD]}, "both"),
        ("anthropic", {"messages": [SAID]}, "user"),
        ("chat", {"messages": [{"role": "developer", "content": "Be brief."}, SAID, HEARD]}, "both"),
        ("chat", {"system": "no field of this form", "messages": [SAID]}, "user"),
        ("responses", {"instructions": "Be brief.", "input": "Count."}, "both"),
        ("responses", {"instructions": "Be brief.", "input": [SAID, {"type": "function_call"}, SAID]}, "both"),
        ("responses", ["no", "object"], ""),
    ],
)
def test_the_prompt_of_an_agent_is_what_its_conversation_began_with(wire: str, request_: Any, expected: str) -> None:
    texts = {"both": "[system]\nBe brief.\n\n[user]\nCount.", "user": "[user]\nCount.", "": ""}
    call = ProxiedCall(wire, request_, Response(""), False)
    assert prompt_of([call]) == texts[expected]
    side = ProxiedCall(wire, {"messages": [], "system": "Name it.", "instructions": "Name it."}, Response(""), False)
    if expected and not isinstance(request_.get("input"), str):
        assert prompt_of([side, call, side]) == texts[expected], "that of the longest"


def test_an_error_of_a_tool_is_told_and_a_picture_named() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": [{"type": "image", "source": {}}]}
    calls = [_call("anthropic", [], ("a", "sql")), _call("anthropic", [{"role": "user", "content": [block]}])]
    step = steps_of(calls)[1]
    assert (step["result"], step["error_class"]) == ("[image]", "other_error")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "Traceback (most recent call last):\n  File 'a.py', line 1\nduckdb.duckdb.BinderException: no x",
            "column_error",
        ),
        ("Traceback (most recent call last):\n  x = 1 / 0\nZeroDivisionError: division by zero\n", "value_error"),
        ("Traceback (most recent call last):\n  ...\nKeyboardInterrupt", None),
        ("count\nValueError: 3", None),
        ("17", None),
    ],
)
def test_a_traceback_of_a_tool_is_a_failure_though_no_form_says_so(text: str, error: str | None) -> None:
    calls = [_call("chat", [], ("a", "bash")), _call("chat", [RESULTS["chat"]("a", text)])]
    assert steps_of(calls)[1]["error_class"] == error


def _said(*texts: str) -> list[Any]:
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": [{"type": "text", "text": one}]} for place, one in enumerate(texts)]


def test_a_result_that_is_told_as_a_message_of_the_user_is_one() -> None:
    calls = [
        _call("chat", _said("Task"), ("a", "shell")),
        _call("chat", _said("Another task", "I see", "No result")),
        _call("chat", _said("Task", "Calling shell", "Observation: 12"), ("b", "shell"), ("c", "sql")),
        _call("chat", _said("Task", "Calling shell", "Observation: 12", "Calling both", "34 and 56")),
    ]
    told = [(step["name"], step["result"]) for step in steps_of(calls) if step["kind"] == "tool"]
    assert told == [("shell", "Observation: 12"), ("shell", ""), ("sql", "")], "whose result it is, is not known"


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("I look.\n<code>\nprint(1)\n", "python", {"code": "print(1)"}),
        ("Thought\n<code>print(1)</code>", "python", {"code": "print(1)"}),
        ("```python\na = 1\n```\nand\n```python\nprint(a)\n```", "python", {"code": "a = 1\n\nprint(a)"}),
        ("```bash\nls", "bash", {"command": "ls"}),
        ("```SQL\nSELECT 1\n```", "sql", {"query": "SELECT 1"}),
    ],
)
def test_code_that_a_model_writes_without_tools_is_a_call(text: str, name: str, arguments: Any) -> None:
    calls = [_call("chat", _said("Task"), text=text), _call("chat", _said("Task", text, "Output: 1"))]
    assert [(one["name"], one["arguments"], one["result"]) for one in steps_of(calls)[1:2]] == [
        (name, arguments, "Output: 1")
    ]


@pytest.mark.parametrize(
    ("text", "more", "next_request"),
    [
        ("The code is\n```python\nprint(1)\n```", {"tools": [{"type": "function"}]}, ("Task", "", "Go on")),
        ("```python\nprint(1)\n```", {}, ("Another", "", "Go on")),
        ("It is\n```\n12\n```", {}, ("Task", "", "Go on")),
        ("```json\n{}\n```", {}, ("Task", "", "Go on")),
        ("Nothing to run", {}, ("Task", "", "Go on")),
    ],
)
def test_other_text_is_no_call(text: str, more: Any, next_request: tuple[str, ...]) -> None:
    first = _call("chat", _said("Task"), text=text)
    first.request.update(more)
    assert [step["kind"] for step in steps_of([first, _call("chat", _said(*next_request))])] == ["model", "model"]


VERSION = ModelVersion(name="v", provider="scripted", model="m", price=PRICE)


def _most(path: str = "/v1/messages", **body: Any) -> int:
    request = read_request(WIRES[path], path, json.dumps({**MESSAGE, **body}).encode(), {})
    return most_of(request, VERSION, DAY)[0]


def test_the_most_that_a_request_costs_is_more_than_it_can_take() -> None:
    assert 50 + len(json.dumps(MESSAGE)) <= _most() < 1000
    picture = {"type": "image", "source": {"type": "base64", "data": "AA=="}}
    assert _most(messages=[{"role": "user", "content": [picture]}]) > 10_000
    assert _most("/v1/chat/completions", n=3) - _most("/v1/chat/completions", n=1) == 100
    assert _most("/v1/responses", input="Hi") > 100_000  # it names no limit of its own
    assert _most("/v1/responses", max_output_tokens=9, previous_response_id="r") > 1_000_000
    assert _most(max_tokens=10**30) < 200_000


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/v1/messages", 400, "invalid_request_error"),
        ("/v1/messages", 500, "api_error"),
        ("/v1/responses", 400, "invalid_request_error"),
        ("/v1/responses", 500, "server_error"),
    ],
)
def test_whose_fault_an_error_is_follows_from_its_status(path: str, status: int, kind: str) -> None:
    assert json.loads(WIRES[path].error(status, "no"))["error"]["type"] == kind


def test_a_price_is_that_of_the_model_that_a_request_names() -> None:
    def usd(version: ModelVersion, model: str) -> float | None:
        request = read_request(WIRES["/v1/messages"], "", json.dumps(MESSAGE | {"model": model}).encode(), {})
        return most_of(request, priced_for(version, model), DAY)[1]

    known, plain = "claude-haiku-4-5", ModelVersion(name="v", provider="scripted", model="claude-opus-4-6")
    assert 0 < (usd(plain, known) or 0) < (usd(plain, "claude-opus-4-6") or 0)
    assert usd(plain, "nobody-s-model") is None
    assert usd(VERSION, "n") == usd(VERSION, "m")  # stated, for what no table knows
    assert usd(VERSION, known) == usd(plain, known)


def test_what_says_only_who_asks_makes_no_other_call() -> None:
    def key(**more: Any) -> str:
        return read_request(WIRES["/v1/messages"], "/v1/messages", json.dumps({**MESSAGE, **more}).encode(), {}).key

    assert key() == key(metadata={"user_id": "x"}) == key(user="x")
    assert len({key(), key(stream=True), key(max_tokens=51), key(system="x")}) == 4
    backwards = dict(reversed(MESSAGE.items()))
    assert read_request(WIRES["/v1/messages"], "/v1/messages", json.dumps(backwards).encode(), {}).key == key()


@pytest.mark.parametrize(
    ("error", "status", "kept"),
    [(UnsuitableError("no"), 400, {}), (StoreError("full"), 400, {"store_error"}), (KeyError("x"), 500, {"_fault"})],
)
def test_what_ends_an_evaluation_is_kept_for_it_and_the_agent_told(
    error: Exception, status: int, kept: set[str]
) -> None:
    proxy: Any = SimpleNamespace(_own=AsyncMock(side_effect=error), store_error=None, _fault=None)
    back = Mock()
    asyncio.run(ModelProxy._answer(proxy, Received("POST", "/v1/messages", "", {}, b""), back))
    assert back.whole.call_args.args[0].status == status
    assert back.end.called
    assert {name: told for name, told in vars(proxy).items() if told is error} == dict.fromkeys(kept, error)

"""The steps of a trajectory, as they show in the calls of the model: each request repeats what tools have given."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.asking.journal.codec import call_told
from eval_pipeline.asking.proxy.calls import MadeCall, ProxiedCall
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json, Message, Prompt, Response, ToolCall
from eval_pipeline.sandbox.returned.error_classes import told_failure

_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_Results = Mapping[str, Sequence[tuple[str, bool]]]
"""Id of a call → what it gave, with whether that was an error; some models use an id again."""
_BLOCK = re.compile(r"```(\w+)[^\n]*\n(.*?)(?:```|\Z)|<code>(.*?)(?:</code>|\Z)", re.DOTALL)
"""Code in the text of an answer. Its end is missing where it is what ends the answer."""
_LANGUAGES = {
    **dict.fromkeys(("", "py", "python"), ("python", "code")),
    **dict.fromkeys(("bash", "sh", "shell"), ("bash", "command")),
    "sql": ("sql", "query"),
}
"""How code is marked → the tool and the argument that it is told as."""
_BEFORE = {"system": "system", "developer": "system", "user": "user"}
"""Roles of the messages that stand before the first answer."""
_OWN = {"anthropic": "system", "responses": "instructions"}
"""Form → the field of a request with the system message, if it is none of the conversation."""


def steps_of(
    calls: Sequence[ProxiedCall], made: Sequence[MadeCall] = (), reserved: Sequence[str] = ()
) -> list[Mapping[str, Json]]:
    """Returns the steps of an attempt in the form of a trajectory: after each call of the model those of its tools.

    A result is what the first later request tells of it; without one, the step has no text. Only Anthropic's form says
    that a result is an error.

    Some agents tell their model in plain messages of the user what its calls gave, or have it write code as text,
    without any tools. Then what the next request of the conversation adds is the result.

    Args:
        calls: in order of time.
        made: calls of the case's own tools, likewise. One that a model asked for is told once, as it was made.
        reserved: names of tools that only the case has; a program's own of these names is called `own …`.
    """
    found, left = list[Mapping[str, Json]](), list(made)
    for place, steps in enumerate(_steps_by_call(calls)):
        asked = [_made_of(step, place, left) or _renamed(step, reserved) for step in steps[1:]]
        found += [*_taken(left, place), steps[0], *asked]
    return [*found, *(one.step for one in left)]


def prompt_of(calls: Sequence[ProxiedCall]) -> str:
    """Returns what the longest conversation began with, in the form of `Prompt.text`; empty without any."""
    longest = max(calls, key=lambda call: len(_items(call)), default=None)
    if longest is None or not isinstance(longest.request, Mapping):
        return ""
    own, asked = longest.request.get(_OWN.get(longest.wire, "")), longest.request.get("input")
    found = [Message("system", _text(own))] if own else []
    found += [Message("user", asked)] if isinstance(asked, str) else []
    for item in _items(longest):
        role = item.get("role") if isinstance(item, Mapping) else None
        if role not in _BEFORE:
            break
        found.append(Message(_BEFORE[role], _text(item.get("content"))))
    return Prompt(tuple(found)).text()


def _made_of(step: Mapping[str, Json], place: int, left: list[MadeCall]) -> Mapping[str, Json] | None:
    """Takes the call that was made for a step, if one was, and returns its own step."""
    asked = ToolCall(step["id"], step["name"], step["arguments"])
    own = next((one for one in left if one.place > place and is_same(asked, one.call)), None)
    if own is None:
        return None
    left.remove(own)
    return {**own.step, "id": asked.id}


def _taken(left: list[MadeCall], place: int) -> list[Mapping[str, Json]]:
    """Takes the calls that were made before a call of a model began; returns their steps."""
    taken = [one for one in left if one.place <= place]
    left[:] = [one for one in left if one.place > place]
    return [one.step for one in taken]


def _renamed(step: Mapping[str, Json], reserved: Sequence[str]) -> Mapping[str, Json]:
    return {**step, "name": f"own {step['name']}"} if step["name"] in reserved else step


def _steps_by_call(calls: Sequence[ProxiedCall]) -> Iterator[list[Mapping[str, Json]]]:
    """Yields for each call of a model its step, and those of the tools that it asked for."""
    told = [_results(call) for call in calls]
    for place, call in enumerate(calls):
        steps: list[Mapping[str, Json]] = []
        steps.append(model_step(call.response, call.response.usd, from_journal=call.from_journal))
        before, made = Counter[str](), call.response.calls
        if not made and (code := code_in(call)) is not None and (heard := _heard(calls, place)):
            steps.append(_tool_step(code, (heard, False)))
        for one in made:
            number = len(told[place].get(one.id, ())) + before[one.id]
            before[one.id] += 1
            later = (results[one.id][number] for results in told[place + 1 :] if len(results.get(one.id, ())) > number)
            found = next(later, None)
            if found is None:  # with several calls, nobody knows whose result it is
                found = (_heard(calls, place) if len(made) == 1 else "", False)
            steps.append(_tool_step(one, found))
        yield steps


def code_in(call: ProxiedCall) -> ToolCall | None:
    """Returns the code that a model without tools has written, as the call of a tool."""
    if isinstance(call.request, Mapping) and call.request.get("tools"):
        return None
    blocks = [(mark.lower(), marked or plain) for mark, marked, plain in _BLOCK.findall(call.response.text)]
    if not blocks or blocks[0][0] not in _LANGUAGES:
        return None
    name, argument = _LANGUAGES[blocks[0][0]]
    return ToolCall("", name, {argument: "\n".join(code for mark, code in blocks if mark == blocks[0][0]).strip()})


def _heard(calls: Sequence[ProxiedCall], place: int) -> str:
    """Returns what the user says after a call, in the next request that goes on with its conversation."""
    items = _items(calls[place])
    for later in calls[place + 1 :]:
        found = _items(later)
        if len(found) > len(items) and found[: len(items)] == items:
            new = (one for one in found[len(items) :] if isinstance(one, Mapping) and one.get("role") == "user")
            return "\n".join(_text(one.get("content")) for one in new)
    return ""


def is_same(asked: ToolCall, made: ToolCall) -> bool:
    """Whether a call that a model asked for, such as `mcp__eval__sql`, is one that was made of a case's tool."""
    before = asked.name.removesuffix(made.name)
    is_named = asked.name.endswith(made.name) and re.fullmatch("[a-z0-9]", before[-1:]) is None
    return is_named and dict(asked.arguments) == dict(made.arguments)


def model_step(response: Response, usd: float | None, *, from_journal: bool) -> dict[str, Json]:
    """Returns a call of the model as a step of a trajectory."""
    return {
        "kind": "model",
        "text": response.text,
        "calls": [call_told(one) for one in response.calls],
        "input_tokens": response.usage.input_tokens,
        "output_tokens": response.usage.output_tokens,
        "usd": usd,
        "latency_ms": response.latency_ms,
        "from_journal": from_journal,
    }


def _tool_step(call: ToolCall, result: tuple[str, bool]) -> Mapping[str, Json]:
    text, failed = result
    told = told_failure(text, failed=failed)
    return {
        "kind": "tool",
        **call_told(call),
        "result": text,
        "error_class": None if told is None else told.value,
        "rows": None,
        "bytes": len(text.encode(errors="surrogatepass")),
        "cut": False,
    }


def _results(call: ProxiedCall) -> _Results:
    found = defaultdict[str, list[tuple[str, bool]]](list)
    for name, text, failed in _told_results(call):
        found[name].append((text, failed))
    return found


def _items(call: ProxiedCall) -> list[Json]:
    request = call.request if isinstance(call.request, Mapping) else {}
    items = request.get("input" if call.wire == "responses" else "messages")
    return items if isinstance(items, list) else []


def _told_results(call: ProxiedCall) -> Iterator[tuple[str, str, bool]]:
    for item in _items(call):
        match item:
            case {"role": "tool", "tool_call_id": str() as name}:
                yield name, _text(item.get("content")), False
            case {"type": str() as kind, "call_id": str() as name} if kind in _OUTPUTS:
                yield name, _text(item.get("output")), False
            case {"content": [*blocks]}:
                for block in blocks:
                    match block:
                        case {"type": "tool_result", "tool_use_id": str() as name}:
                            yield name, _text(block.get("content")), block.get("is_error") is True


def _text(content: Json) -> str:
    """Returns the text of a result; of what is no text, such as a picture, its kind."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return json_text(content)
    return "\n".join(_part(part) for part in content)


def _part(part: Json) -> str:
    if isinstance(part, Mapping):
        return str(part["text"]) if isinstance(part.get("text"), str) else f"[{part.get('type')}]"
    return str(part)

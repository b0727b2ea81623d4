"""Reads what a span tells of a call to a model, by whichever convention it was written.

Conventions: OpenTelemetry's for generative AI (attributes with messages, and before them events), OpenLLMetry's
(`gen_ai.prompt.N.content`), and OpenInference's, of Phoenix (`llm.input_messages.N.message.content`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import MOST_TOKENS, Json
from eval_pipeline_plugins.logs.texts import is_right, opened, said_text
from eval_pipeline_plugins.traces.otlp import Event, Span

CONVERSATION = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")
MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
CACHE_READ = ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read")
CACHE_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "llm.token_count.prompt_details.cache_write",
)
USD = ("gen_ai.usage.cost", "llm.cost.total")
ROUTE = ("gen_ai.agent.name", "agent.name", "http.route", "gen_ai.operation.name")
RESPONSE_ID = "gen_ai.response.id"
TOOL = ("gen_ai.tool.name", "tool.name")
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_LABEL, EVALUATION_SCORE = "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value"
SAMPLING = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
}
_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")
_FLAT = re.compile(r"(gen_ai\.prompt|gen_ai\.completion|llm\.input_messages|llm\.output_messages)\.(\d+)\.(.+)")
_ASKED = {"gen_ai.prompt", "llm.input_messages"}
_ANNOTATION = re.compile(r"(?:annotations|evaluations)\.(?:(\d+)\.)?(?:annotation|evaluation|eval)\.(name|label|score)")
_NO_CALLS = {"embeddings", "execute_tool", "create_agent", "retrieval", "EMBEDDING", "TOOL", "RETRIEVER", "RERANKER"}
_EVENTS = {"system", "user", "assistant", "tool"}
_TEXTS = {"text", "input_text", "output_text", None}
_CALLS = {"tool_call", "tool_use", "function_call"}
_RESULTS = {"tool_call_response", "tool_result", "function_call_output"}
_THOUGHTS = {"reasoning", "thinking", "redacted_thinking"}
_MOST_FLAT = 10_000
"""Messages of a span that are read from numbered attributes."""


_Told = tuple[list[Json], Json]
"""Messages that a model was asked, and the one that it answered, as they are written."""


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A call of a tool in the answer of a model; its `id` may be unknown."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a span tells of a call to a model, or of the work of an agent.

    Attributes:
        asked: the messages that it was asked, as objects with `role` and `content`; empty without content.
        said: the answer; None without content.
        tools: names of the tools that the answer calls.
        scores: verdicts on the answer, by name.
        messages: what it was asked, as it is written.
        answer: the message with the answer, as it is written.
    """

    asked: tuple[Mapping[str, str], ...]
    said: str | None
    tools: tuple[str, ...]
    scores: Mapping[str, Json]
    messages: tuple[Json, ...] = ()
    answer: Json = None


@dataclass(frozen=True, slots=True)
class CallSpan:
    """A call to a model with its span."""

    span: Span
    call: ModelCall


def call_of(span: Span) -> ModelCall | None:
    """Returns what a span tells of a call to a model; None if it is about something else."""
    told = span.attributes
    kind = told.get("gen_ai.operation.name") or told.get("openinference.span.kind")
    if kind in _NO_CALLS:
        return None
    messages, answer = _by_attributes(told)
    if not messages and answer is None:
        messages, answer = _by_numbers(told)
    if not messages and answer is None:
        messages, answer = _by_events(span.events)
    if not messages and answer is None and kind in {"CHAIN", "AGENT", "LLM"}:
        messages, answer = _by_values(told)
    if kind is None and first(told, MODEL) is None and not messages and answer is None:
        return None
    asked, said = tuple(map(_message, messages)), None if answer is None else _message(answer)["content"]
    tools = tuple(one.name for one in calls_in(answer))
    return ModelCall(asked, said, tools, scores_of(span), tuple(messages), answer)


def first(told: Mapping[str, Json], names: Iterable[str]) -> Json:
    """Returns the value of the first attribute that is there."""
    return next((told[name] for name in names if told.get(name) not in (None, "")), None)


def tokens(told: Mapping[str, Json], names: Iterable[str]) -> int | None:
    """Returns a number of tokens; None if none is told, or it is no such number."""
    found = first(told, names)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= MOST_TOKENS:
        return None
    return int(found)


def scores_of(span: Span) -> dict[str, Json]:
    """Returns verdicts on a span: events `gen_ai.evaluation.result`, and annotations of Phoenix."""
    found: dict[str, Json] = {}
    for event in span.events:
        if event.name == EVALUATION:
            label, score = event.attributes.get(EVALUATION_LABEL), event.attributes.get(EVALUATION_SCORE)
            name = str(event.attributes.get(EVALUATION_NAME) or "evaluation")
            found[name] = label if is_right(label) is not None or score is None else score
    parts: dict[str, dict[str, Json]] = {}
    for name, value in span.attributes.items():
        if matched := _ANNOTATION.fullmatch(name):
            parts.setdefault(matched[1] or "", {})[matched[2]] = value
    for one in parts.values():
        label, score = one.get("label"), one.get("score")
        found[str(one.get("name") or "annotation")] = label if is_right(label) is not None or score is None else score
    return {name: value for name, value in found.items() if value is not None}


def user_texts(asked: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns what the user said, in order."""
    return [one["content"] for one in asked if one["role"] in {"user", "human"} and one["content"]]


def _by_attributes(told: Mapping[str, Json]) -> _Told:
    asked, answers, system = (_opened(told.get(name)) for name in _MESSAGES)
    messages = [{"role": "system", "parts": system}, *asked] if system else asked
    return messages, answers[0] if answers else None


def _opened(value: Json) -> list[Json]:
    """Returns a list that may be written as JSON."""
    found = opened(value)
    if isinstance(found, str):
        return [{"role": "user", "content": found}] if found else []
    return found if isinstance(found, list) else [found] if isinstance(found, Mapping) else []


def _message(one: Json) -> Mapping[str, str]:
    """Returns role and text of a message in any form; calls of tools and their results are texts, too."""
    if not isinstance(one, Mapping):
        return {"role": "user", "content": said_text(one)}
    parts = one.get("parts")
    role, content = str(one.get("role") or ""), opened(one.get("content"))
    if not isinstance(parts, list) and isinstance(content, list) and any(map(_is_part, content)):
        parts = content
    if isinstance(parts, list):
        results = [isinstance(part, Mapping) and part.get("type") in _RESULTS for part in parts]
        return {"role": "tool" if results and all(results) else role, "content": _parts(parts)}
    content, calls = said_text(content), one.get("tool_calls")
    if isinstance(calls, list) and calls:
        content = "\n".join(filter(None, [content, *map(_call_text, calls)]))
    return {"role": role, "content": content}


def _is_part(part: Json) -> bool:
    return isinstance(part, Mapping) and "type" in part


def _parts(parts: Sequence[Json]) -> str:
    texts = []
    for part in parts:
        if not isinstance(part, Mapping):
            texts.append(said_text(part))
        elif part.get("type") in _TEXTS:
            texts.append(said_text(part.get("content", part.get("text"))))
        elif part.get("type") in _CALLS:
            texts.append(_call_text(part))
        elif part.get("type") in _RESULTS:
            texts.append(said_text(part.get("response", part.get("result", part.get("content")))))
        elif part.get("type") not in _THOUGHTS:
            texts.append(f"[{part.get('type')}]")
    return "\n".join(filter(None, texts))


def _call_text(call: Json) -> str:
    """Returns a call of a tool as text: `[get_weather {"city":"Oslo"}]`."""
    told = call.get("function") if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping) else call
    if not isinstance(told, Mapping):
        return ""
    arguments = opened(told.get("arguments", told.get("input")))
    return f"[{told.get('name') or 'tool'} {arguments if isinstance(arguments, str) else canonical_json(arguments)}]"


def calls_in(answer: Json) -> list[CalledTool]:
    """Returns the calls of tools in a message that a model wrote."""
    if not isinstance(answer, Mapping):
        return []
    parts = answer.get("parts", opened(answer.get("content")))
    listed = (
        [one for one in parts if isinstance(one, Mapping) and one.get("type") in _CALLS]
        if isinstance(parts, list)
        else []
    )
    also = answer.get("tool_calls")
    found = []
    for one in listed or (also if isinstance(also, list) else []):
        told = (
            {**one, **one["function"]} if isinstance(one, Mapping) and isinstance(one.get("function"), Mapping) else one
        )
        if isinstance(told, Mapping) and told.get("name"):
            place = str(told.get("id") or told.get("call_id") or "")
            found.append(CalledTool(place, str(told["name"]), opened(told.get("arguments", told.get("input")))))
    return found


def words_of(answer: Json) -> str:
    """Returns what a model said in a message, without its calls of tools."""
    if not isinstance(answer, Mapping):
        return said_text(answer)
    parts = answer.get("parts", opened(answer.get("content")))
    if isinstance(parts, list):
        return _parts([one for one in parts if not isinstance(one, Mapping) or one.get("type") not in _CALLS])
    return said_text(answer.get("content"))


def results_in(message: Json) -> list[tuple[str, str]]:
    """Returns what calls of tools gave, by a message to the model: the id of each call with its result."""
    if not isinstance(message, Mapping):
        return []
    parts = message.get("parts", opened(message.get("content")))
    if message.get("tool_call_id"):
        return [(str(message["tool_call_id"]), _message(message)["content"])]
    return [
        (str(one.get("id") or one.get("tool_use_id") or one.get("call_id") or ""), _parts([one]))
        for one in (parts if isinstance(parts, list) else [])
        if isinstance(one, Mapping) and one.get("type") in _RESULTS
    ]


def _by_numbers(told: Mapping[str, Json]) -> _Told:
    sides: dict[str, dict[int, dict[str, Json]]] = {}
    for name, value in told.items():
        if (matched := _FLAT.fullmatch(name)) and len(matched[2]) < 6 and int(matched[2]) < _MOST_FLAT:
            field = matched[3].removeprefix("message.")
            sides.setdefault(matched[1], {}).setdefault(int(matched[2]), {})[field] = value
    asked: list[Json] = []
    answers: list[Json] = []
    for side, messages in sides.items():
        whole: list[Json] = [_nested(messages[number]) for number in sorted(messages)]
        if side in _ASKED:
            asked = whole
        else:
            answers = whole
    return asked, answers[0] if answers else None


def _nested(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Returns a message from numbered fields such as `tool_calls.0.tool_call.function.name`."""
    calls: dict[str, dict[str, Json]] = {}
    texts: dict[str, Json] = {}
    for name, value in fields.items():
        parts = name.split(".")
        if parts[0] == "tool_calls" and len(parts) > 2:
            calls.setdefault(parts[1], {})[parts[-1]] = value
        elif parts[0] == "contents" and parts[-1] == "text":
            texts[name] = value
    content = fields.get("content", "\n".join(map(str, texts.values())))
    found = {"role": fields.get("role"), "content": content, "tool_calls": list(calls.values())}
    return found | ({"tool_call_id": fields["tool_call_id"]} if fields.get("tool_call_id") else {})


def _by_events(events: Sequence[Event]) -> _Told:
    asked: list[Json] = []
    said: Json = None
    for event in events:
        told: dict[str, Any] = {**event.attributes, **(event.body if isinstance(event.body, Mapping) else {})}
        role = event.name.removeprefix("gen_ai.").removesuffix(".message")
        if event.name == "gen_ai.client.inference.operation.details":
            return _by_attributes(told)
        if role in _EVENTS and event.name.endswith(".message"):
            asked.append({"role": role, **{key: opened(value) for key, value in told.items()}})
        elif event.name == "gen_ai.choice" and said is None:
            said = opened(told.get("message", told))
        elif event.name == "gen_ai.content.prompt":
            asked += _opened(told.get("gen_ai.prompt"))
        elif event.name == "gen_ai.content.completion" and (listed := _opened(told.get("gen_ai.completion"))):
            said = listed[0]
    return asked, said


def _by_values(told: Mapping[str, Json]) -> _Told:
    """Returns question and answer of a step, as OpenInference has them beside the messages."""
    question, answer = said_text(told.get("input.value")), said_text(told.get("output.value"))
    asked: list[Json] = [{"role": "user", "content": question}] if question else []
    return asked, {"role": "assistant", "content": answer} if answer else None

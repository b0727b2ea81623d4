"""What the Anthropic API would say of a request: is it well formed, its tokens and cached prefix, its answer."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = Mapping[str, Any]

_FIELDS = set(
    "cache_control container inference_geo max_tokens messages metadata model output_config service_tier speed "
    "stop_sequences stream system thinking tool_choice tools".split()
)
_UNSUPPORTED = {
    "number": {"minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"},
    "string": {"minLength", "maxLength"},
    "array": {"maxItems", "uniqueItems"},
}
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CHARS_A_TOKEN = 4
_TOKENS_A_MESSAGE = 3


class InvalidRequestError(Exception):
    """A request that the API answers with 400; the message is its own."""


class UnknownModelError(Exception):
    """A request that the API answers with 404."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says, where it is more than a text; without `output_tokens` the text's are counted."""

    text: str
    stop_reason: str = "end_turn"
    output_tokens: int | None = None
    stop_details: Mapping[str, Any] | None = None


Answers = Callable[[Body], str | Answer] | Mapping[str, str | Answer]
"""A function of the request's body, or answers by the last text of the user."""


def check_message(body: Any, models: frozenset[str] | None) -> None:
    """Raises InvalidRequestError or UnknownModelError where the API would refuse the body; None knows every model."""
    _expect(isinstance(body, dict), "The request body is not valid JSON")
    for name in ("model", "max_tokens", "messages"):
        _expect(name in body, f"{name}: Field required")
    for name in body:
        _expect(name in _FIELDS, f"{name}: Extra inputs are not permitted")
    limit = body["max_tokens"]
    _expect(isinstance(limit, int) and limit >= 1, "max_tokens: Input should be greater than or equal to 1")
    messages = body["messages"]
    _expect(isinstance(messages, list) and bool(messages), "messages: at least one message is required")
    for place, message in enumerate(messages):
        _expect(message.get("role") in {"user", "assistant"}, f"messages.{place}.role: Input should be 'user'")
        _check_content(message.get("content"), f"messages.{place}.content")
    _expect(messages[0]["role"] == "user", "messages: first message must use the user role")
    if "system" in body:
        _check_content(body["system"], "system")
    marks = sum("cache_control" in block for block in _all_blocks(body))
    _expect(marks <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    answer_format = (body.get("output_config") or {}).get("format")
    if answer_format is not None:
        _expect(answer_format.get("type") == "json_schema", "output_config.format.type: Input should be 'json_schema'")
        _check_schema(answer_format.get("schema"))
    if models is not None and body["model"] not in models:
        raise UnknownModelError(f"model: {body['model']}")


def check_batch(body: Any, models: frozenset[str] | None) -> None:
    """Raises InvalidRequestError where the API would refuse to take the batch."""
    requests = body.get("requests") if isinstance(body, dict) else None
    _expect(isinstance(requests, list) and 1 <= len(requests) <= 100_000, "requests: between 1 and 100000 are allowed")
    assert isinstance(requests, list)
    ids = [entry.get("custom_id") for entry in requests]
    _expect(len(set(ids)) == len(ids), "requests: custom_id must be unique")
    for place, entry in enumerate(requests):
        _expect(
            isinstance(ids[place], str) and _CUSTOM_ID.fullmatch(ids[place]) is not None,
            f"requests.{place}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'",
        )
        _expect(not entry["params"].get("stream"), f"requests.{place}.params.stream: streaming is not supported")
        check_message(entry["params"], models)


def body_hash(body: Body) -> str:
    """Of what is asked: streamed or not, cached or not, singly or in a batch, a question has one hash."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(inner) for name, inner in value.items() if name not in {"stream", "cache_control"}}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return hashlib.sha256(json.dumps(plain(body), sort_keys=True).encode()).hexdigest()[:16]


def question(body: Body) -> str:
    last = body["messages"][-1]["content"]
    return last if isinstance(last, str) else str(last[-1]["text"])


def find_answer(answers: Answers, body: Body) -> Answer:
    """What the model says. Raises LookupError where the table has nothing for the question."""
    said = answers(body) if callable(answers) else answers[question(body)]
    if isinstance(said, str):
        said = Answer(said)
    tokens = output_tokens(said)
    if tokens > body["max_tokens"]:
        kept = said.text[: body["max_tokens"] * _CHARS_A_TOKEN]
        said = Answer(kept, "max_tokens", body["max_tokens"])
    return said


def input_tokens(body: Body) -> int:
    """All tokens of a request, the schema's among them: a quarter of the characters, so that tests can tell."""
    schema = json.dumps(body.get("output_config") or "")
    blocks = sum(_tokens(block["text"]) for block in _all_blocks(body))
    return blocks + _tokens(schema) + _TOKENS_A_MESSAGE * len(body["messages"])


def output_tokens(answer: Answer) -> int:
    """Tokens of an answer; even an empty one has one."""
    return answer.output_tokens if answer.output_tokens is not None else max(1, _tokens(answer.text))


@dataclass(slots=True)
class PrefixCache:
    """Prefixes that can be read: those of requests whose answer has begun, of at least so many tokens."""

    minimum: int = 1024
    known: set[str] = field(default_factory=set)

    def usage(self, body: Body) -> dict[str, int]:
        total, cached = input_tokens(body), _prefix_tokens(body)
        if cached < self.minimum:
            cached = 0
        read = bool(cached) and self._key(body) in self.known
        return {
            "input_tokens": total - cached,
            "cache_creation_input_tokens": 0 if read else cached,
            "cache_read_input_tokens": cached if read else 0,
        }

    def begun(self, body: Body) -> None:
        """From now on the prefix of the request can be read."""
        if _prefix_tokens(body) >= self.minimum:
            self.known.add(self._key(body))

    def _key(self, body: Body) -> str:
        texts = [block["text"] for block in _prefix(body)]
        return hashlib.sha256(json.dumps([body["model"], texts]).encode()).hexdigest()


def message_json(message_id: str, body: Body, answer: Answer, usage: Mapping[str, int], tier: str) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": answer.text, "citations": None}] if answer.text else [],
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "stop_details": answer.stop_details,
        "usage": {**usage, "output_tokens": output_tokens(answer), "service_tier": tier},
    }


def stream_events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same message as events; its text comes in pieces."""
    usage = message["usage"]
    opening = {**message, "content": [], "stop_reason": None, "stop_details": None}
    yield {"type": "message_start", "message": {**opening, "usage": {**usage, "output_tokens": 1}}}
    for place, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": place, "content_block": {"type": "text", "text": ""}}
        yield {"type": "ping"}
        text = block["text"]
        size = max(1, len(text) // 3 + 1)
        for start in range(0, len(text), size):
            delta = {"type": "text_delta", "text": text[start : start + size]}
            yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    delta = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise InvalidRequestError(message)


def _check_content(content: Any, place: str) -> None:
    if isinstance(content, str):
        _expect(bool(content.strip()), f"{place}: text content blocks must be non-empty")
        return
    _expect(isinstance(content, list) and bool(content), f"{place}: Field required")
    for number, block in enumerate(content):
        _expect(block.get("type") == "text", f"{place}.{number}.type: only text is known here")
        _expect(bool(block.get("text", "").strip()), f"{place}.{number}: text content blocks must be non-empty")


def _check_schema(schema: Any) -> None:
    _expect(isinstance(schema, dict), "output_config.format.schema: Input should be a valid dictionary")
    kind = schema.get("type")
    if kind == "object":
        closed = schema.get("additionalProperties") is False
        _expect(closed, "For 'object' type, 'additionalProperties' must be explicitly set to false")
    wrong = sorted(_UNSUPPORTED.get("number" if kind == "integer" else kind, set()) & set(schema))
    _expect(not wrong, f"For '{kind}' type, properties {', '.join(wrong)} are not supported")
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", []), *schema.get("$defs", {}).values()]
    for part in [*inner, *([schema["items"]] if "items" in schema else [])]:
        _check_schema(part)


def _all_blocks(body: Body) -> Iterator[dict[str, Any]]:
    """System first, then messages: the order of the cache."""
    for content in [body.get("system") or [], *(message["content"] for message in body["messages"])]:
        yield from [{"text": content}] if isinstance(content, str) else content


def _prefix(body: Body) -> list[dict[str, Any]]:
    blocks = list(_all_blocks(body))
    marked = [place for place, block in enumerate(blocks) if "cache_control" in block]
    return blocks[: marked[-1] + 1] if marked else []


def _prefix_tokens(body: Body) -> int:
    return sum(_tokens(block["text"]) for block in _prefix(body))


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARS_A_TOKEN)

"""Requests of agents: what is in them, what they can cost at most, and what is not passed on."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache

from eval_pipeline.asking.proxy.wires import Wire
from eval_pipeline.core.ids import canonical_json, text_hash
from eval_pipeline.core.model import MOST_TOKENS, Json, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.values import value
from eval_pipeline.providers.openai.wire import text_in, value_in
from eval_pipeline.providers.prices import cost_usd, has_price

_IMMATERIAL = ("metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")
"""Fields that say who asks, which may change with each run, and decide nothing of the answer."""
_SERVED_TOOLS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "code_interpreter",
    "file_search",
    "image_generation",
    "mcp",
)
_ELSEWHERE = ("mcp_servers", "web_search_options", "background", "prompt", "conversation", "container")
_TOKENS_A_CALL, _TOKENS_A_BLOCK = 512, 16
_PICTURES, _TOKENS_A_PICTURE = ("image", "input_image", "image_url"), 16_000
_FILES = ("document", "input_file", "file", "input_audio")
_MOST_PARTS = 1_000_000
_WINDOW, _LONGEST_ANSWER = 1_000_000, 128_000
"""Upper bounds where nothing else is known: the tokens that a model takes, and that it says at once."""


class UnsuitableError(Exception):
    """A request that is not passed on, with a sentence for the agent."""


@value
class AgentRequest:
    """A request as the proxy understands it.

    Attributes:
        path: with the query.
        body: decoded.
        sent: the body as it came.
        betas: headers that decide the answer.
        key: hash of all that decides the answer.
    """

    wire: Wire
    path: str
    body: Mapping[str, Json]
    sent: bytes
    betas: Mapping[str, str]
    key: str

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.body["model"])

    @property
    def streams(self) -> bool:
        """Whether the answer is asked for as a stream."""
        return self.body.get("stream") is True


def read_request(wire: Wire, path: str, sent: bytes, betas: Mapping[str, str]) -> AgentRequest:
    """Reads a request.

    Raises:
        UnsuitableError: it is no request of this form, or asks for what a world without network does not have.
    """
    if sent.count(b"{") + sent.count(b"[") > _MOST_PARTS:  # each takes some 200 bytes of memory
        raise UnsuitableError(f"the request has more than {_MOST_PARTS:,} parts")
    try:
        body = json.loads(sent)
        material = {name: one for name, one in body.items() if name not in _IMMATERIAL}
        key = text_hash(canonical_json([path, dict(betas), material]))
    except (ValueError, RecursionError, AttributeError):
        raise UnsuitableError("the request's body is no JSON object") from None
    if not text_in(body, "model"):
        raise UnsuitableError("the request names no model")
    if (unsuitable := _unsuitable(wire, body)) is not None:
        raise UnsuitableError(f"{unsuitable} is not passed on: agents have no network here")
    return AgentRequest(wire, path, body, sent, betas, key)


def _unsuitable(wire: Wire, body: Mapping[str, Json]) -> str | None:
    """Returns what of a request would reach places elsewhere, or what is kept there."""
    for name in _ELSEWHERE:
        if body.get(name):
            return f"`{name}`"
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if text_in(tool, "type").startswith(_SERVED_TOOLS):
            return f"the tool `{text_in(tool, 'type')[:60]}`, which the API runs itself,"
    for block in _blocks(body.get(wire.items)):
        source, image = value_in(block, "source"), value_in(block, "image_url")
        named = (value_in(block, "file_url"), value_in(block, "file_id"), value_in(value_in(block, "file"), "file_id"))
        address = image if isinstance(image, str) else text_in(image, "url")
        if text_in(source, "type") in ("url", "file") or any(named) or (address and not address.startswith("data:")):
            return "a picture or file that lies elsewhere"
    return None


def _blocks(content: Json) -> Iterator[Mapping[str, Json]]:
    """Yields messages and the parts of their content; arguments of calls are none."""
    waiting = [content]
    while waiting:
        for block in found if isinstance(found := waiting.pop(), list) else ():
            if isinstance(block, Mapping):
                yield block
                waiting += [block.get("content"), block.get("output")]


def most_of(request: AgentRequest, version: ModelVersion, day: str) -> tuple[int, float | None]:
    """Returns the most tokens and dollars that a request can cost; the dollars are None if its price is unknown.

    Each byte is a token at most; pictures and files count as much as a model takes for them at most.

    Args:
        request: the request.
        version: as `priced_for` gives it.
        day: ISO date, whose prices apply.
    """
    if request.wire.counts:
        return 0, 0.0
    window, body = _window(request.model), request.body
    tokens_in = len(request.sent) + _TOKENS_A_CALL
    for block in _blocks(body.get(request.wire.items)):
        kind = text_in(block, "type")
        tokens_in += _TOKENS_A_PICTURE if kind in _PICTURES else window if kind in _FILES else _TOKENS_A_BLOCK
    if body.get("previous_response_id"):
        tokens_in += window
    answers = body.get("n") if request.wire.name == "chat" else 1
    told = [body[name] for name in request.wire.most if _is_count(body.get(name))]
    longest = min([*told[:1], _LONGEST_ANSWER, window]) * (answers if _is_count(answers) else 1)
    usages = Usage(tokens_in, longest), Usage(tokens_in, longest, 0, tokens_in)
    costs = [cost_usd(version, usage, day) for usage in usages]
    known = [usd for usd in costs if usd is not None]
    return tokens_in + longest, max(known) if known else None


def priced_for(version: ModelVersion, model: str) -> ModelVersion:
    """Returns a model version whose price is that of the model that a request names.

    What the version states counts for its own model, and for those that the price table does not know.
    """
    if model == version.model:
        return version
    named = version.model_copy(update={"model": model, "price": None, "priced_as": None})
    return version if version.price is not None and not has_price(named) else named


def _is_count(told: Json) -> bool:
    return isinstance(told, int) and not isinstance(told, bool) and 0 < told <= MOST_TOKENS


@lru_cache(maxsize=256)
def _window(model: str) -> int:
    """Returns the tokens that a model takes at once, by the price table."""
    import genai_prices

    try:
        found = genai_prices.calc_price(genai_prices.Usage(input_tokens=0, output_tokens=0), model)
    except LookupError:
        return _WINDOW
    return found.model.context_window or _WINDOW

"""Traffic of an application as OTLP, whose right answers are known: `app.gold` of each span of a model."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

ROUTES = {"/chat": (0.55, 0.9), "/search": (0.25, 0.75), "/agent": (0.15, 0.5), "/beta": (0.05, 0.3)}
"""Route → share of the traffic, accuracy."""
DAYS, FAILING = 7, 0.04
_FIRST = 1_790_000_000_000_000_000
_DAY = 86_400 * 10**9


def write(file: Path, spans: int, seed: int) -> None:
    """Writes traffic of so many spans, two a turn, in the order of their end: those of a conversation lie apart."""
    lines = sorted(_spans(spans, Random(seed)), key=lambda span: int(span["endTimeUnixNano"]))
    with file.open("w") as out:
        for at in range(0, len(lines), 50):
            out.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": lines[at : at + 50]}]}]}) + "\n")


def _spans(count: int, random: Random) -> Iterator[dict[str, Any]]:
    made = conversation = 0
    while made < count:
        conversation += 1
        (route,) = random.choices(list(ROUTES), [share for share, _ in ROUTES.values()])
        day = random.randrange(DAYS)
        turns = min(random.choice((1, 1, 1, 2, 3, 5, 9)), (count - made) // 2)
        easy = random.betavariate(4 * ROUTES[route][1], 4 * (1 - ROUTES[route][1])) - 0.03 * day
        start = _FIRST - _FIRST % _DAY + day * _DAY + random.randrange(_DAY // 2)
        asked: list[dict[str, Any]] = []
        for number in range(turns):
            start += random.randrange(10**9, 600 * 10**9)
            asked.append(_message("user", f"What is the number of item {random.randrange(10**6)} of {conversation}?"))
            gold = str(random.randrange(1000, 9999))
            said = gold if random.random() < easy - 0.02 * number else "0"
            failed = random.random() < FAILING
            yield from _turn(random, f"talk-{conversation}", route, start, list(asked), None if failed else said, gold)
            asked.append(_message("assistant", said))
            made += 2


def _turn(
    random: Random, name: str, route: str, start: int, asked: list[Any], said: str | None, gold: str
) -> Iterator[dict[str, Any]]:
    trace, root, call = (f"{random.getrandbits(bits):0{bits // 4}x}" for bits in (128, 64, 64))
    attributes = {"session.id": name, "http.route": route}
    yield _span(trace, root, "", start, 900, attributes, said)
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "m",
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.input.messages": json.dumps(asked),
        "app.gold": gold,
    }
    if said is not None:
        told["gen_ai.output.messages"] = json.dumps([_message("assistant", said)])
    yield _span(trace, call, root, start + 10**7, 800, told, said)


def _span(
    trace: str, span: str, parent: str, start: int, milliseconds: int, told: dict[str, Any], said: str | None
) -> dict[str, Any]:
    kinds = {str: "stringValue", int: "intValue"}
    return {
        "traceId": trace,
        "spanId": span,
        "parentSpanId": parent,
        "name": "chat" if parent else "POST",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + milliseconds * 10**6),
        "attributes": [{"key": key, "value": {kinds[type(value)]: value}} for key, value in told.items()],
        "status": {"code": "STATUS_CODE_ERROR", "message": "made to fail"} if said is None else {},
    }


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}

"""Makes responses that are wrong in a given way from the right answer (for the simulated provider).

Every response is read and scored before it is used, so that the metrics will find the drawn failure mode.
"""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.text import FAILURE_MODES
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, TextTurn
from eval_pipeline_plugins.tracks.text.comparing.scoring import mode_of
from eval_pipeline_plugins.tracks.text.prompt import answer_response

_WORDS = ("however", "unclear", "another", "different", "unrelated", "something", "nothing", "elsewhere")


def damaged_response(case: TextCase, turn: TextTurn, mode: str, rng: Random) -> str | None:
    """Returns a response with the given `failure_mode`, or None if this answer cannot fail in that way.

    Raises:
        ValueError: for a mode that is not in `FAILURE_MODES`.
    """
    if mode not in _CANDIDATES:
        raise ValueError(f"unknown failure mode '{mode}'; known: {', '.join(FAILURE_MODES)}")
    if mode == "no_answer":
        return ""
    if not turn.gold.accepted:
        return None
    return next((text for text in _CANDIDATES[mode](turn, rng) if mode_of(text, case, turn) == mode), None)


def _right(turn: TextTurn) -> Json:
    return turn.gold.accepted[0]


def _said(turn: TextTurn, answer: Json) -> str:
    return answer_response(answer, turn.gold.form)


def _none(turn: TextTurn, rng: Random) -> Iterator[str]:
    yield ""


def _unfinished(turn: TextTurn, rng: Random) -> Iterator[str]:
    if turn.gold.form.form == "json":
        text = _said(turn, _right(turn))
        yield text[: max(len(text) * rng.randint(40, 90) // 100, 1)]
    yield "Let me think about what is asked here.\n\nAnswer:"


def _unreadable(turn: TextTurn, rng: Random) -> Iterator[str]:
    labels = list(turn.gold.form.labels)
    if labels:
        drawn = rng.sample(labels, min(len(labels), 3))
        yield f"Answer: {' or '.join(drawn)}"
    yield '["nothing of that form"]' if turn.gold.form.form == "json" else "Answer: I cannot say."
    yield "Answer: 3 or 4"
    yield "{}"
    yield "[]"


def _label(turn: TextTurn, rng: Random) -> Iterator[str]:
    others = [label for label in turn.gold.form.labels if label not in turn.gold.accepted]
    yield from (_said(turn, label) for label in rng.sample(others, len(others)))


def _numbers(change: Callable[[float, Random], Iterator[float]]) -> Callable[[TextTurn, Random], Iterator[str]]:
    def candidates(turn: TextTurn, rng: Random) -> Iterator[str]:
        if turn.gold.form.form == "number":
            yield from (_said(turn, value) for value in change(float(_right(turn)), rng))

    return candidates


def _other_numbers(right: float, rng: Random) -> Iterator[float]:
    yield right + rng.randint(1, 9)
    yield right * 1.37 + 1
    yield right - rng.randint(11, 99)


def _objects(change: Callable[[Any, Random], Iterator[Json]]) -> Callable[[TextTurn, Random], Iterator[str]]:
    def candidates(turn: TextTurn, rng: Random) -> Iterator[str]:
        if turn.gold.form.form == "json":
            yield from (_said(turn, answer) for answer in change(_right(turn), rng))

    return candidates


def _without(right: Any, rng: Random) -> Iterator[Json]:
    if isinstance(right, dict):
        for name in rng.sample(list(right), len(right)):
            yield {key: value for key, value in right.items() if key != name}
            if isinstance(right[name], list) and right[name]:
                yield {**right, name: right[name][:-1]}
            yield {**right, name: None}
    elif right:
        yield right[:-1]


def _with_more(right: Any, rng: Random) -> Iterator[Json]:
    if isinstance(right, dict):
        yield {**right, "remark": "none"}
        for name in rng.sample(list(right), len(right)):
            if isinstance(right[name], list) and right[name]:
                yield {**right, name: [*right[name], right[name][-1]]}
    else:
        yield [*right, "another"]


def _changed(right: Any, rng: Random) -> Iterator[Json]:
    """Returns the JSON with one value changed."""
    keys = list(right) if isinstance(right, dict) else list(range(len(right)))
    for key in rng.sample(keys, len(keys)):
        for other in _others(right[key], rng):
            copied = json.loads(json.dumps(right))
            copied[key] = other
            yield copied


def _others(value: Any, rng: Random) -> Iterator[Json]:
    if isinstance(value, dict | list) and value:
        yield from _changed(value, rng)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + rng.randint(1, 9)
    elif isinstance(value, float):
        yield round(value * 1.1 + 1, 2)
    elif isinstance(value, str):
        yield _other_digit(value, rng)
        yield f"{value} {rng.choice(_WORDS)}"


def _other_digit(text: str, rng: Random) -> str:
    """Returns a text with another last digit, so that dates and numbers keep their form."""
    at = max((index for index, character in enumerate(text) if character.isdigit()), default=-1)
    return text if at < 0 else f"{text[:at]}{(int(text[at]) + rng.randint(1, 8)) % 10}{text[at + 1 :]}"


def _texts(turn: TextTurn, rng: Random) -> Iterator[str]:
    if turn.gold.form.form == "text":
        yield _said(turn, " ".join(rng.sample(_WORDS, 3)))


def _parts(turn: TextTurn, rng: Random) -> Iterator[str]:
    right = _right(turn)
    if turn.gold.form.form != "text":
        return
    if isinstance(right, list):
        yield _said(turn, [*right[:-1], rng.choice(_WORDS)])
        yield _said(turn, [*right, rng.choice(_WORDS)])
    words = str(right).split()
    for share in (0.3, 0.5, 0.15):
        yield _said(turn, " ".join([*words[: max(int(len(words) * share), 1)], *rng.sample(_WORDS, 6)]))


_CANDIDATES: dict[str, Callable[[TextTurn, Random], Iterator[str]]] = {
    "no_answer": _none,
    "unfinished_answer": _unfinished,
    "unreadable_answer": _unreadable,
    "wrong_label": _label,
    "sign_error": _numbers(lambda right, rng: iter((-right,))),
    "scale_error": _numbers(lambda right, rng: iter(rng.sample([right * 100, right / 100, right * 1000], 3))),
    "wrong_number": _numbers(_other_numbers),
    "missing_fields": _objects(_without),
    "extra_fields": _objects(_with_more),
    "wrong_fields": _objects(_changed),
    "partly_right": _parts,
    "wrong_text": _texts,
}

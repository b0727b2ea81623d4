"""Reads answer, tokens and cost from the response of an application under test.

Pure functions of the response body; nothing here connects.
"""

import json
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import from_json

from eval_pipeline.core.model import MOST_TOKENS, CallErrorKind, Json, Usage
from eval_pipeline.providers.base import CallError
from eval_pipeline.providers.http.errors import body_shown, short


def _compiles(path: str) -> str:
    try:
        import jsonpath
    except ImportError:  # settings are read without the extra; whoever asks is told of it
        return path
    try:
        jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"expected a JSONPath such as $.answer ({error.message})") from error
    return path


JsonPath = Annotated[str, AfterValidator(_compiles)]
"""A JSONPath (RFC 9535)."""


@dataclass(frozen=True, slots=True)
class MappedResponse:
    """What was found in a response; None and unknown usage for what it does not contain."""

    text: str
    usage: Usage
    usd: float | None
    served_model: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerMapping:
    """JSONPaths to the parts of an application's response; each finds one value.

    Attributes:
        answer_path: path of the answer; None: the whole body is the answer.
        answer_field: if set, the answer is wrapped in an object with this field.
        input_tokens_path, output_tokens_path, cost_path, model_path: None if the application never reports the value. A
            missing or null value means that it was not reported this time.
    """

    answer_path: str | None = None
    answer_field: str | None = None
    input_tokens_path: str | None = None
    output_tokens_path: str | None = None
    cost_path: str | None = None
    model_path: str | None = None

    def read(self, body: str) -> MappedResponse:
        """Reads the body of a response. Raises CallError if it does not have the form that the paths expect."""
        paths = (
            self.answer_path,
            self.input_tokens_path,
            self.output_tokens_path,
            self.cost_path,
            self.model_path,
        )
        document = None if paths == (None,) * len(paths) else _decode(body)
        answer = body if self.answer_path is None else _one(document, self.answer_path)
        wrapped = answer if self.answer_field is None else {self.answer_field: answer}
        return MappedResponse(
            # A string is the answer itself; anything else is written as JSON.
            wrapped if isinstance(wrapped, str) else json.dumps(wrapped, ensure_ascii=False),
            Usage(_tokens(document, self.input_tokens_path), _tokens(document, self.output_tokens_path)),
            _dollars(document, self.cost_path),
            _name(document, self.model_path),
        )


def _decode(body: str) -> Json:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        if _broken_off(body, error):
            raise CallError(
                CallErrorKind.BAD_RESPONSE, f"the answer's JSON breaks off: {_shown(body[-60:])}", retryable=True
            ) from error
        raise _wrong_form(f"the answer is no JSON: {body_shown(body)}") from error


def _broken_off(body: str, error: Exception) -> bool:
    """Whether the text is an incomplete JSON document."""
    if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":  # the partial parser would accept this
        return False
    try:
        from_json(body, allow_partial="trailing-strings")
    except ValueError:
        return False
    return bool(body.strip())


def _one(document: Json, path: str) -> Json:
    found = _find(document, path)
    if not found:
        raise _wrong_form(f"the answer has nothing at {path}: {_shown(document)}")
    return found[0]


def _told(document: Json, path: str | None) -> Json:
    found = [] if path is None else _find(document, path)
    return found[0] if found else None


def _find(document: Json, path: str) -> list[Any]:
    import jsonpath

    # The library would parse a plain string as JSON.
    root = json.dumps(document) if isinstance(document, str) else document
    try:
        found = jsonpath.compile(path).findall(root)
    except jsonpath.JSONPathError as error:
        raise _wrong_form(f"{path} cannot be looked up in the answer: {error.message}") from error
    if len(found) > 1:
        raise _wrong_form(f"the answer has {len(found)} values at {path} where one is expected")
    return found


def _tokens(document: Json, path: str | None) -> int | None:
    told = _told(document, path)
    if told is None:
        return None
    whole = isinstance(told, int | float) and not isinstance(told, bool) and told == told // 1
    if not whole or not 0 <= told <= MOST_TOKENS:
        raise _wrong_form(f"expected a number of tokens at {path}, not {_shown(told)}")
    return int(told)


def _dollars(document: Json, path: str | None) -> float | None:
    told = _told(document, path)
    if told is None:
        return None
    if isinstance(told, bool) or not isinstance(told, int | float) or not isfinite(told) or told < 0:
        raise _wrong_form(f"expected dollars at {path}, not {_shown(told)}")
    return float(told)


def _name(document: Json, path: str | None) -> str | None:
    told = _told(document, path)
    if told is not None and not isinstance(told, str):
        raise _wrong_form(f"expected the name of a model at {path}, not {_shown(told)}")
    return told or None


def _wrong_form(message: str) -> CallError:
    return CallError(CallErrorKind.BAD_RESPONSE, message)


def _shown(value: Json) -> str:
    return short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

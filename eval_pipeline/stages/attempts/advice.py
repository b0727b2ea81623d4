"""Advice on what to change if answers cannot be read, based on what they look like."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.http.errors import is_web_page
from eval_pipeline.providers.openai.ways_out import way_out
from eval_pipeline.stages.attempts.readings import another_reading, another_track, json_of
from eval_pipeline.stages.attempts.seen import SeenAttempt
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.texts.reasoning import apart

Hint = str | None
MOST_HINTS = 2
_APPLICATION, _ENDPOINT, _PROGRAM = "http", "openai", "command"
_ANY_MODEL: Sequence[tuple[str, str]] = (
    (r"context|too long|maximum.*length|input length", "the prompts are longer than its context: serve a larger one"),
    (r"temperature|top_p|top_k|\bseed\b|sampling|effort", "take out of `sampling` what it does not know"),
    (r"\bmodel\b|deployment", "look at `model`: the endpoint's own name of it"),
)
"""Pattern in the message of an endpoint that refuses requests → advice; the first match counts."""


def advice(track: Track, version: ModelVersion, seen: Sequence[SeenAttempt]) -> list[str]:
    """Returns what to check, most likely cause first; never empty.

    Args:
        track: the suite's track.
        version: the model version that was asked.
        seen: attempts, including successful ones.
    """
    bad = [one for one in seen if not one.readable]
    if not bad:
        return [_of_readable(version, seen)]
    hints = [found for rule in _RULES if (found := rule(track, version, bad))]
    return list(dict.fromkeys(hints))[:MOST_HINTS] or [_where_to_look(version)]


def _of_readable(version: ModelVersion, seen: Sequence[SeenAttempt]) -> str:
    if sum(one.what == "failed" for one in seen) > len(seen) / 2:
        return "all answers fail in the same way when they are run: look at what the prompt says of the data"
    if version.provider == _APPLICATION:
        return "does the application read `question` of the request, and is options.answer_path its answer?"
    return "look whether what stands behind the address reads the question: a cache, a stub or a gateway's own text?"


def _where_to_look(version: ModelVersion) -> str:
    if version.provider == _APPLICATION:
        return f"look at {_mapping(version)} and at what the application answers"
    return "look at `prompt`, `options` and `model` of the model version"


def _web_page(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    if not _most(bad, lambda one: is_web_page(one.text) or "a web page" in one.message):
        return None
    where = _address(version) + (" and options.path" if version.provider == _APPLICATION else "")
    return f"a web page answers, that of a gateway, a proxy or a login: look at {where}, and at the key"


def _address(version: ModelVersion) -> str:
    return "options.upstream" if version.provider == _PROGRAM else "options.base_url"


def _call_error(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    kinds = {kind: [one for one in bad if one.kind == kind] for kind in CallErrorKind}
    kind, found = max(kinds.items(), key=lambda item: len(item[1]))
    if 2 * len(found) <= len(bad):
        return None
    match kind:
        case CallErrorKind.MAX_TOKENS:
            return f"raise max_tokens (it is {version.max_tokens}), or have the model think less"
        case CallErrorKind.REFUSED:
            return "a content filter refuses, or the model does: look at the endpoint's filter, and at what is asked"
        case CallErrorKind.RATE_LIMITED | CallErrorKind.OVERLOADED:
            slower = (
                f"lower concurrency (it is {version.concurrency}) or raise deadline_s (it is {version.deadline_s:g})"
            )
            return f"the endpoint turns calls away: {slower}, or run when there is less to do"
        case CallErrorKind.TIMEOUT:
            return (
                f"raise deadline_s (it is {version.deadline_s:g}), or lower concurrency (it is {version.concurrency})"
            )
        case CallErrorKind.CONNECTION:
            return f"look at {_address(version)} and at what stands before the endpoint{_stream(version)}"
        case CallErrorKind.BAD_REQUEST:
            return _bad_request(version, found)
        case CallErrorKind.BAD_RESPONSE:
            return _bad_response(version, found)
    return None


def _bad_request(version: ModelVersion, found: Sequence[SeenAttempt]) -> str:
    if _most(found, lambda one: "HTTP 404" in one.message):
        return "nothing is at that address: look at options.base_url and options.path"
    words = () if version.provider == _APPLICATION else _ANY_MODEL
    own = [way_out(one.message) for one in found] if version.provider == _ENDPOINT else []
    said = Counter(hint for hint in own if hint) or Counter(h for one in found for h in _by_words(words, one.message))
    if said:
        return said.most_common(1)[0][0]
    return "the endpoint refuses them: its message says what it wants otherwise"


def _stream(version: ModelVersion) -> str:
    return ", and where it cannot stream set options.stream: false" if version.provider == _ENDPOINT else ""


def _by_words(known: Sequence[tuple[str, str]], message: str) -> list[str]:
    return [hint for words, hint in known if re.search(words, message, re.IGNORECASE)][:1]


def _bad_response(version: ModelVersion, found: Sequence[SeenAttempt]) -> str:
    if version.provider != _APPLICATION:
        return f"no completion comes back: look at {_address(version)}{_stream(version)}"
    if _most(found, lambda one: "in place of an answer" in one.message):
        return "the application answers with errors: its message says why"
    if _most(found, lambda one: one.message.startswith(("expected a number of tokens", "expected dollars"))):
        return (
            "what a call took is told in another form: look at options.input_tokens_path, output_tokens_path, cost_path"
        )
    return f"the application answers in another form: look at {_mapping(version)}"


def _crash(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    if not _most(bad, lambda one: one.what == "crashed"):
        return None
    return "the program fails before it has answered: look at options.command, folder and venv, and at what it says"


def _empty(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    if not _most(bad, lambda one: one.what == "unreadable" and not _answer(one).strip()):
        return None
    if version.provider == _APPLICATION:
        return "the application answers with nothing: look at options.path and options.answer_path"
    settings = (
        "look at `stop`, and at what sends answers as reasoning (explain_turn shows it), such as a reasoning parser"
    )
    return f"the answers are empty: raise max_tokens (it is {version.max_tokens}), {settings}"


def _another_reading(track: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    unreadable = [one for one in bad if one.what == "unreadable"]
    if 2 * len(unreadable) <= len(bad):
        return None
    return another_reading(track, version, [(_answer(one), one.message) for one in unreadable])


def _another_track(track: Track, _: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    unreadable = [_answer(one) for one in bad if one.what == "unreadable" and _answer(one).strip()]
    return another_track(track, unreadable) if 2 * len(unreadable) > len(bad) else None


def _error_objects(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    def is_error(one: SeenAttempt) -> bool:
        told = json_of(_answer(one))
        return isinstance(told, dict) and bool({"error", "errors", "detail", "fault", "exception"} & told.keys())

    if not _most(bad, is_error):
        return None
    return "errors come with status 200 in place of answers: their text says what to correct"


def _events(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    if not _most(bad, lambda one: one.text.lstrip().startswith(("data:", "event:"))):
        return None
    return "the answer is a stream of events: have the application answer at once"


def _echo(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    if not _most(bad, lambda one: bool(re.search(r"\b(you are|your task|answer with)\b", one.text[:400], re.I))):
        return None
    if version.provider == _APPLICATION:
        return f"the prompt comes back: look at {_mapping(version)}"
    return "the prompt comes back: look whether the model is a chat model, and at its chat template"


def _broken_off(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    def is_broken(one: SeenAttempt) -> bool:
        text = _answer(one).strip()
        return one.what == "unreadable" and text.startswith(("{", "[")) and not text.endswith(("}", "]", "`"))

    if version.provider == _APPLICATION or not _most(bad, is_broken):
        return None
    return (
        f"the answers break off: raise max_tokens (it is {version.max_tokens}), look at `stop` and the server's limits"
    )


def _nonsense(_: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    def is_nonsense(one: SeenAttempt) -> bool:
        text = one.text[:400]
        odd = sum(char == "\ufffd" or not (char.isprintable() or char.isspace()) for char in text)
        return bool(text) and odd > len(text) / 10

    if not _most(bad, is_nonsense):
        return None
    return "what comes is no text: look at its encoding and compression, and at the chat template of the model"


def _prose(track: Track, version: ModelVersion, bad: Sequence[SeenAttempt]) -> Hint:
    if not _most(bad, lambda one: one.what == "unreadable" and _is_prose(_answer(one))):
        return None
    forms = " or ".join(track.prompt_versions)
    if version.provider == _APPLICATION:
        return (
            f"the answers are no JSON of the answer form: have the application give it, or look at {_mapping(version)}"
        )
    unset = version.provider == _ENDPOINT and version.options.get("structured_output", "json_schema") != "json_schema"
    schema = "set options.structured_output: json_schema, " if unset else ""
    other = f"look at the prompt form (`prompt`: {forms}), or take a stronger model"
    return f"the model does not keep to the answer form: {schema}{other}"


_RULES: Sequence[Callable[[Track, ModelVersion, Sequence[SeenAttempt]], Hint]] = (
    _web_page,
    _call_error,
    _crash,
    _empty,
    _events,
    _error_objects,
    _another_reading,
    _another_track,
    _broken_off,
    _nonsense,
    _echo,
    _prose,
)


def _is_prose(text: str) -> bool:
    return bool(text.strip()) and "{" not in text


def _mapping(version: ModelVersion) -> str:
    path, field = (version.options.get(name) for name in ("answer_path", "answer_field"))
    return f"options.answer_path ({path or 'not set'}) and options.answer_field ({field or 'not set'})"


def _answer(one: SeenAttempt) -> str:
    return apart(one.text).answer


def _most(found: Sequence[SeenAttempt], holds: Callable[[SeenAttempt], object]) -> bool:
    return 2 * sum(bool(holds(one)) for one in found) > len(found)

"""What helps if an endpoint refuses requests, by the words in which it does so."""

import re

_SAMPLING = r"temperature|top_p|top_k|min_p|seed|stop|frequency_penalty|presence_penalty|reasoning_effort|verbosity"
_REFUSES = r"unsupported|not supported|does not support|unrecogni[sz]ed|unknown|not permitted|invalid|must be|only"
_WAYS: tuple[tuple[str, str], ...] = (
    (r"context.{0,20}(?:length|window|size)|too long|input length", "the prompt is longer than its context"),
    (r"v1/responses|responses api", "set options.api: responses"),
    (r"response_format|json_schema|structured|grammar", "set options.structured_output to json_object or none"),
    (r"use\W+(max_completion_tokens|max_tokens)", "set options.limit_field: {}"),
    (r"(?:unsupported|unknown|not supported).{0,60}max_tokens", "set options.limit_field: max_completion_tokens"),
    (r"alternat", "set options.join_messages: true"),
    (r"\bsystem\b|developer (?:instruction|message)|\brole", "set options.system: false"),
    (r"\bstream", "set options.stream: false"),
    (rf"(?:{_REFUSES}).*?\b({_SAMPLING})\b", "leave sampling.{} out, or set it to null"),
    (rf"\b({_SAMPLING})\b.*?(?:{_REFUSES}|deprecated)", "leave sampling.{} out, or set it to null"),
)
"""Pattern in an endpoint's message → what to change in the model version; the first match counts."""


def way_out(message: str) -> str | None:
    """Returns what to change in a model version whose request was refused with this message; None if unknown."""
    for pattern, told in _WAYS:
        if found := re.search(pattern, message, re.IGNORECASE | re.DOTALL):
            return told.format(*found.groups())
    return None

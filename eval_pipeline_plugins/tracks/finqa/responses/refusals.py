"""Detects whether a model says that it cannot answer."""

import re

from eval_pipeline.core.model import Attempt, CallErrorKind, Ran
from eval_pipeline_plugins.tracks.finqa.responses.recorded import as_given

_SAYS_SO = re.compile(
    r"""
      \b(?:can\s?not|can['’]t|could\s+not|couldn['’]t|unable\s+to|not\s+possible\s+to|impossible\s+to)\s+
        (?:be\s+)?(?:answer|determin|calculat|comput|find|found|deriv|provid|say|tell|infer|establish|identif|
        assist|help|comply)
    | \b(?:is|are|was|were|does|do|did|has|have)?\s*(?:not|n['’]t|nowhere)\s+(?:\w+\s+){0,2}
        (?:provided?|disclos\w+|available|given|stated?|specif\w+|mention\w*|report\w*|contain\w*|includ\w*|say|tell|
        shown?|found|enough\s+information|sufficient|determinable|applicable)\b
    | \b(?:insufficient|no|lacks?|missing)\s+(?:\w+\s+)?(?:information|data)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ONLY = re.compile(
    r"""(?:(?:the\s+)?(?:final\s+)?answer\s*(?:is\b|:|=))?[\W_]*
    (?:n\s*[./]?\s*a|nan|none|null|nil|unknown|unanswerable|(?:un|in)determin(?:ed|able|ate)|no\s+(?:answer|value)
      |i\s+(?:do\s+not|don['’]?t)\s+know)[\W_]* | [-–—]+""",
    re.VERBOSE | re.IGNORECASE,
)
"""A text that is nothing else than such a word, possibly after a marker and in quotation marks."""
_FIELD = re.compile(r'"(?:answer|value|calculation|program|result)"\s*:\s*(?:"((?:[^"\\]|\\.){0,300})"|(null)\b)')
_MOST_CHARS = 2000


def says_no_answer(text: str) -> bool:
    """Whether a text says that the page does not tell, or that no answer can be given."""
    return _ONLY.fullmatch(text[:80].strip()) is not None or _SAYS_SO.search(text[:_MOST_CHARS]) is not None


def _has_empty_field(text: str) -> bool:
    """Whether the last value of an answer in JSON says that there is none: `{"answer": "N/A"}`."""
    values = _FIELD.findall(text[:_MOST_CHARS])
    return bool(values) and says_no_answer("".join(values[-1]))


def refuses(final: Attempt) -> bool:
    """Whether an attempt contains a refusal instead of an answer, in words or as reported by the provider."""
    if final.call_failure is not None and final.call_failure.kind is CallErrorKind.REFUSED:
        return True
    if isinstance(final.outcome, Ran):
        text = final.outcome.value.get("text")
        return isinstance(text, str) and says_no_answer(text)
    if final.response is None:
        return False
    text = as_given(final.response.text)
    return _has_empty_field(text) or (final.artefact is None and says_no_answer(text))

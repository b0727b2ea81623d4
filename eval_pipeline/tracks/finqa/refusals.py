"""Detects whether a model says that it cannot answer."""

import re

from eval_pipeline.core.model import Attempt, CallErrorKind, Ran
from eval_pipeline.core.numbers import normalised_text

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
_WORDS = frozenset({"na", "nan", "none", "null", "unknown", "unanswerable", "undetermined", "notavailable", "nodata"})
_MOST_CHARS = 2000


def says_no_answer(text: str) -> bool:
    """Whether a text says that the page does not tell, or that no answer can be given."""
    return normalised_text(text[:40]) in _WORDS or _SAYS_SO.search(text[:_MOST_CHARS]) is not None


def refuses(final: Attempt) -> bool:
    """Whether an attempt contains a refusal instead of an answer, in words or as reported by the provider."""
    if final.call_failure is not None and final.call_failure.kind is CallErrorKind.REFUSED:
        return True
    if isinstance(final.outcome, Ran):
        text = final.outcome.value.get("text")
        return isinstance(text, str) and says_no_answer(text)
    return final.response is not None and final.artefact is None and says_no_answer(final.response.text)

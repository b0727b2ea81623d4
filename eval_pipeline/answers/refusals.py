"""Detects whether a model says that it cannot answer."""

import re

_DECLINES = re.compile(
    r"\b(?:i|we|one)(?:\s+am|['’]m|\s+are)?\s+(?:can\s?not|can['’]t|could\s+not|couldn['’]t|(?:not\s+able|unable)\s+to|do\s+not|don['’]t)\s+"
    r"(?:\w+\s+){0,2}?(?:answer|determine|calculate|compute|find|say|tell|know|solve|provide|give)\b"
    r"|\b(?:cannot|can\s?not|can['’]t|could\s+not)\s+be\s+(?:answered|determined|calculated|computed|found|solved)\b"
    r"|\b(?:insufficient|not\s+enough|no\s+enough|missing)\s+(?:information|data)\b"
    r"|^\W*(?:unknown|undetermined|indeterminate|unclear|n/a|not (?:given|known|stated))(?=\s*(?:[.,;!)]|$))"
    r"|\bimpossible\s+to\s+(?:answer|determine|calculate|say|tell)\b",
    re.IGNORECASE,
)
_MOST_CHARS = 2_000


def declines(text: str) -> bool:
    """Whether a text says that its author cannot give the answer."""
    return _DECLINES.search(text[:_MOST_CHARS]) is not None

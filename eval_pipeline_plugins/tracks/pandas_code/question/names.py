"""Names of columns that a question gives."""

import re
from collections.abc import Iterator

_NAME = re.compile(
    r"[`'\"“‘](?P<quoted>\w[\w ]{0,40}?)[`'\"”’]|\b(?P<snake>[^\W_]+(?:_[^\W_]+)+)\b"
    r"|\b(?:columns?(?: named| called)?|named|called|name it|call it) (?P<told>\w+)",
    re.IGNORECASE,
)
_ITEM = r"[`'\"“‘]?\w+[`'\"”’]?(?:\s\([^()]*\))?"
_ASKED = r"\b(?:give|return|show|output|report|provide|display|present|keep|select|list|make|build|create|produce)\b"
_LIST = re.compile(
    rf"""(?P<of_result>
      (?:{_ASKED}\s|{_ASKED}[^.?!]*?\b(?:with|as|containing|(?:per|by|each)\s\w+\sin)\s|,\s(?:in|as|with)\s
      |\b(?:should|must|shall)\s(?:have|contain)\s)
      (?:(?:me|us|the|just|only|exactly|these|following|two|three|four)\s)*
    )?"""
    rf"\b(?:columns?(?:\s(?:named|called))?:?|named|called|(?:name|call)\sthem)\s"
    rf"(?P<items>{_ITEM}(?:,\s{_ITEM})*(?:,?\s(?:and|&)\s{_ITEM})?)"
    r"""(?=\s*(?:$|[.,;:?!)]
      |\b(?:for|of|from|per|in|by|on|with|where|which|that|so|sorted|ordered|rounded|using)\b))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches up to where the names surely end: in "columns month and total sales" the last word is no name."""
_BETWEEN_ITEMS = re.compile(r"\s\([^()]*\)|[`'\"“‘”’]|,?\s(?:and|&)\s|,\s", re.IGNORECASE)


def names_in(question: str) -> tuple[str, ...]:
    """Returns what may be names of columns by how a question speaks of them: in quotes, with `_`, as columns."""
    found = [next(filter(None, told)) for told in _NAME.findall(question)]
    return tuple(dict.fromkeys([*found, *_listed(question, of_result=False)]))


def names_of_result(question: str) -> tuple[str, ...]:
    """Returns names that a question gives to columns of its result, as in "Give columns region and amount"."""
    return tuple(dict.fromkeys(_listed(question, of_result=True)))


def _listed(question: str, *, of_result: bool) -> Iterator[str]:
    for found in _LIST.finditer(question):
        if not of_result or found["of_result"]:
            yield from filter(None, _BETWEEN_ITEMS.split(found["items"]))

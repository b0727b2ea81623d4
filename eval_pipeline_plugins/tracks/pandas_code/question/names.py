"""Names of columns that a question gives."""

import re
from collections.abc import Iterable, Iterator

_NAME = re.compile(
    r"[`'\"“‘](?P<quoted>\w[\w ]{0,40}?)[`'\"”’]|\b(?P<snake>[^\W_]+(?:_[^\W_]+)+)\b"
    r"|\b(?:columns?(?: named| called)?|named|called|name it|call it) (?P<told>\w+)",
    re.IGNORECASE,
)
_ITEM = r"[`'\"“‘]?\w+[`'\"”’]?(?:\s\([^()]*\))?"
_ASKED = "give|return|show|output|report|provide|display|present|list|make|build|create|produce"
_KEPT = "keep|select"
_GIVEN = (
    r"\b(?:from|of|for|using)\s(?:(?:the|this|that|an?|our|given|following|whole)\s)*(?:\w+\s)?"
    r"(?:tables?|data|data\s?(?:frames?|sets?)|frames?|files?|sheets?)(?:\s\w+)?\s(?:with|containing)\b"
)
"""Matches what has columns already: "the total per region from the table with columns region and amount"."""
_LIST = re.compile(
    rf"""(?P<of_result>
      (?:\b(?:{_ASKED}|(?P<kept>{_KEPT}))\s
      |\b(?:{_ASKED})\b(?:(?!{_GIVEN})[^.?!]){{0,200}}?\b(?:with|as|containing|(?:per|by|each)\s\w+\sin)\s
      |,\s(?:in|as|with)\s
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
_REQUEST = re.compile(
    rf"\b(?:{_ASKED}|compute|calculate|count|find|determine|derive|sum|average|aggregate|group|what|which|how)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]{3,}")
_BETWEEN_ITEMS = re.compile(r"\s\([^()]*\)|[`'\"“‘”’]|,?\s(?:and|&)\s|,\s", re.IGNORECASE)


def names_in(question: str) -> tuple[str, ...]:
    """Returns what may be names of columns by how a question speaks of them: in quotes, with `_`, as columns."""
    found = [next(filter(None, told)) for told in _NAME.findall(question)]
    return tuple(dict.fromkeys([*found, *_listed(question, of_result=False)]))


def names_of_result(question: str) -> tuple[str, ...]:
    """Returns names that a question gives to columns of its result, as in "Give columns region and amount"."""
    return tuple(dict.fromkeys(_listed(question, of_result=True)))


def spoken_of(question: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Returns columns of which a question has a word: `flight_id` in "Which flights were late?"."""
    words = {word.removesuffix("s") for word in _WORD.findall(question.casefold())}
    return tuple(
        name for name in columns if words & {word.removesuffix("s") for word in _WORD.findall(name.casefold())}
    )


def _listed(question: str, *, of_result: bool) -> Iterator[str]:
    last = max((found.start() for found in _REQUEST.finditer(question)), default=-1)
    for found in _LIST.finditer(question):
        # What is kept is what the rest of the question computes with.
        is_of_result = found["of_result"] and not (found["kept"] and last >= found.end())
        if is_of_result or not of_result:
            yield from filter(None, _BETWEEN_ITEMS.split(found["items"]))

"""The wording around numbers: calculations in words get their `=`, items lose their numbers; refusals."""

import re

from eval_pipeline.answers.numbers import numbers_in

_OPERATOR = r"times|plus|minus|and|multiplied by|divided by|added to|over|less|of|dozen|[-+×x*·/÷]|more than|fewer than"
_FIGURE = r"[$€£¥₹]?\d[\d.,]{0,20}\d%?|[$€£¥₹]?\d%?"
_GIVES = r"is|are|makes?|gives?|leaves?|yields?|totals?|comes? to|becomes?"
_THEN = (
    r"(?=\s(?:a total of |exactly |about |us |only |just )?[*(\"'$€£¥₹]{0,3}-?\.?\d[\d.,]*+"
    r"(?!\s(?:[^\W\d]{1,20}\s)?(?:more|less|fewer|greater|times)\b))"
)
_CALCULATION = re.compile(
    rf"(?:(?:{_FIGURE})(?:\s[^\W\d]+){{0,2}}\s?(?:{_OPERATOR})\s?(?:(?:the|a|an)\s)?(?:{_FIGURE})(?:\s[^\W\d]+){{0,2}}"
    rf"|\b(?:half|twice|double|a third|a quarter)\s(?:of\s)?(?:{_FIGURE})"
    rf"|\b(?:sum|product|difference|quotient|average|mean|ratio)\sof\s(?:{_FIGURE})\sand\s(?:{_FIGURE})"
    rf"|(?<=,\s)(?:which|this|that|it)(?!\s(?:is|are)\b))\s(?P<gives>{_GIVES}){_THEN}",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"(?m)^[ \t>*_#]{0,8}(?:(?P<step>step[ \t])[ \t]*)?[*_]{0,2}(?P<number>\d{1,2})[.):][*_]{0,2}[ \t]+"
    r"(?=[*_\"'“(]{0,4}[^\W\d_]{2})",
    re.IGNORECASE,
)


_STATES = re.compile(
    r"=|\b(?:is|are|was|were|has|have|equals?|makes?|gives?|leaves?|gets?|totals?|so|therefore|thus|hence|finally)\b",
    re.IGNORECASE,
)
"""What an item says that gives a number, and does not only name one: `2. Option 42`."""


def with_equals(text: str) -> str:
    """Returns the text with `=` after a calculation in words: `6 times 7 is 42` becomes `6 times 7 = 42`."""
    return _CALCULATION.sub(
        lambda match: match[0].rpartition(" ")[0].removesuffix(" comes").removesuffix(" come") + " =", text
    )


def without_item_number(line: str, text: str) -> str:
    """Returns a line of a text without its number in a list: `3. Therefore …` where the text has `2. …`, too."""
    item = _ITEM.match(line)
    if item is None or (re.search(r"\d", line[item.end() :]) and not _STATES.search(line, item.end())):
        return line
    before = int(item["number"]) - 1
    is_item = item["step"] or any(int(match["number"]) == before for match in _ITEM.finditer(text))
    return line[item.end() :] if is_item else line


_DECLINES = re.compile(
    r"\b(?:i|we|one)(?:\s+am|['’]m|\s+are)?\s+(?:can\s?not|can['’]t|could\s+not|couldn['’]t|(?:not\s+able|unable)\s+to|do\s+not|don['’]t)\s+"
    r"(?:\w+\s+){0,2}?(?:answer|determine|calculate|compute|find|say|tell|know|solve|provide|give)\b"
    r"|\b(?:cannot|can\s?not|can['’]t|could\s+not)\s+be\s+(?:answered|determined|calculated|computed|found|solved)\b"
    r"|\b(?:insufficient|not\s+enough|no\s+enough|missing)\s+(?:information|data)\b"
    r"|^\W*(?:unknown|undetermined|indeterminate|unclear|n/a|not (?:given|known|stated))(?=\s*(?:[.,;!)]|$))"
    r"|\b(?:impossible|not\s+possible)\s+to\s+(?:answer|determine|calculate|say|tell)\b",
    re.IGNORECASE,
)
_MOST_CHARS = 2_000
_ABOUT = r"(?:\s+(?:by|of|about|around|roughly|approximately|exactly|only|just|was|is)){0,3}\s+[*(]{0,3}"
_NUMBER_NEXT = r"(?:usd\s|eur\s)?[$€£¥₹]?\s?\.?\d"
_LESS = re.compile(
    rf"\b(?:(?:decreas|reduc|declin|dropp|lower)ed|fell|falls|shrank|shrunk|went down|is down|lost|loses"
    rf"|(?:a|the)\s(?:\w+\s)?(?:decrease|decline|drop|fall|loss|reduction|deficit|shortfall)){_ABOUT}{_NUMBER_NEXT}"
    r"|\d[\d.,]*\*{0,2}\s?%?(?:\s[^\W\d]+){0,3}?\s(?:lower|less|fewer|smaller|below|decrease|decline|drop|reduction|loss)\b"
    r"|^\W*\([$€£¥₹]\s?\d[\d.,]*\)\W*$",
    re.IGNORECASE,
)
_RISES = re.compile(r"\b(?:increas\w*|ris(?:e|es|ing|en)|rose|grow\w*|grew|gain\w*)\b", re.IGNORECASE)
_COMPARES = re.compile(r"\b(?:higher|more|larger|greater|profit)\b", re.IGNORECASE)
_NO_DECREASE = re.compile(r"\b(?:no|not|never|without|any|versus|unlike|than|after)\b|n['’]t\b", re.IGNORECASE)


def says_less(text: str, number: float) -> bool:
    """Whether a text says a number as a decrease (`a drop of 5`, `5 lower`) or as accounts do: `($5)`."""
    text = text[:_MOST_CHARS]
    if _RISES.search(text) is not None or _COMPARES.search(text) is not None:
        return False
    said = [one.span[0] for one in numbers_in(text) if abs(one.value) == abs(number)]
    return any(
        any(match.start() - 3 <= at <= match.end() for at in said)
        and _NO_DECREASE.search(text[max(match.start() - 25, 0) : match.end()]) is None
        for match in _LESS.finditer(text)
    )


def asks_for_more(text: str) -> bool:
    """Whether a question is how much something has risen, and not how it has changed."""
    asked = text.rpartition("?")[0].replace("!", ".").rpartition(". ")[2] or text
    return re.search(rf"\bby how (?:much|many)\b.*{_RISES.pattern}", asked, re.IGNORECASE | re.DOTALL) is not None


def declines(text: str) -> bool:
    """Whether a text says that its author cannot give the answer."""
    return _DECLINES.search(text[:_MOST_CHARS]) is not None

"""What well-known tools would have made of a response, by the rules in their documentation.

They say how much of a score is reading. Each rule is a few lines; tests compare them with what the packages return.
"""

import re
from math import isfinite
from string import punctuation, whitespace

_STRICT = re.compile(r"#### (-?[0-9.,]+)")
_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_IGNORED = (re.compile(r","), re.compile(r"\$"), re.compile(r"(?s).*#### "), re.compile(r"\.$"))
_ESCAPED = re.compile(r"\\([$,£€*_])")
_MONEY = re.compile(r"[$,£€*_]")
_POINT = re.compile(r"\.(?=\s|$|\D)")
_TRIMMED = "!?:;()[]{}'\"`"


def lm_eval_strict(text: str, gold: str) -> bool:
    """The filter `strict-match` of lm-eval's task gsm8k: the first number after `####`, compared as text."""
    found = _STRICT.findall(text)
    return bool(found) and _bare(found[0]) == _bare(gold)


def lm_eval_flexible(text: str, gold: str) -> bool:
    """The filter `flexible-extract` of lm-eval's task gsm8k: the last number, compared as text."""
    found = _FLEXIBLE.findall(text)
    return bool(found) and _bare((found[-1][0] or found[-1][1]).strip()) == _bare(gold)


def inspect_match(text: str, gold: str, *, numeric: bool) -> bool:
    """Inspect's scorer `match()`: the last number, to five digits; or a text that ends with the gold answer."""
    if not numeric:
        marks = whitespace + punctuation
        return text.casefold().strip(marks).endswith(gold.casefold().strip(marks))
    words = reversed(_POINT.sub("", _MONEY.sub("", _ESCAPED.sub(r"\1", text.strip()))).split())
    said = next((number for word in words if (number := _number(word)) is not None), None)
    right = _number(_POINT.sub("", _MONEY.sub("", gold)))
    return said is not None and right is not None and f"{said:.5g}" == f"{right:.5g}"


def promptfoo_icontains(text: str, gold: str) -> bool:
    """The assertion `icontains` of promptfoo: the gold answer occurs somewhere, in any case of its letters."""
    return gold.lower() in text.lower()


def _bare(text: str) -> str:
    for pattern in _IGNORED:
        text = pattern.sub("", text)
    return text.lower()


def _number(word: str) -> float | None:
    try:
        number = float(word.strip(_TRIMMED).replace("−", "-"))
    except ValueError:
        return None
    return number if isfinite(number) else None

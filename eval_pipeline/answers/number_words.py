"""Reads numbers that are written in English words: `one hundred and five`, `two and a half`, `three quarters`."""

from collections.abc import Sequence
from itertools import takewhile

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = {word: value for value, word in enumerate(_UNITS)} | {word: 10 * at for at, word in enumerate(_TENS, 2)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_COUNTED = {"hundred": 100, "dozen": 12} | _LARGE
PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
         "ninth": 9, "tenth": 10, "hundredth": 100, "thousandth": 1000}  # fmt: skip
_PLURALS = {"halves": 2} | {f"{word}s": size for word, size in PARTS.items() if word != "half"}
_DIGITS = frozenset(_UNITS[:10])
_WHOLES = frozenset({"of", "the", "my", "her", "his", "their", "as"})
"""Words after a part that say of what it is one."""
_MOST_WORDS = 20


def number_in_words(text: str) -> tuple[float, str] | None:
    """Returns the number with which a text of words begins, and the words after it; None without one."""
    words = text.casefold().replace("-", " ").split()[:_MOST_WORDS]
    bare = [word.strip(".,!") for word in words]
    sign = int(bool(bare) and bare[0] in {"minus", "negative"})
    number, taken = _quantity(bare[sign:])
    if not taken:
        return None
    return (-number if sign else number), " ".join(words[sign + taken :])


def _quantity(words: Sequence[str]) -> tuple[float, int]:
    """Returns a number and how many words it takes, 0 if there is none."""
    after = [*words[1:], "", ""]
    if words[:1] == ["half"]:
        article = int(after[0] in {"a", "an"})
        if after[article] in _COUNTED:  # half a million
            return _COUNTED[after[article]] / 2, 2 + article
        return 0.5, 0 if after[0] in _WHOLES else 1
    if words[:1] in (["a"], ["an"]):
        if after[0] == "dozen":
            return 12, 2
        if after[0] not in _COUNTED and after[0] not in PARTS:
            return 0, 0
        words = ["one", *words[1:]]
    whole, taken = _whole(words)
    if not taken:
        return 0, 0
    number, more = _tail(whole, [*words[taken:], "", "", ""])
    if more and words[taken + more : taken + more + 1] and words[taken + more] in _LARGE:  # two and a half million
        return number * _LARGE[words[taken + more]], taken + more + 1
    return number, 0 if more == 1 and words[taken + more : taken + more + 1] == ["of"] else taken + more


def _tail(whole: int, rest: Sequence[str]) -> tuple[float, int]:
    """Returns a number with the part of one that follows it, and how many words that takes."""
    if rest[0] == "point":
        digits = "".join(str(_SMALL[word]) for word in takewhile(_DIGITS.__contains__, rest[1:]))
        return (float(f"{whole}.{digits}"), 1 + len(digits)) if digits else (whole, 0)
    if rest[0] == "and" and (rest[1] in {"a", "one"} or rest[2] in _PLURALS):
        size = PARTS.get(rest[2]) or _PLURALS.get(rest[2])
        count = 1 if rest[1] == "a" else _SMALL.get(rest[1])
        return (whole + count / size, 3) if size and count else (whole, 0)
    size = PARTS.get(rest[0]) if whole == 1 else _PLURALS.get(rest[0])
    return (whole / size, 1) if size else (whole, 0)


def _whole(words: Sequence[str]) -> tuple[int, int]:
    total = current = taken = 0
    last = -1
    for at, word in enumerate(words):
        if word in _SMALL and not (last >= 0 and (last < 20 or _SMALL[word] >= 10)):
            current, last = current + _SMALL[word], _SMALL[word]
        elif word == "hundred" and 0 < current < 10:
            current, last = current * 100, -1
        elif word in _LARGE and current:
            total, current, last = total + current * _LARGE[word], 0, -1
        elif word == "and" and last < 0 and (total or current) and words[at + 1 : at + 2] and words[at + 1] in _SMALL:
            if words[at + 2 : at + 3] and words[at + 2] in _PLURALS:
                break  # one hundred and three quarters
            continue
        else:
            break
        taken = at + 1
    return total + current, taken

"""Reads whole numbers that are written in English words: `forty-two`, `one hundred and five thousand`."""

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = {word: value for value, word in enumerate(_UNITS)} | {word: 10 * at for at, word in enumerate(_TENS, 2)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MOST_WORDS = 20


def number_in_words(text: str) -> tuple[int, str] | None:
    """Returns the number with which a text of words begins, and the words after it; None without one."""
    words = text.casefold().replace("-", " ").split()[:_MOST_WORDS]
    is_negative = bool(words) and words[0] in {"minus", "negative"}
    taken = int(is_negative)
    total = current = 0
    last = -1
    for at, word in enumerate(words[taken:], taken):
        bare = word.strip(".,!")
        if bare in _SMALL and not (last >= 0 and (last < 20 or _SMALL[bare] >= 10)):
            current, last = current + _SMALL[bare], _SMALL[bare]
        elif bare == "hundred" and 0 < current < 10:
            current, last = current * 100, -1
        elif bare in _LARGE and current:
            total, current, last = total + current * _LARGE[bare], 0, -1
        elif (
            bare == "and"
            and last < 0
            and (total or current)
            and " ".join(words[at + 1 : at + 2]).strip(".,!") in _SMALL
        ):
            continue
        else:
            break
        taken = at + 1
    if taken == int(is_negative):
        return None
    value = total + current
    return (-value if is_negative else value), " ".join(words[taken:])

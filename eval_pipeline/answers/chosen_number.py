"""Decides which number of an answer is the answer."""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isclose

from eval_pipeline.answers.markup import plain, with_plain_digits, without_latex
from eval_pipeline.answers.mentions import QuotableText, Span, is_denied, is_left_open, is_quoted
from eval_pipeline.answers.numbers import Decimal, FoundNumber, number_in_words, numbers_in
from eval_pipeline.answers.periods import spans_of_times, times_said
from eval_pipeline.answers.wording import declines, with_equals
from eval_pipeline.core.values import value

_MOST_CHARS = 5_000
_MOST_NUMBERS = 100
_ANOTHER = re.compile(
    r"^[\s\"'”’*)]*(?:[a-z°%²]{1,12}\s*)?(?:-|–|—|\bto\b|\bthrough\b|\band/or\b|\bor\b|\band\b|\bvs\b\.?|\.{2,3}|…|/|;|,|&|#+"
    r"|\b(?:times|plus|minus|(?:multiplied|divided) by)\b)\s*"
    r"(?:or\s|and\s)?[\"'“‘]?[$€£¥₹]?\s?-?\.?\d",
    re.IGNORECASE,
)
"""A second number after the first, as in a range, a list, a choice or a calculation."""
_FURTHER = re.compile(r"\b(?:and|or|plus)\s+[$€£¥₹]?\d", re.IGNORECASE)
_BOUND = re.compile(
    r"(?:(?<![-=<])>=?|<=?|[≥≤]|\\[gl]eq?"
    r"|\b(?:more|less|fewer|greater|smaller|higher|lower|larger|bigger) than(?: or equal to)?"
    r"|\b(?:over|under|above|below|at least|at most|up to))\s*$",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\([^()]{0,300}\)")
_FROM_TO = re.compile(r"\bfrom\s+\S+(?:\s+\S+)?\s+to\s+\S+", re.IGNORECASE)
_LEADING = re.compile(
    r"^[\s\"'“‘`*_=≈~(\[{#-]*(?:about|approximately|approx\.?|around|roughly|exactly|it is|is|that|a total of"
    r"|[a-z]\s?=)?[\s\"'“‘*($]*$",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\b(?:after|before|because|since|when|if|while|given|although|as|from|out of|by|for|than|to(?= [a-z]))\b"
    r"[^,;.\n]*(?:(?:[.,](?=\d))[^,;.\n]*)*",
    re.IGNORECASE,
)
"""A part of a sentence that says of what, when or why: `42 apples are left after giving 8 of her 50 away`."""
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_NO_UNIT = re.compile(
    r"\b(?:or|and|to|than|not|no|if|but|is|are|was|wrong|incorrect|zero|one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|million|dozen|point"
    r"|half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?)\b"
)
_LEAD = re.compile(
    r"[\s\"'“*(]*(?:(?:so|thus|hence|therefore|about|approximately|around|roughly|exactly"
    r"|there (?:are|is)|it(?: is|'s)|is)[\s,]+){0,4}",
    re.IGNORECASE,
)
_TURNS = re.compile(r"\b(?:but|actually|wait|however)\b", re.IGNORECASE)
_CHANGED = re.compile(
    r"\d[\s.,;*)—–-]*\b(?:no wait|wait|correction|actually|scratch that|no,|i mean|oops|sorry)\b[\s,:;*—–-]*"
    r"(?:(?:it is|it's|the answer is|it should be|no)[\s,:]*)?[$€£]?-?\.?\d",
    re.IGNORECASE,
)
"""An answer that is taken back for another one at once: `42. Actually, 43.`"""
_BARE_FACTORIAL = re.compile(r"(?:^|=)[^\w=]*\d[\d.,]*!\W*$")
"""`5!` where no sentence ends with it."""
_AFTER_EQUALS = re.compile(r"(?:[=≈⇒]|=>|\bequals\b)(?![^=≈⇒\n]*[=≈⇒])")


_PERCENT = re.compile(r"%|\bper\s?cent(?:age)?s?\b|\bprozent\b", re.IGNORECASE)
_AGAIN = re.compile(
    r"[\s*]*(?:\(|=|≈|,?\s*(?:(?:or|that is|which is|that's|equal to)\b|i\.e\.))[\s,:*≈=]*", re.IGNORECASE
)
"""What stands between two forms of one number."""


@value
class WantedNumber:
    """How a number is looked for.

    Attributes:
        marked: whether the response introduces the text as its answer.
        closed: whether the end of the text is given, too, as in JSON or a box.
        decimal: how a number with two readings is read.
        units: words after a number that do not change it.
        allow: what to accept that is rejected by default: see `AnswerForm.allow`.
    """

    marked: bool
    closed: bool
    decimal: Decimal
    units: Sequence[str]
    sources: Sequence[QuotableText]
    allow: frozenset[str]


def number_of(text: str, wanted: WantedNumber) -> tuple[float | None, str]:
    """Returns the number that an answer section gives; None and a sentence if it gives none or several.

    An introduced answer (`Answer: 42 in 2019`) gives the number it begins with. Otherwise it is the number after the
    last `=`, or the only one that is not said aside; numbers that are denied, left open or quoted from the question do
    not count.
    """
    text = with_plain_digits(without_latex(text))
    text = re.sub(r"(?<=\d)(?:\*{1,2}| \*{1,2} )(?=\d)", " × ", text)  # these are no marks of Markdown
    if wanted.marked and _CHANGED.search(text):
        return None, "the answer changes its number; expected one"
    first, _, rest = text.strip().partition("\n")
    if wanted.marked and rest and re.search(r"\d", first) and "=" not in rest:
        text = first
    if len(text) > _MOST_CHARS:
        return None, f"the answer has {len(text):,} characters; expected a number"
    text = plain(re.sub(r"(?<=\d)_(?=\d)", "\u2009", text))
    if not (wanted.marked and re.match(r"\W*\d", text)) and declines(text):
        return None, "the response says that it cannot answer"
    if _BARE_FACTORIAL.search(text) and ("=" in text or wanted.closed or not wanted.marked):
        return None, "the answer may be a factorial; expected a number"
    text = with_equals(text)
    found = numbers_in(text, decimal=wanted.decimal, units=wanted.units)
    if not found:
        return _in_words(text, wanted)
    if len(found) > _MOST_NUMBERS:
        return None, f"the answer gives {len(found):,} numbers; expected one"
    kept = _asserted(text, found, wanted)
    text, kept = _said_once(text, kept, wanted)
    if not kept:
        return None, "the answer gives no number of its own: it denies or quotes those in it"
    return _chosen(text, kept, wanted)


def _in_words(text: str, wanted: WantedNumber) -> tuple[float | None, str]:
    lead = _LEAD.match(text)
    said = number_in_words(text[lead.end() if lead else 0 :].rstrip(" .!\"')”*"))
    if said is None or len(said[1].split()) > 3 or _NO_UNIT.search(said[1].casefold()):
        return None, "the answer gives no number"
    return float(said[0]), ""


def _asserted(text: str, found: Sequence[FoundNumber], wanted: WantedNumber) -> list[FoundNumber]:
    spans = [number.span for number in found]
    return [
        number
        for number in found
        if ("negated" in wanted.allow or not is_denied(text, number.span, spans))
        and ("quoted" in wanted.allow or not is_quoted(text, number.span, wanted.sources))
    ]


def _said_once(text: str, kept: list[FoundNumber], wanted: WantedNumber) -> tuple[str, list[FoundNumber]]:
    """Returns text and numbers without the other form of a number that is said as a fraction and as a percentage.

    `3/8, or 37.5%` stays as 37.5% if the question asks for percent, else as 3/8.
    """
    in_percent = any(_PERCENT.search(one.text) for one in wanted.sources[:1])
    for first, second in pairwise(kept):
        between = text[first.span[1] : second.span[0]]
        if first.percent == second.percent or not _AGAIN.fullmatch(between):
            continue
        percent, fraction = (first, second) if first.percent else (second, first)
        if first.why or second.why or not isclose(percent.value, fraction.value * 100, rel_tol=1e-3):
            continue
        if fraction.value.is_integer():  # `1 (100% sure)`
            continue
        gone = first if first.percent != in_percent else second
        start, end = (first.span[0], second.span[0]) if gone is first else (first.span[1], second.span[1])
        end += gone is second and text[end : end + 1] == ")"
        return text[:start] + " " * (end - start) + text[end:], [number for number in kept if number is not gone]
    return text, kept


def _own(text: str, rest: Sequence[FoundNumber], wanted: WantedNumber) -> list[FoundNumber]:
    """Returns the numbers that the question does not have: an answer may repeat what it was calculated from.

    It must repeat all of it, and not end with one of these, which may then be its answer. The year of another time
    than the question's stays, as the number is of that time.
    """
    times = spans_of_times(text)
    asked = {number.value for one in wanted.sources[:1] for number in numbers_in(one.text, decimal=wanted.decimal)}
    own = [number for number in rest if number.value not in asked or _is_in(number, times)]
    repeated = [number for number in rest if number not in own]
    brackets = [match.span() for match in _BRACKETED.finditer(text)]
    aside = [*brackets, *(match.span() for match in _FROM_TO.finditer(text))]
    if not own or _is_in(own[0], brackets) or not asked <= {number.value for number in repeated}:
        return list(rest)
    is_last = all(number.span[0] < own[0].span[0] or _is_in(number, aside) for number in repeated)
    return own if is_last else list(rest)


def _is_in(number: FoundNumber, spans: Sequence[Span]) -> bool:
    return any(start <= number.span[0] < end for start, end in spans)


def _chosen(text: str, kept: Sequence[FoundNumber], wanted: WantedNumber) -> tuple[float | None, str]:
    first = kept[0]
    equals = list(_AFTER_EQUALS.finditer(_BRACKETED.sub(lambda match: " " * len(match[0]), text)))
    begins = wanted.marked and _LEADING.match(text[: first.span[0]]) is not None
    if begins and equals and re.match(r"[\s*]*=", text[first.span[1] :]):
        return _value(text, first, wanted)  # 42 = 6 × 7
    if begins and (not equals or equals[-1].end() <= first.span[0]):
        return _single(text, first, wanted)
    after = equals[-1].end() if equals else -1
    rest = [number for number in kept if number.span[0] >= after] if equals else list(kept)
    if not rest:
        return None, "the answer gives no number after '='"
    if "several" in wanted.allow:
        return _single(text, rest[-1], wanted)
    if len({number.value for number in rest}) > 1:
        periods = times_said(text, [one.text for one in wanted.sources])
        rest = [one for one in rest if not any(start <= one.span[0] < end for start, end in periods)] or rest
    if len({number.value for number in rest}) > 1:
        asides = [match.span() for match in _ASIDE.finditer(text)]
        main = [number for number in rest if not any(start <= number.span[0] < end for start, end in asides)]
        if len({number.value for number in main}) != 1:
            main = _own(text, rest, wanted)
        if len({number.value for number in main}) != 1 or _TURNS.search(text, main[-1].span[1]):
            return None, f"the answer gives {len({number.value for number in rest})} numbers; expected one"
        rest = main
    return _single(text, rest[-1], wanted)


def _single(text: str, number: FoundNumber, wanted: WantedNumber) -> tuple[float | None, str]:
    """Returns a number unless another one stands beside it as an alternative."""
    rest = text[number.span[1] :]
    further = _ANOTHER.match(rest) or _FURTHER.search(_BRACKETED.sub("", rest.partition(". ")[0]))
    if further and "several" not in wanted.allow:
        return None, "the answer gives a range or several numbers; expected one"
    return _value(text, number, wanted)


def _value(text: str, number: FoundNumber, wanted: WantedNumber) -> tuple[float | None, str]:
    """Returns a number unless it cannot be read, is only a bound, or is left open."""
    if number.why:
        return None, f"the answer cannot be read as a number: {number.why}"
    if "several" in wanted.allow:
        return number.value, ""
    if _BOUND.search(text[: number.span[0]].rstrip(" $*")):
        return None, "the answer gives a bound; expected a number"
    asks = text[number.span[1] :].strip(" *_`\"'”’.)") == "?"
    if (asks and not wanted.marked) or (not asks and is_left_open(text, number.span)):
        return None, "the answer leaves open which number is right"
    return number.value, ""

"""Decides whether words of an answer assert something, or whether they deny it, quote the question or leave it open."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from eval_pipeline.core.values import value

Span = tuple[int, int]

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BREAK = re.compile(
    r"[.;:!?](?=\s|$)|\n|,|—|–|\(|\)"
    r"|\b(?:(?<!anything )(?<!all )(?<!everyone )(?<!everybody )(?<!everything )but|however|although|instead,|rather,"
    r"|sondern|sino|mais|lecz)",
    re.IGNORECASE,
)
_IDIOMS = re.compile(
    r"\b(?:no|without(?: a| any)?|beyond(?: a| any)?) (?:doubt|question)\b|\bnot only\b|\bno wonder\b|\bnot just\b"
    r"|\bnothing but\b|\bnone other than\b|\bcan(?:not|'t|’t) be anything (?:but|other than)\b",
    re.IGNORECASE,
)
_DENYING_BEFORE = re.compile(
    r"\b(?:not|no|never|neither|nor|cannot|hardly|without|except|excluding|excludes?|unlike|false|wrong|incorrect|"
    r"rather than|instead of|other than|anything but|all but|far from|opposed to|ruled? out|ruling out|reject(?:s|ed)?|"
    r"every(?:body|one|thing) but|"
    r"den(?:y|ies|ied)|less likely|unlikely|least likely|none|nothing|"
    r"lacks?|lacking|avoids?|free of|i doubt|refuse to|"
    r"nicht|kein\w*|pas|non|não|niet|geen|nie|inte|не|ні)\b|n['’]t\b|不是|并非|並非|不等于",
    re.IGNORECASE,
)
_DENYING_AFTER = re.compile(
    r"^[\s\"'”’`*)]*(?:(?:label|category|class|option|answer)\s+)?(?:"
    r"(?:is|was|are|would be|seems?|looks?|can be|must be)\s+(?:clearly\s+|definitely\s+|certainly\s+)?"
    r"(?:not|never|wrong|false|incorrect|excluded|ruled out|rejected|unlikely|out of the question)\b"
    r"|(?:is|was|are|does|do|did|can|could|would|should|wo|ca)n['’]t\b|cannot\b|(?:does|do|did|can|could|would) not\b"
    r"|(?:ist|est|es|è|é)\s+(?:es\s+)?(?:nicht|falsch|faux|fausse|fals[oa]|incorrect[oa]|sbagliat[oa]|errad[oa])\b"
    r"|,?\s*(?:which|that|this|it)\s+(?:is|was)\s+(?:\w+\s+)?"
    r"(?:wrong|false|incorrect|not (?:right|correct|the answer))\b"
    r"|değil|では(?:な|ありませ)|じゃな|[이가은는]?\s?아[니닙]"
    r"|[:=–—-]\s*(?:no|wrong|false|incorrect)\b|\?\s*(?:no|not|wrong)\b|,?\s*not\b(?!\s+\w))",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|without|hardly|lack(?:s|ing)?)\b|n['’]t\b", re.IGNORECASE)
_OTHERS = re.compile(r"\b(?:neither|nor|either|also|too|as well|likewise)\b", re.IGNORECASE)
_FILLERS = frozenset(
    "the any all been yet has had have was were are ever being does did its his her their our your for with and".split()
)
_ENDING = re.compile(r"(?<=\w{3})(?:ing|e?[sd]|e)$")
_QUESTION_SLACK = 4
_SPOKEN_OF = re.compile(r"\b(?:non[-–\s]|(?:word|term|phrase)s?\s+[\"'“‘`]?)$", re.IGNORECASE)
"""What stands before a word that is turned round (`non-negative`) or only spoken of (`the word negative`)."""
_SUPPOSED = re.compile(
    r"(?:\b(?:if|unless|whether|suppos(?:e|ing)|assum(?:e|ing)|imagine|wenn|falls|als|если)\s+(?:that\s+)?"
    r"(?:it|this|that|they|there|es|das|het|это|the\s+(?:right\s+|correct\s+)?\w+)"
    r"(?:['’]s|\s+(?:were|was|is|are|had been|equals))?|\bwere it|\bsi (?:c['’]était|fuera|fuese)|\bse fosse)"
    r"\s+(?:about\s+|only\s+|option\s+|answer\s+)?[\"'“*($]*$",
    re.IGNORECASE,
)
"""What stands before a mention that is only supposed: `if it were 42`."""
_GIVEN_UP_BEFORE = re.compile(
    r"\b(?:(?:i|we)\s+(?:\w+\s+)?(?:thought|guessed|said|assumed|believed|expected|got|had)|at first|initially)\b"
    r"[^.;\n]*$",
    re.IGNORECASE,
)
_GIVEN_UP_AFTER = re.compile(
    r"^[\s\"'”’`*)]*(?:(?:is|was)\s+(?:tempting|attractive|plausible|close)|(?:seem|look|appear)(?:s|ed)?\s+\w+)\b",
    re.IGNORECASE,
)
_BUT = re.compile(r"^[^.;\n]{0,60}?\b(?:but|however)\b[^.;\n]{0,60}?(?:\b(?:is|be)\b|['’]s\b)", re.IGNORECASE)
_WINDOW = 400
_MOST_WORDS_BEFORE = 7
"""How many words ahead in its clause a denial applies."""
_ALTERNATIVE = re.compile(r"^[\s\"'”’`*.)]*(?:,?\s*(?:and/or|or)\b|/|\?)", re.IGNORECASE)
_ALTERNATIVE_BEFORE = re.compile(r"(?:\b(?:and/or|or|either)|/)[\s\"'“‘`*(]*(?:an?\s+|the\s+)?$", re.IGNORECASE)
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


@value
class QuotableText:
    """A text that an answer may quote.

    Attributes:
        slack: how many words around a mention may be copied from it.
    """

    text: str
    slack: int


def words_of(text: str) -> list[tuple[str, int, int]]:
    """Returns the words of a text in lower case, with their positions."""
    return [(match[0].casefold().replace("’", "'"), match.start(), match.end()) for match in _WORD.finditer(text)]


def is_denied(text: str, span: Span, among: Sequence[Span] = ()) -> bool:
    """Returns whether the clause around a mention denies it.

    Args:
        text: the answer section.
        span: position of the mention.
        among: positions of all mentions, whose words never deny anything (a label may be `no`).
    """
    # only the clause around the mention counts, so that the time does not depend on the length of the text
    offset = max(span[0] - _WINDOW, 0)
    text, span = text[offset : span[1] + _WINDOW], (span[0] - offset, span[1] - offset)
    among = [
        (max(start - offset, 0), end - offset) for start, end in among if offset < end and start < offset + len(text)
    ]
    text = _IDIOMS.sub(lambda match: " " * len(match[0]), text)
    if _SPOKEN_OF.search(text[: span[0]]) or _SUPPOSED.search(text[: span[0]]) or _is_given_up(text, span, among):
        return True
    start = max((found.end() for found in _BREAK.finditer(text, 0, span[0])), default=0)
    before = _blanked(text, among)[start : span[0]]
    words = list(_WORD.finditer(before))
    if len(words) > _MOST_WORDS_BEFORE:
        before = before[words[-_MOST_WORDS_BEFORE].start() :]
    if _DENYING_BEFORE.search(before):
        return True
    after = text[span[1] : span[1] + 80]
    return bool(_DENYING_AFTER.match(after))


def without_asked_denials(text: str, question: str, right: str) -> str:
    """Returns a text with blanks for the denials that the question has itself: `V-1070 is not balanced`.

    A denial is the question's own if it is of a word that the question denies as well, and that is no word of the
    right answer. Where there are several, or others are spoken of, they may be about others, and stay.
    """
    stems = {_stem(word) for word, _, _ in words_of(right)}
    asked = {word for found in _NEGATION.finditer(question) for word in _denied_words(question, found.end(), 2)} - stems
    own = [one.span() for one in _NEGATION.finditer(text) if asked.intersection(_denied_words(text, one.end(), 1))]
    return _blanked(text, own) if len(own) == 1 and not _OTHERS.search(text) else text


def _denied_words(text: str, start: int, most: int) -> list[str]:
    """Returns the first words with a meaning after a denial, in its clause, without their endings."""
    end = next((found.start() for found in _BREAK.finditer(text, start, start + _WINDOW)), start + _WINDOW)
    words = (word for word, _, _ in words_of(text[start:end]))
    return [_stem(word) for word in words if len(word) > 2 and word not in _FILLERS][:most]


def _stem(word: str) -> str:
    return _ENDING.sub("", word)[:5]


def _is_given_up(text: str, span: Span, among: Sequence[Span]) -> bool:
    """Returns whether a mention is what was thought before the next one: `I thought 41, but it is 42`."""
    after = text[span[1] :]
    but = _BUT.match(after)
    if but is None or not any(start >= span[1] + but.end() for start, _ in among):
        return False
    return bool(_GIVEN_UP_BEFORE.search(text[: span[0]]) or _GIVEN_UP_AFTER.match(after))


def is_left_open(text: str, span: Span) -> bool:
    """Returns whether a mention is one of several alternatives or a question: `A or B`, `either A`, `A?`."""
    return bool(_ALTERNATIVE.match(text[span[1] : span[1] + 40]) or _ALTERNATIVE_BEFORE.search(text[: span[0]][-40:]))


def is_both(text: str, span: Span) -> bool:
    """Returns whether a mention is half of an answer that says both, e.g. `yes and no`, `true but also false`."""
    other = _OPPOSITES.get(text[slice(*span)].casefold())
    after = text[span[1] : span[1] + 40]
    if other is None or re.match(r"\s+(?!and\b|but\b)\w", after, re.IGNORECASE):
        return False
    return bool(
        re.match(rf"[\"'”’`*]*,?\s+(?:and|but|&)\s+(?:also\s+)?[\"'“‘`*]*{other}\b(?!\s+\w)", after, re.IGNORECASE)
        or re.search(
            rf"\b{other}[\"'”’`*]*,?\s+(?:and|but|&)\s+(?:also\s+)?[\"'“‘`*]*$", text[: span[0]][-40:], re.IGNORECASE
        )
    )


def is_listed(text: str, span: Span) -> bool:
    """Returns whether a mention is an item of a list of three or more: `A, B, C`, or lines with bullets."""
    start, end = text.rfind("\n", 0, span[0]) + 1, text.find("\n", span[1])
    line = text[start : len(text) if end < 0 else end]
    at = span[0] - start
    items = list(re.finditer(r"[^,;|•·]+", re.sub(r"(?<=\d),(?=\d{3})", " ", line)))
    short = [item for item in items if len(item[0].split()) <= 4]
    inside = any(item.start() <= at < item.end() for item in short)
    if len(items) >= 3 and len(short) == len(items) and inside and not re.search(r"[,;|•·]", text[span[0] : span[1]]):
        return True
    bullets = [row for row in text.splitlines() if re.match(r"\s*(?:[-*•·+]|\(?\w{1,2}[.)])\s+\S", row)]
    return len(bullets) >= 3 and bool(re.match(r"\s*(?:[-*•·+]|\(?\w{1,2}[.)])\s+\S", line))


def is_quoted(text: str, span: Span, sources: Iterable[QuotableText]) -> bool:
    """Returns whether a mention is in a run of words that is copied from a source and longer than necessary."""
    words = words_of(text)
    return any(_in_copy(words, span, source) for source in sources)


def _in_copy(words: Sequence[tuple[str, int, int]], span: Span, source: QuotableText) -> bool:
    theirs = [word for word, _, _ in words_of(source.text)]
    starts = [start for _, start, _ in words]
    first = max(bisect_right(starts, span[0]) - 1, 0)
    last = max(bisect_left(starts, span[1]) - 1, first)
    mine = [word for word, _, _ in words]
    needed = last - first + 1
    longest = _longest_copy(mine, theirs, first, last)
    says_nothing_else = source.slack <= _QUESTION_SLACK and longest == len(mine) and longest >= needed + 2
    return longest > needed + source.slack or says_nothing_else


def _longest_copy(mine: Sequence[str], theirs: Sequence[str], first: int, last: int) -> int:
    """Returns the length of the longest run around `first`…`last` that also occurs in the other text."""
    needed = mine[first : last + 1]
    longest = 0
    for at in _places(theirs, needed):
        before = 0
        while first - before > 0 and at - before > 0 and mine[first - before - 1] == theirs[at - before - 1]:
            before += 1
        after, end = 0, at + len(needed)
        while (
            last + after + 1 < len(mine) and end + after < len(theirs) and mine[last + after + 1] == theirs[end + after]
        ):
            after += 1
        longest = max(longest, before + len(needed) + after)
        if longest > len(needed) + 60:
            break
    return longest


def _places(theirs: Sequence[str], needed: Sequence[str]) -> Iterator[int]:
    size = len(needed)
    return (at for at in range(len(theirs) - size + 1) if list(theirs[at : at + size]) == list(needed))


def _blanked(text: str, spans: Iterable[Span]) -> str:
    for start, end in spans:
        text = text[:start] + "".join(" " if not found.isspace() else found for found in text[start:end]) + text[end:]
    return text

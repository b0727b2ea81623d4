"""Words that introduce an answer, by language, and the pattern of all of them."""

import re
from collections.abc import Iterable

from eval_pipeline.core.values import value


@value
class Language:
    """How a language introduces an answer.

    Attributes:
        nouns: words for an answer.
        verbs: words that may stand between the noun and the answer: `the answer is B`.
        comma: whether the decimal sign is a comma, so that 1.234 may be 1234.
        spaced: whether words are separated by spaces.
    """

    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    comma: bool = True
    spaced: bool = True


LANGUAGES = {
    "en": Language(("answer", "ans"), ("is", "would be", "must be", "should be", "equals"), comma=False),
    "de": Language(("antwort", "lösung", "ergebnis"), ("ist", "lautet", "wäre", "beträgt")),
    "fr": Language(("réponse", "résultat"), ("est", "serait")),
    "es": Language(("respuesta", "resultado"), ("es", "sería")),
    "it": Language(("risposta", "risultato"), ("è", "sarebbe")),
    "pt": Language(("resposta",), ("é", "seria")),
    "nl": Language(("antwoord",), ("is", "luidt")),
    "pl": Language(("odpowiedź", "odpowiedzią"), ("to", "jest", "brzmi")),
    "sv": Language(("svar", "svaret"), ("är",)),
    "tr": Language(("cevap", "yanıt"), ()),
    "ru": Language(("ответ",), ("—", "–", "это")),
    "uk": Language(("відповідь",), ("—", "–", "це")),
    "zh": Language(("答案", "回答"), ("是", "为", "為", "应为", "應為"), comma=False, spaced=False),
    "ja": Language(("答え", "正解", "回答", "解答"), ("は",), comma=False, spaced=False),
    "ko": Language(("정답", "답변", "답"), ("은", "는"), comma=False, spaced=False),
}
_ADJECTIVES = (
    "final|correct|finale|correcte|bonne|juste|correcta|correcto|finalmente|corretta|giusta|correta|certa|richtige|"
    "endgültige|juiste|option|choice"
)
_AFTER = r"[\s*_`\"'“”]{0,6}"
"""Marks after a marker that do not belong to the answer."""
_WEAK = (
    "label|category|class|classification|result|solution|sentiment|tone|verdict|conclusion|option|choice|letter|letra"
)


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _spaced(languages: Iterable[Language]) -> str:
    found = list(languages)
    nouns, verbs = _any(n for one in found for n in one.nouns), _any(v for one in found for v in one.verbs)
    return (
        rf"(?<![\w])(?:{nouns})(?:\s+(?:to|for|of)(?:\s+[\w']{{1,20}}){{1,5}}?|\s+(?:{_ADJECTIVES}))?"
        rf"(?:[*_`\"'”]{{0,4}}\s?[:：=]|\s+(?:{verbs})(?!\w)(?:\s*:)?)"
    )


def _unspaced(languages: Iterable[Language]) -> str:
    found = list(languages)
    nouns, verbs = _any(n for one in found for n in one.nouns), _any(v for one in found for v in one.verbs)
    return rf"(?:{nouns})(?:[*_`\"']{{0,4}}\s?[:：=]|\s?(?:{verbs})\s?[:：]?)"


STRONG = re.compile(
    rf"(?:{_spaced(one for one in LANGUAGES.values() if one.spaced)}"
    rf"|{_unspaced(one for one in LANGUAGES.values() if not one.spaced)}"
    rf"|(?m:^[ \t>*_#-]{{0,6}}A[*_]{{0,2}}:|^[ \t*_#]{{0,8}}(?:final\s)?answer[*_ \t]{{0,4}}$(?=\n[ \t]*\S)"
    rf"|^[ \t]*####(?=[ \t]*[-$€£¥]?\.?\d)))[ \t]*[*_`]{{0,3}}",
    re.IGNORECASE,
)
"""Words that introduce an answer wherever they stand: `Answer:`, `the answer is`, a heading, or GSM8K's `#### 42`."""
WEAK = re.compile(
    rf"(?im)(?:^[ \t>*_#`~-]{{0,8}}|\b(?:the|my|correct|final|overall|this)\s+)"
    rf"(?:(?:correct|final|right|best|overall)\s+)?(?:{_WEAK})"
    rf"(?:\s+is(?!\w)\s*:?|[*_` \t]{{0,4}}[:=])[ \t]*[*_`]{{0,3}}"
)
"""Words that introduce an answer if no others do."""
COMMA = re.compile(
    rf"(?<!\w)(?:{_any(n for one in LANGUAGES.values() if one.comma for n in one.nouns)})(?!\w)"
    rf"|(?<![\d.,])\d{{1,3}}(?:\.\d{{3}})+,\d{{1,2}}(?![\d.,])",
    re.IGNORECASE,
)
"""Evidence that a text writes a comma as decimal sign: a marker of such a language, or a number such as 1.234,56."""

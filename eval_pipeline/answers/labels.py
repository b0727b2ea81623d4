"""Finds the single label that an answer gives."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from eval_pipeline.answers.mentions import QuotableText, Span, is_denied, is_quoted
from eval_pipeline.core.values import value

_LETTER_AFTER: Final = r"(?=\s*$|[)\].:,;!]|\s+(?:is|because|since|as)\b|\s*[—–]|\s-\s|[。，、]|です|입니다)"
_BEFORE_LETTER: Final = (
    "is be it's it’s choose chose pick select say with hence so thus therefore la die ist est es è é är wait, "
    "actually actually, no, correction:"
).split()
_NAMING: Final = "option choice answer letter letra lettre lettera".split()
"""Words after which a letter is an option, even a small one."""
_EDGES = " \t\n\r\"'“”‘’`*_.,;:!?()[]{}<>#-"
_ENDS = _EDGES.replace("#", "").replace("-", "")
"""Marks after a label; `C#` and `A-` are no label C or A."""
_MOST_MENTIONS = 50
"""An answer that repeats itself more often is none, and each mention takes time in proportion to the text."""
_MOST_LISTED = 200
_TURNED = re.compile(
    r"\b(?:actually|wait|correction|on second thought|scratch that|no,|hmm|i mean|rather|instead|sorry|oops)\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:hence|thus|therefore|overall|consequently|in conclusion|ultimately|all in all)\b|(?:^|[.,;]\s)so\b(?=,? )",
    re.IGNORECASE,
)


_NO_ANSWER = re.compile(r"no\s+(?:idea|clue|data|info(?:rmation)?|answer|opinion|way\s+(?:to|of))\b", re.IGNORECASE)
"""What says that there is no answer, and not that it is no."""
_SAME_AS = {"yes": ("true", "yep", "yeah"), "no": ("false", "nope", "nah"), "true": ("yes",), "false": ("no",)}
"""What says the same as a label if an answer consists of it, as in `{"answer": false}`."""
_ASIDE = re.compile(
    r"\(\s*(?:although|though|even (?:though|if)|despite|while|since|because|rather than|instead of)\b"
    r"(?![^()]*\b(?:i|we|right|correct|really|actually|better|best|also|more|too)\b)[^().;]*\)",
    re.IGNORECASE,
)


@value
class Mention:
    """A label that an answer mentions."""

    label: str
    span: Span


Labels = Mapping[str, Sequence[str]]
"""Labels with other names for each."""


def label_of(text: str, labels: Labels) -> str | None:
    """Returns the label that a text consists of, ignoring case and surrounding marks; None for other texts."""
    names = _names(_frozen(labels))
    bare = text.lstrip(_EDGES).rstrip(_ENDS)
    return next((names[name] for name in map(_folded, (text, text.strip(" .*_\n"), bare)) if name in names), None)


def mentions_of(text: str, labels: Labels) -> list[Mention]:
    """Returns every mention of a label, in order; of overlapping names, the longest counts."""
    return [
        Mention(_names(_frozen(labels))[_folded(match[0])], match.span())
        for match in _pattern(_frozen(labels)).finditer(text)
        if not (match[0].casefold() == "no" and _NO_ANSWER.match(text, match.start()))
    ]


def asserted(text: str, labels: Labels, sources: Sequence[QuotableText], allow: frozenset[str]) -> list[str]:
    """Returns the labels that a text says are right, in order and without duplicates."""
    found = mentions_of(text, labels)
    letters = [word for word in re.findall(r"\w+", text[:_MOST_LISTED]) if word not in {"and", "or"}]
    if len(letters) > 1 and all(len(word) == 1 and word in labels for word in letters):
        return list(dict.fromkeys(letters))
    if len(found) > _MOST_MENTIONS:
        return list({mention.label: None for mention in found}) if len({m.label for m in found}) > 1 else []
    spans = [mention.span for mention in found]
    kept = [
        mention.label
        for mention in found
        if ("negated" in allow or not is_denied(text, mention.span, spans))
        and ("quoted" in allow or not is_quoted(text, mention.span, sources))
    ]
    return list(dict.fromkeys(kept))


def concluded(text: str, labels: Labels, sources: Sequence[QuotableText], allow: frozenset[str]) -> list[str]:
    """Returns the labels that a text asserts after the last word that concludes, such as `hence`."""
    found = list(_CONCLUDES.finditer(text))
    return asserted(text[found[-1].end() :].lstrip(" ,:"), labels, sources, allow) if found else []


def outside_asides(text: str, labels: Labels, sources: Sequence[QuotableText], allow: frozenset[str]) -> list[str]:
    """Returns the labels that a text asserts outside of brackets that explain, as `billing (not refund)`."""
    return asserted(_ASIDE.sub("", text), labels, sources, allow)


def bare_line(text: str, labels: Labels) -> str | None:
    """Returns the label on a line of its own, if there is one such line or all of them have the same label."""
    lines = {found for line in text.splitlines() if line.strip() and (found := label_of(line, labels))}
    return lines.pop() if len(lines) == 1 else None


def first_line_label(text: str, labels: Labels) -> str | None:
    """Returns the label that the first line of a section consists of, unless the text after it withdraws it."""
    first, _, rest = text.strip().partition("\n")
    found = label_of(re.split(r"\s+[(–—-]|[.;]\s", first, maxsplit=1)[0], labels)
    if found is None:
        return None
    others = {mention.label for mention in mentions_of(f"{first}\n{rest}", labels)} - {found}
    return None if others and (_TURNED.search(rest or first) or len(others) >= len(labels) - 1 > 1) else found


def is_taken_back(text: str, label: str, labels: Labels) -> bool:
    """Returns whether a text changes to another label after the line with this one."""
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if label_of(line, labels) == label)
    rest = "\n".join(lines[at + 1 :])
    return bool(_TURNED.search(rest)) and any(mention.label != label for mention in mentions_of(rest, labels))


def _folded(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.casefold().strip()))


def _frozen(labels: Labels) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((label, tuple(names)) for label, names in labels.items())


@lru_cache(maxsize=64)
def _names(labels: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, str]:
    same = {name: label for label, _ in labels for name in _SAME_AS.get(_folded(label), ())}
    return same | {_folded(name): label for label, others in labels for name in (label, *others)}


@lru_cache(maxsize=64)
def _pattern(labels: tuple[tuple[str, tuple[str, ...]], ...]) -> re.Pattern[str]:
    """Returns a pattern for names as whole words, longest first; a one-letter name must look like an option."""
    names = sorted({name for label, others in labels for name in (label, *others)}, key=len, reverse=True)
    return re.compile("|".join(map(_form, names)))


def _form(name: str) -> str:
    parts = [re.escape(part) for part in re.split(r"[\s_-]+", name.strip())]
    inner = r"[\s_-]+".join(parts)
    if len(name) == 1 and name.isalpha():
        before = "|".join(rf"(?<=\b(?i:{word}) )" for word in _BEFORE_LETTER)
        naming = "|".join(rf"(?<=\b(?i:{word}) )" for word in _NAMING)
        return (
            rf"(?=(?i:{inner}))(?:(?<=[选選は是为為]){inner}{_LETTER_AFTER}|(?<![\w'’-])(?:{inner}(?=[)\]])|(?:{before}|\A){inner}{_LETTER_AFTER}"
            rf"|(?<=[.,:;] ){inner}(?=\s+(?:is|because)\b)|(?:{naming})(?i:{inner})(?![\w'’]){_LETTER_AFTER}))"
        )
    return rf"(?<!\w)(?i:{inner})(?!\w)"

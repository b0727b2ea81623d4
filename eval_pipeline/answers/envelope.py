"""Finds the part of a response that gives the answer, and whether it breaks off."""

import json
import re
from collections.abc import Callable
from typing import Any

from eval_pipeline.answers.json_text import lenient_json
from eval_pipeline.answers.markers import STRONG, WEAK
from eval_pipeline.answers.markup import plain
from eval_pipeline.core.values import value

KEYS = ("answer", "final_answer", "label", "category", "class", "result", "solution")
"""Fields of a JSON object in which models put their answer."""
_ASIDE = frozenset(
    "reasoning reason reasons explanation rationale analysis thought thoughts confidence score notes".split()
)
"""Fields that say something about an answer."""
_FIELD = re.compile(r"""(?<![\w])["'](?:final[_ ])?answer["']\s*:\s*(?=\S)""", re.IGNORECASE)
_CLOSES = re.compile(r"\s*(?:,\s*[\"'}\]]|[}\]`)]|\\\]|$|\n|\.?\s*$)")
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_TAG = re.compile(r"<(?:final_)?answer>(.{0,2000}?)</(?:final_)?answer>", re.IGNORECASE | re.DOTALL)
_ONLY_IF = re.compile(r"\b(?:if|whether|unless)\s+(?:the|your|my|this)\s+(?:\w{1,12}\s+)?$", re.IGNORECASE)
"""What stands before a marker that introduces nothing: `whether the answer is 42`."""
_FENCE = re.compile(r"(?m)^[ \t]*(?:```|~~~)[\w-]*[ \t]*$")
_OPEN_FENCE = re.compile(r"^\s*(?:```|~~~)\s*\w*\s*")
_LAST_WORD = re.compile(r"([^\W\d_]+(?:['’][^\W\d_]+)?)[ \t]*$")
_OPEN_WORDS = frozenset(
    "a an and are as at be because been being but by either for from if in into is it's its may might neither nor not "
    "of on or probably since so than that the their then this to versus vs was were when whether which while will with "
    "without would isn't aren't wasn't i".split()
)
"""Words with which no sentence ends."""
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"))
MOST_CHARS = 200_000
_MOST_BOX = 2_000
_MOST_PLACES = 8
"""Only the last ones are looked at, so that a text full of them takes no longer."""
_CONTROLS = {"\f": "\\f", "\b": "\\b", "\t": "\\t", "\r": "\\r", "\v": "\\v"}


@value
class Section:
    """The part of a response that gives the answer.

    Attributes:
        text: without the words that introduce it.
        marked: whether the response introduces it, as `Answer: …` does.
        closed: whether its end is given, too, as in JSON or a box.
    """

    text: str
    marked: bool
    closed: bool = False


@value
class _Place:
    start: int
    end: int
    section: Section


def answer_section(text: str) -> Section:
    r"""Returns the part of a response that gives the answer.

    It is what the last of these introduces: the field `answer` of a JSON object (which may be broken), `Answer:` or
    `the answer is` in one of several languages, a box (`\boxed{…}`), a tag (`<answer>`); otherwise the last paragraph.
    A JSON object that parses is taken whole: what its other fields say introduces nothing.
    """
    text = text.strip()
    whole = _object(text)
    if whole is not None:
        found = [place for place in _places(text) if place.start >= whole.end or place.end <= whole.start]
        later = [place for place in found if place.start >= whole.end and _says_more(place)]
        return later[-1].section if later else whole.section
    places = _places(text)
    if places:
        last = places[-1]
        around = [place for place in places[:-1] if last.start < place.end and place.section.closed]
        return around[0].section if around and not last.section.closed else last.section
    bare = _FENCE.sub("", text).strip()
    weak = list(WEAK.finditer(bare))
    if weak:
        return Section(bare[weak[-1].end() :].strip(), True)
    paragraphs = [part.strip() for part in re.split(r"\n[ \t]*\n", bare) if part.strip()]
    return Section(paragraphs[-1] if paragraphs else "", False)


def breaks_off_in_json(text: str) -> bool:
    """Returns whether a response is a JSON object that ends before its answer."""
    bare = _OPEN_FENCE.sub("", text.strip())
    is_object = re.match(r"\{\s*[\"']\w+[\"']\s*:", bare) is not None
    return is_object and not _places(text) and not lenient_json(text, lambda value: isinstance(value, dict))


def _says_more(place: _Place) -> bool:
    """Whether words after a JSON object give an answer, and do not only speak of it."""
    return bool(re.match(r"[\s*$\"'(\\\[]{0,8}(?:[-−]?[$€£]?\.?\d|[A-Z]\b|\\boxed)", place.section.text))


def _object(text: str) -> _Place | None:
    """Returns the answer of the last JSON object that has one, such as `{"reasoning": "…", "answer": "yes"}`."""
    found: list[tuple[Any, int, int]] = lenient_json(text, _wraps)
    if not found:
        return None
    value, start, end = found[-1]
    name = next((name for name in KEYS if name in value), None) or _only_field(value)
    return _Place(start, end, Section(_as_text(value[name]), True, True))


def _wraps(value: Any) -> bool:
    return isinstance(value, dict) and (
        any(name in value and not isinstance(value[name], dict) for name in KEYS) or _only_field(value) is not None
    )


def _only_field(value: dict[str, Any]) -> str | None:
    """Returns the one field of an object that can be its answer: `{"sentiment": "negative", "confidence": 0.9}`."""
    names = [name for name in value if name.casefold() not in _ASIDE]
    return names[0] if len(names) == 1 and isinstance(value[names[0]], str | int | float) else None


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    # JSON reads the `\f` of `\frac` as a form feed, because models do not double the backslash
    return "".join([_CONTROLS[sign] if sign in _CONTROLS and value[at + 1 : at + 2].isalpha() else sign
                    for at, sign in enumerate(value)]).strip()  # fmt: skip


def _places(text: str) -> list[_Place]:
    """Returns the last of the things that introduce an answer, in order."""
    fields = list(_FIELD.finditer(text))
    named = {match.start() for match in fields}
    found: list[tuple[int, Callable[[str, re.Match[str]], _Place | None], re.Match[str]]] = [
        (match.start(), _field, match) for match in fields
    ]
    found += [(match.start(), _box, match) for match in _BOX.finditer(text)]
    found += [(match.start(), _tag, match) for match in _TAG.finditer(text)]
    found += [
        (match.start(), _marker, match)
        for match in STRONG.finditer(text)
        if named.isdisjoint(range(match.start() - 8, match.end()))
    ]
    last = sorted(found, key=lambda one: one[0])[-_MOST_PLACES:]
    return [place for _, read, match in last if (place := read(text, match)) is not None]


def _marker(text: str, match: re.Match[str]) -> _Place | None:
    if _ONLY_IF.search(text[max(match.start() - 40, 0) : match.start()]):
        return None
    return _Place(match.start(), match.end(), Section(_FENCE.sub("", text[match.end() :]).strip(), True))


def _tag(text: str, match: re.Match[str]) -> _Place:
    return _Place(match.start(), match.end(), Section(match[1].strip(), True, True))


def _box(text: str, match: re.Match[str]) -> _Place | None:
    depth = 1
    for at in range(match.end(), min(len(text), match.end() + _MOST_BOX)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return _Place(match.start(), at + 1, Section(text[match.end() : at].strip(), True, True))
    return None


def _field(text: str, match: re.Match[str]) -> _Place:
    """Returns the value of a field `answer` where the JSON around it is broken."""
    start = match.end()
    quote = text[start]
    if quote in "\"'":
        at = text.find(quote, start + 1)
        while at >= 0 and (text[at - 1] == "\\" or not _CLOSES.match(text, at + 1)):
            at = text.find(quote, at + 1)
        if at >= 0:
            return _Place(match.start(), at + 1, Section(_unescaped(text[start + 1 : at]).strip(), True, True))
        return _Place(match.start(), len(text), Section(text[start + 1 :].strip(), True))
    end = re.compile(r"\n|,\s*[\"']|\}|$").search(text, start)
    until = end.start() if end else len(text)
    return _Place(match.start(), until, Section(text[start:until].strip(" ,"), True, True))


def _unescaped(inner: str) -> str:
    try:
        return _as_text(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        return inner.replace('\\"', '"').replace("\\\\", "\\")


def last_line(text: str) -> str:
    """Returns the last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def why_unfinished(section: Section) -> str | None:
    """Returns why a section is not a finished answer, or None if it is one."""
    text = section.text.strip()
    if not text:
        return "the answer is empty"
    bare = plain(text)
    last = _LAST_WORD.search(bare)
    # A text of one word may be the answer "it", or the option A.
    is_name = section.closed and last is not None and last[1] in {"A", "I"}
    if last and not is_name and last[1].casefold().replace("’", "'") in _OPEN_WORDS and len(bare.split()) > 1:
        return f"the answer breaks off after '{last[1]}'"
    if section.closed:
        return None
    if bare.endswith(("…", "...")):
        return "the answer breaks off with dots"
    if bare.endswith((",", ";", ":", "-", "–", "—", "/", "&", "+", "=", "(", "[", "{", "“", "«")):
        return f"the answer breaks off after '{bare[-1]}'"
    for opening, closing in _PAIRS:
        if text.count(opening) > text.count(closing):
            return f"the answer breaks off: '{opening}' is not closed"
    return None

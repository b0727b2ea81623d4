"""Compares an answer with the expected one: texts, numbers, sets, JSON, and the content of the answer section."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from unicodedata import combining, normalize

from eval_pipeline.answers.labels import asserted
from eval_pipeline.answers.mentions import (
    QuotableText,
    Span,
    is_both,
    is_denied,
    is_left_open,
    is_listed,
    is_quoted,
    words_of,
)
from eval_pipeline.core.ids import canonical_json, json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.numbers import number_text
from eval_pipeline.core.values import value
from eval_pipeline.table_comparison.cells import moment_in
from eval_pipeline_plugins.tracks.text.cases.settings import AnswerForm, Exact, JsonField
from eval_pipeline_plugins.tracks.text.comparing.patterns import compiled

_MOST_MATCHES = 30
"""An answer that repeats itself more often is none, and each match takes time in proportion to the text."""
_MOST_LITERAL = 20_000
_LITERAL_STARTS, _LITERAL_ENDS = frozenset("[{('\""), frozenset("]})'\"")
_EDGE = re.compile(r"^(?:the|an?)\s+|[.!]+$")
_MONTH_ONLY = re.compile(r"\d{4}\D\d{1,2}|[^\W\d]+\.?,? \d{4}")
"""A month of a year, which is not its first day."""
_BULLET = re.compile(r"^\s*(?:[-*•·+]|\(?\d{1,3}[.)])\s+")


@value
class MatchTarget:
    """What an answer is compared with.

    Attributes:
        expected: the right answers.
        sources: texts that an answer must not merely quote.
    """

    expected: Sequence[Json]
    form: AnswerForm
    sources: Sequence[QuotableText]


def same_text(said: str, expected: str, rules: Exact) -> bool:
    """Returns whether two texts are equal by the rules of `exact`.

    An expected literal of Python or JSON (a list, a mapping, a text in quotes) is compared by value instead.
    """
    right = _literal(expected)
    if right is not None:
        given = _literal(said)
        return (type(given) is type(right) and bool(given == right)) or (
            isinstance(right, str) and said.strip() == right
        )

    def folded(text: str) -> str:
        text = normalize("NFD" if rules.ignore_accents else "NFC", " ".join(text.split()))
        text = "".join([sign for sign in text if not combining(sign)]) if rules.ignore_accents else text
        text = text.casefold() if rules.ignore_case else text
        if not rules.ignore_punctuation:
            return text
        bare = " ".join(re.sub(r"(?<!\d)(?![<>≤≥]\s?\d)[^\w\s%$€£+-]|[^\w\s%$€£+-](?!\d)", " ", text).split())
        return _EDGE.sub("", bare) or text

    if rules.dates and (moment := moment_in(expected.strip())) is not None:
        given = re.sub(r"^(?:on )?(?:the )?(?=\d)", "", said.strip(" .\n"), flags=re.IGNORECASE)
        same_kind = bool(_MONTH_ONLY.fullmatch(given)) is bool(_MONTH_ONLY.fullmatch(expected.strip()))
        return same_kind and moment_in(given) == moment
    if rules.unordered:
        given = items_of(said, with_signs="&" not in expected)
        return {folded(item) for item in given} == {folded(item) for item in items_of(expected)}
    return folded(said) == folded(expected)


def _literal(text: str) -> Any:
    """Returns the value of a text that is a list, tuple, mapping, set or quoted text; None for any other."""
    from ast import literal_eval

    text = text.strip()
    if text[:1] not in _LITERAL_STARTS or text[-1:] not in _LITERAL_ENDS or len(text) > _MOST_LITERAL:
        return None
    for read in (literal_eval, json.loads):
        try:
            found = read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return found
    return None


def same_number(said: float, expected: float, absolute: float, relative: float) -> bool:
    """Returns whether a number is within either tolerance; `relative` is a share of the expected number."""
    distance = abs(said - expected)
    # A half-unit in the last place of the tolerance itself is float noise: 0.1 is within 0.1 of 0.2.
    return distance <= max(absolute, relative * abs(expected)) * (1 + 1e-12) + 1e-15 * abs(expected)


def contains(section: str, asked: MatchTarget, *, ignore_case: bool) -> bool:
    """Returns whether the section gives one of the expected texts as its answer."""
    if asked.form.labels and len(_labels(section, asked)) > 1 and "several" not in asked.form.allow:
        return False
    for expected in asked.expected:
        spans = list(islice(_places(section, str(expected), ignore_case), _MOST_MATCHES + 1))
        if len(spans) <= _MOST_MATCHES and any(_counts(section, span, asked) for span in spans):
            return True
    return False


def finds(section: str, asked: MatchTarget, pattern: str, *, ignore_case: bool) -> bool:
    """Returns whether the pattern matches in the section; its group, if any, must be one of the expected answers."""
    if asked.form.labels and len(_labels(section, asked)) > 1 and "several" not in asked.form.allow:
        return False
    form = compiled(pattern, ignore_case=ignore_case)
    group = 1 if form.groups else 0
    found = []
    for count, match in enumerate(form.finditer(section)):
        if count >= _MOST_MATCHES:
            return False
        if match.group(group) and _counts(section, match.span(group), asked):
            found.append(match.group(group))
    if not group or not found:
        return bool(found)
    values = list({_key(text, asked.form): text for text in found}.values())
    if len(values) > 1 and "several" not in asked.form.allow:
        return False
    return any(_same(text, expected, asked.form) for text in values for expected in asked.expected)


def items_of(answer: Json, *, with_signs: bool = False) -> list[str]:
    """Returns the items of an answer that is a list (JSON, lines or commas), without duplicates and in lower case.

    With `with_signs`, `&` comes before the last one; it may be in a name, too.
    """
    last = "and|&" if with_signs else "and"
    if isinstance(answer, str):
        bare = answer.strip()
        parts = _json_list(bare) or re.split(rf"[,;\n]|\s+(?:{last})\s+(?=\S+$)", bare)
    else:
        parts = answer if isinstance(answer, list) else list(answer)
    texts = (part if isinstance(part, str) else canonical_json(part) for part in parts)
    named = (" ".join(_BULLET.sub("", text).strip(" \t\"'`*.").casefold().split()) for text in texts)
    return list(dict.fromkeys(re.sub(rf"^(?:{last})\s+", "", name) for name in named if name))


def f1(said: Sequence[str], expected: Sequence[str]) -> float:
    """Returns the F1 of two sets.

    It is twice the size of their intersection divided by the sum of their sizes; 1 if both are empty.
    """
    both = len(set(said) & set(expected))
    size = len(set(said)) + len(set(expected))
    return 2 * both / size if size else 1.0


def fields_of(answer: Json, rules: Mapping[str, JsonField], path: str = "") -> dict[str, Json]:
    """Returns the fields of a JSON answer by path; list items have an index, and an unordered list is one field."""
    rule = rules.get(_general(path))
    if rule is not None and rule.ignore:
        return {}
    if isinstance(answer, dict) and (answer or not path):
        found: dict[str, Json] = {}
        for name, inner in answer.items():
            found |= fields_of(inner, rules, f"{path}.{name}" if path else str(name))
        return found
    if isinstance(answer, list) and answer and not (rule is not None and rule.unordered):
        found = {}
        for index, inner in enumerate(answer):
            found |= fields_of(inner, rules, f"{path}[{index}]")
        return found
    return {path: answer}


def compared_fields(said: Json, expected: Json, rules: Mapping[str, JsonField]) -> dict[str, str]:
    """Returns the result for each field of either answer: `equal`, `different`, `missing` or `extra`."""
    theirs, ours = fields_of(said, rules), fields_of(expected, rules)
    verdicts = {}
    for path, right in ours.items():
        if path not in theirs:
            verdicts[path] = "equal" if right is None else "missing"
        else:
            verdicts[path] = "equal" if _same_field(theirs[path], right, _rule(rules, path)) else "different"
    return verdicts | {path: "extra" for path, found in theirs.items() if path not in ours and found is not None}


def share_equal(verdicts: Mapping[str, str]) -> float:
    """Returns the share of fields that are equal; 1 if there are none."""
    return sum(verdict == "equal" for verdict in verdicts.values()) / len(verdicts) if verdicts else 1.0


def best(asked: MatchTarget, score: Callable[[Json], float]) -> float:
    """Returns the best score over the accepted answers."""
    return max((score(expected) for expected in asked.expected), default=0.0)


def _labels(section: str, asked: MatchTarget) -> list[str]:
    return asserted(section, asked.form.labels, asked.sources, asked.form.allow)


def _counts(section: str, span: Span, asked: MatchTarget) -> bool:
    """Returns whether the words at a position assert something."""
    allow = asked.form.allow
    if "negated" not in allow and is_denied(section, span):
        return False
    if "quoted" not in allow and is_quoted(section, span, asked.sources):
        return False
    return "several" in allow or not (is_left_open(section, span) or is_both(section, span) or is_listed(section, span))


def _places(section: str, expected: str, ignore_case: bool) -> Iterator[Span]:
    """Yields the positions at which the words of a text occur in the section, in sequence."""
    wanted, words = words_of(expected), words_of(section)
    size = len(wanted)
    if not size:
        at = section.find(expected.strip())
        if at >= 0 and expected.strip():
            yield at, at + len(expected.strip())
        return
    names = [word for word, _, _ in wanted]
    for at in range(len(words) - size + 1):
        if [word for word, _, _ in words[at : at + size]] == names:
            span = words[at][1], words[at + size - 1][2]
            if ignore_case or words_case(section[slice(*span)]) == words_case(expected):
                yield _with_sign(section, expected, span)


def words_case(text: str) -> list[str]:
    """Returns the words of a text with their case."""
    return re.findall(r"[^\W_]+", text)


def _with_sign(section: str, expected: str, span: Span) -> Span:
    """Extends the position by a sign before it if the expected text begins with one."""
    if expected.strip()[:1] in "-−+" and section[max(span[0] - 1, 0)] == expected.strip()[0]:
        return span[0] - 1, span[1]
    return span


def _key(text: str, form: AnswerForm) -> str:
    number = form.number_of(text)
    return canonical_json([number.value, number.percent]) if number else " ".join(text.casefold().split())


def _same(text: str, expected: Json, form: AnswerForm) -> bool:
    if isinstance(expected, float | int) and not isinstance(expected, bool):
        number = form.number_of(text)
        return number is not None and same_number(number.value, float(expected), 0.0, 1e-9)
    return _key(text, form) == _key(str(expected), form)


def _json_list(text: str) -> list[Any] | None:
    if not text.startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _general(path: str) -> str:
    """Returns a path without indices, as used in the rules."""
    return re.sub(r"\[\d+\]", "", path)


def _rule(rules: Mapping[str, JsonField], path: str) -> JsonField:
    return rules.get(_general(path), _STRICT_RULE)


_STRICT_RULE = JsonField()


def _same_field(said: Json, right: Json, rule: JsonField) -> bool:
    if isinstance(right, bool) or isinstance(said, bool):
        return said is right
    if isinstance(right, int | float) and isinstance(said, int | float):
        return same_number(float(said), float(right), rule.absolute, rule.relative)
    if isinstance(right, str) and isinstance(said, str):
        mine, theirs = " ".join(said.split()), " ".join(right.split())
        return mine.casefold() == theirs.casefold() if rule.ignore_case else mine == theirs
    if isinstance(right, list) and isinstance(said, list):
        return _same_items(said, right, rule)
    return canonical_json(said) == canonical_json(right)


def _same_items(said: Sequence[Json], right: Sequence[Json], rule: JsonField) -> bool:
    """Returns whether two lists have the same items, each equally often, in any order."""
    if len(said) != len(right) or len(right) > 1_000:
        return False
    left = list(right)
    for item in said:
        at = next((at for at, other in enumerate(left) if _same_field(item, other, rule)), None)
        if at is None:
            return False
        del left[at]
    return True


def answer_shown(answer: Json) -> str:
    """Returns an answer of any form as text."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list) and all(isinstance(item, str) and not set(item) & set(",;\n") for item in answer):
        return ", ".join(answer)
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        exact = number_text(float(answer))
        return exact if float(exact) == float(answer) else repr(float(answer))
    return json_text(answer)

"""Closed answers `@name[value]`, and the rule by which DABench scores them.

The rule is that of InfiAgent's DA-Agent (github.com/InfiAgent/InfiAgent, examples/DA-Agent/eval_closed_form.py). Values
are found by the expression `_ANSWER`; if a name occurs twice, the last value counts. A value is right if its text
equals the label's or both are numbers less than 1e-6 apart. A question is right if every name of its label is right.
The original first has a language model rewrite responses into the requested form (reformat.py), which also rounds them.
Here numbers are rounded instead, to the decimals that the question asks for.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation, Overflow

from eval_pipeline.core.model import Json

_ANSWER = re.compile(r"@(\w+)\[(.*?)\]")
_APART = Decimal("1e-6")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = ("count", "proportion")
"""The names of what `value_counts` returns, whose labels may be numbers without a name."""
_DECIMALS = re.compile(rf"\b(\d+|{'|'.join(_WORDS)})[ -](?:decimal|dp\b)", re.I)


def given_answers(result: Json, question: str = "") -> dict[str, str]:
    """Returns the answers in a result: `@name[value]` in a text, or values by name in a dict, a Series or a single row.

    A value without a name answers a question that asks for one name only. Of a name with several values that differ,
    nobody knows which is the answer: it has none.

    Args:
        result: tagged plain data from the sandbox.
        question: the question with the requested form.
    """
    pairs: Iterable[tuple[Json, Json]] = ()
    match result:
        case {"kind": "value", "value": {"t": "dict", "v": list() as items}}:
            pairs = [(name, item) for name, item in items]
        case {"kind": "series", "values": {"values": values}, "index": [{"values": names}]}:
            pairs = zip(names, values, strict=True)
        case {"kind": "frame", "columns": list() as columns, "rows": 1}:
            pairs = [(column["name"], column["values"][0]) for column in columns]
        case {"kind": "value", "value": str() as text} if answers := answers_in(text):
            return answers
        case {"kind": "value", "value": str() | int() | float() as alone} if len(asked := answers_in(question)) == 1:
            pairs = [(next(iter(asked)), alone)]
    found: dict[str, set[str]] = {}
    for name, item in pairs:
        found.setdefault(str(name).removeprefix("@"), set()).add(_text(item))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def answers_in(text: str) -> dict[str, str]:
    """Returns the answers `@name[value]` in a text; if a name occurs twice, the last one."""
    # Only up to the last bracket of each line; otherwise the expression would search for one from each `@name[` after
    # it.
    lines = (line[: line.rfind("]") + 1] for line in text.split("\n"))
    return {name: value for line in lines for name, value in _ANSWER.findall(line)}


def right_answers(given: Mapping[str, str], labels: Mapping[str, str], question: str) -> dict[str, bool]:
    """Returns for each name of the labels whether the value is right."""
    asked = asked_decimals(question)
    return {name: name in given and is_equal(given[name], label, asked) for name, label in labels.items()}


def is_equal(given: str, label: str, asked: Iterable[int] = ()) -> bool:
    """Returns whether an answer equals the label: the same text, or a number that equals the label after rounding.

    It is rounded to the fewest decimals that the question asks for, but not to fewer than the label shows. If the label
    is a whole number and the question asks for no decimals, it is not rounded. A tie may be rounded either way.
    """
    if given == label:
        return True
    number, expected = _number(given), _number(label)
    if number is None or expected is None:
        return False
    exponent = expected.as_tuple().exponent
    shown = max(0, -exponent) if isinstance(exponent, int) else 0
    decimals = min((count for count in asked if count >= shown), default=shown)
    half = Decimal(5).scaleb(-decimals - 1) if decimals else Decimal(0)
    try:
        apart = abs(number - expected)
    except Overflow:  # no label is that large
        return False
    return apart < _APART or apart <= half


def asked_decimals(question: str) -> frozenset[int]:
    """Returns the numbers of decimals to which a question asks to round any of its answers."""
    found = (word.lower() for word in _DECIMALS.findall(question))
    return frozenset(_WORDS.index(word) if word in _WORDS else int(word) for word in found)


def answers_text(labels: Mapping[str, str]) -> str:
    """Returns the labels in the requested form."""
    return " ".join(f"@{name}[{label}]" for name, label in labels.items())


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _labels(level: Mapping[str, Json]) -> bool:
    """Returns whether a level of an index says what its values are, as numbers of rows do not."""
    return level["name"] is not None or not all(type(one) is int for one in level["values"])


def _text(item: Json) -> str:
    """Returns a value as text: numbers with all digits, items with commas between them, unless they have labels."""
    match item:
        case {"t": "table", "v": {"kind": "series", "values": {"name": name}, "index": list() as levels}} if (
            name in _COUNTS or any(_labels(level) for level in levels)
        ):
            return str(item["v"])
        case {"t": "list" | "tuple", "v": list() as items} | {
            "t": "table",
            "v": {"values": {"values": list() as items}},
        }:
            return ", ".join(map(_text, items))
        case {"v": value}:
            return str(value)
    return repr(item) if isinstance(item, float) else str(item)

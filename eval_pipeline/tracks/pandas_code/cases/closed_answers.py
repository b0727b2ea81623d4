"""Closed answers `@name[value]`, and the rule by which DABench scores them.

The rule is that of InfiAgent's DA-Agent (github.com/InfiAgent/InfiAgent, examples/DA-Agent/eval_closed_form.py): values
are found by the expression `_ANSWER`, of two with one name the last counts, and a value is right where its text is that
of the label or both are numbers less than 1e-6 apart; a question is right where every name of its label is. Before that
the original has a language model rewrite responses into the form asked for (reformat.py), which rounds them. Here
numbers are rounded instead, to the decimals that the question asks for.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation, Overflow

from eval_pipeline.core.model import Json

_ANSWER = re.compile(r"@(\w+)\[(.*?)\]")
_APART = Decimal("1e-6")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DECIMALS = re.compile(rf"\b(\d+|{'|'.join(_WORDS)})[ -](?:decimal|dp\b)", re.I)


def given_answers(result: Json) -> dict[str, str]:
    """The answers in a result: a text with `@name[value]`, or a dict by name; none in anything else.

    Args:
        result: tagged plain data as the sandbox gives it.
    """
    value = result.get("value") if isinstance(result, dict) and result.get("kind") == "value" else None
    if isinstance(value, str):
        return answers_in(value)
    if isinstance(value, dict) and value.get("t") == "dict":
        return {str(name).removeprefix("@"): _text(item) for name, item in value["v"]}
    return {}


def answers_in(text: str) -> dict[str, str]:
    """The answers `@name[value]` in a text; of two with one name the last."""
    # Up to the last bracket of each line: the expression would look for one from each `@name[` behind it.
    lines = (line[: line.rfind("]") + 1] for line in text.split("\n"))
    return {name: value for line in lines for name, value in _ANSWER.findall(line)}


def right_answers(given: Mapping[str, str], labels: Mapping[str, str], question: str) -> dict[str, bool]:
    """Which names of the labels have the right value."""
    asked = asked_decimals(question)
    return {name: name in given and is_equal(given[name], label, asked) for name, label in labels.items()}


def is_equal(given: str, label: str, asked: Iterable[int] = ()) -> bool:
    """Whether an answer is the label's: the same text, or a number that is the label's when rounded.

    It is rounded to the fewest decimals that the question asks for and that are not fewer than the label shows; where
    the label is a whole number and the question names no decimals it is not rounded. A tie may be rounded either way.
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
    except Overflow:  # no label is as large as that
        return False
    return apart < _APART or apart <= half


def asked_decimals(question: str) -> frozenset[int]:
    """The numbers of decimals that a question asks to round to, for any of its answers."""
    found = (word.lower() for word in _DECIMALS.findall(question))
    return frozenset(_WORDS.index(word) if word in _WORDS else int(word) for word in found)


def answers_text(labels: Mapping[str, str]) -> str:
    """The labels in the form that is asked for."""
    return " ".join(f"@{name}[{label}]" for name, label in labels.items())


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _text(item: Json) -> str:
    """A value of a dict as text; numbers in full."""
    if isinstance(item, float):
        return repr(item)
    return item if isinstance(item, str) else str(item.get("v") if isinstance(item, dict) else item)

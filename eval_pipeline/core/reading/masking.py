"""Puts for values of personal kind in texts the name of their kind: `[email]`, `[card]`, `[iban]`, `[ip]`, `[phone]`.

Rules are regular expressions with names. Cards and IBANs count only where their check digits are right, so that order
numbers stay; telephone numbers need a `+`, a leading 0 or brackets, so that years and amounts stay.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import yaml

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.model import Json

DEFAULTS: Mapping[str, str] = {
    "email": r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}",
    "iban": r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}(?![A-Za-z0-9])",
    "card": r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])",
    "ip": r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w:]|\.\d)",
    "phone": r"(?<![\w.,+-])(?<!\d )(?:\+\d{1,3}|\(0?\d{1,4}\)|0\d{1,4})(?:[ ./-]?\(?\d{1,4}\)?){2,6}(?![\w-])",
}
_DIGITS_OF_PHONES = range(8, 16)
_SHORTEST_IBAN, _LONGEST_IBAN = 15, 34


def rules_of(file: Path | None = None) -> dict[str, str]:
    """Returns the rules by name: ours, with those of a file, in which null takes one of ours away.

    Raises:
        UsageError: there is no such file.
        InputError: it is no mapping of names to regular expressions.
    """
    if file is None:
        return dict(DEFAULTS)
    if not file.is_file():
        raise UsageError(f"no file {file}")
    try:
        told = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(file), None, "", f"cannot be read: {error}")]) from error
    if not isinstance(told, dict) or not all(isinstance(one, str | None) for one in told.values()):
        told_what = (
            "expected names with regular expressions, such as `customer: 'C-[0-9]{6}'`; null leaves one of ours out"
        )
        raise InputError([Problem(str(file), None, "", told_what)])
    found = {**DEFAULTS, **{str(name): one for name, one in told.items()}}
    rules = {name: one for name, one in found.items() if one is not None}
    for name, one in rules.items():
        try:
            compiled = re.compile(one)
        except re.error as error:
            raise InputError([Problem(str(file), None, name, f"is no regular expression: {error}")]) from error
        if compiled.match(""):
            raise InputError([Problem(str(file), None, name, "matches an empty text")])
    return rules


class Masking:
    """Masks texts, and counts what it masked.

    Attributes:
        rules: regular expression of each kind, by its name.
        counts: name of a rule → number of values that it replaced.
    """

    def __init__(self, rules: Mapping[str, str]) -> None:
        self.rules = rules
        own = {name: rule for name, rule in rules.items() if DEFAULTS.get(name) != rule}
        # Rules of the user come first, since ours are wide.
        ordered = {**own, **{name: rule for name, rule in rules.items() if name not in own}}
        self._rules = [
            (name, re.compile(rule), None if name in own else _CHECKS.get(name)) for name, rule in ordered.items()
        ]
        self.counts: dict[str, int] = {}

    def text(self, text: str) -> str:
        """Returns a text with all values of personal kind replaced."""
        for name, rule, check in self._rules:
            text = rule.sub(partial(self._instead, name, check), text)
        return text

    def value(self, value: Json) -> Json:
        """Returns a value with all its texts masked, at any depth; names of fields stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(one) for name, one in value.items()}
        return [self.value(one) for one in value] if isinstance(value, list | tuple) else value

    def _instead(self, name: str, check: Callable[[str], bool] | None, matched: "re.Match[str]") -> str:
        found = matched[0]
        if check is not None and not check(found):
            return found
        self.counts[name] = self.counts.get(name, 0) + 1
        return f"[{name}]"


def _is_card(text: str) -> bool:
    """Whether the last digit is that of Luhn's rule."""
    digits = [int(sign) for sign in text if sign.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(doubled) + sum(digits[::-2])) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether the check digits are right (ISO 7064, modulo 97)."""
    signs = re.sub(r"[ -]", "", text)
    if not _SHORTEST_IBAN <= len(signs) <= _LONGEST_IBAN:
        return False
    return int("".join(str(int(sign, 36)) for sign in signs[4:] + signs[:4])) % 97 == 1


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return len(text) > 3


def _is_phone(text: str) -> bool:
    return sum(map(str.isdigit, text)) in _DIGITS_OF_PHONES


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "card": _is_card,
    "iban": _is_iban,
    "ip": _is_address,
    "phone": _is_phone,
}

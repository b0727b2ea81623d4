"""The rule that stops an evaluation of drawn cases: `±2pp`, `decided-against BASELINE`, `budget 5usd` or `ranked`."""

import re
from dataclasses import dataclass
from decimal import Decimal

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.shown import counted

FORMS = "'±2pp', 'decided-against MODEL_VERSION' (also with 'within 30%'), 'budget 5usd' or 'ranked'"
RANKED = "ranked"
_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_WIDTH = re.compile(rf"(?:±|\+-|\+/-)?\s*{_NUMBER}\s*pp", re.IGNORECASE)
_BUDGET = re.compile(rf"budget\s+(?:\$\s*{_NUMBER}|{_NUMBER.replace('number', 'other')}\s*usd)", re.IGNORECASE)
_DECIDED = re.compile(r"decided-against\s+(?P<name>\S+)(?:\s+within\s+(?P<share>[0-9]{1,2})\s*%)?", re.IGNORECASE)
_WIDEST = Decimal(50)
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Until:
    """When to stop asking. Exactly one attribute is set, but that ``share`` comes with ``baseline``.

    Attributes:
        half_width: half the width of the accuracy's 95% interval, as a share (0.02 for ±2pp).
        baseline: a model version; asking stops when it is decided which of the two is better.
        share: largest part of the cases that is asked for a decision, above 0 and below 1; None for all.
        usd: dollars that the answers may cost.
        ranked: asking stops when it is decided of every two of the named model versions which is better.
    """

    half_width: float | None = None
    baseline: str = ""
    usd: float | None = None
    ranked: bool = False
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Until":
        """Parses a rule. Raises UsageError if the text is not a rule."""
        given = text.strip()
        if found := _WIDTH.fullmatch(given):
            points = Decimal(found["number"])
            if not 0 < points < _WIDEST or len(found["number"]) > _DIGITS:
                raise UsageError(f"--until '{text}': expected more than 0 and less than 50 percentage points")
            return cls(half_width=float(points / 100))
        if found := _BUDGET.fullmatch(given):
            number = found["number"] or found["other"]
            if not Decimal(number) > 0 or len(number) > _DIGITS:
                raise UsageError(f"--until '{text}': expected an amount above 0 of at most {_DIGITS} digits")
            return cls(usd=float(number))
        if found := _DECIDED.fullmatch(given):
            if found["share"] is None:
                return cls(baseline=found["name"])
            if not int(found["share"]):
                raise UsageError(f"--until '{text}': expected a part from 1% to 99% of the cases")
            return cls(baseline=found["name"], share=int(found["share"]) / 100)
        if given.lower() == RANKED:
            return cls(ranked=True)
        raise UsageError(f"--until '{text}' is not a stopping rule; expected {FORMS}")

    def label(self) -> str:
        """Returns the rule in its canonical form, which `parse` reads."""
        if self.half_width is not None:
            return f"±{_plain(Decimal(repr(self.half_width)) * 100)}pp"
        if self.usd is not None:
            return f"budget {_plain(Decimal(repr(self.usd)))}usd"
        within = "" if self.share is None else f" within {round(100 * self.share)}%"
        return RANKED if self.ranked else f"decided-against {self.baseline}{within}"

    def chosen(self, evaluations: int) -> str:
        """Returns in words how the cases are chosen, given the number of earlier evaluations."""
        if self.ranked:
            return "chosen uniformly, the same for all that are ranked"
        if not evaluations:
            return "chosen uniformly, as there are no earlier evaluations"
        return f"chosen by {counted(evaluations, 'earlier evaluation', 'earlier evaluations')}"


def _plain(number: Decimal) -> str:
    """Returns a number as text without exponent or trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

"""How many cases of a suite an evaluation covers, and why others were left out (docs/reports.md#cases-left-out).

This module is the only place that puts it into words. Every report and command uses it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eval_pipeline.core.ids import json_text

WRONG, UNREADABLE, WRONG_GOLD, EXCLUDED = "wrong", "unreadable_file", "wrong_gold", "excluded"
PART, BUDGET, UNSCORED, UNDECIDED, NOT_ASKED = "part", "budget", "unscored", "undecided", "not_asked"
_BECAUSE = {
    WRONG: ("it is wrong in the suite's files", "they are wrong in the suite's files"),
    UNREADABLE: ("its file cannot be read", "their files cannot be read"),
    WRONG_GOLD: ("its gold did not hold when it was imported", "their gold did not hold when they were imported"),
    EXCLUDED: ("its gold is excluded", "their gold is excluded"),
    PART: ("only a part of the suite was asked for", "only a part of the suite was asked for"),
    BUDGET: ("the budget did not allow asking it", "the budget did not allow asking them"),
    UNSCORED: ("its gold does not hold, so it cannot be scored", "their gold does not hold, so they cannot be scored"),
    UNDECIDED: ("no verdict on it could be reached", "no verdict on them could be reached"),
    NOT_ASKED: ("it has not been asked", "they have not been asked"),
}
"""Why a case is left out, for one case and for several."""
_MOST_EXAMPLES, _MOST_TOLD, _LONGEST = 20, 2, 160


@dataclass(frozen=True, slots=True)
class Cause:
    """Cases that were left out for the same reason.

    Attributes:
        cause: a key of `_BECAUSE`.
        cases: how many; for unreadable files, the number of files.
        examples: what is known of some of them, e.g. file, line and problem; at most `_MOST_EXAMPLES`.
    """

    cause: str
    cases: int
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, cause: str, told: Sequence[str]) -> "Cause":
        """Counts cases of which something is known, one text for each."""
        return cls(cause, len(told), tuple(filter(None, told))[:_MOST_EXAMPLES])

    def because(self) -> str:
        """Returns the reason in words; a cause of a later version is given by its name."""
        one, several = _BECAUSE.get(self.cause, (self.cause, self.cause))
        return one if self.cases == 1 else several

    def told(self) -> str:
        """Returns some examples, and how many more there are; empty if nothing is known of them."""
        told = [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in self.examples[:_MOST_TOLD]]
        more = self.cases - len(told)
        return "; ".join([*told, *[f"and {more:,} more"] * (bool(told) and more > 0)])

    def with_examples(self) -> str:
        """Returns the reason with some examples in brackets."""
        return f"{self.because()} ({told})" if (told := self.told()) else self.because()


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """How many cases of the suite have a scored turn, and why the others do not.

    Attributes:
        cases: cases with a scored turn; None for evaluations that did not keep this.
        in_suite: all cases, with those that were left out.
        left_out: the causes; their counts add up to `in_suite - cases`.
        unscored: turns (times samples) that were asked and cannot be scored, as their gold does not hold.
        unscored_because: some of them, each with the reason; empty if there is none.
        drifted: scored turns whose gold gave another result than when the suite was read.
        drifted_cases: some of their cases; empty if there is none.
    """

    cases: int | None = None
    in_suite: int | None = None
    left_out: tuple[Cause, ...] = ()
    unscored: int = 0
    unscored_because: str = ""
    drifted: int = 0
    drifted_cases: str = ""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "CaseCounts":
        """Reads the columns that `columns` writes; older rows lack them."""
        causes = json.loads(row.get("left_out") or "[]")
        found = tuple(Cause(one["cause"], one["cases"], tuple(one["examples"])) for one in causes)
        unscored = row.get("unscored") or 0, row.get("unscored_because") or ""
        drifted = row.get("drifted") or 0, row.get("drifted_cases") or ""
        return cls(row.get("cases"), row.get("cases_in_suite"), found, *unscored, *drifted)

    def columns(self) -> dict[str, Any]:
        """Returns the columns of the table `coverage`."""
        return {
            "cases": self.cases,
            "cases_in_suite": self.in_suite,
            "left_out": json_text([asdict(cause) for cause in self.left_out]) if self.left_out else None,
            "left_out_because": self.because() or None,
            "unscored": None if self.cases is None else self.unscored,
            "unscored_because": self.unscored_because or None,
            "drifted": None if self.cases is None else self.drifted,
            "drifted_cases": self.drifted_cases or None,
        }

    @property
    def is_known(self) -> bool:
        """Whether the counts are on record."""
        return self.cases is not None and self.in_suite is not None

    @property
    def causes(self) -> frozenset[str]:
        """The causes for which cases were left out."""
        return frozenset(cause.cause for cause in self.left_out)

    def count(self) -> str:
        """Returns `8 of 10 cases`, or `all 10 cases`; empty if unknown."""
        if self.cases is None or self.in_suite is None:
            return ""
        least = "at least " * (UNREADABLE in self.causes)  # nobody knows how many cases are in such a file
        if self.cases == self.in_suite:
            return f"all {self.in_suite:,} cases" if self.in_suite != 1 else "the only case"
        return f"{self.cases:,} of {least}{self.in_suite:,} case{'s' * (self.in_suite != 1)}"

    def because(self, examples: bool = True) -> str:
        """Returns why cases were left out; empty if none was.

        Args:
            examples: whether to name some cases with their problems, which may quote the suite's files.
        """
        causes = [(cause.cases, cause.with_examples() if examples else cause.because()) for cause in self.left_out]
        if len(causes) == 1:
            return causes[0][1]
        return ", ".join(f"{cases:,} because {why}" for cases, why in causes)

    def text(self, examples: bool = True) -> str:
        """Returns e.g. `8 of 10 cases; 2 left out because they are wrong in the suite's files (…)`; empty if unknown.

        Args:
            examples: as in `because`.
        """
        if not self.left_out:
            return self.count()
        missing = sum(cause.cases for cause in self.left_out)
        link = ": " if len(self.left_out) > 1 else " because "
        return f"{self.count()}; {missing:,} left out{link}{self.because(examples)}"

    def unscored_text(self) -> str:
        """Returns e.g. `2 turns cannot be scored and are in no figure: …`; empty if there is none."""
        if not self.unscored:
            return ""
        turns = (
            "1 turn cannot be scored and is"
            if self.unscored == 1
            else f"{self.unscored:,} turns cannot be scored and are"
        )
        return f"{turns} in no figure, as the gold does not hold: {self.unscored_because}"

    def gold_texts(self) -> list[str]:
        """Returns a sentence each on turns that cannot be scored, and on those whose gold has drifted; often none."""
        drifted = ""
        if self.drifted:
            turns = "1 turn was" if self.drifted == 1 else f"{self.drifted:,} turns were"
            drifted = (
                f"{turns} scored by gold that gave another result than when the suite was read: {self.drifted_cases}"
            )
        return [text for text in (self.unscored_text(), drifted) if text]


def sentences(named: Sequence[tuple[str, CaseCounts]]) -> Iterator[str]:
    """Yields what was left out of several evaluations of a suite, evaluations with the same words in one sentence.

    Args:
        named: name of each evaluation, and its counts.
    """
    by_text: dict[str, list[str]] = {}
    for name, counts in named:
        if counts.left_out:
            by_text.setdefault(counts.text(), []).append(name)
    for text, names in by_text.items():
        yield text if len(names) == len(named) else f"{', '.join(names)}: {text}"

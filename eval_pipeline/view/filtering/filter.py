"""A filter of turns, as an address expresses it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams

from eval_pipeline.core.errors import UsageError

IS, IS_NOT, CONTAINS, AT_LEAST, AT_MOST, EMPTY, NOT_EMPTY = OPERATORS = (
    "is", "is_not", "contains", "at_least", "at_most", "empty", "not_empty",
)  # fmt: skip
VERDICTS = ("right", "wrong", "unscored")
FLAKY, UNANSWERED, UNREADABLE, UNREVIEWED = "flaky", "unanswered", "unreadable", "unreviewed"
JUDGED_OTHERWISE = "judged_otherwise"
ONLY: Mapping[str, str] = {
    FLAKY: "flaky: samples disagree, or right and wrong by turns over dates",
    UNANSWERED: "not answered",
    UNREADABLE: "answered, but not readable",
    UNREVIEWED: "reviewed by nobody",
    JUDGED_OTHERWISE: "judged otherwise by the tool they were recorded by",
}
"""What turns can be limited to that no column of theirs tells, with words for it."""
DESCENDING = "desc"
OF_TRACK: Mapping[str, str] = {
    "failure_mode": "failure mode",
    "wrong_in": "distinction of form and meaning",
    "read_otherwise": "verdicts of other tools",
}
"""Columns of some tracks that have a filter of their own, with words for them."""
CALLS = "tool_calls"
"""The column that tells of turns with calls of tools, which are in the table `steps`."""
_NAMED = {"q": "text", **{name: name for name in ("verdict", "tag", "error_class", "tool", "tool_error", *OF_TRACK)}}
_MOST = 1_000
"""The most characters of a value; a filter may have a tenth as many conditions."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column.

    Attributes:
        operator: one of `OPERATORS`.
        value: as entered; ignored for `empty` and `not_empty`.
    """

    column: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Filter:
    """Which turns to show, in what order and with which columns.

    Attributes:
        text: text that question, answer, a response or an error contains, ignoring case.
        verdict: one of `VERDICTS`; empty for all.
        tag, error_class, failure_mode, wrong_in, read_otherwise: empty for all.
        tool, tool_error: name of a tool that was called, and why that call failed; empty for any.
        only: those of `ONLY` that must all hold.
        sort: the column to sort by; empty for the order of the suite.
        columns: columns to show in addition to the default ones.
    """

    text: str = ""
    verdict: str = ""
    tag: str = ""
    error_class: str = ""
    failure_mode: str = ""
    wrong_in: str = ""
    read_otherwise: str = ""
    tool: str = ""
    tool_error: str = ""
    only: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    sort: str = ""
    descending: bool = False
    columns: tuple[str, ...] = ()

    @property
    def is_blind(self) -> bool:
        """Whether it finds what nobody has reviewed, of any verdict: such a list tells none, and leads to reviews."""
        of_verdict = (self.verdict, self.error_class, self.failure_mode, self.wrong_in, self.read_otherwise)
        return UNREVIEWED in self.only and not any((*of_verdict, self.conditions, self.sort))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the address; equal filters have equal arguments."""
        return {
            **{argument: getattr(self, name) for argument, name in _NAMED.items()},
            "only": list(self.only),
            "column": [condition.column for condition in self.conditions],
            "is": [condition.operator for condition in self.conditions],
            "value": [condition.value for condition in self.conditions],
            "sort": self.sort,
            "order": DESCENDING if self.sort and self.descending else "",
            "show": list(self.columns),
        }


def filter_of(query: QueryParams, columns: Mapping[str, Any]) -> Filter:
    """Reads the filter from an address.

    Raises:
        UsageError: it names an unknown column or operator.
    """
    for name, value in query.multi_items():
        if len(value) > _MOST or "\0" in value:
            raise UsageError(f"the value of '{name}' is too long, or not a text")
    named = {name: query.get(argument, "").strip() for argument, name in _NAMED.items()}
    if named["verdict"] not in {"", *VERDICTS}:
        raise UsageError(f"unknown verdict '{named['verdict']}'; one of: {', '.join(VERDICTS)}")
    only = tuple(name for name in ONLY if name in query.getlist("only"))
    if unknown := set(query.getlist("only")) - {"", *only}:
        raise UsageError(f"turns cannot be limited to '{min(unknown)}'; one of: {', '.join(ONLY)}")
    sort, shown = query.get("sort", ""), tuple(dict.fromkeys(query.getlist("show")))
    conditions = tuple(_conditions(query.getlist("column"), query.getlist("is"), query.getlist("value")))
    for column in (sort, *shown, *(condition.column for condition in conditions)):
        if column and column not in columns:
            raise UsageError(f"unknown column '{column}'; columns: {', '.join(columns)}")
    for name, words in OF_TRACK.items():
        if named[name] and name not in columns:
            raise UsageError(f"turns of this track have no {words}")
    if (named["tool"] or named["tool_error"]) and CALLS not in columns:
        raise UsageError("turns of this track have no calls of tools")
    descending = query.get("order") == DESCENDING
    return Filter(**named, only=only, conditions=conditions, sort=sort, descending=descending, columns=shown)


def _conditions(columns: Sequence[str], operators: Sequence[str], values: Sequence[str]) -> Sequence[Condition]:
    if not len(columns) == len(operators) == len(values) <= _MOST // 10:
        raise UsageError("each condition needs exactly one column, one `is` and one value")
    found = [Condition(*parts) for parts in zip(columns, operators, values, strict=True) if parts[0]]
    for condition in found:
        if condition.operator not in OPERATORS:
            raise UsageError(f"unknown condition '{condition.operator}'; one of: {', '.join(OPERATORS)}")
    return found

"""What in the calls that led to a result is not as in the gold's: one sign for each fact, at the call that it is of."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import isclose

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.way.alike import (
    PATTERN,
    PLAIN,
    SAME,
    bare,
    is_given,
    is_key,
    is_looked_up,
    is_turned,
    is_wider,
    likeness,
    loosely,
    nameless,
    pairing,
    without_looked_up,
    without_months,
)
from eval_pipeline_plugins.tracks.agent.way.chain import WayStep, facts_in
from eval_pipeline_plugins.tracks.agent.way.facts.told import (
    FIGURES,
    LIMITS,
    ORDERS,
    ROWS,
    CodeFact,
    Facts,
    parts_of,
    plainly,
)
from eval_pipeline_plugins.tracks.agent.way.values import FigureRatio, numbers_of

TABLE, OTHER_ROWS, OTHER_FIGURES = "wrong_table", "wrong_filter_or_join", "wrong_arithmetic"
_COUNTED = CodeFact("aggregate", "count")
_FAMILIES = (ROWS | LIMITS, FIGURES | ORDERS)
_MOST_NUMBERS = 100
"""Of one side that are compared; code with more is data."""


@value
class Sign:
    """One thing that tells of a departure.

    Attributes:
        kind: what differs; `differing` has its weight.
        mode: the failure mode that it tells of.
        step: the call.
        missing, extra: what the gold has, and what was done.
        words: these in words, where facts do not tell it.
    """

    kind: str
    mode: str
    step: WayStep
    missing: tuple[CodeFact, ...] = ()
    extra: tuple[CodeFact, ...] = ()
    words: str = ""


class WaysBeside:
    """Calls of an attempt beside the gold's, without those that both have.

    Args:
        whole: all calls of both that led to the results.
        ways: of these those of the attempt, of the gold, and what of the gold cannot be left out.
        scale: what was given to what is right, where the ratio is the same for all figures.
    """

    def __init__(
        self,
        whole: tuple[Sequence[WayStep], Sequence[WayStep]],
        ways: tuple[Sequence[WayStep], Sequence[WayStep], Sequence[WayStep]],
        scale: FigureRatio | None,
    ) -> None:
        self._whole, self._mine, self._scale = whole, ways[0], scale
        own, wanted, needed = (plainly(facts_in(steps)) for steps in ways)
        self._own, self._wanted = own, wanted
        self._plain = [[(step, plainly(step.facts)) for step in steps] for steps in ways[:2]]
        unnamed = {nameless(one) for one in wanted}
        self._missing = [
            one
            for one in needed
            if not (one in own or nameless(one) in own or (is_key(one) and is_looked_up(one, whole[1])))
        ]
        self._extra = [one for one in own if not (one in wanted or one in unnamed or is_looked_up(one, whole[0]))]
        texts = [step.text for step in (*whole[0], *whole[1])]
        self._missing, self._extra = without_looked_up(self._missing, self._extra, texts)
        self._extra, self._missing = without_looked_up(self._extra, self._missing, texts)
        self._missing, self._extra = without_months(self._missing, self._extra)
        if not self._missing and not self._extra:  # how often counts
            self._missing, self._extra = list(needed - own), list(own - wanted)

    def place_of(self, missing: Sequence[CodeFact], extra: Sequence[CodeFact]) -> WayStep:
        """Returns the call that has what the gold has not, or else the one most like that of the gold which has it."""
        for step, facts in self._plain[0]:
            if any(facts[one] > self._wanted[one] for one in extra):
                return step
        theirs = [facts for _, facts in self._plain[1] if any(one in facts for one in missing)]
        theirs = [loosely(one) for one in theirs or [self._plain[1][-1][1]]]
        kinds = next((family for family in _FAMILIES for one in missing if one.kind in family), frozenset[str]())
        on = {parts_of(one.what)[0] for one in missing if one.kind == "where"}
        beside = loosely(Facts(one for one in self._wanted if one.kind == "where" and parts_of(one.what)[0] in on))
        computing = [pair for pair in self._plain[0] if pair[0].computes() and pair[0].text] or self._plain[0]
        likely = [
            (max(likeness(own, one, kinds) for one in theirs) + bool(own & beside), step.place, step)
            for step, own in ((step, loosely(facts)) for step, facts in computing)
        ]
        return max(likely, key=lambda told: told[:2])[2]

    def _narrowing(self, step: WayStep) -> WayStep:
        """Returns the next call that could still leave out the rows that one keeps beside, or that call."""
        later = (
            one
            for one, facts in self._plain[0]
            if one.place > step.place and any(told.kind == "where" for told in facts)
        )
        return next(later, step)

    def signs(self) -> Iterator[Sign]:
        """Yields what differs; the same fact may be in several signs."""
        for of in (self._of_conditions, self._of_matches, self._of_aggregates, self._of_numbers, self._of_orders):
            yield from of()
        yield from self._of_columns()
        for kinds, name, mode in (
            (ROWS | LIMITS, "other rows", OTHER_ROWS),
            (FIGURES, "other figures", OTHER_FIGURES),
            (None, "other words", OTHER_ROWS),
        ):
            missing, extra = ([one for one in facts if kinds is None or one.kind in kinds] for facts in self._both)
            if missing or extra:
                yield self._sign(name, mode, missing, extra)

    @property
    def _last(self) -> WayStep:
        steps = self._whole[0]
        return next((one for one in reversed(steps) if one.computes() and one.text), steps[-1])

    @property
    def _both(self) -> tuple[list[CodeFact], list[CodeFact]]:
        return self._missing, self._extra

    def _of(self, kind: str) -> tuple[list[CodeFact], list[CodeFact]]:
        missing, extra = ([one for one in facts if one.kind == kind] for facts in self._both)
        return missing, extra

    def _sign(self, kind: str, mode: str, missing: Sequence[CodeFact], extra: Sequence[CodeFact]) -> Sign:
        return Sign(kind, mode, self.place_of(missing, extra), tuple(missing), tuple(extra))

    @cached_property
    def _words(self) -> tuple[frozenset[str], frozenset[str]]:
        """The words of the codes of both."""
        mine, gold = (
            frozenset(bare(word) for step in steps for word in (step.deciding or step).words()) for steps in self._whole
        )
        return mine, gold

    def _known(self, constant: str, *, to_me: bool) -> bool:
        """Returns whether one side has what the other one says, or it is what all code has."""
        words = {bare(word) for word in re.findall(r"\w+", constant.lower())}
        return _is_plain(constant) or words <= self._words[0 if to_me else 1]

    def _of_conditions(self) -> Iterator[Sign]:
        missing, extra = map(Counter, self._of("where"))
        pairs = [(pairing(one, other), one, other) for one, other in product(missing, extra)]
        for alike, one, other in sorted(pairs, key=lambda told: -told[0]):
            if not alike or not missing[one] or not extra[other]:
                continue
            (column, _, constant), (beside, _, own) = (parts_of(fact.what) for fact in (one, other))
            is_known = constant != own and self._known(constant, to_me=True) and self._known(own, to_me=False)
            if is_known and alike < SAME and column != beside:
                continue
            missing[one] = extra[other] = 0
            if alike < SAME and not is_known:
                found = self._sign("another condition", OTHER_ROWS, [one], [other])
                yield replace(found, step=self._narrowing(found.step)) if is_wider(other, one) else found
        for one in +missing:
            column, _, constant = parts_of(one.what)
            if not self._known(constant, to_me=True) or not self._known(column, to_me=True):
                yield self._sign("condition is missing", OTHER_ROWS, [one], [])
            elif _is_plain(constant):
                yield self._sign("plain condition is missing", OTHER_ROWS, [one], [])
        for one in +extra:
            yield self._sign("condition beside", OTHER_ROWS, [], [one])

    def _of_matches(self) -> Iterator[Sign]:
        missing, extra = self._of("match")
        keys = {half for _, one in self._joined(1) for half in parts_of(one.what)[::2]}
        for one in extra:
            if parts_of(one.what)[1] in ("<", ">", "<=", ">=") and not missing:
                yield self._sign("condition beside", OTHER_ROWS, [], [one])
        for step, one in self._joined(0):
            columns = set(one.what.split(" = "))
            if one in extra and len(columns) > 1 and columns & keys:
                yield Sign("joined otherwise", OTHER_ROWS, step, (), (one,))

    def _joined(self, side: int) -> Iterator[tuple[WayStep, CodeFact]]:
        """Yields what calls that join say of keys, of the attempt or of the gold."""
        for step, facts in self._plain[side]:
            if any(one.kind == "join" for one in facts):
                yield from ((step, one) for one in facts if one.kind == "match")

    def _of_aggregates(self) -> Iterator[Sign]:
        lost, more = self._of("aggregate")
        if lost and more == [_COUNTED] and self._last.facts[_COUNTED]:
            yield self._sign("another aggregate", OTHER_FIGURES, lost, more)
        missing, extra = ([one for one in facts if one != _COUNTED] for facts in (lost, more))
        if missing and extra:
            yield self._sign("another aggregate", OTHER_FIGURES, missing, extra)

    def _of_numbers(self) -> Iterator[Sign]:
        missing, extra = (facts[:_MOST_NUMBERS] for facts in self._of("number"))
        given = {number for one in self._whole[0] for number in numbers_of(one.text)}
        extra = [one for one in extra if not (self._is_undone(one) or is_given(one, given))]
        for one, other in product([*missing, None], [*extra, None]):
            if self._scale and self._scale.is_by(*(float(fact.what) if fact else 1.0 for fact in (one, other))):
                sign = self._sign("number explains", OTHER_FIGURES, [one] if one else [], [other] if other else [])
                yield sign if other else replace(sign, step=self._last)  # as figures were right before
        for one in (*missing, *extra):
            if self._scale and isclose(abs(self._scale.difference), abs(float(one.what))):
                yield self._sign("number explains", OTHER_FIGURES, *(([one], []) if one in missing else ([], [one])))
        for one in extra:
            if not self._known(one.what, to_me=False):
                yield self._sign("number beside", OTHER_FIGURES, [], [one])
        for one, other in product(*self._of("width")):
            yield self._sign("number beside", OTHER_FIGURES, [one], [other])
        for one in missing:
            if self._known(one.what, to_me=True):
                yield self._sign("number is missing", OTHER_FIGURES, [one], [])

    def _is_undone(self, number: CodeFact) -> bool:
        """Returns whether code multiplies by a number and divides by it as well."""
        signs = {one.what for one in self._own if one.kind == "operator"}
        return self._own[number] > 1 and {"*", "/"} <= signs

    def _of_orders(self) -> Iterator[Sign]:
        for one, other in product(*self._of("order")):
            if is_turned(one, other):
                yield self._sign("turned", OTHER_FIGURES, [one], [other])
        missing, extra = self._of("operator")
        if any(self._is_undone(one) for one in self._of("number")[1]):
            extra = []
        if extra:
            kind = "another operator" if missing else "operator beside"
            yield self._sign(kind, OTHER_FIGURES, missing, extra)
        cases, others = self._of("case")
        for one in cases if (len(cases), len(others)) != (1, 1) else ():  # of two kinds the other one may be named
            if not self._known(one.what, to_me=True):
                yield self._sign("case is missing", OTHER_FIGURES, [one], [])
        if self._scale and self._scale.is_telling():
            words = f"figures are {self._scale.ratio:g} times the right ones"
            yield Sign("unit", OTHER_FIGURES, self._last, words=words)

    def _of_columns(self) -> Iterator[Sign]:
        names = {one.what for one in self._of("column")[0]}
        for one, other in product(*self._of("select")):
            if (told := _of_selected(names, one.what.split(", "), other.what.split(", "))) is not None:
                yield self._sign(*told, [one], [other])


def _is_plain(constant: str) -> bool:
    return constant in PLAIN or not re.search(r"[^\W_]", constant) or PATTERN.search(constant) is not None


def _of_selected(lost: Collection[str], gold: list[str], mine: list[str]) -> tuple[str, str] | None:
    """Returns that a list of columns has another one in the place of one that is nowhere else, or another order."""
    if sorted(gold) == sorted(mine):
        return "another order of columns", OTHER_FIGURES
    pairs = [_without_the_same_words(one.split(), other.split()) for one, other in zip(gold, mine, strict=False)]
    pairs = [pair for pair in pairs if pair[0] in lost]
    is_other = pairs and all(own.isidentifier() for _, own in pairs)
    return ("another column is selected", TABLE) if is_other and len(gold) == len(mine) else None


def _without_the_same_words(one: list[str], other: list[str]) -> tuple[str, str]:
    """Returns two columns without what is done with both, as in `sum a` and `sum b`."""
    return " ".join(word for word in one if word not in other), " ".join(word for word in other if word not in one)

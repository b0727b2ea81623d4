"""Where an attempt whose answer is wrong left the way, by the values in its results and in the gold's."""

import re
from collections.abc import Sequence

from eval_pipeline.core.model import Json
from eval_pipeline.core.numbers import number_text
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER
from eval_pipeline_plugins.tracks.agent.way.chain import Departure, WayStep, core_of, keys_in, leading_to
from eval_pipeline_plugins.tracks.agent.way.differing import departures, last_right
from eval_pipeline_plugins.tracks.agent.way.looked import Unseen
from eval_pipeline_plugins.tracks.agent.way.values import (
    GivenNumber,
    Leaf,
    figure,
    folded,
    follows,
    has_all,
    holds,
    is_hardly_by_chance,
    leaves,
    numbers_of,
    pairs_of,
    pairs_up,
    rows_of,
    scale_of,
    slip_of,
    slips,
)


@value
class FirstWrong:
    """Where an attempt went wrong.

    Attributes:
        mode: a failure mode; None where evidence cannot tell.
        step: the place of the first wrong step in the attempt's steps, None likewise.
        words: a clause.
    """

    mode: str | None
    step: int | None
    words: str = ""


UNTOLD = FirstWrong(None, None)
_LAST, _FEW, _TELLING = 3, 12, 0.25


def of_answer(
    mine: Sequence[WayStep], gold: Sequence[WayStep], accepted: Sequence[Json], question: str, unread: Unseen
) -> FirstWrong:
    """Tells where an attempt left the way that ends with a wrong answer.

    Args:
        mine: its calls up to the wrong answer, which is the last.
        gold: the gold's up to the answer to the same message.
        accepted: the right answers.
        question: the task.
        unread: what the gold reads and the attempt never did.
    """
    answer = mine[-1]
    told = _Answered(mine[:-1], [one for one in gold if one.name != ANSWER], unread)
    right = [leaves(one) for one in accepted]
    given = _named(leaves(answer.answer, question), right)
    return told.where(answer, given, right) if given else UNTOLD


def _named(given: list[Leaf], right: list[list[Leaf]]) -> list[Leaf]:
    """Returns the keys that a sentence names, where the right answer is one; else what was given."""
    is_key = any(len(one) == 1 and isinstance(one[0], str) and keys_in(one[0]) == {one[0]} for one in right)
    text = given[0] if len(given) == 1 else None
    found = sorted(keys_in(text)) if isinstance(text, str) and " " in text and is_key else []
    return [*found] if len(found) == 1 else given


class _Answered:
    def __init__(self, mine: Sequence[WayStep], gold: Sequence[WayStep], unread: Unseen) -> None:
        self._mine, self._gold, self._unread = mine, gold, unread
        self._core: list[WayStep] = []
        self._shown = [one for one in mine if one.text and one.name != ANSWER]

    def where(self, answer: WayStep, given: list[Leaf], right: list[list[Leaf]]) -> FirstWrong:
        end = _last(self._gold, right)
        chain = leading_to(self._gold, end) if end is not None else []
        self._core = core_of(self._gold, [end]) if end is not None else []
        source = self._source(given)
        steps = ((one, self._right_step(one, given, chain, end, source)) for one in right)
        good, at = next((pair for pair in steps if pair[1] is not None), (None, None))
        if good is not None and at is not None:
            if source is not None and source.place > at.place and source.is_by_hand():
                return FirstWrong("wrong_arithmetic", source.place, f"it computes further from step {at.place}")
            return self._after_right(answer, given, good)
        last = next((one for one in reversed(self._mine) if one.computes() and one.text), None)
        if source is None and end is not None and any(has_all(end.text, one) for one in right):
            return self._of_no_result(answer, given, right, last, chain)
        last = (
            source if source is not None and (source.computes() or last is None or source.place > last.place) else last
        )
        return self._never(answer) if last is None else self._departed(last, chain, given, right)

    def _is_of_the_same(self, step: WayStep) -> bool:
        """Returns whether a call computes by hand, and only from values that the gold's results have as well."""
        before = [number for one in self._mine if one.place < step.place for number in numbers_of(one.text)]
        taken = {one for one in step.numbers if one in before and figure(one).is_distinct()}
        return (
            step.is_by_hand() and bool(taken) and taken <= {one for gold in self._gold for one in numbers_of(gold.text)}
        )

    def _could_give(self, step: WayStep, right: list[Leaf]) -> bool:
        """Returns whether the right figure is a sum, product or ratio of values that a call has from results."""
        before = {number for one in self._shown if one.place < step.place for number in numbers_of(one.text)}
        taken = list(dict.fromkeys(one for one in step.numbers if one in before))
        return (
            len(right) == 1
            and isinstance(right[0], GivenNumber)
            and right[0].digits() > 1
            and follows(right[0], taken, (1.0, 1000.0, 1e6))
        )

    def _source(self, given: list[Leaf]) -> WayStep | None:
        """Returns the call that the answer is from: that with the fewest numbers, or the last for distinct ones."""
        found = [one for one in self._shown if has_all(one.text, given)]
        computed = [one for one in found if one.computes()] or found
        is_distinct = any(isinstance(one, GivenNumber) and one.is_distinct() for one in given)
        return min(reversed(computed), key=lambda one: 0 if is_distinct else len(numbers_of(one.text)), default=None)

    def _are_shown(self, given: list[Leaf]) -> bool:
        """Returns whether all values are in results; figures that occur by chance only in those that are computed."""
        return all(
            any(holds(one.text, leaf) for one in self._shown if one.computes() or _tells(leaf)) for leaf in given
        )

    def _right_step(
        self,
        right: list[Leaf],
        given: list[Leaf],
        chain: Sequence[WayStep],
        end: WayStep | None,
        source: WayStep | None,
    ) -> WayStep | None:
        """Returns the last call that computed the right answer, and did not only happen to give its value."""
        for one in reversed(self._shown):
            if not one.computes() or not has_all(one.text, right):
                continue
            is_left = source is not None and source.place > one.place
            if is_left and any(one.code == other.code for other in self._gold if other is not end):
                continue  # a look, from which both go on
            figures = [leaf for leaf in right if isinstance(leaf, GivenNumber)]
            if pairs_up(_rows_of(one), given) and not pairs_up(_rows_of(one), right):
                continue
            if is_hardly_by_chance(one.text, right) or _is_picked(one, given, right, self._gold):
                return one
            if (figures or _ranks(one)) and self._has_only_the_golds(one):
                return one
            if one.is_small() and all(
                found.weight < _TELLING for found in departures(leading_to(self._mine, one), chain, self._core)
            ):
                return one
            if not figures and has_all(one.text, given) and self._came_right(one):
                return one
        return None

    def _came_right(self, step: WayStep) -> bool:
        """Returns whether the call before one, of those that led to it, gave a figure that the gold gives."""
        steps = [one for one in leading_to(self._mine, step) if one.computes()]
        return len(steps) > 1 and last_right(steps, self._gold) == steps[-2].place

    def _has_only_the_golds(self, step: WayStep) -> bool:
        """Returns whether a result has several numbers, and none that is in no result of the gold."""
        numbers = set(numbers_of(step.text))
        return len(numbers) > 1 and numbers <= {one for gold in self._gold for one in numbers_of(gold.text)}

    def _after_right(self, answer: WayStep, given: list[Leaf], right: list[Leaf]) -> FirstWrong:
        """Tells what was made of a right result."""
        texts = [one.text for one in self._shown if one.computes() and has_all(one.text, right)]
        step = next(one for one in self._shown if one.computes() and has_all(one.text, right))
        there = f"the right value {_shown(right)} was in the result of step {step.place}; {_shown(given)} was answered"
        is_rounded = any(one.meets(other.number) for one, other in pairs_of(given, right))
        if not is_rounded and any(has_all(text, given) for text in texts):
            return FirstWrong("right_not_answered", answer.place, there)
        if slip := slip_of(given, right, texts):
            return FirstWrong("wrong_arithmetic", answer.place, f"{there}: {slip}")
        if self._are_shown(given):
            return FirstWrong("right_not_answered", answer.place, there)
        return FirstWrong("invented", answer.place, f"{there}, which is in no result")

    def _of_no_result(
        self,
        answer: WayStep,
        given: list[Leaf],
        right: list[list[Leaf]],
        last: WayStep | None,
        chain: Sequence[WayStep],
    ) -> FirstWrong:
        computed = [one for one in self._shown if one.computes()][-_LAST:]
        numbers = [number for one in computed for number in numbers_of(one.text)]
        figures = [one for one in given if isinstance(one, GivenNumber)]
        is_made = any(next(slips(one, numbers), "") for one in figures)
        if last is not None and (is_made or self._are_shown(given)):
            words = f"{_shown(given)} was answered, which is computed from results"
            made = FirstWrong("wrong_arithmetic", answer.place, words) if is_made else UNTOLD
            found = self._departed(last, chain, given, right)
            return made if found is UNTOLD else found
        sums = [sum(numbers_of(one.text)) for one in computed]
        if any(len(one) == 1 and isinstance(one[0], GivenNumber) and one[0].is_in(sums) for one in right):
            return FirstWrong(
                "wrong_arithmetic", answer.place, f"{_shown(given)} was answered, which is no sum of results"
            )
        slip = next((told for one in right if (told := slip_of(given, one, ()))), "")
        if slip and any(isinstance(one, GivenNumber) and one.is_distinct() for one in given):
            return FirstWrong("wrong_arithmetic", answer.place, f"{_shown(given)} was answered: {slip}")
        return FirstWrong("invented", answer.place, f"{_shown(given)} was answered, which is in no result")

    def _never(self, answer: WayStep) -> FirstWrong:
        names = self._unread.deciding(())
        return FirstWrong("not_looked", answer.place, f"never looked at: {', '.join(names)}") if names else UNTOLD

    def _departed(
        self, last: WayStep, chain: Sequence[WayStep], given: list[Leaf], right: list[list[Leaf]]
    ) -> FirstWrong:
        scale = next((told for one in right if (told := scale_of(given, one)) is not None), None)
        found = departures(leading_to(self._mine, last), chain, self._core, scale, self._gold)
        if _has_other_keys(given, right):
            other = Departure("wrong_table", last, f"it tells of {_shown(given)}, the gold of {_shown(right[0])}")
            found = [one for one in found if one.mode == other.mode] or [other]
        if self._is_of_the_same(last) or (last.is_by_hand() and any(self._could_give(last, one) for one in right)):
            other = Departure("wrong_arithmetic", last, "it computes otherwise from the same values")
            found = [one for one in found if one.mode == other.mode] or [other]
        return told_by(found, self._unread)


def told_by(found: Sequence[Departure], unread: Unseen) -> FirstWrong:
    """Tells of several departures the one that the result shows: what was not seen at all, or else the gravest."""
    if not found:
        return UNTOLD
    facts = [one for departure in found for one in departure.facts]
    replaced = {one.what for one in facts if one.kind == "replaced"}
    if names := [one for one in unread.deciding(facts) if one not in replaced]:
        first = next((one for one in found if unread.tells(one.facts)), found[0])
        return FirstWrong("not_looked", first.step.place, f"never looked at: {', '.join(names)}; {first.words}")
    return FirstWrong(found[0].mode, found[0].step.place, found[0].words)


def _last(gold: Sequence[WayStep], right: list[list[Leaf]]) -> WayStep | None:
    """Returns the call of the gold that gives the answer, or else its last one that computes something."""
    computing = [one for one in gold if one.computes() and one.text]
    held = [one for one in computing if any(has_all(one.text, leaf) for leaf in right)]
    found = held or computing
    return found[-1] if found else None


def _is_picked(step: WayStep, given: list[Leaf], right: list[Leaf], gold: Sequence[WayStep]) -> bool:
    """Returns whether a result has the right texts in rows that come first, and others were answered.

    Or what was answered is neither in its first nor its last row; or a condition of the gold tells the rows apart.
    """
    if len(right) > _FEW or not all(holds(step.text, one) for one in (*given, *right)):
        return False
    rows = _rows_of(step)
    theirs, mine = (
        [next((at for at, row in enumerate(rows) if holds(row, one)), -1) for one in told]
        for told in (right, [one for one in given if one not in right])
    )
    if not mine or -1 in (*mine, *theirs) or set(mine) & set(theirs):
        return False
    ranks = _ranks(step)
    is_first = max(theirs) < min(mine) and theirs == sorted(theirs) and ranks
    constants = {folded(one.what.rpartition(" ")[2]) for each in gold for one in each.facts if one.kind == "where"}
    constants = {one for one in constants if not _KEY.search(one)}
    is_told = any(
        all(holds(rows[at], one) for at in theirs) and not any(holds(rows[at], one) for at in mine) for one in constants
    )
    if not all(isinstance(one, str) for one in (*given, *right)):
        return is_told
    return is_first or is_told or (ranks and len(mine) == len(right) == 1 and 0 < mine[0] < len(rows) - 1)


_KEY = re.compile(r"^.?$|[a-z_-]+\d")
"""A constant that tells of one row, or of many by chance."""


def _rows_of(step: WayStep) -> list[str]:
    return rows_of(step.text, is_headed=step.name == "sql")


def _ranks(step: WayStep) -> bool:
    return any(one.kind in ("aggregate", "sort", "group", "distinct") for one in step.facts)


def _has_other_keys(given: list[Leaf], right: list[list[Leaf]]) -> bool:
    """Returns whether a table has several texts, and none of them is a right one."""
    keys = [{one for one in told if isinstance(one, str)} for told in (given, *right)]
    is_table = any(isinstance(one, GivenNumber) for one in given)
    return is_table and min(map(len, keys)) > 1 and not any(keys[0] & one for one in keys[1:])


def _tells(leaf: Leaf) -> bool:
    return isinstance(leaf, str) or leaf.is_distinct()


def _shown(found: list[Leaf]) -> str:
    told = [number_text(one.number) if isinstance(one, GivenNumber) else one for one in found[:6]]
    return ", ".join(told) + (", …" if len(found) > 6 else "")

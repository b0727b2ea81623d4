"""Where an attempt whose answer is wrong left the way, by the values in its results and in the gold's."""

from collections.abc import Sequence
from itertools import accumulate

from eval_pipeline.core.model import Json
from eval_pipeline.core.numbers import number_text
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER
from eval_pipeline_plugins.tracks.agent.way.chain import Departure, WayStep, core_of, is_own, leading_to
from eval_pipeline_plugins.tracks.agent.way.differing import departures, last_right
from eval_pipeline_plugins.tracks.agent.way.looked import Unseen
from eval_pipeline_plugins.tracks.agent.way.right import (
    has_other_keys,
    is_picked,
    named,
    named_text,
    rows_of,
)
from eval_pipeline_plugins.tracks.agent.way.values import (
    GivenNumber,
    Leaf,
    as_written,
    figure,
    follows,
    has_all,
    holds,
    is_hardly_by_chance,
    is_told_alone,
    leaves,
    numbers_of,
    pairs_of,
    pairs_up,
    scale_of,
    slip_of,
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
_LAST, _TELLING = 3, 0.25
_MOST_PARTS, _MOST_CHANCE = 4, 0.2


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
    written = [str(one) for one in (answer.answer, *accepted)]
    told = _Answered(mine[:-1], [one for one in gold if one.name != ANSWER], unread, written)
    right = [leaves(one) for one in accepted]
    given = named_text(answer.answer, right, told.shown(), question) or named(leaves(answer.answer, question), right)
    return told.where(answer, given, right) if given else UNTOLD


class _Answered:
    def __init__(
        self, mine: Sequence[WayStep], gold: Sequence[WayStep], unread: Unseen, written: Sequence[str]
    ) -> None:
        self._mine, self._gold, self._unread, self._written = mine, gold, unread, written
        self._core: list[WayStep] = []
        self._shown = [one for one in mine if one.text and one.name != ANSWER]

    def shown(self) -> list[str]:
        """Returns what calls that compute have given."""
        return [one.text for one in self._shown if one.computes()]

    def _told(self, found: list[Leaf]) -> str:
        """Returns values as they were written in the answer, or as the right one is."""
        told = [
            number_text(one.number) if isinstance(one, GivenNumber) else as_written(one, self._written)
            for one in found[:6]
        ]
        return ", ".join(told) + (", …" if len(found) > 6 else "")

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
            return self._of_no_result(answer, given, right)
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
        """Returns whether one operation makes the right figure of what the calls gave that one by hand is from."""
        given = [number for one in leading_to(self._mine, step)[:-1] for number in numbers_of(one.text)]
        return len(right) == 1 and isinstance(right[0], GivenNumber) and follows(right[0], given)

    def _source(self, given: list[Leaf]) -> WayStep | None:
        """Returns the call that the answer is from: that with the fewest numbers, or the last for distinct ones."""
        found = [one for one in self._shown if has_all(one.text, given)]
        computed = [one for one in found if one.computes()] or found
        is_distinct = any(isinstance(one, GivenNumber) and one.is_distinct() for one in given)
        return min(reversed(computed), key=lambda one: 0 if is_distinct else len(numbers_of(one.text)), default=None)

    def _are_shown(self, given: list[Leaf]) -> bool:
        """Returns whether all values are in results; figures of few digits, as any look has, in computed ones."""
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
            if pairs_up(rows_of(one), given) and not pairs_up(rows_of(one), right):
                continue
            if is_hardly_by_chance(one.text, right) or (not is_left and is_picked(one, given, right, self._gold)):
                return one
            if is_told_alone(one.text, right):
                return one
            if self._has_only_the_golds(one):
                return one
            if one.is_small() and all(
                found.weight < _TELLING
                for found in departures(leading_to(self._mine, one), chain, self._core, self._gold)
            ):
                return one
            if self._came_right(one):
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
        there = f"the right value {self._told(right)} was in the result of step {step.place}"
        there = f"{there}; {self._told(given)} was answered"
        is_rounded = any(one.meets(other.number) for one, other in pairs_of(given, right))
        if not is_rounded and any(has_all(text, given) for text in texts):
            return FirstWrong("right_not_answered", answer.place, there)
        if slip := slip_of(given, right, texts):
            return FirstWrong("wrong_arithmetic", answer.place, f"{there}: {slip}")
        if self._are_shown(given):
            return FirstWrong("right_not_answered", answer.place, there)
        return FirstWrong("invented", answer.place, f"{there}, which no call computed")

    def _of_no_result(self, answer: WayStep, given: list[Leaf], right: list[list[Leaf]]) -> FirstWrong:
        computed = [one for one in self._shown if one.computes()][-_LAST:]
        sums = [sum(numbers_of(one.text)) for one in computed]
        wanted = [one[0] for one in right if len(one) == 1 and isinstance(one[0], GivenNumber)]
        if any(one.is_in(sums) or any(follows(one, numbers_of(by.text)) for by in computed) for one in wanted):
            words = f"{self._told(given)} was answered, which is not what results make together"
            return FirstWrong("wrong_arithmetic", answer.place, words)
        slip = next((told for one in right if (told := slip_of(given, one, ()))), "")
        if slip and any(isinstance(one, GivenNumber) and one.is_distinct() for one in given):
            return FirstWrong("wrong_arithmetic", answer.place, f"{self._told(given)} was answered: {slip}")
        return FirstWrong("invented", answer.place, f"{self._told(given)} was answered, which is in no result")

    def _never(self, answer: WayStep) -> FirstWrong:
        names = self._unread.deciding(())
        return FirstWrong("not_looked", answer.place, f"never looked at: {', '.join(names)}") if names else UNTOLD

    def _departed(
        self, last: WayStep, chain: Sequence[WayStep], given: list[Leaf], right: list[list[Leaf]]
    ) -> FirstWrong:
        scale = next((told for one in right if (told := scale_of(given, one)) is not None), None)
        is_other_operation = last.is_by_hand() and any(self._could_give(last, one) for one in right)
        is_last = is_other_operation or self._is_of_the_same(last)
        before = None if is_last else self._wrong_before(last, chain, given, right)
        scale = scale if before is None else None
        steps = leading_to(self._mine, last)
        found = departures(steps, chain, self._core, self._gold, scale)
        if before is not None:
            other = Departure("wrong_filter_or_join", before, "what the last call is given is not what the gold has")
            return told_by([one for one in found if one.step.place <= before.place] or [other], self._unread)
        first = next((one for one in steps if _is_first(one, given)), last)
        found = [one for one in found if one.step.place <= first.place] or found
        if has_other_keys(given, right):
            other = Departure(
                "wrong_table", last, f"it tells of {self._told(given)}, the gold of {self._told(right[0])}"
            )
            found = [one for one in found if one.mode == other.mode] or [other]
        if is_last:
            other = Departure("wrong_arithmetic", last, "it computes otherwise from the same values")
            found = [one for one in found if one.mode == other.mode and not is_other_operation] or [other]
        return told_by(found, self._unread)

    def _wrong_before(
        self, last: WayStep, chain: Sequence[WayStep], given: list[Leaf], right: list[list[Leaf]]
    ) -> WayStep | None:
        """Returns the call whose value is wrong already, as the last one makes of it what the gold makes of its own."""
        pairs = [pairs_of(given, one) for one in right]
        pair = next((one[0] for one in pairs if len(one) == len(given) == 1), None)
        if pair is None or 0 in (pair[0].number, pair[1].number) or last.is_shared:
            return None
        mine, right_one = pair
        off = sum(0.5 * 10.0**-one.decimals / abs(one.number) if one.decimals else 0.0 for one in pair) + 1e-9
        steps = [one for one in leading_to(self._mine, last)[:-1] if one.computes() and one.text]
        theirs = {total for one in chain for total in _totals(one) if not right_one.meets(total)}
        tried = [(step, total) for step in steps for total in _totals(step)]
        typed = [one for one in last.numbers if is_own(one) and any(one in numbers_of(step.text) for step in steps)]
        if last.is_by_hand() and len(typed) > 1:
            odd = [
                one for one in steps if not set(numbers_of(one.text)) & {n for g in chain for n in numbers_of(g.text)}
            ]
            tried += [(one, sum(typed)) for one in odd[-1:]]
        if off * len(theirs) * len(tried) > _MOST_CHANCE:
            return None
        for step, own in reversed(tried):
            for wanted in theirs:
                ratio = (mine.number / own) / (right_one.number / wanted)
                if abs(ratio - 1) <= off and own != wanted:
                    return step
        return None


def _totals(step: WayStep) -> list[float]:
    """Returns the few numbers that a call gave, and their sums from the first on."""
    numbers = numbers_of(step.text)
    if len(numbers) > _MOST_PARTS:
        return []
    return [one for one in dict.fromkeys([*numbers, *accumulate(numbers)]) if one]


def _is_first(step: WayStep, given: list[Leaf]) -> bool:
    """Returns whether a result has the wrong figures, which hardly are there by chance."""
    is_distinct = any(isinstance(one, GivenNumber) and one.is_distinct() for one in given)
    return is_distinct and has_all(step.text, given)


def told_by(found: Sequence[Departure], unread: Unseen) -> FirstWrong:
    """Tells of several departures the one that the result shows: what was not seen at all, or else the gravest."""
    if not found:
        return UNTOLD
    facts = [one for departure in found for one in departure.facts]
    replaced = {one.what for one in facts if one.kind == "replaced"}
    if names := [one for one in unread.deciding(facts) if one not in replaced]:
        words = f"never looked at: {', '.join(names)}; {found[0].words}"
        return FirstWrong("not_looked", found[0].step.place, words)
    return FirstWrong(found[0].mode, found[0].step.place, found[0].words)


def _last(gold: Sequence[WayStep], right: list[list[Leaf]]) -> WayStep | None:
    """Returns the call of the gold that gives the answer, or else its last one that computes something."""
    computing = [one for one in gold if one.computes() and one.text]
    held = [one for one in computing if any(has_all(one.text, leaf) for leaf in right)]
    found = held or computing
    return found[-1] if found else None


def _tells(leaf: Leaf) -> bool:
    return isinstance(leaf, str) or leaf.is_distinct()

"""Finds the fewest named steps between an answer and the reference code, by running what each step leads to.

Steps are looked for from both sides. The reference code with one element altered may behave like the answer, and the
answer with one element altered like the reference code; if an altered answer behaves like an altered reference code, it
is two steps away. What counts are results on the given tables and all variants; the texts of the codes only decide what
is tried first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import answer_code
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import read_result
from eval_pipeline_plugins.tracks.pandas_code.robust.changes import BEST, FAILS, lent
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import known_of, normal_code
from eval_pipeline_plugins.tracks.pandas_code.robust.running import behaves_alike, outcomes_on, same, shared_results
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Kind, Mutant, lent_mutants, shared

MOST_STEPS = 3
"""Answers that are further from the reference code are not mended."""
_LIKELY, _OTHERS, _TWICE = 10, 60, 24
"""Changes of a code that are tried: those that make the codes more alike, the others, and two at once."""
_PROBES = 2
_TELLING = 4
"""Different results from which on they tell something about a change that makes the codes no more alike."""
_SHARED = 0.5
"""Share of the reference code's elements in an answer whose results are constant, from which on it may be mended."""
_VERIFIED = 8
"""Candidates that are alike on the probes and are then run on all tables."""


@dataclass(frozen=True, slots=True)
class MendingStep:
    """One step from the reference code to an answer.

    Attributes:
        kind: kind of the requirement, as in `variants.mutants.Kind`.
        missing: whether the answer lacks something of the reference code.
        words: what the answer does instead.
    """

    kind: str
    missing: bool
    words: str


@dataclass(frozen=True, slots=True)
class Tried:
    """An answer's results, and those of the reference code, on the given tables (first) and the variants.

    Attributes:
        recipes: the tables; none for the given ones.
        expected: results of the reference code.
        results: results of the answer; None if it has none.
        right: whether each is the expected one.
        changed: results of changed reference codes by their texts, on all tables or all but the given ones.
    """

    recipes: Sequence[Json]
    expected: Sequence[Json]
    results: Sequence[Json]
    right: Sequence[bool]
    changed: Mapping[str, Sequence[Json]] = field(default_factory=dict)


def steps_between(gold: PandasGold, code: str, tried: Tried) -> tuple[MendingStep, ...] | None:
    """Returns the fewest steps that are found between an answer and the reference code; None if there are too many.

    Args:
        gold: the turn's gold, with reference code.
        code: the answer's code, which differs from the reference code on some table.
        tried: what both give.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    return _Search(gold, code, tried).found()


@dataclass(slots=True)
class _Candidate:
    """A changed code.

    Attributes:
        changes: what was changed, one after the other.
        rank: how much less it is like the other code than before.
        results: results by the place of the tables.
    """

    changes: tuple[Mutant, ...]
    rank: int
    results: dict[int, Json] = field(default_factory=dict)

    @property
    def code(self) -> str:
        return self.changes[-1].code


class _Search:
    def __init__(self, gold: PandasGold, code: str, tried: Tried) -> None:
        self._gold, self._tried = gold, tried
        self._runs_left = gold.context.options.mending_runs
        self._known = known_of(gold)
        self._reference, self._answer = normal_code(gold, str(gold.code)), normal_code(gold, code)
        self._texts: dict[int, str] = {}
        self._alike: dict[tuple[str, str, bool], bool] = {}
        # Where an answer fails nothing can be compared, which is told apart.
        self._all = [place for place, one in enumerate(tried.results) if one is not None]
        self._probes = self._chosen()

    def found(self) -> tuple[MendingStep, ...] | None:
        """Returns the steps."""
        count, fails = len(self._tried.results), len(self._tried.results) - len(self._all)
        if fails > FAILS * count or not (fails or self._probes):
            return None
        steps = self._altered() if self._probes else ()
        if steps is None or not fails:
            return steps
        return (*steps, MendingStep(str(Kind.STEP), False, f"the code fails on {fails} of {count} tables"))

    def _altered(self) -> tuple[MendingStep, ...] | None:
        """Returns the steps after which both codes behave alike wherever the answer has a result."""
        theirs = self._candidates(self._reference, self._answer)
        for one in theirs[:BEST]:
            known = self._tried.changed.get(one.code, ())
            one.results.update(enumerate(known, len(self._tried.recipes) - len(known)))
            self._runs_left -= len(known)
        # Most wrong answers are found here, with one run.
        best = [one for one in theirs if one.rank == theirs[0].rank < 0][:BEST]
        if found := self._like(best, self._run_reference, self._tried.results):
            return _steps(found.changes, ())
        mine = self._candidates(self._answer, self._reference)
        for likely in (True, False):
            if found := self._like(_some(theirs, likely), self._run_reference, self._tried.results):
                return _steps(found.changes, ())
            if found := self._like(_some(mine, likely), self._run_answer, self._tried.expected):
                return _steps((), found.changes)
        theirs, mine = ([one for one in some if one.rank <= 0] for some in (theirs, mine))
        return self._met(theirs, mine) or self._further(theirs, mine)

    def _chosen(self) -> list[int]:
        """Returns places of small tables on which the answer is wrong; the given ones if it is right on the others."""
        wrong = [place for place in self._all if not self._tried.right[place]]
        variants = [place for place in wrong if self._tried.recipes[place]]
        seen: dict[str, int] = {}
        for place in variants:
            seen.setdefault(self._text(self._tried.results[place]), place)
        return [*seen.values()][:_PROBES] or wrong[:1]

    def _candidates(self, code: str, other: str) -> list[_Candidate]:
        return [_Candidate((one.mutant,), one.rank) for one in lent(self._gold, code, other)]

    def _like(
        self,
        candidates: Sequence[_Candidate],
        run: Callable[[Sequence[_Candidate], Iterable[int]], None],
        wanted: Sequence[Json],
    ) -> _Candidate | None:
        """Returns the first candidate that gives the wanted results everywhere."""
        run(candidates, self._all if len(candidates) <= BEST else self._probes)
        # Something constant behaves like anything that leaves no rows, and a flag like many other flags.
        different = len({self._text(one) for one in wanted})
        likely = bool(candidates) and candidates[0].rank < 0
        if (different < _TELLING and not likely) or (
            different < 2 and shared(self._reference, self._answer, self._known) < _SHARED
        ):
            return None
        near = [one for one in candidates if self._are_same(one, wanted, self._probes)][:_VERIFIED]
        run(near, self._all)
        return next((one for one in near if self._are_same(one, wanted, self._all)), None)

    def _met(self, theirs: Sequence[_Candidate], mine: Sequence[_Candidate]) -> tuple[MendingStep, ...] | None:
        """Returns the steps of a changed reference code and a changed answer that behave alike."""
        pairs = sorted(self._pairs(theirs, mine), key=lambda pair: pair[0].rank + pair[1].rank)[:_VERIFIED]
        self._run_reference([pair[0] for pair in pairs], self._all)
        self._run_answer([pair[1] for pair in pairs], self._all)
        for one, other in pairs:
            given = [other.results.get(place) for place in range(len(self._tried.results))]
            if len({self._text(given[place]) for place in self._all}) > 1 and self._are_same(one, given, self._all):
                return _steps(one.changes, other.changes)
        return None

    def _pairs(
        self, theirs: Sequence[_Candidate], mine: Sequence[_Candidate]
    ) -> Iterator[tuple[_Candidate, _Candidate]]:
        by_results: dict[tuple[str, ...], list[_Candidate]] = {}
        for one in theirs:
            if (key := self._key(one)) is not None:
                by_results.setdefault(key, []).append(one)
        for other in mine:
            if (key := self._key(other)) is not None:
                yield from ((one, other) for one in by_results.get(key, ()) if one.rank + other.rank < 0)

    def _key(self, candidate: _Candidate) -> tuple[str, ...] | None:
        """Returns what is equal where results are; None if the change changes nothing, or there is no result."""
        found = [candidate.results.get(place) for place in self._probes]
        if any(one is None for one in found):
            return None
        return tuple(_signature(one) for one in found)

    def _further(self, theirs: Sequence[_Candidate], mine: Sequence[_Candidate]) -> tuple[MendingStep, ...] | None:
        """Tries two changes of the reference code that make it more like the answer."""
        twice, seen = [], {one.code for one in theirs}
        for first in _some(theirs, likely=True):
            for second in lent_mutants(first.code, self._answer, self._known):
                if second.rank < 0 and second.mutant.code not in seen:
                    seen.add(second.mutant.code)
                    twice.append(_Candidate((*first.changes, second.mutant), first.rank + second.rank))
        twice = sorted(twice, key=lambda one: one.rank)[:_TWICE]
        if found := self._like(twice, self._run_reference, self._tried.results):
            return _steps(found.changes, ())
        return self._met(twice, mine)

    def _run_reference(self, candidates: Sequence[_Candidate], places: Iterable[int]) -> None:
        self._run(candidates, places, shared_results)

    def _run_answer(self, candidates: Sequence[_Candidate], places: Iterable[int]) -> None:
        self._run(candidates, places, _answer_results)

    def _run(
        self,
        candidates: Sequence[_Candidate],
        places: Iterable[int],
        results: Callable[[PandasGold, Sequence[str], Sequence[Json]], list[list[Json]]],
    ) -> None:
        """Runs candidates on the tables on which they have not been run."""
        left = [one for one in candidates if any(place not in one.results for place in places)]
        wanted = sorted({place for one in left for place in places if place not in one.results})
        left = left[: max(0, self._runs_left) // max(1, len(wanted))]
        if not left:
            return
        self._runs_left -= len(left) * len(wanted)
        found = results(self._gold, [one.code for one in left], [self._tried.recipes[place] for place in wanted])
        for one, column in zip(left, found, strict=True):
            one.results.update(zip(wanted, column, strict=True))

    def _are_same(self, candidate: _Candidate, wanted: Sequence[Json], places: Iterable[int]) -> bool:
        # A mended answer has to be right; reference code that was changed has to do just what the answer does.
        compared = same if wanted is self._tried.expected else behaves_alike
        return all(self._same(candidate.results.get(place), wanted[place], compared) for place in places)

    def _same(self, one: Json, other: Json, compared: Callable[[PandasGold, Json, Json], bool]) -> bool:
        if one is None or other is None:
            return one is other
        pair = self._text(one), self._text(other), compared is same
        if pair not in self._alike:
            self._alike[pair] = pair[0] == pair[1] or compared(self._gold, one, other)
        return self._alike[pair]

    def _text(self, result: Json) -> str:
        if id(result) not in self._texts:  # all of them live longer than this
            self._texts[id(result)] = json_text(result)
        return self._texts[id(result)]


def _some(candidates: Sequence[_Candidate], likely: bool) -> list[_Candidate]:
    """Returns the candidates that make the codes more alike, or the others."""
    found = [one for one in candidates if (one.rank < 0) is likely]
    return found[: _LIKELY if likely else _OTHERS]


def _answer_results(gold: PandasGold, codes: Sequence[str], recipes: Sequence[Json]) -> list[list[Json]]:
    rows = outcomes_on(gold, recipes, [answer_code(code, gold.context) for code in codes])
    return [[row[place] for row in rows] for place in range(len(codes))]


def _signature(result: Json) -> str:
    """Returns the cells of a result as a text that is the same for most results that are equal."""
    try:
        table = read_result(result)
    except ValueError:
        return ""
    cells = [cell for column in (*table.columns, *table.index) for cell in column.cells]
    return "|".join(sorted(f"{cell:.5g}" if isinstance(cell, float | int) else str(cell) for cell in cells))


def _steps(theirs: Sequence[Mutant], mine: Sequence[Mutant]) -> tuple[MendingStep, ...]:
    """Returns the steps for changes of the reference code and changes of the answer.

    Two changes of one piece of code, one after the other, are told as one step.
    """
    told: list[tuple[Mutant, str, str]] = []
    for one, reference, answer in (
        *((one, one.was, one.now) for one in theirs),
        *((one, one.now, one.was) for one in mine),
    ):
        before = next((place for place, (*_, text) in enumerate(told) if text and text == reference), None)
        if before is None:
            told.append((one, reference, answer))
        else:
            told[before] = (*told[before][:2], answer)
    return tuple(_step(*one) for one in told)


def _step(change: Mutant, reference: str, answer: str) -> MendingStep:
    if not answer:
        return MendingStep(str(change.kind), True, f"{reference} is missing")
    if not reference:
        return MendingStep(str(change.kind), False, f"{answer} is too much")
    return MendingStep(str(change.kind), False, f"{answer} where the reference has {reference}")

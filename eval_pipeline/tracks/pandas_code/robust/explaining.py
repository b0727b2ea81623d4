"""Explains a wrong answer by a mutant of the reference code that has the same results on the variants of the tables."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.robust.answers import Behaviour
from eval_pipeline.tracks.pandas_code.robust.examined import Gives, mutants_on_variants, variants_of
from eval_pipeline.tracks.pandas_code.robust.requirements import requirement_count, turn_mutants
from eval_pipeline.tracks.pandas_code.robust.running import same

NEAR = 0.5
"""An answer that is no mutant is told to be like the nearest one from this agreement on."""
_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the results of an answer on the variants show about it.

    Attributes:
        understanding: share of the requirements that are met, times the agreement with code that meets exactly these.
        coverage: the same with altered requirements counted as met.
        words: the dropped or altered requirements with which the reference code would resemble the answer; empty for
            none.
        kinds: kinds of these requirements, as named in `variants.mutants.Kind`.
        exact: whether answer and mutant have the same results on all variants.
    """

    understanding: float
    coverage: float
    words: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    exact: bool = False


def explained(gold: PandasGold, behaviour: Behaviour) -> Explanation:
    """Returns the explanation of an answer by its results on the variants.

    Raises:
        NoSandboxError: this machine cannot run the mutants.
    """
    if all(behaviour.right):
        return Explanation(1.0, 1.0)
    expected = [one.expected for one in variants_of(gold)]
    compared = _Compared(gold)
    mutants = [one for one in mutants_on_variants(gold) if compared.tells(one, expected)]
    count = max(1, requirement_count(turn_mutants(gold)))
    exact = [one for one in mutants if compared.are_same(behaviour.results, one.results)]
    if exact:
        # What is dropped is the plainer explanation of what several mutants do.
        told = sorted(exact, key=lambda one: not one.mutant.dropped)
        return _result(1.0, told, count, exact=True)
    agreement = compared.beyond_chance(behaviour.results, expected)
    near = [(compared.beyond_chance(behaviour.results, one.results), -place, one) for place, one in enumerate(mutants)]
    best = max(near, default=None, key=lambda found: found[:2])
    if best is None or agreement >= best[0] * (1 - 1 / count):
        return Explanation(agreement, agreement)
    return _result(best[0], [best[2]], count, exact=False)


def _result(agreement: float, found: Sequence[Gives], count: int, *, exact: bool) -> Explanation:
    first = found[0].mutant
    understood = agreement * (1 - 1 / count)
    covered = understood if first.dropped else agreement
    if agreement < NEAR:
        return Explanation(understood, covered)
    told = found[:_MOST_TOLD]
    kinds = tuple(dict.fromkeys(str(one.mutant.kind) for one in told))
    return Explanation(understood, covered, tuple(one.mutant.words for one in told), kinds, exact)


class _Compared:
    """Compares results of a turn, each pair once: most mutants have the same results on most variants."""

    def __init__(self, gold: PandasGold) -> None:
        self._gold = gold
        self._pairs: dict[tuple[int, int], bool] = {}
        self._texts: dict[int, str] = {}

    def tells(self, one: Gives, expected: Sequence[Json]) -> bool:
        """Whether a mutant has several results and differs from the reference code: a constant explains nothing."""
        return len(set(map(self._text, one.results))) > 1 and not self.are_same(one.results, expected)

    def are_same(self, results: Sequence[Json], others: Sequence[Json]) -> bool:
        """Whether results are equal on each variant."""
        return all(self._alike(one, other) for one, other in zip(results, others, strict=True))

    def beyond_chance(self, results: Sequence[Json], others: Sequence[Json]) -> float:
        """Returns how far the agreement exceeds that of code which always returns the most frequent of the others."""
        pairs = zip(results, others, strict=True)
        agreement = sum(one is not None and self._alike(one, other) for one, other in pairs) / len(results)
        chance = Counter(map(self._text, others)).most_common(1)[0][1] / len(others)
        return max(0.0, (agreement - chance) / (1 - chance)) if chance < 1 else 0.0

    def _alike(self, one: Json, other: Json) -> bool:
        if one is None or other is None:
            return one is other
        pair = id(one), id(other)  # all of them live longer than this
        if pair not in self._pairs:
            self._pairs[pair] = self._text(one) == self._text(other) or same(self._gold, one, other)
        return self._pairs[pair]

    def _text(self, result: Json) -> str:
        if id(result) not in self._texts:
            self._texts[id(result)] = json_text(result)
        return self._texts[id(result)]

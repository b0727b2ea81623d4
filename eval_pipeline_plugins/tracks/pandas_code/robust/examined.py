"""Finds out, once a turn, on which variants results are determined, and what the mutants of the reference code give."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import turn_mutants
from eval_pipeline_plugins.tracks.pandas_code.robust.running import (
    Examined,
    examined_on,
    results_of,
    same_in_any_order,
    shared_results,
)
from eval_pipeline_plugins.tracks.pandas_code.robust.variants import (
    Variant,
    is_determined,
    kept_at,
    known_candidates,
    once,
    tie_breaking,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Mutant
from eval_pipeline_plugins.tracks.pandas_code.variants.steps import split
from eval_pipeline_plugins.tracks.pandas_code.variants.ties import takes_by_place

_SHUFFLED = 3
"""Variants on which the reference code is run with the rows in random order too, not only in the opposite one."""
_ALWAYS_SHUFFLED = "one row"
"""The kind of variant on which it is so too, as counterexamples are often taken from it."""


@dataclass(frozen=True, slots=True)
class Gives:
    """The results of a mutant of the reference code on the variants of a turn's tables.

    Attributes:
        results: one result for each variant, as tagged plain data; None if there is no result.
    """

    mutant: Mutant
    results: tuple[Json, ...]


def candidates_of(gold: PandasGold) -> tuple[Variant, ...]:
    """Returns all variants on which the reference code has a result; none if it determines the result on none of them.

    Code that is right on all of them is right on `variants_of` too. Whether results are determined takes several runs
    of the reference code, which most answers, being right, do not need.

    Raises:
        NoSandboxError: this machine cannot run the reference code.
    """
    found = known_candidates(gold)
    is_any = any(one["determined"] for one in found) or any(determined(gold))
    return _candidates(gold) if is_any else ()


def variants_of(gold: PandasGold) -> tuple[Variant, ...]:
    """Returns the variants of a turn on which its reference code determines the result.

    There are none without reference code, if answers or tests decide, if the case has no tables, or if the code draws
    or writes.

    Raises:
        NoSandboxError: this machine cannot run the reference code.
    """
    return tuple(one for one, decides in zip(_candidates(gold), determined(gold), strict=True) if decides)


def determined(gold: PandasGold) -> list[bool]:
    """Returns for each of `candidates_of` whether it is one of `variants_of`."""
    known = known_candidates(gold)
    if not known:
        return []
    found = once(str(find_home().expected / kept_at(gold, "examined")), _examine, gold)
    return found or [bool(one["determined"]) for one in known]


@lru_cache(maxsize=512)
def mutants_on_variants(gold: PandasGold) -> tuple[Gives, ...]:
    """Returns the results of each mutant on the variants; they are computed once and kept in `$EVAL_HOME/expected`.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    if not variants_of(gold):
        return ()
    codes = [mutant.code for mutant in turn_mutants(gold)]
    columns = once(str(find_home().expected / kept_at(gold, "mutants", codes)), _mutate, gold)
    return tuple(Gives(mutant, tuple(results)) for mutant, results in zip(turn_mutants(gold), columns, strict=True))


def _mutate(gold: PandasGold) -> list[Json]:
    """Returns the results of each mutant; where one takes too long, or uses too much, they are run a few at a time."""
    codes, recipes = [mutant.code for mutant in turn_mutants(gold)], [one.tables for one in variants_of(gold)]
    found = shared_results(gold, codes, recipes)
    return results_of(gold, codes, recipes) if all(one is None for row in found for one in row) else found


def _candidates(gold: PandasGold) -> tuple[Variant, ...]:
    return tuple(Variant(one["kind"], one["tables"], one["expected"]) for one in known_candidates(gold))


def examined_beside(
    gold: PandasGold, parts: Sequence[Json], changed: Sequence[str], given: bool
) -> tuple[list[bool], Examined | None]:
    """Returns the same as `determined`, and what trusted code gives that runs in the same process.

    Args:
        gold: the turn's gold.
        parts: recipes by table of small parts of a candidate, on which the reference code is run.
        changed: changed reference code, which is run on all candidates. It may take constants and names from an answer;
            only such as `run_beside` says may be here, with what decides about the answer.
        given: whether changed code is run on the given tables too, after the candidates.

    Returns:
        Whether each candidate is determined, and the other results; None for these if they could not be found out.
    """
    place, codes = find_home().expected / kept_at(gold, "examined"), tie_breaking(gold)
    if codes is None or not (parts or changed):
        return determined(gold), None
    more: list[Json] = [{}] if given and changed else []
    if read_sealed(place) is None:
        decides, found = _examined(gold, codes, parts, changed, more)
        if decides is not None:
            write_sealed(place, json_text(decides))
            return decides, found
        return determined(gold), None
    recipes = [one["tables"] for one in known_candidates(gold)] if changed else []
    return determined(gold), examined_on(gold, [*recipes, *more], codes, changed, parts=parts)


def run_beside(gold: PandasGold, codes: Sequence[str]) -> list[str]:
    """Returns those of some changed reference codes that cannot change what runs in the same process before them.

    They consist of nothing but assignments and calls that are known to leave everything as it is.
    """
    return [code for code, steps in zip(codes, split(codes, [*gold.context.paths]).codes, strict=True) if steps != code]


def _examine(gold: PandasGold) -> list[Json] | None:
    """Returns whether each candidate is determined; None if the sandbox could not find it out, which is not kept."""
    codes = tie_breaking(gold)
    return None if codes is None else _examined(gold, codes, [], [], [])[0]


def _examined(
    gold: PandasGold, codes: Sequence[str], parts: Sequence[Json], changed: Sequence[str], more: Sequence[Json]
) -> tuple[list[bool] | None, Examined | None]:
    """Returns whether each candidate is determined, and what was run beside that."""
    candidates = known_candidates(gold)
    decides: list[bool | None] = [one["determined"] for one in candidates]
    unknown = [place for place, one in enumerate(decides) if one is None]
    single = [place for place in unknown if candidates[place]["kind"] == _ALWAYS_SHUFFLED]
    unknown = [place for place in unknown if place not in single]
    # What depends on the order of rows, other than by ties, does so nearly everywhere: a few are enough to show it.
    few = unknown[:_SHUFFLED] if decides[0] else unknown
    anywhere = len(codes) == 1 and not takes_by_place(str(gold.code))

    def examine(checked: Sequence[int], shuffled: Sequence[int], changed: Sequence[str]) -> Examined | None:
        places = [*range(len(candidates))] if changed else checked
        recipes = [*(candidates[place]["tables"] for place in places), *(more if changed else ())]
        told = {
            name: [place for place, one in enumerate(places) if one in some]
            for name, some in (("checked", checked), ("shuffled", shuffled))
        }
        return examined_on(gold, recipes, codes, changed, **told, parts=parts)

    def differs(found: Examined, checked: Sequence[int]) -> bool:
        """Notes what is determined; returns whether the order of rows matters."""
        first = [candidates[place]["expected"] for place in checked]
        for place, expected, others, tied in zip(checked, first, found.orders, found.tied, strict=True):
            decides[place] = is_determined(gold, expected, others, tied)
        shown = zip(checked, first, found.orders, strict=True)
        pairs = [(expected, others[1:]) for place, expected, others in shown if place not in single]
        return not all(same_in_any_order(gold, one, expected) for expected, others in pairs for one in others)

    checked, shuffled = sorted([*(few if anywhere else unknown), *single]), [*few, *single]
    found = examine(checked, shuffled, changed)
    beside = found
    if found is None and (changed or parts):
        parts, changed = [], []
        found = examine(checked, shuffled, changed)
    if found is not None and differs(found, checked) and len(few) < len(unknown):
        parts = []
        found = examine(unknown, unknown, [])
        if found is not None:
            differs(found, unknown)
    return (None if found is None else [one is not False for one in decides]), beside

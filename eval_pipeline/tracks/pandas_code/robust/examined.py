"""Finds out, once a turn, on which variants results are determined, and what the mutants of the reference code give."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.core.home import find_home
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox import SnippetFailed
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.robust.requirements import turn_mutants
from eval_pipeline.tracks.pandas_code.robust.running import (
    listed,
    results_of,
    same_in_any_order,
    shared_results,
    told_result,
)
from eval_pipeline.tracks.pandas_code.robust.variants import (
    Variant,
    is_determined,
    kept_at,
    known_candidates,
    once,
    tie_breaking,
)
from eval_pipeline.tracks.pandas_code.runner import OWN_CODE_S, sandbox
from eval_pipeline.variants.mutants import Mutant
from eval_pipeline.variants.snippets import examine_snippet
from eval_pipeline.variants.ties import takes_by_place

_SHUFFLED = 3
"""Variants on which the reference code is run with the rows in random order too, not only in the opposite one."""


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


def _examine(gold: PandasGold) -> list[Json] | None:
    """Returns whether each candidate is determined; None if the sandbox could not find it out, which is not kept."""
    candidates, codes = known_candidates(gold), tie_breaking(gold)
    if codes is None:
        return None
    unknown = [place for place, one in enumerate(candidates) if one["determined"] is None]
    # What depends on the order of rows, other than by ties, does so nearly everywhere: a few are enough to show it.
    few = unknown[:_SHUFFLED] if candidates[0]["determined"] else unknown
    anywhere = len(codes) == 1 and not takes_by_place(str(gold.code))
    found = _checked(gold, codes, few if anywhere else unknown, few)
    if found is not None and found[1] and len(few) < len(unknown):
        found = _checked(gold, codes, unknown, unknown)
    return None if found is None else [one is not False for one in found[0]]


def _checked(
    gold: PandasGold, codes: Sequence[str], unknown: Sequence[int], shuffled: Sequence[int]
) -> tuple[list[bool | None], bool] | None:
    """Returns whether candidates are determined, None where that was not checked, and whether shuffling showed it."""
    candidates = known_candidates(gold)
    names, recipes = [*gold.context.paths], [candidates[place]["tables"] for place in unknown]
    mixed = [number for number, place in enumerate(unknown) if place in shuffled]
    text = examine_snippet(names, recipes, codes, [], range(len(recipes)), mixed)
    found = sandbox(gold.context.layer).run(text, gold.context.paths, wall_s=OWN_CODE_S)
    if isinstance(found, SnippetFailed):
        return None
    told, *parts = listed(found.result["value"])
    results = [told_result(one) for one in listed(told)]
    orders, ties, _ = ([[results[place] for place in listed(row)] for row in listed(part)] for part in parts)
    decides = [one["determined"] for one in candidates]
    differs = False
    for place, others, tied in zip(unknown, orders, ties, strict=True):
        first = candidates[place]["expected"]
        decides[place] = is_determined(gold, first, others, tied)
        differs |= not all(same_in_any_order(gold, one, first) for one in others[1:])
    return decides, differs

"""Decides whether code is right on all variants of a turn's tables; if not, finds the smallest tables that show it."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.results.reading import result_text
from eval_pipeline_plugins.tracks.pandas_code.robust.changes import first_changes
from eval_pipeline_plugins.tracks.pandas_code.robust.examined import (
    candidates_of,
    determined,
    examined_beside,
    run_beside,
)
from eval_pipeline_plugins.tracks.pandas_code.robust.running import examined_on, outcomes_on, same
from eval_pipeline_plugins.tracks.pandas_code.robust.variants import (
    Variant,
    is_decided,
    is_determined,
    kept_at,
    known_candidates,
    tie_breaking,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.recipes import row_count, smaller

_SHOWN_ROWS = 20
_SMALLEST = 6
"""How many parts of a variant are tried first for a counterexample."""
_MOST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The results of code on the variants of a turn's tables.

    Attributes:
        results: one result for each variant, as tagged plain data; None if the code has no result there. Empty if all
            are right.
        right: whether each result is the expected one. Code that is right on all `candidates_of` has one for each of
            these, other code one for each of `variants_of`.
        counterexample: tables, expected and returned result as texts; None if all are right.
        changed: by its text, reference code with a change that may explain the answer, and its results on the given
            tables and `variants_of`, or on the latter only. Not kept, as only an explanation at once needs them.
    """

    results: tuple[Json, ...]
    right: tuple[bool, ...]
    counterexample: Json
    changed: Mapping[str, Sequence[Json]] = field(default_factory=dict, compare=False)


def behaviour_of(gold: PandasGold, code: str, given: Json = None) -> Behaviour | None:
    """Returns the results of code on the variants of the tables; None if the turn has no variants.

    Code that differs in nothing but comments and layout is run once. If the reference code is such code, it is not run;
    it counts as right, without results.

    Args:
        gold: the turn's gold.
        code: the answer's code.
        given: its result on the given tables; None if it is not known.

    Raises:
        NoSandboxError: this machine has no sandbox that can run code.
    """
    if without_layout(code) == without_layout(gold.code or ""):
        return Behaviour((), (), None)
    candidates = candidates_of(gold)
    if not candidates:
        return None
    place = find_home().expected / kept_at(gold, "behaviour", without_layout(code))
    if (text := read_sealed(place)) is not None:
        told = parse_json(text)
        kept = Behaviour(tuple(told["results"]), tuple(told["right"]), told["counterexample"])
        if not kept.results or len(kept.results) == sum(determined(gold)):
            return kept  # else the sandbox could not find out, at that time, on which variants results are determined
    found = _run(gold, candidates, code, given)
    told = {"results": found.results, "right": found.right, "counterexample": found.counterexample}
    write_sealed(place, json_text(told))
    return found


@lru_cache(maxsize=256)
def without_layout(code: str) -> str:
    """Returns code without comments and with one layout, so that what answers have in common is found out once."""
    tree = parse(code)
    try:
        return code if tree is None else ast.unparse(tree)
    except (RecursionError, ValueError):
        return code


def _run(gold: PandasGold, candidates: Sequence[Variant], code: str, given: Json) -> Behaviour:
    results = [row[0] for row in outcomes_on(gold, [one.tables for one in candidates], [code])]
    right = tuple(same(gold, result, one.expected) for result, one in zip(results, candidates, strict=True))
    if all(right):
        return Behaviour((), right, None)
    # All that trusted code has to find out is found out in one process, with a likely variant for the counterexample.
    likely = _smallest(
        candidates,
        [p for p, one in enumerate(known_candidates(gold)) if one["determined"] is not False and not right[p]],
    )
    parts = [] if likely is None or not any(results) else _parts(candidates[likely])[:_SMALLEST]
    changes = run_beside(gold, first_changes(gold, code, results))
    decided, beside = examined_beside(gold, parts, changes, given is not None)
    decides = [place for place, is_one in enumerate(decided) if is_one]
    place, found = _smallest(candidates, [place for place in decides if not right[place]]), None
    if place is not None:
        known = beside.parts if beside is not None and parts and place == likely else None
        returns = any(results[one] for one in decides)
        found = counterexample(gold, candidates[place], code, results[place], returns, known)
    changed = {}
    if beside is not None and changes:
        places = [*([len(candidates)] if given is not None else []), *decides]
        changed = {one: [beside.mutants[place][number] for place in places] for number, one in enumerate(changes)}
    return Behaviour(tuple(results[p] for p in decides), tuple(right[p] for p in decides), found, changed)


def _smallest(candidates: Sequence[Variant], places: Sequence[int]) -> int | None:
    return min(places, key=lambda place: row_count(candidates[place].tables), default=None)


def _parts(variant: Variant) -> list[dict[str, Json]]:
    """Returns the parts of a variant that may be a counterexample, the smallest first, and all of it, each once."""
    parts = [*smaller(variant.tables, row_count(variant.tables)), dict(variant.tables)]
    return [part for place, part in enumerate(parts) if part not in parts[:place]]


def counterexample(
    gold: PandasGold, variant: Variant, code: str, returned: Json, returns: bool, known: list[list[Json]] | None = None
) -> Json:
    """Returns the smallest part of a variant on which the code is found to be wrong, as texts.

    Args:
        gold: the turn's gold.
        variant: a variant on which the code is wrong.
        code: the code.
        returned: the result of the code on the variant.
        returns: whether the code has a result on any variant.
        known: what trusted code gives on the first of the parts, if that is known.
    """
    codes = tie_breaking(gold)
    whole = {"kind": variant.kind, "tables": {}, "expected": _text(variant.expected), "returned": _text(returned)}
    if codes is None or (returned is None and not returns):  # no result anywhere may have taken all the time there is
        return whole
    tried = _parts(variant)
    for some in (tried[:_SMALLEST], tried[_SMALLEST:]):  # from the smallest on; most are found among the first
        if known is None:
            found = examined_on(gold, [], codes, [], parts=some)
            known = [] if found is None else found.parts
        deciding = [  # a part may have ties or empty groups
            (recipes, shown, expected)
            for recipes, (shown, expected, *others) in zip(some, known, strict=False)
            if is_decided(gold, expected) and is_determined(gold, expected, [], others)
        ]
        known = None
        left = [recipes for recipes, _, _ in deciding if recipes != variant.tables]
        given = [row[0] for row in outcomes_on(gold, left, [code])]
        for recipes, shown, expected in deciding:
            mine = returned if recipes == variant.tables else given.pop(0)
            if not same(gold, mine, expected):
                return {**whole, "tables": _tables(shown), "expected": _text(expected), "returned": _text(mine)}
    return whole


def _tables(shown: Json) -> Mapping[str, str]:
    """Returns each table in a dict of tables as text."""
    match shown:
        case {"kind": "value", "value": {"t": "dict", "v": list() as pairs}}:
            return {str(name): _text(told["v"]) for name, told in pairs}
    return {}


def _text(result: Json) -> str:
    return "(no result)" if result is None else result_text(result, _SHOWN_ROWS)[:_MOST_TEXT]

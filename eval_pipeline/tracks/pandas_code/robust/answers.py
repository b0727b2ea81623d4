"""Decides whether code is right on all variants of a turn's tables; if not, finds the smallest tables that show it."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.sealed import read_sealed, write_sealed
from eval_pipeline.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.results.reading import result_text
from eval_pipeline.tracks.pandas_code.robust.examined import candidates_of, determined
from eval_pipeline.tracks.pandas_code.robust.running import outcomes_on, same
from eval_pipeline.tracks.pandas_code.robust.variants import Variant, is_decided, is_determined, kept_at, tie_breaking
from eval_pipeline.variants.recipes import row_count, smaller

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
    """

    results: tuple[Json, ...]
    right: tuple[bool, ...]
    counterexample: Json


def behaviour_of(gold: PandasGold, code: str) -> Behaviour | None:
    """Returns the results of code on the variants of the tables; None if the turn has no variants.

    Code that differs in nothing but comments and layout is run once. If the reference code is such code, it is not run;
    it counts as right, without results.

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
    found = _run(gold, candidates, code)
    told = {"results": found.results, "right": found.right, "counterexample": found.counterexample}
    write_sealed(place, json_text(told))
    return found


def without_layout(code: str) -> str:
    """Returns code without comments and with one layout, so that what answers have in common is found out once."""
    tree = parse(code)
    try:
        return code if tree is None else ast.unparse(tree)
    except (RecursionError, ValueError):
        return code


def _run(gold: PandasGold, candidates: Sequence[Variant], code: str) -> Behaviour:
    results = [row[0] for row in outcomes_on(gold, [one.tables for one in candidates], [code])]
    right = tuple(same(gold, result, one.expected) for result, one in zip(results, candidates, strict=True))
    if all(right):
        return Behaviour((), right, None)
    decides = [place for place, is_one in enumerate(determined(gold)) if is_one]
    wrong = [place for place in decides if not right[place]]
    found = None
    if wrong:
        place = min(wrong, key=lambda place: row_count(candidates[place].tables))
        found = counterexample(gold, candidates[place], code, results[place], any(results[one] for one in decides))
    return Behaviour(tuple(results[place] for place in decides), tuple(right[place] for place in decides), found)


def counterexample(gold: PandasGold, variant: Variant, code: str, returned: Json, returns: bool) -> Json:
    """Returns the smallest part of a variant on which the code is found to be wrong, as texts.

    Args:
        gold: the turn's gold.
        variant: a variant on which the code is wrong.
        code: the code.
        returned: the result of the code on the variant.
        returns: whether the code has a result on any variant.
    """
    codes = tie_breaking(gold)
    whole = {"kind": variant.kind, "tables": {}, "expected": _text(variant.expected), "returned": _text(returned)}
    if codes is None or (returned is None and not returns):  # no result anywhere may have taken all the time there is
        return whole
    tried = [*smaller(variant.tables, row_count(variant.tables)), dict(variant.tables)]
    show = f"result = {{{', '.join(f'{name!r}: {name}' for name in gold.context.paths)}}}"
    for some in (tried[:_SMALLEST], tried[_SMALLEST:]):  # from the smallest on; most are found among the first
        trusted = outcomes_on(gold, some, [*codes, show])
        given = outcomes_on(gold, some, [code])
        for (expected, *others, shown), (mine,) in zip(trusted, given, strict=True):
            is_wrong = is_decided(gold, expected) and not same(gold, mine, expected)
            if is_wrong and is_determined(gold, expected, [], others):  # a part may have ties or empty groups
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

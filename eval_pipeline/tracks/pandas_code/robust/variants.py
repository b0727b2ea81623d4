"""Makes the variants of a turn's tables with the right result on each; done once, kept in `$EVAL_HOME/expected`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.sealed import read_sealed, write_sealed
from eval_pipeline.sandbox import SnippetFailed
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.results.comparison import compare
from eval_pipeline.tracks.pandas_code.results.result_table import read_result
from eval_pipeline.tracks.pandas_code.runner import sandbox
from eval_pipeline.variants.hints import read_hints
from eval_pipeline.variants.snippets import check_snippet, derive_snippet, run_snippet
from eval_pipeline.variants.ties import other_ties

_ORDERS = 2
"""Outcomes of the reference code itself, with its rows in other orders, before those of code that breaks ties."""
_FEW = 5
"""Variants that are run together where all of them took longer than a snippet may."""
VERSION = 5
"""Raised when the same code on the same tables comes to give other variants."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Tables derived from the given ones, and the reference code's result on them.

    Attributes:
        kind: what was done to the tables, a name of `variants.inside.kinds.KINDS`.
        tables: recipe of each table.
        expected: the result as tagged plain data.
    """

    kind: str
    tables: Mapping[str, Json]
    expected: Json


def variants_of(gold: PandasGold) -> tuple[Variant, ...]:
    """Returns the variants of a turn on which its reference code determines the result.

    There are none without reference code, if answers or tests decide, if the case has no tables, or if the code draws
    or writes.

    Raises:
        NoSandboxError: this machine cannot run the reference code.
    """
    return tuple(one for one, decides in zip(_candidates(gold), determined(gold), strict=True) if decides)


def candidates_of(gold: PandasGold) -> tuple[Variant, ...]:
    """Returns all variants on which the reference code has a result; none if it determines the result on none of them.

    Code that is right on all of them is right on `variants_of` too. Whether results are determined takes several runs
    of the reference code, which most answers, being right, do not need.

    Raises:
        NoSandboxError: this machine cannot run the reference code.
    """
    found = _known(gold)
    is_any = any(one["determined"] for one in found) or any(determined(gold))
    return _candidates(gold) if is_any else ()


def determined(gold: PandasGold) -> list[bool]:
    """Returns for each of `candidates_of` whether it is one of `variants_of`."""
    known = [one["determined"] for one in _known(gold)]
    if None not in known:
        return known
    found = _once(str(find_home().expected / kept_at(gold, "determined")), _checked, gold)
    return found or [bool(one) for one in known]


def kept_at(gold: PandasGold, what: str, *more: Json) -> str:
    """Returns the file name in `$EVAL_HOME/expected` for something computed from a turn's gold."""
    tables = {table.name: table.content_hash for table in gold.context.tables}
    libraries = [version("pandas"), version("numpy")]
    if gold.context.layer is not None:
        libraries.append(gold.context.layer.folder.name)
    told = [VERSION, what, gold.code, gold.ordered, list(gold.order_keys), tables, libraries, *more]
    return f"{what}-{json_hash(told)}.json"


def outcomes_on(gold: PandasGold, variants: Sequence[Mapping[str, Json]], codes: Sequence[str]) -> list[list[Json]]:
    """Runs codes on variants, all in one process of the sandbox.

    Returns:
        For each variant the result of each code as tagged plain data; None if the code has no result there.
    """
    if not variants:
        return []
    text = run_snippet([*gold.context.paths], [dict(one) for one in variants], codes)
    found = sandbox(gold.context.layer).run(text, gold.context.paths)
    if isinstance(found, SnippetFailed):
        if found.error_class is ErrorClass.TIMEOUT and len(variants) > _FEW:
            # All together took too long, which on a crowded machine is no fault of the code.
            parts = [variants[start : start + _FEW] for start in range(0, len(variants), _FEW)]
            return [row for part in parts for row in outcomes_on(gold, part, codes)]
        return [[None] * len(codes) for _ in variants]
    rows = _listed(found.result.get("value") if isinstance(found.result, dict) else None)
    if len(rows) != len(variants):  # the code has tampered with what runs it
        return [[None] * len(codes) for _ in variants]
    return [[_result(one) for one in _padded(_listed(row), len(codes))] for row in rows]


def same(gold: PandasGold, returned: Json, expected: Json) -> bool:
    """Whether a result equals the expected one, by the same rules of comparison as for the tables of the case."""
    if returned is None:
        return False
    return compare(returned, expected, ordered=gold.ordered, order_keys=gold.order_keys).equal


def _candidates(gold: PandasGold) -> tuple[Variant, ...]:
    return tuple(Variant(one["kind"], one["tables"], one["expected"]) for one in _known(gold))


def _known(gold: PandasGold) -> list[Json]:
    """Returns the candidates as plain data; `determined` is whether the result is, None if that is not known yet."""
    if gold.code is None or gold.answers or gold.tests is not None or not gold.context.tables or gold.context.output:
        return []
    return _once(str(find_home().expected / kept_at(gold, "variants")), _derived, gold)


@lru_cache(maxsize=2048)
def _once(place_text: str, work: Callable[[PandasGold], list[Json] | None], gold: PandasGold) -> list[Json]:
    """Returns what is kept in a file, or the result of the work, which is kept; empty if it has none."""
    place = Path(place_text)
    if (text := read_sealed(place)) is not None:
        return list(parse_json(text))
    found = work(gold)
    if found is None:
        return []
    write_sealed(place, json_text(found))
    return found


def _derived(gold: PandasGold) -> list[Json] | None:
    """Returns the candidates; None if the sandbox could not make them."""
    assert gold.code is not None
    columns = {name for names in gold.context.columns.values() for name in names}
    tables = {table.name: table.content_hash for table in gold.context.tables}
    hints = read_hints(gold.code, columns, json_hash(tables))
    found = sandbox(gold.context.layer).run(
        derive_snippet([*gold.context.paths], hints, _tie_breaking(gold)), gold.context.paths
    )
    if isinstance(found, SnippetFailed):
        return None
    variants_text, told = _listed(found.result["value"])
    rows = [[_result(one) for one in _listed(row)] for row in _listed(told)]
    return [
        {**variant, "expected": first, "determined": _is_determined(gold, first, others) if others else None}
        for variant, (first, *others) in zip(parse_json(variants_text), rows, strict=True)
        if first is not None and not _is_empty(first)
    ]


def _checked(gold: PandasGold) -> list[Json] | None:
    """Returns for each candidate whether its result is determined; None if the sandbox could not find out."""
    found = _known(gold)
    unknown = [one for one in found if one["determined"] is None]
    rows = _run_otherwise(gold, [one["tables"] for one in unknown])
    if rows is None:
        return None
    outcomes = iter(rows)
    return [
        _is_determined(gold, one["expected"], next(outcomes)) if one["determined"] is None else one["determined"]
        for one in found
    ]


def _run_otherwise(gold: PandasGold, variants: Sequence[Json]) -> list[list[Json]] | None:
    """Returns the results on each variant with other orders of rows and of ties; None if the sandbox has none."""
    found = sandbox(gold.context.layer).run(
        check_snippet([*gold.context.paths], variants, _tie_breaking(gold)), gold.context.paths
    )
    if isinstance(found, SnippetFailed):
        return None
    return [[_result(one) for one in _listed(row)] for row in _listed(found.result["value"])]


def _tie_breaking(gold: PandasGold) -> list[str]:
    """Returns the reference code, and code that means the same but breaks ties in another way."""
    assert gold.code is not None
    return [gold.code, *other_ties(gold.code)]


def _is_determined(gold: PandasGold, first: Json, others: Sequence[Json]) -> bool:
    """Whether the result of the reference code does not depend on the order of rows and ties."""
    # Code that breaks ties in another way is made by rule, and may fail where the reference code does not.
    otherwise = [one for one in others[_ORDERS:] if one is not None]
    return all(same(gold, one, first) for one in [*others[:_ORDERS], *otherwise])


def _is_empty(result: Json) -> bool:
    """Whether a result has no rows or only missing values, so that it depends on conventions."""
    table = read_result(result)
    return all(cell is None for column in table.columns for cell in column.cells)


def _listed(told: Json) -> list[Json]:
    """Returns the items of a list in tagged plain data; none if the data are something else."""
    return list(told["v"]) if isinstance(told, dict) and told.get("t") == "list" else []


def _padded(items: list[Json], count: int) -> list[Json]:
    return (items + [None] * count)[:count]


def _result(outcome: Json) -> Json:
    """Returns the result in `["ran", result]`, None for any other outcome."""
    match _listed(outcome):
        case ["ran", dict() as told] if told.get("t") == "table":
            return told["v"]
        case ["ran", told]:
            return {"kind": "value", "value": told}
    return None
